"""Where a pipeline is held up, what its nodes should get, and what that gives when it is simulated.

Rules look at a run's figures; recommendations are made from the traffic equations and every one is tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from kb.domain.pipeline import NodeChange, NodeSpec, PipelineAnalysis, PipelineFigures, PipelineFinding, PipelineSpec
from kb.domain.text import Text
from kb.profile.simulated.pipelines.engine import run_pipeline
from kb.profile.simulated.pipelines.figures import figures
from kb.profile.simulated.pipelines.specification import loads, offered_rate, peak_rate

FULL: Final = 1.0
HIGH_LOAD: Final = 0.9
"""A node above this load waits long whenever arrivals bunch (queueing theory: waits grow as 1 / (1 - load))."""
TARGET_LOAD: Final = 0.75
"""Load a recommended node is left with."""
PEAK_LOAD: Final = 0.95
"""Load it may reach while most requests come."""
RATIO: Final = 2.0
"""Loads of exchangeable nodes further apart than this are a wrong division of workers."""
BLOCKED_SHARE: Final = 0.05
"""Share of its workers' time a node may lose to full buffers before that is a finding."""
PILE: Final = 8
"""Requests waiting at a node, for each worker, that are a pile."""
BUFFER_STEPS: Final = (2, 4, 8, 16, 32, 64)
GLIMPSE: Final = 3000
"""Requests of a run that chooses the size of a buffer."""
MOST_STARVED: Final = 3
"""Starved nodes that are told, the worst first."""
WORTH_LATENCY: Final = 0.05
WORTH: Final = 0.01
"""Relative gain of throughput that is worth a larger buffer."""


def analysed(spec: PipelineSpec, seconds: float, seed: int, found: PipelineFigures) -> PipelineAnalysis:
    """The diagnosis of a run of ``spec`` with the figures ``found``."""
    rate = offered_rate(spec, seconds)
    load = loads(spec, rate)
    bottleneck = max(load, key=lambda name: load[name])
    trial = _Trial(spec, seconds, seed)
    findings = [*_overload(spec, found, load, trial), *_starved(spec, found, load, trial), *_divided(spec, load, trial)]
    findings = sorted(findings, key=lambda finding: finding.priority)
    plan = _plan(spec, findings)
    named = {finding.node for finding in findings}
    return PipelineAnalysis(
        name=spec.name,
        origin="simulated",
        stable=load[bottleneck] < FULL,
        bottleneck=bottleneck,
        figures=found,
        findings=tuple(findings),
        healthy=tuple(node.name for node in spec.nodes if node.name not in named and load[node.name] < HIGH_LOAD),
        plan=plan,
        planned=trial.outcome(plan) if plan else None,
        loads=load,
    )


class _Trial:
    """The same arrivals on changed nodes."""

    def __init__(self, spec: PipelineSpec, seconds: float, seed: int) -> None:
        self._spec, self._seconds, self._seed = spec, seconds, seed

    @property
    def peak_loads(self) -> dict[str, float]:
        """Load of each node while most requests come."""
        return loads(self._spec, peak_rate(self._spec, self._seconds))

    def outcome(self, changes: tuple[NodeChange, ...]) -> PipelineFigures:
        """Figures of the pipeline with ``changes``."""
        return self._run(changes, self._seconds)

    def glimpse(self, changes: tuple[NodeChange, ...]) -> PipelineFigures:
        """The same over as short a time as brings ``GLIMPSE`` requests: enough to choose between sizes."""
        rate = max(offered_rate(self._spec, self._seconds), 1e-9)
        return self._run(changes, min(self._seconds, GLIMPSE / rate))

    def _run(self, changes: tuple[NodeChange, ...], seconds: float) -> PipelineFigures:
        spec = changed(self._spec, changes)
        return figures(spec, run_pipeline(spec, seconds, self._seed))


def changed(spec: PipelineSpec, changes: tuple[NodeChange, ...]) -> PipelineSpec:
    """The pipeline with other resources."""
    by_node = {change.node: change for change in changes}
    nodes = tuple(
        replace(node, concurrency=by_node[node.name].concurrency_after, buffer=by_node[node.name].buffer_after)
        if node.name in by_node
        else node
        for node in spec.nodes
    )
    return replace(spec, nodes=nodes)


