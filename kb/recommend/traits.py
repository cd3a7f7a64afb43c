"""What of a run decides how much a strategy can gain: numbers that any profile shows, for stored cases and for this session alike.

Shares are of the representative step. A trait that the capture does not show is left out, never set to zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from kb.diagnose.operators import load_classes, matching
from kb.diagnose.ruleset import RULES
from kb.diagnose.view import RankView, rank_view
from kb.domain.accounting import PARTS
from kb.domain.diagnosis import Diagnosis
from kb.domain.quantity import Quantity
from kb.domain.soc import Soc, Sourced
from kb.recommend.replay import queue_free, replayed
from kb.session.session import Array, Session, Table

Floats = npt.NDArray[np.float64]
Traits = Mapping[str, float]
CAUSES: Final = tuple(dict.fromkeys(cause for entry in RULES for cause in entry.causes))
PHASES: Final = ("training", "prefill", "decode", "inference")
FAMILIES: Final = ("A2", "A3", "910", "310P")
_ROLES: Final = ("product", "softmax", "fused_attention", "convolution", "elementwise", "norm", "cast", "quantise", "moe", "layout",
                 "decode_attention", "paged_attention", "glue", "reduction", "gradient")  # fmt: skip
_ENGINES: Final = ("cube", "vector", "mix", "ai_cpu")
_HOST: Final[Mapping[str, tuple[str, ...]]] = {
    "input": (r".*[Dd]ata[Ll]oader.*",), "gc": (r"gc\..*",), "save": (r"torch\.save.*", r".*[Cc]heckpoint.*"),
    "compile": (r".*[Cc]ompile.*",), "wait": (r"aclrtSynchronize.*",), "copy": (r"aclrtMemcpy.*",),
}  # fmt: skip
_LAUNCH_LAYERS: Final = ("node",)
_SMALL: Final = 1e-9


def traits(sessions: Sequence[Session], diagnosis: Diagnosis, socs: Mapping[str, Soc], views: Sequence[RankView] = ()) -> Traits:
    """The traits of one input. The rank with the longest step speaks for the kernels; findings of all ranks count.

    ``views`` are those the diagnosis was made from, one a session; without them the session is accounted for again.
    """
    place = max(range(len(sessions)), key=lambda number: diagnosis.sessions[number].accounting.step_ns, default=None)
    if place is None or not diagnosis.sessions[place].accounting.step_ns:
        return {}
    view = views[place] if views else rank_view(sessions[place], load_classes(), socs)
    found = dict(_context(view))
    found.update({part: diagnosis.sessions[place].accounting.share(part) for part in PARTS})
    found.update(_bounds(diagnosis))
    found.update(_kernels(view))
    found.update(_host(view))
    found.update(_memory(view))
    return {name: value for name, value in found.items() if np.isfinite(value)}


def _bounds(diagnosis: Diagnosis) -> dict[str, float]:
    """Gain bound of every judged cause as a share of its step; 0 where it was judged and not found."""
    found = dict.fromkeys((f"bound.{cause}" for cause in CAUSES), 0.0)
    for finding in diagnosis.all_findings():
        name = f"bound.{finding.cause}"
        share = finding.share * finding.gain_bound_ns / finding.exposed_ns if finding.exposed_ns else 0.0
        found[name] = max(found.get(name, 0.0), share)
    return found


def _context(view: RankView) -> Iterator[tuple[str, float]]:
    meta = view.session.meta
    yield "log_step", float(np.log10(max(view.accounting.step_ns, 1)))
    for phase in PHASES:
        yield f"phase.{phase}", float(meta.model.phase == phase)
    for family in FAMILIES:
        yield f"family.{family}", float(meta.soc.family == family)
    parallel = meta.parallel
    for name, degree in (("tp", parallel.tensor), ("pp", parallel.pipeline), ("dp", parallel.data), ("ep", parallel.expert)):
        yield f"log_{name}", float(np.log2(degree)) if degree else 0.0
    if meta.model.batch:
        yield "log_batch", float(np.log2(meta.model.batch))
    if view.soc is not None:
        yield "balance", float(np.log10(view.soc.peak_fp16_flops / _base(view.soc.memory_bandwidth, "B/s")))
        yield "bandwidth", float(np.log10(_base(view.soc.memory_bandwidth, "B/s")))


def _kernels(view: RankView) -> Iterator[tuple[str, float]]:
    kernels = view.kernels
    step = float(view.accounting.step_ns)
    if kernels is None or not len(kernels) or step <= 0:
        return
    calls = view.communication(kernels)
    own = kernels.where(~calls)
    if not len(own):
        return
    spent = own["duration_ns"].astype(np.float64)
    yield "log_kernels", float(np.log10(len(own)))
    yield "log_kernel", float(np.log10(max(spent.mean(), 1.0)))
    yield "log_median_kernel", float(np.log10(max(float(np.median(spent)), 1.0)))
    yield "busy", float(spent.sum() / step)
    yield "called", float(kernels["duration_ns"][calls].sum() / step)
    yield "streams", float(len(np.unique(own["stream"]))) if "stream" in own else 1.0
    engines = {name: matching(view.session, own["core"], view.classes.cores[name]) for name in _ENGINES}
    for name, mask in engines.items():
        yield f"share.{name}", float(spent[mask].sum() / step)
    if view.typed():
        for role in _ROLES:
            mask = view.role(kernels, role)[~calls]
            yield f"role.{role}", float(spent[mask].sum() / step)
            if role in ("elementwise", "layout", "cast", "norm"):
                yield f"count.{role}", float(mask.mean())
        transfer = matching(view.session, own["op_type"], ("TransData",))
        yield "role.transdata", float(spent[transfer].sum() / step)
    products = view.role(kernels, "product")[~calls] if view.typed() else np.zeros(len(own), np.bool_)
    yield from _counters(view, own, spent, engines, products, step)


def _counters(view: RankView, own: Table, spent: Floats, engines: Mapping[str, Array], products: Array,
              step: float) -> Iterator[tuple[str, float]]:  # fmt: skip
    cube, vector = engines["cube"] | engines["mix"], engines["vector"]
    for column, mask in (("aic_mac_ratio", cube), ("aic_mte1_ratio", cube), ("aic_mte2_ratio", cube), ("aic_fixpipe_ratio", cube),
                         ("aiv_vec_ratio", vector), ("aiv_mte2_ratio", vector), ("aiv_mte3_ratio", vector),
                         ("cube_utilization", cube), ("l2_hit_ratio", cube | vector)):  # fmt: skip
        if column in own:
            yield f"mean.{column}", _mean(own[column], spent, mask)
    if "aic_mac_ratio" in own and "aic_mte2_ratio" in own:
        mac, moved = own["aic_mac_ratio"], own["aic_mte2_ratio"]
        yield "fed", float(np.nansum(spent[cube] * np.maximum(0.0, 1.0 - mac[cube])) / step)
        yield "mac", float(np.nansum(spent[cube] * np.minimum(mac[cube], 1.0)) / step)
        yield "starved", float(spent[cube & (moved > mac)].sum() / step)
    if "hbm_read_bytes" in own and view.soc is not None:
        moved = np.nansum(own["hbm_read_bytes"]) + np.nansum(own["hbm_write_bytes"])
        yield "memory_use", float(moved / (_base(view.soc.memory_bandwidth, "B/s") * step / 1e9))
    if "block" in own and view.cube_cores:
        yield "cores.cube", _mean(np.minimum(own["block"] / view.cube_cores, 1.0), spent, cube)
    if "block" in own and view.vector_cores:
        yield "cores.vector", _mean(np.minimum(own["block"] / view.vector_cores, 1.0), spent, vector)
    for column, name, pattern in (("input_formats", "blocked", r".*NZ.*"), ("input_dtypes", "single", r"(FLOAT|FLOAT32)(;.*)?"),
                                  ("input_dtypes", "int8", r"INT8.*")):  # fmt: skip
        if column in own:
            mask = products & matching(view.session, own[column], (pattern,))
            yield f"product.{name}", float(spent[mask].sum() / step)
    if view.typed() and "output_shapes" in own:
        yield from _rows(view, own, spent, products)


def _rows(view: RankView, own: Table, spent: Floats, products: Array) -> Iterator[tuple[str, float]]:
    """Rows of the products' results, weighted by time: few rows mean that weights move for little work."""
    codes = own["output_shapes"][products]
    if not len(codes):
        return
    rows = {code: _leading(view.session.strings[code]) for code in np.unique(codes).tolist() if code >= 0}
    logs = np.array([rows.get(code, 0.0) for code in codes.tolist()])
    yield "log_rows", float(np.average(logs, weights=np.maximum(spent[products], _SMALL)))


