"""To which module of the model a kernel belongs: by module scopes on the host, by user frames, else by its sequence."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.diagnose.frames import user_frame
from kb.diagnose.idle import launch_table
from kb.diagnose.view import RankView
from kb.session.session import Array, Table

_SCOPE: Final = ("nn.Module: ", "nn.Module:")
_ANCHORS: Final = ("product", "convolution", "fused_attention", "moe")
_LONGEST: Final = 60


def module_names(view: RankView, kernels: Table, rows: Array) -> Array:
    """One name a kernel at ``rows`` (ascending), object array. The first source that knows anything is used for all."""
    for source in (_by_scopes, _by_frames):
        names = source(view, kernels, rows)
        if names is not None:
            return names
    return _by_sequence(view, kernels, rows)


def _launch_times(view: RankView, kernels: Table, rows: Array) -> Array | None:
    """When each kernel was launched, -1 where unknown; None without any link."""
    hosts = view.session.table("host_ops")
    launches = launch_table(hosts) if hosts is not None else None
    if launches is None or "connection_id" not in kernels:
        return None
    place = launches.of(kernels["connection_id"][rows])
    return np.where(place >= 0, launches.starts[place], -1) if (place >= 0).any() else None


def _by_scopes(view: RankView, kernels: Table, rows: Array) -> Array | None:
    """The innermost module scope that was open when the kernel was launched."""
    times, hosts = _launch_times(view, kernels, rows), view.session.table("host_ops")
    if times is None or hosts is None:
        return None
    scopes = np.array([text.startswith(_SCOPE) for text in (*view.session.strings, "")])
    own = np.flatnonzero(scopes[hosts["name"]])
    if not len(own):
        return None
    return _innermost(view, hosts, own, times)


def _innermost(view: RankView, hosts: Table, own: Array, times: Array) -> Array:
    starts = hosts["start_ns"][own]
    ends = starts + hosts["duration_ns"][own]
    parent = _parents(starts.tolist(), ends.tolist())
    place = np.searchsorted(starts, times, side="right") - 1
    for _ in range(64):
        outside = (place >= 0) & (ends[np.maximum(place, 0)] <= times)
        if not outside.any():
            break
        place = np.where(outside, parent[np.maximum(place, 0)], place)
    names = np.array(
        [view.session.strings[code].removeprefix("nn.Module:").strip() for code in hosts["name"][own].tolist()] + ["?"], object
    )
    return np.asarray(names[np.where(times >= 0, place, -1)], object)


def _parents(starts: list[int], ends: list[int]) -> Array:
    """For each nested interval (ascending by start) the place of the one around it, -1 for none."""
    found, open_places = [], list[int]()
    for place, start in enumerate(starts):
        while open_places and ends[open_places[-1]] <= start:
            open_places.pop()
        found.append(open_places[-1] if open_places else -1)
        open_places.append(place)
    return np.array(found, np.int64)


def _by_frames(view: RankView, kernels: Table, rows: Array) -> Array | None:
    """The innermost user frame on the stack of the framework operator around the launch."""
    times, hosts = _launch_times(view, kernels, rows), view.session.table("host_ops")
    if times is None or hosts is None or "stack" not in hosts:
        return None
    own = np.flatnonzero((hosts["stack"] >= 0) & (hosts["duration_ns"] > 0))
    if not len(own):
        return None
    starts = hosts["start_ns"][own]
    place = np.searchsorted(starts, times, side="right") - 1
    inside = (place >= 0) & (times < (starts + hosts["duration_ns"][own])[np.maximum(place, 0)])
    if not inside.any():
        return None
    codes = hosts["stack"][own]
    frames = {code: user_frame(view.session.strings[code]) for code in np.unique(codes).tolist()}
    names = np.array([frames[code] for code in codes.tolist()] + ["?"], object)
    return np.asarray(names[np.where(inside, place, -1)], object)


def _by_sequence(view: RankView, kernels: Table, rows: Array) -> Array:
    """The product, convolution or attention kernel before it, named by type and shapes: equal layers fall together."""
    anchors = np.logical_or.reduce([view.role(kernels, role) for role in _ANCHORS])[rows]
    last = np.maximum.accumulate(np.where(anchors, np.arange(len(rows)), -1))
    shapes = kernels["input_shapes"][rows] if "input_shapes" in kernels else np.full(len(rows), -1)
    kinds = np.where(kernels["op_type"][rows] >= 0, kernels["op_type"][rows], kernels["name"][rows])
    keys = np.stack((kinds, shapes), axis=1)
    distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
    labels = [_label(view, kind, shape) for kind, shape in distinct.tolist()]
    names = np.array([*labels, "(start)"], object)
    return np.asarray(names[np.where(last >= 0, np.ravel(inverse)[np.maximum(last, 0)], -1)], object)


def _label(view: RankView, kind: int, shape: int) -> str:
    text = f"{view.session.text(kind) or '?'} {(view.session.text(shape) or '').strip(chr(34))}".strip()
    return text if len(text) <= _LONGEST else text[: _LONGEST - 2] + ".."
