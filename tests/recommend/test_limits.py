"""Limits from words: units, contradictions, unknown names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recommend.samples import CATALOGUE, STRATEGIES

from kb.domain.recommendation import Constraints
from kb.errors import NotFoundError, UsageError
from kb.recommend.filters import exclusion
from kb.recommend.limits import AskedLimits, read_constraints


def _read(**asked: object) -> Constraints:
    return read_constraints(AskedLimits(**asked), CATALOGUE)  # type: ignore[arg-type]  # keyword passthrough


def test_quantities_are_read_into_base_units() -> None:
    read = _read(max_latency="100ms", max_memory="2.5GB", min_throughput="150/s", max_precision_loss="0.1%", target="memory")
    assert (read.max_latency_ns, read.max_memory_b, read.min_throughput, read.max_precision_loss) == (1e8, 2.5e9, 150.0, 0.001)
    assert read.target == "memory"
    assert _read(max_memory="2 GiB").max_memory_b == 2.0**31
    assert _read(min_throughput="120/min").min_throughput == 2.0


@given(st.floats(1e-3, 1e6), st.sampled_from(["ns", "us", "ms", "s", "min", "h"]))
def test_a_limit_keeps_its_value_in_every_unit(value: float, unit: str) -> None:
    factor = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 6e10, "h": 3.6e12}[unit]
    read = _read(max_latency=f"{value!r}{unit}").max_latency_ns
    assert read == pytest.approx(value * factor, rel=1e-12)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"max_latency": "5furlong"}, "furlong"),
        ({"max_latency": "2GB"}, "--max-latency"),
        ({"max_latency": "fast"}, "--max-latency fast"),
        ({"max_latency": "100"}, "no unit"),
        ({"max_latency": "0ms"}, "--max-latency 0ms"),
        ({"max_latency": "-3ms"}, "--max-latency -3ms"),
        ({"max_latency": "1e999ms"}, "--max-latency"),
        ({"max_memory": "3ms"}, "--max-memory"),
        ({"min_throughput": "150"}, "no unit"),
        ({"min_throughput": "150GB"}, "--min-throughput"),
        ({"max_precision_loss": "101%"}, "more than everything"),
        ({"max_precision_loss": "-0.1%"}, "--max-precision-loss"),
        ({"target": "beauty"}, "--target beauty"),
        ({"max_effort": "magic"}, "--max-effort magic"),
        ({"allow": ("retile",), "forbid": ("retile",)}, "both name retile"),
        ({"allow": ("lower_precision",), "no_model_change": True}, "--no-model-change"),
        ({"allow": ("lower_precision",), "no_retrain": True}, "--no-retrain"),
        ({"allow": ("retile",), "max_effort": "flag"}, "--max-effort flag"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_reason(asked: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        _read(**asked)
    assert said in caught.value.what
    assert caught.value.allowed or caught.value.do


def test_an_unknown_unit_is_answered_with_the_units_that_fit() -> None:
    with pytest.raises(UsageError) as caught:
        _read(max_memory="3 floppies")
    assert caught.value.allowed is not None
    assert "GB" in caught.value.allowed
    assert "ms" not in caught.value.allowed.split(", ")


def test_unknown_names_are_answered_with_near_ones() -> None:
    with pytest.raises(NotFoundError, match="retle"):
        _read(allow=("retle",))
    with pytest.raises(NotFoundError, match="nosuch"):
        _read(soc="nosuch")


def test_allowing_one_possible_strategy_is_no_contradiction() -> None:
    assert _read(allow=("retile", "bind"), max_effort="environment").allow == ("retile", "bind")


def test_a_family_is_known_by_any_case() -> None:
    assert _read(soc="a2").soc_family == "A2"


@pytest.mark.parametrize(
    ("limits", "out"),
    [
        (Constraints(max_precision_loss=0.0), {"use_fused_attention", "lower_precision", "guess"}),
        (Constraints(max_precision_loss=0.001), {"lower_precision", "guess"}),
        (Constraints(max_precision_loss=1.0), {"guess"}),
        (Constraints(allow_retrain=False), {"lower_precision"}),
        (Constraints(allow_model_change=False), {"lower_precision"}),
        (Constraints(max_effort="flag"), {"use_fused_attention", "lower_precision", "retile", "bind"}),
        (Constraints(), set()),
    ],
)
def test_hard_limits_remove_with_a_reason_in_both_languages(limits: Constraints, out: set[str]) -> None:
    removed = {name: exclusion(entry, limits, "A2", None) for name, entry in STRATEGIES.items()}
    assert {name for name, found in removed.items() if found is not None} == out
    assert all(found.reason.zh and found.reason.en for found in removed.values() if found is not None)
