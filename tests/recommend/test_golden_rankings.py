"""Rankings of fixed sessions under the shipped casebook: they change only when the casebook or its fit does, and then on purpose.

The sessions are kept as what their profiles show (traits), so that neither the simulator nor the diagnosis moves this test.
Made anew by ``--remake-golden``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from kb.domain.diagnosis import ClusterDiagnosis, Diagnosis
from kb.domain.recommendation import Constraints
from kb.recommend.gain_file import SHIPPED, read_gains
from kb.recommend.learnt import learnt_of
from kb.recommend.ranking import recommend
from kb.recommend.weights import load_weights
from kb.workflow.location import shipped_catalogue

FOLDER: Final = Path(__file__).with_name("golden")
SHOWN: Final = 5


def rankings() -> dict[str, Any]:
    model, catalogue = read_gains(SHIPPED), shipped_catalogue()
    found: dict[str, Any] = {"casebook": model.reliability.fingerprint}
    for session in json.loads((FOLDER / "sessions.json").read_bytes()):
        answer = recommend(
            Diagnosis(sessions=(), cluster=ClusterDiagnosis()), (), catalogue, Constraints(), load_weights(), family=session["soc_family"],
            phase=session["phase"], learnt=learnt_of(model, session["traits"], session["soc_family"]),
        )  # fmt: skip
        found[session["name"]] = [
            {
                "strategy": item.id, "gain_fraction": round(item.gain_fraction, 3), "confidence": round(item.confidence, 2),
                "interval": [round(end, 3) for end in item.interval],
            }
            for item in answer.strategies[:SHOWN]
        ]  # fmt: skip
    return found


def test_rankings_are_as_they_were(request: pytest.FixtureRequest) -> None:
    golden = FOLDER / "rankings.json"
    now = rankings()
    if request.config.getoption("--remake-golden"):
        golden.write_text(json.dumps(now, indent=2) + "\n", encoding="utf-8")
    before = json.loads(golden.read_bytes())
    assert now["casebook"] == before["casebook"], "the casebook changed: look at the new rankings, then make golden"
    for name, rows in before.items():
        if name != "casebook":
            assert [row["strategy"] for row in now[name]] == [row["strategy"] for row in rows], name
            for row, old in zip(now[name], rows, strict=True):
                assert row["gain_fraction"] == pytest.approx(old["gain_fraction"], abs=2e-3), name
                assert row["confidence"] == pytest.approx(old["confidence"], abs=0.02), name
