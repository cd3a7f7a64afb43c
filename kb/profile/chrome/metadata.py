"""What a Kineto trace says about its device, its job and its software."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from kb.domain.soc import SocRef
from kb.errors import MalformedInputError
from kb.profile.chrome.writing import ORIGIN
from kb.session.meta import Group, Parallel, SessionMeta

_SOFTWARE: Final = (
    "cuda_runtime_version",
    "cuda_driver_version",
    "hip_runtime_version",
    "hip_driver_version",
    "cupti_version",
    "roctracer_version",
)
MOST_RANKS: Final = 2**31
"""Of one job; ranks are kept as 32-bit numbers."""
_ALSO_NOT_ENVIRONMENT: Final = frozenset({"traceEvents", "deviceProperties", "distributedInfo", "INFO", "metadata", ORIGIN})
_Value = TypeVar("_Value")


class _Device(msgspec.Struct, frozen=True):
    name: str | None = None
    numSms: int | None = None  # noqa: N815  # the trace's own key


class _Group(msgspec.Struct, frozen=True):
    pg_name: str | int = ""
    pg_desc: str = ""
    ranks: tuple[int, ...] = ()


class Distributed(msgspec.Struct, frozen=True):
    """``distributedInfo`` of the trace."""

    rank: int | None = None
    world_size: int | None = None
    pg_config: tuple[_Group, ...] = ()


def distributed(metadata: Mapping[str, msgspec.Raw]) -> Distributed:
    """The job's shape; empty when the trace does not say or says it in another form."""
    found = _read(metadata, "distributedInfo", Distributed) or Distributed()
    return Distributed(
        found.rank if found.rank is not None and 0 <= found.rank < MOST_RANKS else None,
        found.world_size if found.world_size is not None and 0 < found.world_size <= MOST_RANKS else None,
        found.pg_config,
    )


def parallel(info: Distributed) -> Parallel:
    """Groups of more than one rank."""
    groups = (Group(name=str(group.pg_name), dimension=group.pg_desc or "unknown", ranks=group.ranks) for group in info.pg_config)
    return Parallel(groups=tuple(group for group in groups if len(group.ranks) > 1))


def soc(metadata: Mapping[str, msgspec.Raw]) -> SocRef:
    """The first device; a trace without device properties names no chip."""
    devices = _read(metadata, "deviceProperties", tuple[_Device, ...]) or ()
    if not devices:
        return SocRef()
    named = devices[0].name or None
    return SocRef(reported_name=named, family="gpu", cores=devices[0].numSms, confidence="high" if named else "low", how="deviceProperties")


def software(metadata: Mapping[str, msgspec.Raw]) -> dict[str, str]:
    """Versions the trace states."""
    return {name: _text(metadata[name]) for name in _SOFTWARE if name in metadata}


def environment(metadata: Mapping[str, msgspec.Raw]) -> dict[str, str]:
    """Every other plain value beside the events: job, user and host names among them, masked before publishing."""
    skipped = _ALSO_NOT_ENVIRONMENT | set(_SOFTWARE)
    return {name: _text(raw) for name, raw in metadata.items() if name not in skipped and not bytes(raw).lstrip().startswith((b"{", b"["))}


def restored(meta: SessionMeta, metadata: Mapping[str, msgspec.Raw], label: str) -> SessionMeta:
    """The metadata of the session a trace of ours was made from, its origin above all; else ``meta``. Raises
    MalformedInputError: a damaged mark must not turn a simulated run into a measured one."""
    if ORIGIN not in metadata:
        return meta
    try:
        before = msgspec.json.decode(metadata[ORIGIN], type=SessionMeta)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedInputError(f"{label}:1: {ORIGIN}: {error}", do="export the session again") from error
    return replace(before, capture=meta.capture, missing=meta.missing, violations=meta.violations)


def base_ns(metadata: Mapping[str, msgspec.Raw]) -> int:
    """What is to be added to every time; 0 when times are absolute."""
    value = _read(metadata, "baseTimeNanoseconds", int)
    return value if value is not None and 0 <= value < 2**61 else 0


def _read(metadata: Mapping[str, msgspec.Raw], name: str, kind: type[_Value]) -> _Value | None:
    if name not in metadata:
        return None
    try:
        return msgspec.json.decode(metadata[name], type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _text(raw: msgspec.Raw) -> str:
    value = bytes(raw).decode(errors="replace").strip()
    try:
        decoded = msgspec.json.decode(value)
    except (msgspec.MsgspecError, RecursionError):
        return value
    return decoded if isinstance(decoded, str) else value
