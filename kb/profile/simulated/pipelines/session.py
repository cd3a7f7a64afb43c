"""A run of a pipeline as a session: requests as marks, nodes as counters, and what is needed to run it again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from kb.domain.pipeline import PipelineSpec
from kb.errors import MalformedInputError, UsageError
from kb.profile.simulated.pipelines.engine import Flow, Visits
from kb.profile.simulated.pipelines.figures import busy_course, depth_at
from kb.profile.simulated.pipelines.specification import pipeline_from
from kb.profile.simulated.setup import SIMULATOR
from kb.session.builder import Strings, session, table
from kb.session.meta import Capture, Model, SessionMeta
from kb.session.session import Session

Floats = npt.NDArray[np.float64]
FORMAT: Final = "simulated_pipeline"
MOST_MARKS: Final = 100_000
MOST_SAMPLES: Final = 600
BEGIN_NS: Final = 1_000_000_000
KINDS: Final = ("node_latency", "queue_depth", "resource_util")


class PipelineRun(msgspec.Struct, frozen=True):
    """What a session of a pipeline holds to be run again."""

    spec: PipelineSpec
    seconds: float
    seed: int


def kinds_from(text: str) -> frozenset[str]:
    """Kinds of data of a pipeline capture; empty = all. Raises UsageError for an unknown one."""
    names = frozenset(part.strip() for part in text.split(",") if part.strip())
    unknown = sorted(names - set(KINDS))
    if unknown:
        raise UsageError(f"no data type {', '.join(unknown)}", allowed=", ".join(KINDS))
    return names or frozenset(KINDS)


def pipeline_session(run: PipelineRun, flow: Flow, kinds: frozenset[str]) -> Session:
    """The session. Counters are sampled at most ``MOST_SAMPLES`` times; above ``MOST_MARKS`` every n-th request is kept."""
    strings = Strings()
    done = np.flatnonzero(np.isfinite(flow.left))
    shown = done[:: max(1, -(-len(done) // MOST_MARKS))]
    marks: dict[str, Any] = {
        "start_ns": BEGIN_NS + np.round(flow.arrived[shown] * 1e9).astype(np.int64),
        "duration_ns": np.round((flow.left - flow.arrived)[shown] * 1e9).astype(np.int64),
        "name": [run.spec.name] * len(shown),
        "domain": ["request"] * len(shown),
        "file": ["simulation"] * len(shown),
        "row": shown + 1,
    }
    rows = [row for node in run.spec.nodes for row in _samples(node.name, node.concurrency, flow.visits[node.name], flow.seconds, kinds)]
    counters: dict[str, Any] = {
        "start_ns": [row[0] for row in rows],
        "name": [row[1] for row in rows],
        "value": [row[2] for row in rows],
        "file": ["simulation"] * len(rows),
        "row": list(range(1, len(rows) + 1)),
    }
    meta = SessionMeta(
        name=run.spec.name,
        origin="simulated",
        capture=Capture(format=FORMAT, level="pipeline"),
        model=Model(name=run.spec.name, type="pipeline"),
        options={"pipeline": msgspec.json.encode(run.spec).decode(), "seconds": run.seconds, "seed": run.seed},
        simulator=SIMULATOR,
    )
    return session(meta, [table("marks", marks, strings), table("counters", counters, strings)], strings)


def _samples(name: str, concurrency: int, seen: Visits, seconds: float, kinds: frozenset[str]) -> Iterator[tuple[int, str, float]]:
    edges = np.linspace(0.0, seconds, min(MOST_SAMPLES, max(2, int(seconds))) + 1)
    stamps = (BEGIN_NS + np.round(edges[1:] * 1e9).astype(np.int64)).tolist()
    width = edges[1] - edges[0]
    if "queue_depth" in kinds:
        yield from zip(
            stamps, [f"{name} queue depth [count]"] * len(stamps), depth_at(seen.arrive, seen.start, edges[1:]).tolist(), strict=True
        )
    if "node_latency" in kinds:
        yield from _latencies(name, seen, edges, stamps)
    if "resource_util" in kinds:
        busy = busy_course(seen.start, seen.end, edges) / (width * concurrency)
        held = busy_course(seen.end, seen.leave, edges) / (width * concurrency)
        yield from zip(stamps, [f"{name} utilisation [ratio]"] * len(stamps), busy.tolist(), strict=True)
        yield from zip(stamps, [f"{name} blocked [ratio]"] * len(stamps), held.tolist(), strict=True)


def _latencies(name: str, seen: Visits, edges: Floats, stamps: list[int]) -> Iterator[tuple[int, str, float]]:
    """Mean time at the node of those who left it in each window; nothing where nobody did."""
    done = np.isfinite(seen.leave)
    latency = (seen.leave - seen.arrive)[done] * 1e3
    place = np.clip(np.searchsorted(edges, seen.leave[done], side="right") - 1, 0, len(stamps) - 1)
    counts = np.bincount(place, minlength=len(stamps))
    sums = np.bincount(place, weights=latency, minlength=len(stamps))
    for number in np.flatnonzero(counts).tolist():
        yield stamps[number], f"{name} latency [ms]", float(sums[number] / counts[number])


def run_of(made: Session) -> PipelineRun:
    """The run that made a session. Raises MalformedInputError for a session of something else, or a damaged one."""
    meta = made.meta
    text = meta.options.get("pipeline")
    if meta.capture.format != FORMAT or not isinstance(text, str):
        raise MalformedInputError(f"{meta.name} is no capture of a pipeline", allowed="a .prof file of profiler collect-pipeline",
                                  do="analyse a capture of a model with profiler analyze")  # fmt: skip
    seconds, seed = meta.options.get("seconds"), meta.options.get("seed")
    if not isinstance(seconds, int | float) or not isinstance(seed, int) or not 0 < seconds < 1e7 or seed < 0:
        raise MalformedInputError(f"{meta.name}: its settings are damaged", do="collect the pipeline again")
    return PipelineRun(pipeline_from(text.encode(), meta.name), float(seconds), seed)
