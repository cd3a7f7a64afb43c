"""Asking for simulated sessions by name and text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.program import Run, runner
from simulated.chips import SOC_FOLDER

from kb.errors import ContentError, NotFoundError, UsageError
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.profile.simulated.options import Options
from kb.workflow.simulate import chip, options_from


@pytest.fixture
def kb(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys)


def test_options_are_read_from_text() -> None:
    found = options_from(("stage_shift=4", "overlap_comm=true", "kv_policy=paged", "bucket_mb=50"), {"batch": 2, "sequence": None})
    assert found == Options(stage_shift=4, overlap_comm=True, kv_policy="paged", bucket_mb=50.0, batch=2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("warp=9", "no option"),
        ("batch", "no option"),
        ("batch=many", "does not fit"),
        ("kv_policy=lost", "does not fit"),
        ("batch=0", "impossible"),
    ],
)
def test_wrong_options_are_refused_with_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        options_from((text,), {})
    assert caught.value.allowed


def test_a_chip_may_come_from_a_file_of_ones_own(tmp_path: Path) -> None:
    catalogue = load_catalogue(library_root())
    own = json.loads((SOC_FOLDER / "910b2.json").read_text(encoding="utf-8"))
    own["id"], own["clock"]["value"] = "mine", 2000
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(own), encoding="utf-8")
    assert (chip(catalogue, str(path)).id, chip(catalogue, str(path)).clock.value) == ("mine", 2000)
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(ContentError, match="is not a chip"):
        chip(catalogue, str(path))
    with pytest.raises(NotFoundError, match="no SoC named"):
        chip(catalogue, "910z9")


def test_the_command_writes_a_file_for_each_rank(kb: Run, tmp_path: Path) -> None:
    target = tmp_path / "job.prof"
    result = kb(
        "simulate", "model", "qwen3-0.6b-train", "--pipeline-parallel", "2", "--sequence", "64", "--steps", "2", "--microbatches", "2",
        "--set", "stage_shift=4", "--output", target, "--json",
    )  # fmt: skip
    assert result.status == 0
    answer = json.loads(result.out)
    assert [Path(name).name for name in answer["files"]] == ["job-rank0.prof", "job-rank1.prof"]
    assert answer["origin"] == "simulated"
    assert all(Path(name).is_file() for name in answer["files"])


def test_a_degree_the_model_does_not_take_is_a_usage_error(kb: Run, tmp_path: Path) -> None:
    result = kb("simulate", "model", "bert-base", "--tensor-parallel", "2", "--output", tmp_path / "x.prof")
    assert result.status == 2
    assert "tensor_parallel" in result.err
