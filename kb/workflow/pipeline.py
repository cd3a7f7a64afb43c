"""Job: run a pipeline of services on the simulated backend, and diagnose such a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from kb.domain.pipeline import NodeSpec, PipelineAnalysis, PipelineSpec
from kb.domain.soc import Soc
from kb.domain.text import Text
from kb.errors import MalformedInputError, UsageError
from kb.profile.simulated.load.arrivals import read_trace
from kb.profile.simulated.options import Options
from kb.profile.simulated.pipelines.analysis import FULL, analysed
from kb.profile.simulated.pipelines.engine import run_pipeline
from kb.profile.simulated.pipelines.figures import figures
from kb.profile.simulated.pipelines.session import FORMAT, PipelineRun, kinds_from, pipeline_session, run_of
from kb.profile.simulated.pipelines.specification import builtin_pipelines, checked_pipeline, find_pipeline, loads, offered_rate
from kb.profile.simulated.run import Setup, simulate
from kb.profile.sources import load
from kb.session.session import Session

MOST_SECONDS: Final = 7 * 86_400.0


def pipeline_names() -> tuple[str, ...]:
    """The shipped pipelines."""
    return tuple(builtin_pipelines())


def wanted_pipeline(text: str, *, rate: float | None, trace: Path | None, concurrency: Mapping[str, int]) -> PipelineSpec:
    """A pipeline by name or file, with other arrivals or workers. Raises NotFoundError, ContentError, UsageError."""
    spec = find_pipeline(text)
    if trace is not None:
        spec = replace(spec, arrivals=read_trace(trace))
    if rate is not None:
        if spec.arrivals.kind == "trace":
            raise UsageError("a trace has its own rate", allowed="--rate or a trace, not both")
        spec = replace(spec, arrivals=replace(spec.arrivals, rate=rate))
    unknown = sorted(set(concurrency) - {node.name for node in spec.nodes})
    if unknown:
        raise UsageError(f"no node {unknown[0]!r} in {spec.name}", allowed=", ".join(node.name for node in spec.nodes))
    nodes = tuple(replace(node, concurrency=concurrency.get(node.name, node.concurrency)) for node in spec.nodes)
    return checked_pipeline(replace(spec, nodes=nodes), spec.name)


def collect_pipeline(spec: PipelineSpec, soc: Soc, *, seconds: float, seed: int, data_types: str) -> Session:
    """Simulate so many seconds. Service times of nodes with a model are those of its simulated steps on ``soc``."""
    if not 0 < seconds <= MOST_SECONDS:
        raise UsageError(f"{seconds:g} s cannot be simulated", allowed=f"more than 0 s, up to {MOST_SECONDS:g} s")
    if seed < 0:
        raise UsageError(f"seed {seed}", allowed="a whole number from 0 up")
    kinds = kinds_from(data_types)
    timed = replace(spec, nodes=tuple(_timed(node, soc) for node in spec.nodes))
    run = PipelineRun(checked_pipeline(timed, spec.name), seconds, seed)
    return pipeline_session(run, run_pipeline(run.spec, seconds, seed), kinds)


def _timed(node: NodeSpec, soc: Soc) -> NodeSpec:
    """The node with the service time its model takes, where none is given."""
    if node.service.mean_ms or not node.model:
        return node
    _, truth = simulate(Setup(model=node.model, soc=soc, options=Options(steps=2, noise=0.0)))
    mean = truth.steps[-1].step_ns / 1e6 * node.passes
    return replace(node, service=replace(node.service, mean_ms=mean))


def overload(session: Session) -> Text | None:
    """A sentence about the bottleneck of a run that cannot be stable; None for one that can."""
    run = run_of(session)
    found = loads(run.spec, offered_rate(run.spec, run.seconds))
    worst = max(found, key=lambda name: found[name])
    if found[worst] < FULL:
        return None
    return Text(
        f"不可能稳定：瓶颈节点 {worst} 的负载是 {found[worst]:.2f}（≥ 1），排队只会变长",
        f"this cannot be stable: bottleneck {worst} has load {found[worst]:.2f} (1 or more), so its queue only grows",
    )


def is_pipeline(session: Session) -> bool:
    """Whether a session is a capture of a pipeline."""
    return session.meta.capture.format == FORMAT


def analysed_pipeline(path: Path) -> PipelineAnalysis:
    """The diagnosis of a capture of ``profiler collect-pipeline``. Raises UnusableCaptureError, MalformedInputError for another."""
    sessions = load(path)
    if len(sessions) != 1:
        raise MalformedInputError(f"{path} holds {len(sessions)} captures", allowed="one capture of a pipeline")
    return analysed_session(sessions[0])


def analysed_session(session: Session) -> PipelineAnalysis:
    """The same for a session in memory: the run it describes is repeated, and every recommendation tried."""
    run = run_of(session)
    return analysed(run.spec, run.seconds, run.seed, figures(run.spec, run_pipeline(run.spec, run.seconds, run.seed)))