def _change(node: NodeSpec, *, concurrency: int | None = None, buffer: int | None = None) -> NodeChange:
    return NodeChange(
        node=node.name,
        concurrency_before=node.concurrency,
        concurrency_after=concurrency or node.concurrency,
        buffer_before=node.buffer,
        buffer_after=node.buffer if buffer is None else buffer,
    )


def workers(node: NodeSpec, load: float, peak: float) -> int:
    """Workers that leave a node with at most ``TARGET_LOAD`` of its capacity in use on average, and ``PEAK_LOAD`` at peaks."""
    return max(1, math.ceil(load * node.concurrency / TARGET_LOAD - 1e-9), math.ceil(peak * node.concurrency / PEAK_LOAD - 1e-9))


def _overload(spec: PipelineSpec, found: PipelineFigures, load: Mapping[str, float], trial: _Trial) -> Iterator[PipelineFinding]:
    """Nodes slower than what comes to them, the slowest first; all get enough workers, because the next would be full then."""
    peak = trial.peak_loads
    slow = sorted(
        (node for node in spec.nodes if load[node.name] >= HIGH_LOAD or peak[node.name] >= FULL), key=lambda node: -peak[node.name]
    )
    if not slow:
        return
    first = slow[0]
    changes = tuple(_change(node, concurrency=workers(node, load[node.name], peak[node.name])) for node in slow)
    stable = max(load.values()) < FULL
    yield PipelineFinding(
        cause="node_rate_mismatch" if stable else "unstable",
        priority="P1" if stable else "P0",
        node=first.name,
        message=_overload_message(spec, found, first, load[first.name], peak[first.name]),
        evidence=tuple(_evidence(found, node.name) for node in slow),
        changes=changes,
        outcome=trial.outcome(changes),
    )
    feeding = _feeding(spec, first)
    if not stable and feeding and feeding[1] > found.node(first.name).capacity:
        yield _faster_sender(found, first.name, feeding, changes)


def _overload_message(spec: PipelineSpec, found: PipelineFigures, node: NodeSpec, load: float, peak: float) -> Text:
    figure = found.node(node.name)
    how = Text("跟不上", "cannot keep up") if max(load, peak) >= FULL else Text("接近满载", "is nearly full")
    zh = (
        f"节点 {node.name} {how.zh}：到达 {figure.rate:.1f} 请求/s，处理能力 {figure.capacity:.1f} 请求/s"
        f"（平均负载 {load:.2f}，峰值 {peak:.2f}）"
    )
    en = (
        f"node {node.name} {how.en}: {figure.rate:.1f} requests/s come, it can do {figure.capacity:.1f} "
        f"(load {load:.2f} on average, {peak:.2f} at peaks)"
    )
    if load >= FULL:
        needed = load * node.concurrency
        zh = f"流水线不可能稳定：瓶颈节点 {node.name} 至少需要 {needed:.2f} 个工作者，只有 {node.concurrency} 个；{zh}"
        en = f"the pipeline cannot be stable: bottleneck {node.name} needs at least {needed:.2f} workers and has {node.concurrency}; {en}"
    piled = max(_before(spec, node), key=lambda name: found.node(name).depth_max)
    depth = found.node(piled)
    if depth.depth_max >= PILE * depth.concurrency:
        periodic = spec.arrivals.kind == "bursts" and load < FULL
        zh += f"；{piled} 处{'周期性' if periodic else ''}堆积，最多 {depth.depth_max} 个请求等待"
        en += f"; requests pile up at {piled}{' in every burst' if periodic else ''}, up to {depth.depth_max} of them"
    feeding = _feeding(spec, node)
    if feeding:
        zh += f"；上游 {feeding[0]} 最多送出 {feeding[1]:.1f} 请求/s"
        en += f"; {feeding[0]} before it can send {feeding[1]:.1f} requests/s"
    return Text(zh, en)


