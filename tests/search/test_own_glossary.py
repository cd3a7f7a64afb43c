from __future__ import annotations

from pathlib import Path

import pytest
from search.samples import CATALOGUE

from kb.errors import ContentError
from kb.text.glossary import expand
from kb.workflow.glossary import FILE, with_own_glossary


def write(home: Path, text: str) -> Path:
    (home / FILE).write_text(text, encoding="utf-8")
    return home


def test_without_a_file_the_shipped_glossary_is_used(tmp_path: Path) -> None:
    assert with_own_glossary(CATALOGUE, tmp_path) is CATALOGUE


def test_own_rows_expand_a_query(tmp_path: Path) -> None:
    home = write(tmp_path, '[{"id": "conveyor", "zh": ["\u4f20\u9001\u5e26"], "en": ["conveyor"]}]')
    assert "conveyor" in expand("\u4f20\u9001\u5e26", with_own_glossary(CATALOGUE, home).glossary).terms


def test_an_own_row_replaces_the_shipped_one_or_switches_it_off(tmp_path: Path) -> None:
    home = write(tmp_path, '[{"id": "stall", "zh": ["\u5361\u4f4f"], "en": ["hang"]}, {"id": "attention", "zh": [], "en": []}]')
    rows = {row.id: row for row in with_own_glossary(CATALOGUE, home).glossary}
    assert rows["stall"].en == ("hang",)
    assert "attention" not in rows


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"id": "x"}]'])
def test_a_broken_file_is_named_with_the_form_it_should_have(tmp_path: Path, text: str) -> None:
    with pytest.raises(ContentError, match=FILE) as caught:
        with_own_glossary(CATALOGUE, write(tmp_path, text))
    assert caught.value.allowed is not None
    assert "zh" in caught.value.allowed
