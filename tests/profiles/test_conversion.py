"""``convert`` writes every format so that it loads again, redacted when asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from profiles.ascend_writer import write_rank

from kb.errors import KbError, UsageError
from kb.profile.sources import load
from kb.workflow.conversion import FORMATS, convert
from kb.workflow.health import health_of


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_read_back_with_the_same_kernels(tmp_path: Path, form: str) -> None:
    source = write_rank(tmp_path / "rank_0_ascend_pt", 0)
    (written,) = convert(source, tmp_path / "out", form)
    (before,), (after,) = load(source), load(written)
    for name in ("start_ns", "duration_ns"):
        assert before.tables["kernels"][name].tolist() == after.tables["kernels"][name].tolist()
    assert after.meta.rank == before.meta.rank


def test_redaction_masks_paths_on_the_way(tmp_path: Path) -> None:
    source = write_rank(tmp_path / "rank_0_ascend_pt", 0)
    path = source / "profiler_metadata.json"
    path.write_text(path.read_text().replace('"HCCL_ALGO": ""', '"HOME": "/home/alice", "HCCL_ALGO": "ring"'))
    (written,) = convert(source, tmp_path / "out", "prof", redacted=True)
    assert "alice" not in repr(load(written)[0].meta)


def test_health_takes_the_chip_from_the_user(tmp_path: Path) -> None:
    health = health_of(write_rank(tmp_path / "rank_0_ascend_pt", 0), soc="910b3")
    assert health.sessions[0].soc_known


@pytest.mark.parametrize(("form", "name"), [("prof", "one.prof"), ("chrome", "one.pt.trace.json.gz")])
def test_one_session_goes_into_the_file_that_was_named(tmp_path: Path, form: str, name: str) -> None:
    source, target = write_rank(tmp_path / "rank_0_ascend_pt", 0), tmp_path / "new" / name
    assert convert(source, target, form) == (target,)
    assert target.is_file()
    assert len(load(target)) == 1
    with pytest.raises(KbError, match="already there"):
        convert(source, target, form)


def test_several_sessions_need_a_folder(tmp_path: Path) -> None:
    for rank in range(2):
        write_rank(tmp_path / "ranks" / f"rank_{rank}_ascend_pt", rank)
    with pytest.raises(UsageError, match="2 sessions"):
        convert(tmp_path / "ranks", tmp_path / "all.prof", "prof")
    assert not (tmp_path / "all.prof").exists()
    assert len(convert(tmp_path / "ranks", tmp_path / "all", "prof")) == 2