def _before(spec: PipelineSpec, node: NodeSpec) -> list[str]:
    """The node and all that lead to it: with a full buffer in front, requests pile up farther back."""
    found, fresh = [node.name], [node.name]
    while fresh:
        target = fresh.pop()
        new = [other.name for other in spec.nodes if other.name not in found and any(route.to == target for route in other.routes)]
        found += new
        fresh += new
    return found


def _faster_sender(found: PipelineFigures, name: str, feeding: tuple[str, float], changes: tuple[NodeChange, ...]) -> PipelineFinding:
    capacity = found.node(name).capacity
    return PipelineFinding(
        cause="node_rate_mismatch",
        priority="P1",
        node=name,
        message=Text(
            f"{feeding[0]} 最多能送出 {feeding[1]:.1f} 请求/s，{name} 只能处理 {capacity:.1f} 请求/s：相差 {feeding[1] / capacity:.2f} 倍",
            f"{feeding[0]} can send {feeding[1]:.1f} requests/s to {name}, which can do {capacity:.1f}: "
            f"{feeding[1] / capacity:.2f} times as many",
        ),
        evidence=(_evidence(found, feeding[0]), _evidence(found, name)),
        changes=changes,
        outcome=None,
    )


def _feeding(spec: PipelineSpec, node: NodeSpec) -> tuple[str, float] | None:
    """Who sends the most to a node, and how many requests a second it could; None for the entry."""
    senders = [
        (other.name, other.concurrency / other.service.mean_ms * 1e3 * route.share)
        for other in spec.nodes
        for route in other.routes
        if route.to == node.name and other.name != node.name
    ]
    return max(senders, key=lambda sender: sender[1], default=None)


def _starved(spec: PipelineSpec, found: PipelineFigures, load: Mapping[str, float], trial: _Trial) -> Iterator[PipelineFinding]:
    """Workers held by a full buffer behind them although the node there is not too slow on average; the worst first."""
    held = sorted(
        (node for node in spec.nodes if found.node(node.name).blocked >= BLOCKED_SHARE), key=lambda node: -found.node(node.name).blocked
    )
    told: set[str] = set()
    for node in held:
        behind = [other for other in spec.nodes if other.buffer is not None and any(route.to == other.name for route in node.routes)]
        full = [other for other in behind if load[other.name] < FULL and other.name not in told]
        if full and len(told) < MOST_STARVED:
            target = max(full, key=lambda other: load[other.name])
            told.add(target.name)
            finding = _starvation(node, target, found, trial)
            if finding is not None:
                yield finding


def _starvation(node: NodeSpec, target: NodeSpec, found: PipelineFigures, trial: _Trial) -> PipelineFinding | None:
    """None where a larger buffer gives neither throughput nor latency: being held now and then costs nothing then."""
    changes = _larger_buffer(target, trial)
    outcome = trial.outcome(changes)
    more = outcome.throughput > found.throughput * (1 + WORTH)
    if not more and outcome.latency_p99_ms > found.latency_p99_ms * (1 - WORTH_LATENCY):
        return None
    blocked, idle = found.node(node.name).blocked, found.node(target.name).idle
    return PipelineFinding(
        cause="buffer_starvation",
        priority="P1" if more else "P2",
        node=target.name,
        message=Text(
            f"节点 {target.name} 的缓冲（{target.buffer} 个请求）太小：{node.name} 有 {blocked:.0%} 的时间被堵住，"
            f"{target.name} 却有 {idle:.0%} 的时间空闲",
            f"the buffer of {target.name} ({target.buffer} requests) is too small: {node.name} is held {blocked:.0%} of its time "
            f"while {target.name} idles {idle:.0%}",
        ),
        evidence=(_evidence(found, node.name), _evidence(found, target.name)),
        changes=changes,
        outcome=outcome,
    )


def _larger_buffer(node: NodeSpec, trial: _Trial) -> tuple[NodeChange, ...]:
    """The smallest buffer of the steps beyond which neither throughput nor P99 gains anything more."""
    now = node.buffer or 0
    best = (_change(node, buffer=now + 1),)
    reached = trial.glimpse(())
    for step in BUFFER_STEPS:
        size = step * node.concurrency
        if size <= now:
            continue
        changes = (_change(node, buffer=size),)
        tried = trial.glimpse(changes)
        if not (tried.throughput > reached.throughput * (1 + WORTH) or tried.latency_p99_ms < reached.latency_p99_ms * (1 - WORTH)):
            break
        best, reached = changes, tried
    return best


