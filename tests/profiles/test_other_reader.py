"""The vendor's own analysis tool reads what we write. Needs an interpreter that has it, named in KB_BENCH_TOOLS."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kb.profile.ascend.writing import write_rank
from kb.profile.ascend.writing_db import write_rank_database
from kb.profile.sources import load
from kb.session.session import Session

TOOLS = os.environ.get("KB_BENCH_TOOLS", "")
ADVISOR = "import sys; from msprof_analyze.cli.entrance import msprof_analyze_cli as main; sys.argv[0] = 'msprof-analyze'; main()"
UNREADABLE = ("read failed", "no such table", "no such column", "is not a valid", "Traceback")


@pytest.mark.skipif(not TOOLS, reason="KB_BENCH_TOOLS names no interpreter with msprof-analyze")
@pytest.mark.parametrize("write", [write_rank, write_rank_database])
@pytest.mark.parametrize("sample", ["cnn-ddp-2rank-text/rank0_ascend_pt", "qwen3-0.6b-train-pp2-dp2/rank_0_ascend_pt"])
def test_the_advisor_reads_what_we_write(shared: Path, tmp_path: Path, sample: str, write: Callable[[Session, Path], Path]) -> None:
    (session,) = load(shared / "data" / "profiles" / "ascend" / sample)
    folder = write(session, tmp_path / "written")
    command = [TOOLS, "-c", ADVISOR, "advisor", "all", "-d", str(folder), "-o", str(tmp_path / "out")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-2000:]
    assert list((tmp_path / "out").glob("*.html"))
    assert not [line for line in said.splitlines() if "ERROR" in line and any(part in line for part in UNREADABLE)]
