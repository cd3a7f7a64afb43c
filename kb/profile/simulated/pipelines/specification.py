"""Pipelines from JSON files and the built-in ones, checked; the work each node is offered."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from kb.domain.pipeline import NodeSpec, PipelineSpec
from kb.errors import ContentError, NotFoundError
from kb.profile.simulated.load.arrivals import checked_arrivals

MOST_NODES: Final = 200
_UNIFORM_CV: Final = 1 / math.sqrt(3)
_EDGE: Final = 1e-9
PEAK_S: Final = 10.0
"""Seconds over which the peak of a trace is taken."""


def builtin_pipelines() -> Mapping[str, PipelineSpec]:
    """The shipped pipelines by name. They are package data: a missing file is a broken installation and raises OSError."""
    specs = msgspec.json.decode((Path(__file__).parent / "pipelines.json").read_bytes(), type=list[PipelineSpec])
    return {spec.name: spec for spec in specs}


def find_pipeline(text: str) -> PipelineSpec:
    """A pipeline by name or from a JSON file. Raises NotFoundError naming the known ones, ContentError for a wrong file."""
    path = Path(text)
    if path.suffix == ".json":
        if not path.is_file():
            raise NotFoundError(f"no pipeline file {path}", allowed="a JSON file with format kb-pipeline/1")
        return pipeline_from(path.read_bytes(), str(path))
    known = builtin_pipelines()
    if text in known:
        return checked_pipeline(known[text], text)
    near = difflib.get_close_matches(text, known, n=3, cutoff=0.4)
    raise NotFoundError(
        f"no pipeline named {text!r}",
        allowed=", ".join([*near, *(name for name in known if name not in near)]),
        do="pick one, or pass a JSON file of your own",
    )


def pipeline_from(data: bytes, source: str) -> PipelineSpec:
    """The pipeline of a JSON text. Raises ContentError for what is none."""
    try:
        return checked_pipeline(msgspec.json.decode(data, type=PipelineSpec), source)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ContentError(
            f"{source} is not a pipeline: {error}", allowed="JSON with format kb-pipeline/1", do="see docs/simulator.md"
        ) from error


def checked_pipeline(spec: PipelineSpec, source: str) -> PipelineSpec:
    """``spec`` itself. Raises ContentError for nodes, routes or figures that cannot be; UsageError for arrivals that cannot."""
    names = [node.name for node in spec.nodes]
    if not names or len(names) > MOST_NODES or len(set(names)) < len(names):
        raise ContentError(
            f"{source}: {len(names)} nodes named {', '.join(names[:8])}", allowed=f"1 to {MOST_NODES} nodes, each with its own name"
        )
    if spec.entry not in names:
        raise ContentError(f"{source}: requests enter at {spec.entry!r}, which is no node", allowed=", ".join(names))
    for node in spec.nodes:
        _check_node(node, names, source)
    checked_arrivals(spec.arrivals)
    visits(spec, source)
    return spec


def _check_node(node: NodeSpec, names: list[str], source: str) -> None:
    service = node.service
    figures = (service.mean_ms, service.cv, *(route.share for route in node.routes))
    if not all(math.isfinite(figure) and figure >= 0 for figure in figures):
        raise ContentError(f"{source}: {node.name} has a figure that is negative or no number", allowed="finite figures from 0 up")
    if service.mean_ms == 0 and not node.model:
        raise ContentError(f"{source}: {node.name} takes no time", allowed="mean_ms above 0, or a model")
    if service.distribution == "uniform" and service.cv > _UNIFORM_CV:
        raise ContentError(f"{source}: {node.name}: a uniform time varies by at most {_UNIFORM_CV:.3f} of its mean")
    if node.concurrency < 1 or node.passes < 1 or (node.buffer is not None and node.buffer < 0):
        raise ContentError(f"{source}: {node.name} has concurrency {node.concurrency}, passes {node.passes}, buffer {node.buffer}",
                           allowed="concurrency and passes from 1, buffer from 0 up")  # fmt: skip
    unknown = [route.to for route in node.routes if route.to not in names]
    if unknown:
        raise ContentError(f"{source}: {node.name} routes to {unknown[0]!r}, which is no node", allowed=", ".join(names))
    if sum(route.share for route in node.routes) > 1 + _EDGE:
        raise ContentError(f"{source}: routes of {node.name} add up to more than 1", allowed="shares that add up to at most 1")


def visits(spec: PipelineSpec, source: str = "") -> dict[str, float]:
    """Mean visits of each node by one request: the traffic equations. Raises ContentError where requests never leave."""
    place = {node.name: number for number, node in enumerate(spec.nodes)}
    routing = np.zeros((len(place), len(place)))
    for node in spec.nodes:
        for route in node.routes:
            routing[place[node.name], place[route.to]] += route.share
    entry = np.zeros(len(place))
    entry[place[spec.entry]] = 1.0
    try:
        found = np.linalg.solve((np.eye(len(place)) - routing).T, entry)
    except np.linalg.LinAlgError as error:
        raise ContentError(f"{source or spec.name}: requests never leave the pipeline", do="let some route lead out") from error
    if not np.isfinite(found).all() or (found < -_EDGE).any() or found.max() > 1e6:
        raise ContentError(f"{source or spec.name}: requests never leave the pipeline", do="let some route lead out")
    return {name: max(0.0, float(found[number])) for name, number in place.items()}


def offered_rate(spec: PipelineSpec, seconds: float) -> float:
    """Requests a second on average."""
    arrivals = spec.arrivals
    if arrivals.kind != "trace":
        return arrivals.rate
    inside = [time for time in arrivals.times_ms if time < seconds * 1e3]
    return len(inside) / seconds


def peak_rate(spec: PipelineSpec, seconds: float) -> float:
    """Requests a second while most come: inside bursts, or in the fullest ``PEAK_S`` of a trace."""
    arrivals = spec.arrivals
    if arrivals.kind == "bursts":
        low = arrivals.rate * arrivals.period_s / (arrivals.burst_s * arrivals.factor + arrivals.period_s - arrivals.burst_s)
        return max(low, low * arrivals.factor)
    if arrivals.kind == "trace":
        inside = [time / 1e3 for time in arrivals.times_ms if time < seconds * 1e3]
        span = min(PEAK_S, seconds)
        return float(np.histogram(inside, bins=np.arange(0.0, seconds + span, span))[0].max(initial=0)) / span
    return arrivals.rate


def loads(spec: PipelineSpec, rate: float) -> dict[str, float]:
    """Offered work over capacity of each node at ``rate`` requests a second; 1 and above cannot be stable."""
    each = visits(spec)
    return {node.name: rate * each[node.name] * node.service.mean_ms / 1e3 / node.concurrency for node in spec.nodes}
