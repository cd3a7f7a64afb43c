"""``kb recommend`` rests on what grown runs teach, says so, and learns from a workspace's own growth."""

from __future__ import annotations

import json
from pathlib import Path

from cli.program import Run
from recommend.grown import WEIGHTS, quiet, table

from kb.recommend.fitting import fit_gains
from kb.recommend.gain_file import to_bytes
from kb.workflow.gains import gains_path
from kb.workflow.workspace import workspace


def _profile(kb: Run, tmp_path: Path) -> str:
    path = tmp_path / "run.prof"
    assert kb("simulate", "model", "bert-base", "--steps", "3", "--output", str(path)).status == 0
    return str(path)


def test_gains_are_estimated_from_tried_outcomes_and_said_to_be_simulated(kb: Run, tmp_path: Path) -> None:
    result = kb("recommend", _profile(kb, tmp_path), "--json", "--lang", "en")
    assert result.status == 0, result.err
    answer = json.loads(result.out)
    first = answer["strategies"][0]
    assert first["provenance"] == "simulated"
    assert 0 < first["gain_fraction"] < 1
    assert first["interval"][0] <= first["gain_fraction"] <= first["interval"][1]
    assert "not measured" in json.dumps(answer["notes"])
    assert any(case["ref"].startswith("grown-") for case in first["cases"])


def test_a_workspace_of_its_own_growth_is_used(kb: Run, tmp_path: Path) -> None:
    own = gains_path(workspace())
    own.parent.mkdir(parents=True)
    own.write_bytes(to_bytes(fit_gains(table(60), WEIGHTS, quiet)))
    answer = json.loads(kb("recommend", _profile(kb, tmp_path), "--json", "--lang", "en").out)
    assert "45 simulated runs" in json.dumps(answer["notes"])


def test_a_damaged_file_is_named_with_what_to_do(kb: Run, tmp_path: Path) -> None:
    own = gains_path(workspace())
    own.parent.mkdir(parents=True)
    own.write_bytes(b"PK\x03\x04 broken")
    result = kb("recommend", _profile(kb, tmp_path))
    assert result.status == 1
    assert "not a casebook of grown outcomes" in result.err
    assert "kb grow" in result.err
