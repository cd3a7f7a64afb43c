"""What past outcomes promise, and where a session stands."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recommend.samples import CATALOGUE, outcome, record

from kb.domain.case import CaseContext
from kb.domain.potential import Potential
from kb.domain.provenance import Provenance
from kb.domain.quantity import Quantity
from kb.domain.recommendation import Percentile
from kb.domain.record import Record
from kb.domain.soc import SocFamily
from kb.recommend.outcomes import OutcomeTable
from kb.recommend.percentile import ALL, LEAST, among_runs, distributions, load_kinds, percentiles
from kb.recommend.potential import Trial, Wanted, potential, trials_of
from kb.report.plain import PlainRenderer
from kb.report.potential import potential_document


def _trial(
    gain: float | None, *, tier: Provenance = "simulated", model_type: str | None = "llm", family: SocFamily = "A2", cause: str = "slow"
) -> Trial:
    return Trial(ref="r@1", cause=cause, model_type=model_type, family=family, gain=gain, worked=bool(gain and gain > 0), tier=tier)


def _potential(*trials: Trial, **wanted: object) -> Potential:
    return potential("retile", trials, Wanted(**wanted), CATALOGUE)  # type: ignore[arg-type]  # keyword passthrough


def test_failures_count_and_suggestions_do_not() -> None:
    mixed = record(
        "a",
        outcome("retile", "step_time", "10 ms", "8 ms"),
        outcome("retile", "step_time", "10 ms", "12 ms"),
        outcome("bind", "step_time", "10 ms", "1 ms"),
    )
    found = list(trials_of("a@1", mixed, "retile"))
    assert [trial.gain for trial in found] == [pytest.approx(0.2), pytest.approx(-0.2)]
    assert [trial.worked for trial in found] == [True, False]
    card = record("c", outcome("retile", "step_time", "10 ms", "8 ms"), kind="card")
    assert list(trials_of("c@1", card, "retile")) == []


def test_tiers_are_never_mixed() -> None:
    found = _potential(_trial(0.9, tier="claimed"), _trial(0.2, tier="measured"), _trial(0.3, tier="measured"), _trial(0.5))
    assert found.median == pytest.approx(0.25)
    assert (found.n, found.reported, found.provenance) == (2, 4, "measured")
    assert found.tiers == {"claimed": 1, "simulated": 1, "measured": 2}


def test_one_outcome_says_nothing_about_the_spread() -> None:
    found = _potential(_trial(0.283, tier="measured"))
    assert (found.median, found.interval, found.n) == (0.283, None, 1)
    text = PlainRenderer().render(potential_document(found, CATALOGUE, "en"))
    assert "saves 28.3 %, 1 case, interval unknown" in text
    pair = PlainRenderer().render(potential_document(_potential(_trial(0.2), _trial(0.3)), CATALOGUE, "en"))
    assert "saves 25.0 % [20.0 %, 30.0 %], 2 cases" in pair


@given(st.lists(st.floats(-0.9, 0.9), min_size=2, max_size=30))
def test_the_interval_holds_the_median_and_lies_among_the_outcomes(gains: list[float]) -> None:
    found = _potential(*(_trial(gain) for gain in gains))
    assert found.median is not None
    assert found.interval is not None
    low, high = found.interval
    assert min(gains) - 1e-12 <= low <= found.median + 1e-12
    assert found.median <= high + 1e-12
    assert high <= max(gains) + 1e-12
    inside = sum(low - 1e-12 <= gain <= high + 1e-12 for gain in gains)
    assert inside >= 0.75 * len(gains) - 1


def test_a_narrow_group_gives_way_and_says_so_but_a_chip_never_does() -> None:
    trials = [*(_trial(0.1, model_type="cnn") for _ in range(6)), _trial(0.5)]
    widened = _potential(*trials, model_type="llm")
    assert widened.n == 7
    assert "fewer than" in widened.group.en
    assert _potential(*trials, model_type="cnn").n == 6
    other = _potential(*trials, family="310P")
    assert other.n == 0
    assert other.median is None
    assert _potential(_trial(0.1, family="unknown"), family="310P").n == 1


def test_nothing_known_is_no_figure() -> None:
    found = _potential()
    assert (found.median, found.interval, found.reported) == (None, None, 0)


def _observed(value: float, model_type: str | None = "llm", *, tier: Provenance = "measured", unit: str = "ratio") -> Record:
    context = CaseContext(model_type=model_type, metrics={"idle_share": Quantity(value, unit), "step_time": Quantity(5, "ms")})
    return record("a", tier=tier, context=context)


@given(st.lists(st.floats(0, 1), min_size=LEAST, max_size=40), st.floats(0, 1))
def test_a_percentile_is_the_share_of_cases_below(values: list[float], own: float) -> None:
    known = distributions(_observed(value) for value in values)
    found = percentiles(CaseContext(model_type="llm", metrics={"idle_share": Quantity(own, "ratio")}), known)
    below, ties = sum(value < own for value in values), sum(value == own for value in values)
    assert [item.metric for item in found] == ["idle_share"]
    assert found[0].below == pytest.approx((below + ties / 2) / len(values))
    assert found[0].n == len(values)


def test_only_shares_are_compared_and_units_are_converted() -> None:
    known = distributions([*(_observed(10 * number, unit="%") for number in range(1, LEAST + 1))])
    assert list(known[ALL]) == ["idle_share"]
    assert known[ALL]["idle_share"].values[bisect_left(known[ALL]["idle_share"].values, 0.25)] == pytest.approx(0.3)


def test_other_model_types_stand_in_and_simulated_cases_are_counted() -> None:
    records = [_observed(0.1, "cnn", tier="simulated") for _ in range(LEAST)]
    found = percentiles(CaseContext(model_type="llm", metrics={"idle_share": Quantity(0.5, "ratio")}), distributions(records))[0]
    assert found.simulated == LEAST
    assert found.group.en == "all past cases"
    same = percentiles(CaseContext(model_type="cnn", metrics={"idle_share": Quantity(0.5, "ratio")}), distributions(records))[0]
    assert "cnn" in same.group.en


def test_too_few_cases_tell_nothing() -> None:
    known = distributions(_observed(0.1) for _ in range(LEAST - 1))
    assert percentiles(CaseContext(metrics={"idle_share": Quantity(0.5, "ratio")}), known) == ()


def _table(values: list[float], *, families: tuple[str, ...] | None = None, groups: tuple[str, ...] | None = None) -> OutcomeTable:
    n = len(values)
    none = np.zeros((n, 0), dtype=bool)
    return OutcomeTable(
        traits=("comm_exposed", "phase.decode"),
        strategies=(),
        values=np.array([[value, float(place % 2)] for place, value in enumerate(values)], np.float32),
        gains=np.zeros((n, 0), np.float32),
        tried=none,
        unfit=none,
        runs=tuple(map(str, range(n))),
        groups=groups or ("qwen",) * n,
        families=families or ("A2",) * n,
        made={},
    )


def _among(
    table: OutcomeTable, value: float, model_type: str | None = "llm", phase: str | None = "decode", family: SocFamily = "A2"
) -> list[Percentile]:
    return list(among_runs(table, {"comm_exposed": value}, model_type, phase, family, load_kinds()))


def test_a_session_is_compared_with_runs_of_its_phase_and_kind() -> None:
    table = _table([number / 100 for number in range(20)])  # decode: .01, .03 .. .19
    (found,) = _among(table, 0.1)
    assert (found.metric, found.n, found.simulated) == ("exposed_comm_share", 10, 10)
    assert found.below == pytest.approx(0.5)
    assert "decode simulated runs on A2" in found.group.en
    (wider,) = _among(table, 0.1, phase=None)
    assert wider.n == 20


def test_runs_on_other_chips_are_no_measure() -> None:
    values = [0.1] * 20
    assert _among(_table(values, families=("A3",) * 20), 0.5) == []
    (unknown,) = _among(_table(values, families=("A3",) * 20), 0.5, family="unknown")
    assert "any chip" in unknown.group.en


def test_a_narrow_kind_gives_way_to_all_of_the_chip() -> None:
    (found,) = _among(_table([0.1] * 20, groups=("qwen",) * 2 + ("yolo",) * 18), 0.5)
    assert found.n == 20
    assert found.group.en == "all simulated runs on A2"


def test_shares_that_neither_side_has_are_not_told() -> None:
    assert _among(_table([0.0] * 20), 0.001) == []