def _leading(shape: str) -> float:
    """log2 of the product of all but the last dimension of the first operand of a shape text."""
    sizes = [int(size) for size in shape.split(";")[0].split(",") if size.strip().isdigit()]
    return float(np.sum(np.log2(np.maximum(sizes[:-1], 1)))) if sizes else 0.0


def _mean(values: Floats, weights: Floats, mask: Array) -> float:
    chosen = mask & np.isfinite(values)
    total = weights[chosen].sum()
    return float((values[chosen] * weights[chosen]).sum() / total) if total > 0 else float("nan")


def _host(view: RankView) -> Iterator[tuple[str, float]]:
    host, window = view.session.table("host_ops"), view.window
    step = float(view.accounting.step_ns)
    if host is None or window is None or not len(host):
        return
    inside = host.where((host["start_ns"] >= window[0]) & (host["start_ns"] < window[1]))
    launched = matching(view.session, inside["layer"], _LAUNCH_LAYERS)
    costs = inside["duration_ns"][launched].astype(np.float64)
    if len(costs):
        yield "launches", float(costs.sum() / step)
        yield "log_launch", float(np.log10(max(costs.mean(), 1.0)))
        count = len(view.kernels) if view.kernels is not None else 0
        yield "per_launch", float(np.log10(max(count, 1) / len(costs)))
    for name, patterns in _HOST.items():
        spent = inside["duration_ns"][matching(view.session, inside["name"], patterns)]
        yield f"host.{name}", float(spent.sum() / step)
        yield f"often.{name}", float(np.log1p(len(spent)))
    yield from _replays(view, inside, launched, step)


