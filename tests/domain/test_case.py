"""Outcomes: the gain is recomputed, in the metric's own direction."""

from __future__ import annotations

import pytest

from kb.domain.case import Outcome
from kb.domain.quantity import Quantity


def _outcome(before: Quantity | None, after: Quantity | None, **changes: str) -> Outcome:
    return Outcome(strategy="s", result="improved", metric="m", before=before, after=after, **changes)  # type: ignore[arg-type]  # test factory


def test_a_lower_time_is_a_gain() -> None:
    assert _outcome(Quantity(620, "ms"), Quantity(422, "ms")).gain_fraction == pytest.approx(0.3194, abs=1e-4)


def test_units_may_differ() -> None:
    assert _outcome(Quantity(1.52, "s"), Quantity(890, "ms")).gain_fraction == pytest.approx(0.4145, abs=1e-4)


def test_a_higher_throughput_is_the_time_saved_per_unit() -> None:
    assert _outcome(Quantity(28, "/s"), Quantity(55, "/s"), better="higher").gain_fraction == pytest.approx(1 - 28 / 55)


def test_a_loss_is_negative() -> None:
    gain = _outcome(Quantity(100, "ms"), Quantity(120, "ms")).gain_fraction
    assert gain == pytest.approx(-0.2)


_ONE = Quantity(1, "ms")


@pytest.mark.parametrize(("before", "after"), [(None, _ONE), (_ONE, None), (Quantity(0, "ms"), _ONE)])
def test_a_missing_side_gives_no_gain(before: Quantity | None, after: Quantity | None) -> None:
    assert _outcome(before, after).gain_fraction is None


def test_sides_of_different_dimensions_give_no_gain() -> None:
    assert _outcome(Quantity(20, "ms"), Quantity(10, "GB")).gain_fraction is None
