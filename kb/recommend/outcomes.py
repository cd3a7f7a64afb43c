"""What strategies did in past runs, as arrays: a row a run, its traits, and the gain of each strategy tried on it.

Built from ``case`` records. No gain and worse are gains too; NaN means that nobody tried.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kb.domain.case import Outcome
from kb.domain.catalogue import StrategyId
from kb.domain.record import Record
from kb.recommend.traits import Traits

Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
_MOST: Final = 6e4
TRAIT: Final = "trait."
"""What a trait's name begins with among the metrics of a case's context."""
GROUP: Final = "family:"
"""What the tag of a run's model family begins with."""


@dataclass(frozen=True, slots=True, eq=False)
class OutcomeTable:
    """``values`` (runs, traits), NaN where the capture did not show one. ``gains`` (runs, strategies): signed fraction of the
    device time of a sample. ``tried`` is False where the strategy was in place already or means nothing for the run: its gain is 0
    without a trial. ``unfit``: the run did not fit the chip's memory with it; the gain is NaN then. ``groups`` are model families,
    ``families`` those of the chips. ``made`` says how."""

    traits: tuple[str, ...]
    strategies: tuple[StrategyId, ...]
    values: Floats
    gains: Floats
    tried: Mask
    unfit: Mask
    runs: tuple[str, ...]
    groups: tuple[str, ...]
    families: tuple[str, ...]
    made: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def cases(self) -> int:
        """Outcomes somebody tried."""
        return int((self.tried & (np.isfinite(self.gains) | self.unfit)).sum())

    @property
    def fingerprint(self) -> str:
        """16 hex digits over everything a fit depends on."""
        state = hashlib.sha256("\n".join((*self.traits, "", *self.strategies, "", *self.runs, *self.groups, *self.families)).encode())
        for array in (self.values, self.gains, self.tried, self.unfit):
            state.update(np.ascontiguousarray(array).tobytes())
        return state.hexdigest()[:16]

    def chosen(self, mask: Mask) -> OutcomeTable:
        """The runs where ``mask`` (runs,) is true."""
        rows = np.flatnonzero(mask).tolist()
        return replace(
            self,
            values=self.values[mask],
            gains=self.gains[mask],
            tried=self.tried[mask],
            unfit=self.unfit[mask],
            runs=tuple(self.runs[row] for row in rows),
            groups=tuple(self.groups[row] for row in rows),
            families=tuple(self.families[row] for row in rows),
        )

    def without_group(self, group: str) -> OutcomeTable:
        """The runs of other model families."""
        return self.chosen(np.array([own != group for own in self.groups], np.bool_))

    def vector(self, traits: Traits) -> Floats:
        """Traits in the table's order, NaN for those that are not there."""
        return np.array([traits.get(name, np.nan) for name in self.traits], np.float32)


def table_of(records: Iterable[Record], made: Mapping[str, str]) -> OutcomeTable:
    """The table of ``case`` records, one a run; records without traits are left out (nothing can be compared by)."""
    rows = [(record, traits) for record in records if (traits := _traits(record))]
    names = tuple(sorted({name for _, traits in rows for name in traits}))
    outcomes = [_outcomes(record) for record, _ in rows]
    strategies = tuple(sorted({name for found in outcomes for name in found}))
    values = np.array([[traits.get(name, np.nan) for name in names] for _, traits in rows], np.float32).reshape(len(rows), len(names))
    shape = len(rows), len(strategies)
    cells = [[found.get(name, _NOBODY) for name in strategies] for found in outcomes]
    return OutcomeTable(
        traits=names,
        strategies=strategies,
        values=halved(values),
        gains=halved(np.array([[cell.gain for cell in row] for row in cells], np.float32).reshape(shape)),
        tried=np.array([[cell.tried for cell in row] for row in cells], np.bool_).reshape(shape),
        unfit=np.array([[cell.unfit for cell in row] for row in cells], np.bool_).reshape(shape),
        runs=tuple(record.slug for record, _ in rows),
        groups=tuple(_group(record) for record, _ in rows),
        families=tuple(record.cases[0].context.soc_family for record, _ in rows),
        made=made,
    )


class _Cell(NamedTuple):
    gain: float
    tried: bool
    unfit: bool


_NOBODY: Final = _Cell(math.nan, False, False)


def halved(values: Floats) -> Floats:
    """Values as half precision holds them (three digits), the form in which a casebook keeps them."""
    return np.clip(values, -_MOST, _MOST).astype(np.float16).astype(np.float32)


def _traits(record: Record) -> dict[str, float]:
    if record.kind != "case" or not record.cases:
        return {}
    metrics = record.cases[0].context.metrics
    return {name.removeprefix(TRAIT): quantity.value for name, quantity in metrics.items() if name.startswith(TRAIT)}


def _outcomes(record: Record) -> dict[StrategyId, _Cell]:
    return {outcome.strategy: _cell(outcome) for case in record.cases for outcome in case.outcomes}


def _cell(outcome: Outcome) -> _Cell:
    gain = outcome.gain_fraction
    if gain is None:
        return _Cell(math.nan, outcome.reported_to_work, outcome.result == "worse")
    return _Cell(gain, outcome.reported_to_work or outcome.result != "no_gain", False)


def _group(record: Record) -> str:
    tagged = [tag.removeprefix(GROUP) for tag in record.tags if tag.startswith(GROUP)]
    return tagged[0] if tagged else record.cases[0].context.model or record.slug
