"""What a run of a pipeline comes to: figures of nodes and of the whole, and their course over time."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from kb.domain.pipeline import NodeFigures, NodeSpec, PipelineFigures, PipelineSpec
from kb.profile.simulated.pipelines.engine import Flow, Visits
from kb.profile.simulated.pipelines.specification import loads, offered_rate, visits

Floats = npt.NDArray[np.float64]
WINDOWS: Final = 60
"""Windows throughput is measured in; the first tenth of a run is left out as it fills up."""
WARM_SHARE: Final = 0.1


def figures(spec: PipelineSpec, flow: Flow) -> PipelineFigures:
    """Figures over the run after its warm-up."""
    begin = flow.seconds * WARM_SHARE
    left = flow.left[np.isfinite(flow.left) & (flow.left >= begin)]
    window = max(flow.seconds / WINDOWS, 1e-9)
    counts = np.histogram(left, bins=np.arange(begin, flow.seconds + window / 2, window))[0] / window
    rate = offered_rate(spec, flow.seconds)
    load, each = loads(spec, rate), visits(spec)
    done = np.isfinite(flow.left) & (flow.arrived >= begin)
    latency = (flow.left - flow.arrived)[done] * 1e3
    whole = depth_at(flow.arrived, flow.left, np.linspace(begin, flow.seconds, 512))
    return PipelineFigures(
        offered=rate,
        throughput=float(len(left) / (flow.seconds - begin)),
        throughput_low=_quantile(counts, 0.05),
        throughput_high=_quantile(counts, 0.95),
        latency_p50_ms=_quantile(latency, 0.5),
        latency_p99_ms=_quantile(latency, 0.99),
        waiting_max=int(whole.max(initial=0)),
        window_s=window,
        nodes=tuple(_node(node, flow, flow.visits[node.name], rate * each[node.name], load[node.name], begin) for node in spec.nodes),
    )


def _node(node: NodeSpec, flow: Flow, seen: Visits, rate: float, load: float, begin: float) -> NodeFigures:
    served = np.isfinite(seen.leave) & (seen.arrive >= begin)
    latency = (seen.leave - seen.arrive)[served] * 1e3
    span = (flow.seconds - begin) * node.concurrency
    depth = depth_at(seen.arrive, seen.start, np.linspace(begin, flow.seconds, 512))
    busy = _inside(seen.start, seen.end, begin, flow.seconds) / span
    blocked = _inside(seen.end, seen.leave, begin, flow.seconds) / span
    wait = (seen.start - seen.arrive)[np.isfinite(seen.start) & (seen.arrive >= begin)]
    started = np.isfinite(seen.start)
    service = float((seen.end - seen.start)[started].mean()) * 1e3 if started.any() else node.service.mean_ms
    return NodeFigures(
        name=node.name,
        concurrency=node.concurrency,
        buffer=node.buffer,
        rate=rate,
        capacity=node.concurrency / node.service.mean_ms * 1e3,
        load=load,
        service_ms=service,
        wait_ms=float(wait.mean()) * 1e3 if len(wait) else 0.0,
        latency_p50_ms=_quantile(latency, 0.5),
        latency_p99_ms=_quantile(latency, 0.99),
        depth_mean=float(depth.mean()),
        depth_max=int(depth.max(initial=0)),
        utilisation=busy,
        blocked=blocked,
        idle=max(0.0, 1.0 - busy - blocked),
    )


def _quantile(values: Floats, share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else 0.0


def depth_at(begin: Floats, end: Floats, times: Floats) -> npt.NDArray[np.int64]:
    """How many have begun and not ended at each of ``times`` (an end of NaN never comes)."""
    ended = np.sort(end[np.isfinite(end)])
    return np.searchsorted(np.sort(begin), times, side="right") - np.searchsorted(ended, times, side="right")


def _inside(begin: Floats, end: Floats, first: float, last: float) -> float:
    """Total s of intervals inside a span; one without an end lasts to the end of it."""
    known = np.isfinite(begin)
    ends = np.where(np.isfinite(end[known]), end[known], last)
    return float(np.maximum(0.0, np.minimum(ends, last) - np.maximum(begin[known], first)).sum())


def busy_course(begin: Floats, end: Floats, edges: Floats) -> Floats:
    """Total s of intervals inside each window between ``edges``."""
    known = np.isfinite(begin)
    starts = np.sort(begin[known])
    ends = np.sort(np.where(np.isfinite(end[known]), end[known], edges[-1]))

    def before(values: Floats) -> Floats:
        """Sum of max(0, edge - value) over values, for each edge."""
        place = np.searchsorted(values, edges)
        sums = np.concatenate(([0.0], np.cumsum(values)))
        return place * edges - sums[place]

    return np.diff(before(starts) - before(ends))
