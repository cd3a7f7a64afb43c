"""What the documents show is what the programs print."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from cli.program import runner
from docs.transcripts import Shown, agrees, transcripts

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("README*.md"), *(ROOT / "docs" / "guide").glob("*.md")])
BLOCKS = [block for page in PAGES for block in transcripts(page)]


def test_every_page_of_the_guide_shows_a_run() -> None:
    assert {page.name for page in PAGES} <= {block[0].page for block in BLOCKS}


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block[0].page}:{block[0].line}")
def test_a_transcript_is_what_a_run_prints(
    block: tuple[Shown, ...], own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "data").symlink_to(ROOT / "tests" / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KB_EMBEDDER", "hashing")
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8" if ".zh." in block[0].page else "en_US.UTF-8")
    for shown in block:
        program, *words = shlex.split(shown.command)
        result = runner(capsys, program)(*words)
        assert result.status in (0, 5, 6), (shown.command, result.err)
        assert agrees(shown.output, result.out), f"{shown.page}:{shown.line} {shown.command}\n{result.out}"
