"""docs/catalogue.md is made from the catalogue."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.library.overview import catalogue_page


def test_the_page_of_the_catalogue_is_current(checkout: Path, pytestconfig: pytest.Config) -> None:
    page, path = catalogue_page(load_catalogue(library_root())), checkout / "docs" / "catalogue.md"
    if pytestconfig.getoption("--remake-golden"):
        path.write_text(page, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == page, "run make golden"


def test_the_page_names_every_entry() -> None:
    catalogue = load_catalogue(library_root())
    page = catalogue_page(catalogue)
    for name in (*catalogue.causes, *catalogue.strategies, *catalogue.metrics, *catalogue.socs):
        assert f"| {name} |" in page


def test_every_row_of_a_table_has_its_columns() -> None:
    rows = [line for line in catalogue_page(load_catalogue(library_root())).splitlines() if line.startswith("|")]
    widths: list[int] = []
    for line in rows:
        cells = len(re.findall(r"(?<!\\)\|", line)) - 1
        if set(line) <= set("| -"):
            widths.append(cells)
        elif widths:
            assert cells in widths[-1:] or line.startswith(("| strategy |", "| effort |", "| id |")), line
    assert len(widths) == 5
