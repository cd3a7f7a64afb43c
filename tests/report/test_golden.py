"""Markdown reports that stand as files; ``pytest --remake-golden`` writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from report.samples import CATALOGUE, full_report

from kb.domain.text import LANGS, Lang
from kb.report.markdown import MarkdownRenderer
from kb.report.story.telling import report_document

_FOLDER = Path(__file__).parent / "golden"


@pytest.mark.parametrize("lang", LANGS)
def test_markdown_reads_as_agreed(lang: Lang, request: pytest.FixtureRequest) -> None:
    rendered = MarkdownRenderer().render(report_document(full_report(origin="simulated"), CATALOGUE, lang))
    golden = _FOLDER / f"report.{lang}.md"
    if request.config.getoption("--remake-golden"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(rendered, encoding="utf-8")
    assert rendered == golden.read_text(encoding="utf-8")
