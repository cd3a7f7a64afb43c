"""A pipeline of services: what it is made of, how it ran, and what should change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from kb.domain.provenance import Origin
from kb.domain.text import Text

Distribution = Literal["constant", "exponential", "gamma", "lognormal", "uniform"]
ArrivalKind = Literal["poisson", "constant", "bursts", "trace"]
PipelineCause = Literal["unstable", "node_rate_mismatch", "buffer_starvation", "concurrency_ratio"]


class ServiceTime(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long a node works on a request: mean in ms and coefficient of variation (of gamma and lognormal; exponential has 1,
    constant 0, uniform at most 0.577). A mean of 0 is taken from the node's ``model``."""

    distribution: Distribution = "constant"
    mean_ms: float = 0.0
    cv: float = 0.0


class Route(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where requests go next, with what probability; what is left of 1 leaves the pipeline."""

    to: str
    share: float = 1.0


class NodeSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One service. ``concurrency``: requests it works on at a time; ``buffer``: requests that may wait at it (None = endless).

    ``resource`` groups nodes whose workers can be exchanged. ``model`` and ``passes``: simulated model whose steps make up the
    service time.
    """

    name: str
    service: ServiceTime
    concurrency: int = 1
    buffer: int | None = None
    routes: tuple[Route, ...] = ()
    resource: str = ""
    model: str = ""
    passes: int = 1


class ArrivalSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Requests over time. ``rate`` is the mean in requests a second.

    ``bursts``: in every ``period_s``, ``burst_s`` bring ``factor`` times the rate of the rest. ``trace``: ``times_ms`` as measured.
    """

    kind: ArrivalKind = "poisson"
    rate: float = 0.0
    factor: float = 1.0
    period_s: float = 60.0
    burst_s: float = 10.0
    times_ms: tuple[float, ...] = ()


class PipelineSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole: nodes by name, the one requests enter at, and how they arrive. ``note`` says where the figures come from."""

    format: Literal["kb-pipeline/1"]
    name: str
    entry: str
    arrivals: ArrivalSpec
    nodes: tuple[NodeSpec, ...]
    note: Text = Text()


class NodeFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How one node fared. Rates in requests a second, times in ms; ``load`` is offered work over capacity (1 = full).

    ``blocked`` and ``idle`` are shares of its workers' time: held by a full buffer behind it, or without a request.
    """

    name: str
    concurrency: int
    buffer: int | None
    rate: float
    capacity: float
    load: float
    service_ms: float
    wait_ms: float
    latency_p50_ms: float
    latency_p99_ms: float
    depth_mean: float
    depth_max: int
    utilisation: float
    blocked: float
    idle: float


class PipelineFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How the pipeline fared: throughput over windows of ``window_s`` (mean, lowest, highest), latency of whole requests."""

    offered: float
    throughput: float
    throughput_low: float
    throughput_high: float
    latency_p50_ms: float
    latency_p99_ms: float
    waiting_max: int
    window_s: float
    nodes: tuple[NodeFigures, ...]

    def node(self, name: str) -> NodeFigures:
        """The figures of a node. Raises StopIteration for an unknown name."""
        return next(node for node in self.nodes if node.name == name)


class NodeChange(msgspec.Struct, frozen=True, kw_only=True):
    """Recommended resources of one node (buffer None = endless)."""

    node: str
    concurrency_before: int
    concurrency_after: int
    buffer_before: int | None
    buffer_after: int | None


class PipelineFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One bottleneck: where, why, what to change, and the pipeline simulated with that change (None = not simulated)."""

    cause: PipelineCause
    priority: Literal["P0", "P1", "P2"]
    node: str
    message: Text
    evidence: tuple[str, ...]
    changes: tuple[NodeChange, ...]
    outcome: PipelineFigures | None


class PipelineAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """The diagnosis of a pipeline capture. ``stable`` by its traffic, not by luck of the capture; ``bottleneck`` is the node of
    the highest load. ``plan`` and ``planned``: all changes together, and what they gave."""

    name: str
    origin: Origin
    stable: bool
    bottleneck: str
    figures: PipelineFigures
    findings: tuple[PipelineFinding, ...]
    healthy: tuple[str, ...]
    plan: tuple[NodeChange, ...]
    planned: PipelineFigures | None
    loads: Mapping[str, float]
