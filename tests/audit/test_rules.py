"""The rules on other figures than the seed's: each speaks just beyond its bound and is silent just inside."""

from __future__ import annotations

from pathlib import Path

import pytest
from audit.sheets import Row, sheet
from hypothesis import given
from hypothesis import strategies as st

from kb.audit.ruleset import audit
from kb.domain.catalogue import Catalogue
from kb.library.catalogue import load_catalogue


@pytest.fixture(scope="module")
def catalogue(checkout: Path) -> Catalogue:
    return load_catalogue(checkout)


def rules(catalogue: Catalogue, *rows: Row, **about: object) -> list[str]:
    return [note.rule for note in audit([sheet(rows, **about)], catalogue)]


def change(before: str, after: str, stated: str) -> list[Row]:
    return [["latency", "before", before], ["latency", "after", after], ["latency", "change", stated]]


@pytest.mark.parametrize(
    ("before", "after", "stated"),
    [
        ("200 ms", "150 ms", "-25 %"),
        ("1.5 s", "1,125 ms", "-25 %"),
        ("30 ms", "20 ms", "-33 %"),
        ("30 ms", "20 ms", "1.5 x"),
        ("30 ms", "20 ms", "33 %"),
    ],
)
def test_right_percentages_pass(catalogue: Catalogue, before: str, after: str, stated: str) -> None:
    assert rules(catalogue, *change(before, after, stated)) == []


@pytest.mark.parametrize(
    ("before", "after", "stated"), [("200 ms", "150 ms", "-33 %"), ("200.0 ms", "150.0 ms", "2.0 x"), ("10 ms", "30 ms", "+300 %")]
)
def test_wrong_percentages_are_named(catalogue: Catalogue, before: str, after: str, stated: str) -> None:
    assert rules(catalogue, *change(before, after, stated)) == ["percentage"]


@given(before=st.integers(100, 10_000), after=st.integers(100, 10_000))
def test_a_percentage_printed_from_its_figures_always_passes(before: int, after: int) -> None:
    rows = change(f"{before} ms", f"{after} ms", f"{100 * (after / before - 1):+.1f} %")
    assert audit([sheet(rows)], Catalogue(causes={}, strategies={}, metrics={}, socs={}, glossary=())) == ()


@pytest.mark.parametrize(("cut", "expected"), [("-80 %", []), ("-75 %", []), ("-60 %", ["composition"])])
def test_parts_must_carry_the_whole(catalogue: Catalogue, cut: str, expected: list[str]) -> None:
    rows: list[Row] = [["latency", "before", "100 ms"], ["latency", "after", "70 ms"],
                       ["attention share", "before", "40 %"], ["attention time", "change", cut]]  # fmt: skip
    assert rules(catalogue, *rows) == expected


@pytest.mark.parametrize(("after", "expected"), [("51 ms", []), ("40 ms", ["amdahl"])])
def test_bottlenecks_bound_the_gain(catalogue: Catalogue, after: str, expected: list[str]) -> None:
    rows: list[Row] = [
        ["latency", "before", "100 ms"],
        ["latency", "after", after],
        ["a share", "before", "30 %"],
        ["b share", "before", "20 %"],
    ]
    assert rules(catalogue, *rows) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], ["little"]),
        ([["concurrency", "after", "8"]], []),
    ],
)
def test_more_in_flight_must_be_stated(catalogue: Catalogue, rows: list[Row], expected: list[str]) -> None:
    both: list[Row] = [
        ["latency", "before", "100 ms"],
        ["latency", "after", "90 ms"],
        ["throughput", "before", "10 /s"],
        ["throughput", "after", "20 /s"],
    ]
    assert rules(catalogue, *both, *rows) == expected


@pytest.mark.parametrize(
    ("soc", "peak", "expected"),
    [
        ("Ascend 910B", "1.6 TB/s", []),
        ("Ascend 910B", "800 GB/s", []),
        ("310P3", "204.8 GB/s", []),
        ("310P", "1.6 TB/s", ["bandwidth"]),
        ("910B2", "800 GB/s", ["bandwidth"]),
        ("no such chip", "1 GB/s", []),
    ],
)
def test_a_peak_belongs_to_its_chip(catalogue: Catalogue, soc: str, peak: str, expected: list[str]) -> None:
    assert rules(catalogue, ["peak_bandwidth", "any", peak], soc=soc) == expected


@pytest.mark.parametrize(
    ("tile", "soc", "expected"), [("160", "910B2", []), ("192", "910B2", ["tile"]), ("224", "310P3", []), ("272", "310P3", ["tile"])]
)
def test_a_tile_fits_its_chip(catalogue: Catalogue, tile: str, soc: str, expected: list[str]) -> None:
    assert rules(catalogue, ["conv tile", "after", tile], soc=soc) == expected


@pytest.mark.parametrize(("used", "expected"), [("190 KiB", []), ("300 KiB", ["buffer"])])
def test_a_buffer_does_not_overflow(catalogue: Catalogue, used: str, expected: list[str]) -> None:
    assert rules(catalogue, ["ub_used", "any", used], soc="910B2") == expected


@pytest.mark.parametrize(("devices", "expected"), [(None, ["model_memory"]), (2, ["model_memory"]), (4, [])])
def test_weights_fit_the_stated_cards(catalogue: Catalogue, devices: int | None, expected: list[str]) -> None:
    assert rules(catalogue, ["parameters", "any", "70000000000"], soc="910B2", devices=devices) == expected


@pytest.mark.parametrize(("hit", "expected"), [("50 %", []), ("90 %", ["cache_flow"])])
def test_cache_flows_balance(catalogue: Catalogue, hit: str, expected: list[str]) -> None:
    assert rules(catalogue, ["hit_rate", "before", hit], ["hbm_to_l2", "before", "100 MB"], ["l2_to_l1", "before", "200 MB"]) == expected
