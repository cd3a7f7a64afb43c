"""``--soc`` and ``--export`` on the commands that read captures."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.program import Run

TEXT = "data/profiles/ascend/cnn-ddp-2rank-text/rank0_ascend_pt"
DATABASE = "data/profiles/ascend/cnn-ddp-2rank-db/rank1_ascend_pt"


@pytest.mark.parametrize("command", ["diagnose", "health"])
def test_a_chip_can_be_named_where_the_capture_does_not(kb: Run, shared: Path, command: str) -> None:
    assert kb(command, shared / TEXT, "--soc", "910b1", "--json").status == 0
    unknown = kb(command, shared / TEXT, "--soc", "910z9")
    assert unknown.status == 1
    assert "910z9" in unknown.err


@pytest.mark.parametrize("command", ["diagnose", "health"])
def test_a_chip_of_another_family_than_the_capture_names_is_refused(kb: Run, shared: Path, command: str) -> None:
    result = kb(command, shared / DATABASE, "--soc", "910a")
    assert result.status == 2
    assert "Ascend910B" in result.err


@pytest.mark.parametrize("command", ["diagnose", "health"])
def test_a_raw_capture_names_its_export_and_asks_for_the_tool(kb: Run, tmp_path: Path, command: str) -> None:
    raw = tmp_path / "host_1_20250101000000000_ascend_pt"
    (raw / "FRAMEWORK").mkdir(parents=True)
    (raw / "FRAMEWORK" / "torch.op_range").write_bytes(b"x")
    (raw / "PROF_000001_20250101000000000_ABCDEFGHIJKLMNOP" / "device_0").mkdir(parents=True)
    plain = kb(command, raw)
    assert plain.status == 3
    assert "analyse" in plain.err
    exported = kb(command, raw, "--export")
    assert exported.status == 1
    assert "torch_npu is not installed here" in exported.err
