"""Whether two profiles are of one model."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kb.domain.catalogue import Catalogue
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import simulate
from kb.profile.simulated.setup import Setup
from kb.profile.sources import load
from kb.session.session import Session
from kb.tune.identity import other_model, weights_of

ASCEND = "data/profiles/ascend"


def run(shipped: Catalogue, model: str, **options: object) -> Session:
    return simulate(Setup(model=model, soc=shipped.soc("910b2"), options=msgspec.convert({"steps": 2, **options}, Options)))[0]


@pytest.mark.parametrize(
    "options",
    [{"fused_attention": True}, {"fused_elementwise": True}, {"precision": "int8"}, {"graph_launch": True, "batch": 4}, {"sequence": 384}],
)
def test_what_a_strategy_changes_leaves_the_model_the_same(shipped: Catalogue, options: dict[str, object]) -> None:
    assert other_model(run(shipped, "bert-base"), run(shipped, "bert-base", **options)) is None


@pytest.mark.parametrize("other", ["bert-large", "resnet50", "qwen3-0.6b-decode", "sd3"])
def test_another_model_is_told_by_its_weights(shipped: Catalogue, other: str) -> None:
    options = {"denoise_steps": 1} if other == "sd3" else {}
    found = other_model(run(shipped, "bert-base"), run(shipped, other, **options))
    assert found is not None
    assert "other weights" in found.en


def test_without_shapes_nothing_is_claimed(shipped: Catalogue) -> None:
    session = run(shipped, "bert-base")
    bare = Session(session.meta, {name: table for name, table in session.tables.items() if name != "kernels"}, session.strings)
    assert weights_of(bare) == frozenset()
    assert other_model(bare, run(shipped, "bert-large")) is None


def test_real_ranks_of_one_job_are_one_model_and_of_two_jobs_are_not(shared: Path) -> None:
    (cnn,) = load(shared / ASCEND / "cnn-ddp-2rank-text/rank0_ascend_pt")
    (twin,) = load(shared / ASCEND / "cnn-ddp-2rank-text/rank1_ascend_pt")
    (llm,) = load(shared / ASCEND / "qwen3-0.6b-train-pp2-dp2/rank_0_ascend_pt")
    assert other_model(cnn, twin) is None
    assert other_model(cnn, llm) is not None
    assert other_model(llm, cnn) is not None
