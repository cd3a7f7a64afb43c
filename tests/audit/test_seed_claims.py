"""The tables of both seed articles: every flag is raised by its rule, and rows without a flag raise nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from audit.sheets import seed_sheets
from msgspec.structs import replace

from kb.audit.claims import Note, Sheet
from kb.audit.ruleset import audit
from kb.domain.catalogue import Catalogue
from kb.library.catalogue import load_catalogue

SHEETS = seed_sheets(Path(__file__).with_name("seed_claims.json"))
# flag -> (scenario, rule, severity, a figure of its formula)
FLAGS = {
    "F1": ("sd3", "composition", "high", "= 1,100 ms"),
    "F2 two values": ("sd3", "one_value", "high", "58 % != 78 %"),
    "F2 utilisation": ("sd3", "gain_against_utilization", "high", "78 / 92 = -15.2 %"),
    "F2 efficiency": ("sd3", "gain_against_utilization", "high", "-21.9 %"),
    "F3 buffer": ("sd3", "tile", "high", "147,456 > 131,072"),
    "F3 cause": ("sd3", "tile", "high", "128 mod 16 = 0"),
    "F4": ("sd3", "one_value", "medium", "23 % != 8 %"),
    "F5": ("sd3", "little", "medium", "= 49.0"),
    "F6": ("sd3", "bandwidth", "high", "204 GB/s"),
    "F7": ("sd3", "cache_flow", "high", "= 346 MB"),
    "F8 work": ("sd3", "work_against_time", "high", "8.389 MFLOP"),
    "F8 traffic": ("sd3", "traffic", "high", "= 0.46 GB/s"),
    "F9": ("sd3", "traffic", "high", "674 MB / 620 ms = 1.09 GB/s; at 186 GB/s 256 MB are worth 1.38 ms"),
    "F10": ("sd3", "percentage", "low", "= 99.54 %"),
    "F11": ("sd3", "percentage", "low", "= -99.14 %"),
    "F12 memory": ("llama3-70b", "model_memory", "high", "= 140 GB"),
    "F12 bandwidth": ("llama3-70b", "attainable_bandwidth", "high", "92 %"),
    "F13 throttling": ("yolov8", "throttling", "high", "168 ms < 180 ms"),
    "F13 roofline": ("yolov8", "roofline", "high", "= 3.7 ms"),
    "F14": ("tts", "range_base", "medium", "+138 % vs 26.5, +80 % vs 35"),
    "F15": ("bert", "amdahl", "high", "= 168 ms"),
    "F16": ("bert", "own_target", "high", "145 /s < 150 /s"),
    "F17": ("bert", "little_grid", "medium", "= 14.2"),
    "F18": ("resnet50", "measured_hardware", "low", "128 /s, 486 /s"),
    "F19": ("recsys", "capacity", "medium", "= 76 %"),
    "F20": ("recommender", "constant", "low", "0.94"),
}
# Rows that take part in a flag (verdict inconsistent, implausible, "needs concurrency", or named by section 4).
FLAGGED_ROWS = frozenset(
    {"A1", "A2", "A4", "A5", "A6", "A7", "A8", "A10", "A11", "A12", "A13", "A14", "A17", "A21", "A30", "A31", "A33", "A34", "A36",
     "B1", "B2", "B4", "B5", "B10", "B14", "B15", "B19"}
)  # fmt: skip
# Sound by themselves: they contradict other rows only.
SOUND_ALONE = frozenset({"A1", "A2", "A4", "A7", "A8", "B1", "B2", "B14"})
ROWS = sorted({claim.source for sheet in SHEETS.values() for claim in sheet.claims} - (FLAGGED_ROWS - SOUND_ALONE))


@pytest.fixture(scope="module")
def catalogue(checkout: Path) -> Catalogue:
    return load_catalogue(checkout)


def notes(sheet: Sheet, catalogue: Catalogue) -> tuple[Note, ...]:
    return audit([sheet], catalogue)


@pytest.mark.parametrize("flag", FLAGS)
def test_every_flag_is_raised_with_rule_formula_and_numbers(flag: str, catalogue: Catalogue) -> None:
    scenario, rule, severity, figure = FLAGS[flag]
    found = [note for note in notes(SHEETS[scenario], catalogue) if note.rule == rule and figure in note.formula]
    assert [note.severity for note in found] == [severity]
    assert found[0].text.zh
    assert found[0].text.en


def test_nothing_else_is_raised(catalogue: Catalogue) -> None:
    found = [(name, note.rule, note.formula) for name, sheet in SHEETS.items() for note in notes(sheet, catalogue)]
    assert len(found) == len(FLAGS)


@pytest.mark.parametrize("scenario", SHEETS)
def test_rows_marked_ok_rounding_or_free_raise_nothing(scenario: str, catalogue: Catalogue) -> None:
    sheet = SHEETS[scenario]
    sound = tuple(claim for claim in sheet.claims if claim.source not in FLAGGED_ROWS)
    assert notes(replace(sheet, claims=sound), catalogue) == ()


@pytest.mark.parametrize("row", ROWS)
def test_a_row_marked_ok_is_sound_on_its_own_too(row: str, catalogue: Catalogue) -> None:
    sheet = next(sheet for sheet in SHEETS.values() if any(claim.source == row for claim in sheet.claims))
    own = replace(sheet, claims=tuple(claim for claim in sheet.claims if claim.source == row))
    assert notes(own, catalogue) == ()
