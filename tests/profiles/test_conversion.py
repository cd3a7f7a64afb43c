"""``convert`` writes every format so that it loads again, redacted when asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from profiles.ascend_writer import write_rank

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
