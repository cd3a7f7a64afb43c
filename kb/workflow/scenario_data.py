"""Case studies as data: one consistent configuration each, the limits of the article, and every figure it claims."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final

import msgspec

from kb.audit.claims import Claim, Sheet, decimals_step
from kb.domain.catalogue import Catalogue, StrategyId
from kb.domain.quantity import parse_quantity
from kb.domain.recommendation import Constraints, Target
from kb.domain.soc import SocFamily
from kb.domain.text import Text
from kb.errors import ContentError, NotFoundError
from kb.profile.simulated.options import Options
from kb.profile.simulated.setup import Setup

_FIGURE: Final = re.compile(r"([-+]?[\d,]*\.?\d+)\s*(\S*)\Z")
Row = Sequence[str | list[float]]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits as the article states them, each with its unit."""

    target: Target = "latency"
    max_latency: str | None = None
    max_memory: str | None = None
    min_throughput: str | None = None
    max_precision_loss: str | None = None
    forbid: tuple[StrategyId, ...] = ()

    def constraints(self) -> Constraints:
        """The limits in base units."""
        return Constraints(
            target=self.target,
            max_latency_ns=_read(self.max_latency, "ns"),
            max_memory_b=_read(self.max_memory, "B"),
            min_throughput=_read(self.min_throughput, "/s"),
            max_precision_loss=_read(self.max_precision_loss, "ratio"),
            forbid=self.forbid,
        )


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``configuration`` says in words what ``model``, ``soc`` and ``options`` fix and why. A request is ``steps_per_request``
    steps; a sample counts as ``samples_share`` of one (two forward passes an image: 0.5). ``record`` is the library's recipe.

    ``claims`` are rows of [subject and metric, moment or limit, figure or list, other end of a range]; ``soc_as_named``,
    ``soc_family`` and ``devices_as_named`` are what the article names, which may be nothing. ``scaling``: also run on one device.
    """

    title: Text
    record: str
    configuration: Text
    model: str
    soc: str
    seed: int
    options: Options
    limits: Limits
    claims: tuple[Row, ...]
    steps_per_request: int = 1
    samples_share: float = 1.0
    devices: int = 1
    scaling: bool = False
    trials: int = 80
    knob_trials: int = 24
    soc_as_named: str = ""
    devices_as_named: int | None = None
    soc_family: SocFamily = "unknown"
    strategies: tuple[StrategyId, ...] = ()

    def setup(self, catalogue: Catalogue, name: str) -> Setup:
        """The baseline."""
        return Setup(model=self.model, soc=catalogue.soc(self.soc), options=self.options, seed=self.seed, name=name)

    def sheet(self) -> Sheet:
        """What the article claims, for the audit."""
        return Sheet(
            claims=tuple(_claim(row) for row in self.claims),
            soc=self.soc_as_named,
            soc_family=self.soc_family,
            model=self.title.en.partition(" ")[0],
            devices=self.devices_as_named,
            strategies=self.strategies,
        )


class PipelineCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A case study of a pipeline of services: the built-in ``pipeline`` for ``seconds``, and again as its analysis plans it."""

    title: Text
    record: str
    configuration: Text
    pipeline: str
    seconds: float
    seed: int
    claims: tuple[Row, ...]

    def sheet(self) -> Sheet:
        """What the article claims, for the audit."""
        return Sheet(claims=tuple(_claim(row) for row in self.claims), model=self.title.en.partition(":")[0])


class _Head(msgspec.Struct, frozen=True):
    pipeline: str = ""


def scenario_names() -> tuple[str, ...]:
    """Every scenario shipped."""
    folder = resources.files("kb.workflow").joinpath("scenarios")
    return tuple(sorted(item.name.removesuffix(".json") for item in folder.iterdir() if item.name.endswith(".json")))


def scenario(name: str) -> Scenario | PipelineCase:
    """The scenario of that name. Raises NotFoundError naming the nearest ones, ContentError for a damaged file."""
    names = scenario_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.3)
        raise NotFoundError(f"no scenario named {name!r}", allowed=", ".join(names), do=f"for example {(near or names)[0]}")
    data = resources.files("kb.workflow").joinpath("scenarios", f"{name}.json").read_bytes()
    try:
        kind: type[Scenario | PipelineCase] = PipelineCase if msgspec.json.decode(data, type=_Head).pipeline else Scenario
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise ContentError(f"scenario {name}: {error}", do="repair the installation") from error


def _claim(row: Row) -> Claim:
    name, moment, figure, *end = row
    subject, _, metric = str(name).rpartition(" ")
    shared: dict[str, Any] = {"metric": metric, "subject": subject, "source": f"{name} {moment}"}
    shared |= {"when": "target", "bound": moment} if moment in ("max", "min") else {"when": moment}
    if isinstance(figure, list):
        return Claim(**shared, values=tuple(map(float, figure)))
    value, unit, step = _number(str(figure))
    return Claim(**shared, value=value, unit=unit, step=step, upper=_number(str(end[0]))[0] if end else None)


def _number(text: str) -> tuple[float, str, float]:
    match = _FIGURE.match(text)
    if match is None:
        raise ContentError(f"{text!r} is no figure", allowed="a number and its unit", do="repair the scenario")
    return float(match[1].replace(",", "")), match[2], decimals_step(match[1])


def _read(text: str | None, unit: str) -> float | None:
    return None if text is None else parse_quantity(text).to(unit)


MOMENTS: Final[Mapping[str, Text]] = {
    "before": Text("基线", "before"),
    "after": Text("优化后", "after"),
    "change": Text("变化", "change"),
    "target": Text("约束", "limit"),
}
