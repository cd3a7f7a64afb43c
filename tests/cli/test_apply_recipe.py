"""Applying a recipe tells the recipe how it went."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.program import Run


@pytest.fixture
def capture(kb: Run, tmp_path: Path) -> Path:
    """A simulated run with unfused attention."""
    path = tmp_path / "sd3.prof"
    assert kb("simulate", "model", "bert-base", "--output", path).status == 0
    return path


def test_what_a_recipe_advises_is_tried_and_its_outcome_recorded(kb: Run, capture: Path) -> None:
    done = kb("apply", capture, "--recipe", "sd3-attention-unfused", "--lang", "en", "--json")
    assert done.status == 0, done.err
    assert "use_fused_attention" in [step["strategy"] for step in done.json()["steps"]]
    assert "recorded at library:sd3-attention-unfused@1: improved" in done.err
    told = kb("history", "sd3-attention-unfused", "--lang", "en").out
    assert "result improved" in told
    assert "simulated" in told
    browsed = kb("gallery", "browse", "sd3-attention-unfused", "--json").json()["entries"][0]
    assert (browsed["uses"], browsed["worked"]) == (1, 1)


def test_a_strategy_that_does_not_help_is_recorded_as_such(kb: Run, capture: Path) -> None:
    done = kb("apply", capture, "enable_paged_attention", "improve_cooling", "--recipe", "sd3-attention-unfused", "--lang", "en")
    told = kb("history", "sd3-attention-unfused", "--lang", "en").out
    assert "result improved" not in told, done.out


def test_a_record_without_a_working_strategy_cannot_be_applied(kb: Run, capture: Path) -> None:
    refused = kb("apply", capture, "--recipe", "auto")
    assert refused.status == 2
    assert "no strategy that worked" in refused.err
