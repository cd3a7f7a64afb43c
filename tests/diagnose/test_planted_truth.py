"""What counts as right and wrong in the benchmark of planted truth."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from benchmarks.confidence_fit import Sample, calibration, error
from benchmarks.diagnosis_quality import calibration_error, scores
from benchmarks.planted_cases import PLANTED, SPLITTING, Guess, Row, drawn, felt
from kb.profile.simulated.planting import plantable


def row(
    effects: Mapping[str, float], found: Mapping[str, float], *, urgent: tuple[str, ...] = (), ambient: tuple[str, ...] = (),
    masked: tuple[str, ...] = (), declined: tuple[str, ...] = (),
) -> Row:  # fmt: skip
    guesses = {cause: Guess(value, 0.1, 0.02) for cause, value in found.items()}
    return Row(0, "bert-base", "910b1", "whole", effects, guesses, urgent, ambient, masked, declined)


def test_a_planted_cause_is_true_from_the_share_its_rule_speaks_from() -> None:
    assert felt("gc_pause") == 0.02
    assert felt("l2_pressure") == 0.05
    assert row({"l2_pressure": 0.06}, {}).truth("l2_pressure") is True
    assert row({"l2_pressure": 0.04}, {}).truth("l2_pressure") is None
    assert row({"l2_pressure": 0.001}, {"l2_pressure": 0.9}).truth("l2_pressure") is False
    assert row({}, {"l2_pressure": 0.9}).truth("l2_pressure") is False


def test_the_models_own_the_hidden_and_the_declined_are_left_out() -> None:
    assert row({"gc_pause": 0.1}, {"l2_pressure": 0.9}, ambient=("l2_pressure",)).truth("l2_pressure") is None
    assert row({"l2_pressure": 0.0}, {"l2_pressure": 0.9}, masked=("l2_pressure",)).truth("l2_pressure") is None
    assert row({"gc_pause": 0.1}, {}, declined=("gc_pause",)).truth("gc_pause") is None
    assert row({"gc_pause": 0.1}, {"gc_pause": 0.9}, declined=("gc_pause",)).truth("gc_pause") is True


def test_scores_count_hits_misses_false_ones_and_clean_controls() -> None:
    made = [
        row({"gc_pause": 0.1}, {"gc_pause": 0.9}),
        row({"gc_pause": 0.1, "h2d_copy": 0.1}, {"gc_pause": 0.9}),
        row({}, {"excess_cast": 0.9}, urgent=("excess_cast",)),
        row({}, {}),
    ]
    answer = scores(made)
    assert (answer["precision"], answer["recall"], answer["clean_ok"], answer["controls"]) == (2 / 3, 2 / 3, 0.5, 2)
    assert answer["by_cause"]["gc_pause"]["f1"] == 1.0
    assert answer["macro_f1"] == pytest.approx(0.5)
    assert calibration_error(made) == pytest.approx(0.9 - 2 / 3)


def test_cases_go_round_all_causes_and_bring_one_parallel_layout_at_most() -> None:
    seen = set()
    for number in range(4 * len(PLANTED)):
        causes, model = drawn(number, np.random.default_rng([1, number]))
        seen.update(causes[:1])
        assert set(causes) <= set(plantable(model))
        assert len(causes) == len(set(causes)) <= 3
        assert len(SPLITTING & set(causes)) <= 1
    assert seen == set(PLANTED)


def test_the_fit_gives_reliable_causes_and_wide_margins_more_confidence() -> None:
    good = [row({"gc_pause": 0.1}, {"gc_pause": 0.9}) for _ in range(60)]
    bad = [row({}, {"excess_cast": 0.9}) for _ in range(20)]
    sample = Sample([*good, *bad])
    every = np.ones(80, np.bool_)
    made = calibration(sample, every)
    assert made.probability("gc_pause", 5.0) > 0.9
    assert made.probability("excess_cast", 5.0) < 0.3
    assert error(sample, made, every) < 0.15
