"""Where a session stands among similar past cases."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kb.domain.case import CaseContext
from kb.domain.quantity import UNITS
from kb.domain.recommendation import Percentile
from kb.domain.record import Record
from kb.domain.soc import SocFamily
from kb.domain.text import Text
from kb.recommend.outcomes import OutcomeTable

if TYPE_CHECKING:
    Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]

LEAST: Final = 5
"""Cases from which a percentile is told."""
SHOWN: Final = 5
SMALL: Final = 0.005
"""Share of the step under which neither the session nor the runs it is compared with have anything to tell."""
ALL: Final = ""
"""Key of the distribution over all model types."""


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """``values`` ascending, one a case, as fractions; ``simulated`` of them come from the simulator."""

    values: tuple[float, ...]
    simulated: int = 0


Distributions = Mapping[str, Mapping[str, Distribution]]
"""By model type (``ALL``: every case), then by metric."""


def distributions(records: Iterable[Record]) -> dict[str, dict[str, Distribution]]:
    """The shares and ratios that past cases observed. Other metrics depend on the size of the job and are not compared. A card repeats
    its recipe and is passed over."""
    values: dict[tuple[str, str], list[tuple[float, bool]]] = {}
    for record in records:
        for case in record.cases if record.kind != "card" else ():
            for metric, value in _ratios(case.context):
                point = (value, record.provenance == "simulated")
                values.setdefault((ALL, metric), []).append(point)
                if case.context.model_type:
                    values.setdefault((case.context.model_type, metric), []).append(point)
    found: dict[str, dict[str, Distribution]] = {}
    for (model_type, metric), points in values.items():
        if len(points) >= LEAST:
            ordered = tuple(sorted(value for value, _ in points))
            found.setdefault(model_type, {})[metric] = Distribution(values=ordered, simulated=sum(simulated for _, simulated in points))
    return found


def _ratios(context: CaseContext) -> Iterable[tuple[str, float]]:
    for metric, quantity in context.metrics.items():
        if UNITS.get(quantity.unit, ("", 0.0))[0] == "ratio":
            yield metric, quantity.to("ratio")


def percentiles(context: CaseContext, known: Distributions) -> tuple[Percentile, ...]:
    """The session's shares and ratios against cases of its model type, else of all types; the most unusual first, at most ``SHOWN``."""
    found = []
    for metric, value in _ratios(context):
        model_type = context.model_type or ALL
        own = known.get(model_type, {}).get(metric)
        spread = own or known.get(ALL, {}).get(metric)
        if spread is not None:
            kind = model_type if own is not None else ALL
            found.append(_percentile(metric, value, spread, kind))
    return tuple(sorted(found, key=lambda item: -abs(item.below - 0.5))[:SHOWN])


def _percentile(metric: str, value: float, spread: Distribution, model_type: str) -> Percentile:
    low, high = bisect_left(spread.values, value), bisect_right(spread.values, value)
    group = (
        Text(zh=f"{model_type} 类案例", en=f"past cases of type {model_type}") if model_type else Text(zh="全部案例", en="all past cases")
    )
    return Percentile(
        metric=metric, value=value, unit="ratio", below=(low + high) / 2 / len(spread.values), n=len(spread.values), group=group,
        simulated=spread.simulated,
    )  # fmt: skip


class Kinds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See ``percentile.json``."""

    families: Mapping[str, str]
    types: Mapping[str, str]
    shares: Mapping[str, str]
    reasons: Mapping[str, str]


def load_kinds() -> Kinds:
    """The shipped tables."""
    return msgspec.json.decode(Path(__file__).with_name("percentile.json").read_bytes(), type=Kinds)


def among_runs(table: OutcomeTable, shown: Mapping[str, float], model_type: str | None, phase: str | None, family: SocFamily,
               kinds: Kinds) -> tuple[Percentile, ...]:  # fmt: skip
    """The session's shares against simulated runs on chips of its family, of the same phase and kind of model, wider where there are fewer
    than ``LEAST``; the most unusual first, at most ``SHOWN``.

    Another family is never compared with; of an unknown one all are, and the group says so. A share below ``SMALL`` here and in
    half of the runs is not told.
    """
    mask, group = _alike_runs(table, kinds.types.get(model_type or ""), phase, family, kinds)
    found = []
    for trait, metric in kinds.shares.items():
        if trait in shown and trait in table.traits:
            values = table.values[mask, table.traits.index(trait)]
            values = values[np.isfinite(values)]
            value = shown[trait]
            if len(values) >= LEAST and max(value, float(np.median(values))) >= SMALL:
                below = float((values < value).mean() + (values == value).mean() / 2)
                found.append(
                    Percentile(metric=metric, value=value, unit="ratio", below=below, n=len(values), group=group, simulated=len(values))
                )
    return tuple(sorted(found, key=lambda item: -abs(item.below - 0.5))[:SHOWN])


def _alike_runs(table: OutcomeTable, kind: str | None, phase: str | None, family: SocFamily, kinds: Kinds) -> tuple[Mask, Text]:
    """Runs of this family of chips and of this kind and phase, else of this kind, else all of the family; and how to call them."""
    everything = np.ones(len(table), dtype=bool)
    chips = everything if family == "unknown" else np.array([own == family for own in table.families], dtype=bool)
    name = f"phase.{phase}"
    in_phase = table.values[:, table.traits.index(name)] == 1 if name in table.traits else everything
    of_kind = everything if kind is None else np.array([kinds.families.get(group) == kind for group in table.groups], dtype=bool)
    choices = ((chips & of_kind & in_phase, (kind, phase)), (chips & of_kind, (kind,)), (chips, ()))
    mask, words = next((choice for choice in choices if int(choice[0].sum()) >= LEAST), choices[-1])
    told = " ".join(filter(None, words))
    where = (
        ("（芯片未知，各系列都算）", " on any chip, as this one is unknown") if family == "unknown" else (f"（{family}）", f" on {family}")
    )
    return mask, Text(zh=f"{told or '全部'}仿真运行{where[0]}", en=f"{told or 'all'} simulated runs{where[1]}")
