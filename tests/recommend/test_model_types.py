"""What belongs to one type of model is not advised for another."""

from __future__ import annotations

import pytest

from kb.domain.recommendation import Constraints
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.recommend.filters import exclusion


@pytest.mark.parametrize(("model_type", "out"), [("llm", True), ("cnn", True), ("moe", False), (None, False)])
def test_experts_are_not_moved_in_a_model_without_experts(model_type: str | None, out: bool) -> None:
    strategy = load_catalogue(library_root()).strategy("change_expert_parallel")
    removed = exclusion(strategy, Constraints(), "A2", None, model_type)
    assert (removed is not None) is out
    if removed is not None:
        assert "moe" in removed.reason.en
