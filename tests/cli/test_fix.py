"""A bottleneck the capture does not show is said to be healthy only where a check found it so."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.program import runner


@pytest.mark.parametrize(
    ("place", "cause", "reason"),
    [
        ("rank_0_ascend_pt", "slow_link_or_rank", "it could not be judged (communication was captured"),
        ("rank_0_ascend_pt", "synchronization_stall", "it could not be judged (no host events"),
        ("rank_0_ascend_pt", "dynamic_shape_recompile", "it was checked and is healthy"),
        ("rank_0_ascend_pt", "cpu_affinity", "no check of this version judges it"),
    ],
)
def test_the_refusal_says_what_the_diagnosis_says(
    place: str, cause: str, reason: str, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shared / "data" / "profiles" / "ascend" / "qwen3-0.6b-train-pp2-dp2" / place
    refused = runner(capsys, "profiler")("fix", "--bottleneck", cause, "--session", str(folder))
    assert (refused.status, reason in refused.err) == (1, True), refused.err
