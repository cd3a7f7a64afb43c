"""Formats by file name, PDF, speedscope, and the command that writes them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from cli.program import Run, runner
from report.samples import CATALOGUE, diagnosis, full_report, session
from report.test_archive import HOSTILE

from kb.errors import KbError, UsageError
from kb.report.document import Document, Heading, Prose, TableBlock
from kb.report.formats import format_of, rendered
from kb.report.payload import diagnosis_payload
from kb.report.pdf.prose import rich_blocks
from kb.report.pdf.renderer import PdfRenderer
from kb.report.report import Report
from kb.session.codec import to_bytes
from kb_cli.boundary import run_program


@pytest.fixture(scope="module")
def filled_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose casebook holds the shipped library."""
    home = tmp_path_factory.mktemp("filled") / "home"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KB_HOME", str(home))
        patch.setenv("KB_EMBEDDER", "hashing")
        assert run_program("kb", ["list", "--json"]) == 0
    return home


@pytest.fixture
def kb(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, own_home: Path, filled_home: Path) -> Run:
    shutil.copytree(filled_home, own_home, dirs_exist_ok=True)
    monkeypatch.setenv("KB_EMBEDDER", "hashing")
    return runner(capsys)


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "run.prof"
    path.write_bytes(to_bytes(session()))
    return path


def test_the_ending_decides_the_format() -> None:
    assert [format_of(Path(name)) for name in ("a.HTML", "b.speedscope.json", "c.json")] == [".html", ".speedscope.json", ".json"]
    with pytest.raises(UsageError, match="no report format"):
        format_of(Path("report.docx"))


def test_speedscope_gets_every_nanosecond_once() -> None:
    made = json.loads(rendered(full_report(), ".speedscope.json", CATALOGUE, "en"))
    profile, root = made["profiles"][0], full_report().facts[0].flame
    assert root is not None
    assert sum(profile["weights"]) == profile["endValue"] == root.value_ns
    assert all(0 <= frame < len(made["shared"]["frames"]) for stack in profile["samples"] for frame in stack)
    with pytest.raises(KbError, match="no flame graph"):
        rendered(Report(diagnosis=diagnosis()), ".speedscope.json", CATALOGUE, "en")


@pytest.mark.parametrize("text", ["run", HOSTILE, "x" * 100_000])
def test_a_pdf_is_made_of_any_text(text: str) -> None:
    pytest.importorskip("typst")
    data = rendered(full_report(text=text), ".pdf", CATALOGUE, "zh")
    assert isinstance(data, bytes)
    assert data.startswith(b"%PDF-")
    assert b"/Outlines" in data or b"/ObjStm" in data


def test_wide_tables_and_authors_markdown_fit_on_paper() -> None:
    pytest.importorskip("typst")
    markdown = (
        "# A\n\n- one **two** `three`\n- [x](javascript:alert(1))\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n```\n#let x = 1\n```\n\n> quoted"
    )
    table = TableBlock(("a", "b"), (("long_name_" * 30, "1"),) * 900, right=(1,))
    assert PdfRenderer().render(Document((Heading(1, "t"), Prose(markdown), table), lang="zh")).startswith(b"%PDF-")
    assert "javascript" not in json.dumps([run["address"] for block in rich_blocks(markdown) for run in _runs(block)])


def _runs(block: dict[str, object]) -> list[dict[str, str]]:
    return [run for run in re.findall(r"\{[^{}]*\}", json.dumps(block)) for run in [json.loads(run)] if "address" in run]


def test_without_the_extra_pdf_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kb.report.pdf.renderer.font_folder", lambda: None)
    with pytest.raises(KbError, match="extra `pdf`") as caught:
        rendered(full_report(), ".pdf", CATALOGUE, "en")
    assert "html" in str(caught.value).lower()


@pytest.mark.parametrize("suffix", ["md", "html", "json", "speedscope.json"])
def test_the_command_writes_every_format(kb: Run, profile: Path, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"report.{suffix}"
    result = kb("report", profile, "--output", target, "--no-cases", "--static", "--lang", "en")
    assert (result.status, target.stat().st_size > 300) == (0, True), result.err


def test_a_report_opens_again_in_the_other_language_and_format(kb: Run, profile: Path, tmp_path: Path) -> None:
    page, text = tmp_path / "report.html", tmp_path / "report.md"
    assert kb("report", profile, "--output", page, "--no-cases", "--lang", "en").status == 0
    assert kb("report", page, "-o", text, "--lang", "zh").status == 0
    assert text.read_text(encoding="utf-8").startswith("# 性能诊断报告: run (Chip)")


def test_a_saved_diagnosis_and_a_stored_record_become_reports(kb: Run, tmp_path: Path) -> None:
    saved = tmp_path / "diagnosis.json"
    saved.write_text(json.dumps(diagnosis_payload(diagnosis())), encoding="utf-8")
    assert kb("report", saved, "--output", tmp_path / "a.md").status == 0
    slug = kb("list", "--json").json()["records"][0]["slug"]
    assert kb("report", slug, "--output", tmp_path / "b.html", "--static").status == 0


def test_the_command_refuses_to_overwrite_and_to_guess(kb: Run, profile: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.md"
    target.write_text("mine", encoding="utf-8")
    assert kb("report", profile, "--output", target, "--no-cases").status == 1
    assert target.read_text(encoding="utf-8") == "mine"
    assert kb("report", profile, "--output", tmp_path / "report.docx").status == 2
    assert kb("report", profile).status == 2
    assert kb("report", "no-such-record", "--output", tmp_path / "x.md").status == 1
    (tmp_path / "empty").mkdir()
    assert kb("report", tmp_path / "empty", "--output", tmp_path / "y.md").status == 3


def test_a_damaged_casebook_costs_its_chapter_not_the_report(kb: Run, profile: Path, tmp_path: Path) -> None:
    from kb.workflow.workspace import workspace

    workspace().prepared().database.write_bytes(b"not a database at all" * 100)
    result = kb("report", profile, "--output", tmp_path / "a.md", "--lang", "en")
    assert result.status == 0
    assert "the report has no cases" in result.err


@pytest.mark.parametrize("suffix", ["html", "json"])
def test_a_report_file_can_be_published(kb: Run, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"report.{suffix}"
    target.write_text(str(_text(rendered(full_report(), f".{suffix}", CATALOGUE, "en"))), encoding="utf-8")
    published = kb("publish", target, "--json")
    assert (published.status, published.json()["ref"]) == (0, "workspace:made-by-hand@1"), published.err


def _text(content: str | bytes) -> str:
    return content if isinstance(content, str) else content.decode()


def test_a_second_profile_makes_it_a_comparison(kb: Run, profile: Path, tmp_path: Path) -> None:
    later, target = tmp_path / "later.prof", tmp_path / "change.md"
    later.write_bytes(to_bytes(session((200, 50, 50, 100))))
    assert kb("report", profile, "--after", later, "-o", target, "--no-cases", "--lang", "en").status == 0
    assert "## Before and after" in target.read_text(encoding="utf-8")
