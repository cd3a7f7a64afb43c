"""The chip files say what the sources say."""

from __future__ import annotations

import pytest
from simulated.chips import NAMES, SOC_FOLDER, chip_file

from kb.domain.quantity import dimension
from kb.domain.soc import Sourced

# TFLOPS of the published table: cores x 8,192 x clock.
PEAKS = {
    "310b1": 10.0,
    "310p3": 69.5,
    "910a": 262.1,
    "910b-gen1": 221.2,
    "910b1": 363.7,
    "910b2": 353.9,
    "910b3": 294.9,
    "910b4": 245.8,
    "910c-die": 353.9,
}


def test_the_folder_holds_every_chip_under_its_id() -> None:
    assert {path.stem for path in SOC_FOLDER.glob("*.json")} >= set(NAMES)
    assert all(chip_file(name).id == name for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_peak_follows_from_cores_and_clock(name: str) -> None:
    assert chip_file(name).peak_fp16_flops / 1e12 == pytest.approx(PEAKS[name], abs=0.06)


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_has_a_known_unit_and_a_source(name: str) -> None:
    soc = chip_file(name)
    figures = [value for field in soc.__struct_fields__ if isinstance(value := getattr(soc, field), Sourced)]
    assert len(figures) >= 13
    for figure in figures:
        dimension(figure.unit)
        assert figure.source


def test_names_and_aliases_are_unique_and_plain_910b_is_nobodys() -> None:
    names = [label.casefold() for name in NAMES for label in (name, *chip_file(name).aliases)]
    assert len(names) == len(set(names))
    assert not {"910b", "ascend910b"} & set(names)