def _replays(view: RankView, host: Table, launched: Array, step: float) -> Iterator[tuple[str, float]]:
    """What is left of the step, by replaying its launches against its kernels, when launching costs less or never blocks."""
    if view.kernels is None or "connection_id" not in view.kernels:
        return
    launches = host.where(launched)
    plain = replayed(view.kernels, launches, 1.0)
    if plain is None or plain <= 0:
        return
    for name, part in (("half", 0.5), ("none", 0.0)):
        again = replayed(view.kernels, launches, part)
        if again is not None:
            yield f"replay.{name}", 1.0 - again / plain
    free = queue_free(view.kernels, launches)
    if free is not None:
        yield "replay.unblocked", 1.0 - free / step


def _memory(view: RankView) -> Iterator[tuple[str, float]]:
    """Device memory held and alive at most, and of it what lives as long as the run (weights), as shares of the chip's; the clock."""
    table, blocks = view.session.table("counters"), view.session.table("allocations")
    if view.soc is None:
        return
    capacity = _base(view.soc.memory, "B")
    if blocks is not None and "end_ns" in blocks:
        yield "memory.permanent", float(blocks["bytes"][blocks["end_ns"] < 0].sum() / capacity)
    if table is None:
        return
    for name, key in (("PTA Total Reserved [B]", "reserved"), ("PTA Total Allocated [B]", "allocated")):
        values = table["value"][table["name"] == view.session.code(name)]
        if len(values):
            yield f"memory.{key}", float(values.max() / capacity)
    clocks = table["value"][table["name"] == view.session.code("AI Core Freq [MHz]")]
    if len(clocks):
        yield "clock", float(np.median(clocks) / _base(view.soc.clock, "MHz"))


def _base(figure: Sourced, unit: str) -> float:
    """A figure of the chip in ``unit``."""
    return Quantity(figure.value, figure.unit).to(unit)