def _divided(spec: PipelineSpec, load: Mapping[str, float], trial: _Trial) -> Iterator[PipelineFinding]:
    """Exchangeable workers divided in another ratio than the work."""
    groups: dict[str, list[NodeSpec]] = {}
    for node in spec.nodes:
        if node.resource:
            groups.setdefault(node.resource, []).append(node)
    for resource, nodes in groups.items():
        busiest = max(nodes, key=lambda node: load[node.name])
        laziest = min(nodes, key=lambda node: load[node.name])
        spare = [node for node in nodes if node.concurrency > workers(node, load[node.name], trial.peak_loads[node.name])]
        if load[busiest.name] < HIGH_LOAD or load[laziest.name] > load[busiest.name] / RATIO or not spare:
            continue
        changes = divided(nodes, load)
        if not changes:
            continue
        outcome = trial.outcome(changes)
        yield PipelineFinding(
            cause="concurrency_ratio",
            priority="P1" if load[busiest.name] >= FULL else "P2",
            node=busiest.name,
            message=Text(
                f"{resource} 的工作者分配比例不对：{busiest.name} 负载 {load[busiest.name]:.2f}，"
                f"{laziest.name} 只有 {load[laziest.name]:.2f}；"
                f"总数不变，重新分配",
                f"workers of {resource} are divided in the wrong ratio: {busiest.name} has load {load[busiest.name]:.2f}, "
                f"{laziest.name} only {load[laziest.name]:.2f}; the same number can be divided anew",
            ),
            evidence=tuple(f"{node.name}: load {load[node.name]:.2f}, {node.concurrency} workers" for node in nodes),
            changes=changes,
            outcome=outcome,
        )


def divided(nodes: list[NodeSpec], load: Mapping[str, float]) -> tuple[NodeChange, ...]:
    """The same workers given out one by one to the node that then has the highest load; only nodes that change."""
    work = {node.name: load[node.name] * node.concurrency for node in nodes}
    given = {node.name: 1 for node in nodes}
    for _ in range(sum(node.concurrency for node in nodes) - len(nodes)):
        given[max(given, key=lambda name: work[name] / given[name])] += 1
    return tuple(_change(node, concurrency=given[node.name]) for node in nodes if given[node.name] != node.concurrency)


def _plan(spec: PipelineSpec, findings: list[PipelineFinding]) -> tuple[NodeChange, ...]:
    """For every node the most workers any overload asks for, and the largest buffer. Dividing anew is an alternative to more
    workers, so it counts only where nobody asks for more."""
    more = [finding for finding in findings if finding.cause != "concurrency_ratio"]
    counted = (
        more if any(change.concurrency_after > change.concurrency_before for finding in more for change in finding.changes) else findings
    )
    made: dict[str, NodeChange] = {}
    nodes = {node.name: node for node in spec.nodes}
    for finding in counted:
        for change in finding.changes:
            known = made.get(change.node, _change(nodes[change.node]))
            pick = min if finding.cause == "concurrency_ratio" and change.concurrency_after < change.concurrency_before else max
            buffers = [size for size in (known.buffer_after, change.buffer_after) if size is not None]
            made[change.node] = replace(
                known,
                concurrency_after=pick(known.concurrency_after, change.concurrency_after),
                buffer_after=max(buffers) if nodes[change.node].buffer is not None else None,
            )
    return tuple(made.values())


def _evidence(found: PipelineFigures, name: str) -> str:
    node = found.node(name)
    return (
        f"{name}: load {node.load:.2f}, utilisation {node.utilisation:.0%}, blocked {node.blocked:.0%}, idle {node.idle:.0%}, "
        f"queue mean {node.depth_mean:.1f} max {node.depth_max}, wait {node.wait_ms:.1f} ms"
    )
