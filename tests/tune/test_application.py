"""Applying a strategy on the simulator, and refusing to."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kb.domain.catalogue import Catalogue, Command, Strategy
from kb.domain.soc import Soc
from kb.domain.text import Text
from kb.errors import NotFoundError
from kb.profile.simulated.memory import OutOfDeviceMemoryError
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import Setup, simulate, simulate_ranks
from kb.profile.simulated.twins import TWINS
from kb.session.session import Session
from kb.tune.application import Application, apply
from kb.tune.refusal import AlreadyAppliedError, NotSimulatableError

GRAPH_COMMAND = Command(tool="torch_npu", text="torch.npu.NPUGraph()")


def strategy(name: str) -> Strategy:
    return Strategy(id=name, name=Text(name, name), definition=Text("定义", f"do {name}"), simulatable=name in TWINS)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    names = (*TWINS, "quantize_weights")
    strategies = {name: strategy(name) for name in names}
    strategies["enable_graph_mode"] = msgspec.structs.replace(strategies["enable_graph_mode"], commands=(GRAPH_COMMAND,))
    strategies["use_fused_attention"] = msgspec.structs.replace(strategies["use_fused_attention"], aliases=("attention_fusion",))
    folder = Path(__file__).resolve().parents[2] / "recipes" / "catalogue" / "soc"
    socs = [msgspec.json.decode(path.read_bytes(), type=Soc) for path in folder.glob("*.json")]
    return Catalogue(causes={}, strategies=strategies, metrics={}, socs={soc.id: soc for soc in socs}, glossary=())


def run(catalogue: Catalogue, model: str = "bert-base", options: Options = Options(steps=4)) -> Session:  # noqa: B008  # frozen
    return simulate(Setup(model=model, soc=catalogue.socs["910b2"], options=options))[0]


@pytest.fixture(scope="module")
def sd3(catalogue: Catalogue) -> Application:
    return apply(run(catalogue, "sd3"), "use_fused_attention", catalogue)


def test_fused_attention_improves_sd3(sd3: Application) -> None:
    assert sd3.verdict == "improved"
    assert 0.2 < sd3.comparison.gain_fraction < 0.6
    assert sd3.per_sample_gain == pytest.approx(sd3.comparison.gain_fraction)
    operators = {delta.name: delta for delta in sd3.comparison.operators}
    assert operators["FlashAttentionScore"].before_ns == 0 < operators["FlashAttentionScore"].after_ns
    assert operators["SoftmaxV2"].after_ns == 0


def test_the_result_is_simulated_sound_and_says_what_changed(sd3: Application) -> None:
    assert sd3.after.self_check() == []
    assert sd3.after.meta.origin == "simulated"
    assert sd3.after.meta.name == "sd3-910b2+use_fused_attention"
    assert sd3.after.meta.options == dict(sd3.before.meta.options) | {"fused_attention": True}
    assert sd3.changed.en == "simulator option fused_attention: False to True"
    assert sd3.changed.zh


def test_an_alias_names_the_strategy(catalogue: Catalogue) -> None:
    assert apply(run(catalogue), "attention_fusion", catalogue).strategy == "use_fused_attention"


HOST_BOUND = (
    "use_fused_attention",
    "fuse_operators",
    "increase_stream_depth",
    "enable_graph_mode",
    "enable_task_queue",
    "bind_cpu_affinity",
    "remove_host_overhead",
)


@pytest.mark.parametrize("name", HOST_BOUND)
def test_fewer_or_cheaper_launches_help_a_host_bound_encoder(catalogue: Catalogue, name: str) -> None:
    assert apply(run(catalogue), name, catalogue).comparison.gain_fraction > 0


def test_a_larger_batch_is_judged_by_the_sample(catalogue: Catalogue) -> None:
    done = apply(run(catalogue), "increase_batch", catalogue)
    assert done.verdict not in ("improved", "regressed")
    assert 0.3 < done.per_sample_gain < 0.55


def test_a_strategy_that_changes_nothing_here_gains_nothing(catalogue: Catalogue) -> None:
    done = apply(run(catalogue), "quantize_before_comm", catalogue)
    assert done.comparison.gain_fraction == 0.0


def test_a_rank_of_a_job_is_compared_with_the_same_rank(catalogue: Catalogue) -> None:
    options = Options(steps=3, sequence=64, pipeline_parallel=2, microbatches=2, stage_shift=6, stream_depth=1000, fused_attention=True)
    last = simulate_ranks(Setup(model="qwen3-0.6b-train", soc=catalogue.socs["910b2"], options=options))[1][0]
    done = apply(last, "rebalance_pipeline_stages", catalogue)
    assert (done.before.meta.rank, done.after.meta.rank) == (1, 1)
    assert done.after.meta.stage == 1
    assert done.comparison.gain_fraction > 0


def test_strategies_add_up_and_the_second_time_is_refused(catalogue: Catalogue) -> None:
    once = apply(run(catalogue), "use_fused_attention", catalogue).after
    both = apply(once, "enable_graph_mode", catalogue).after
    assert (both.meta.options["fused_attention"], both.meta.options["graph_launch"]) == (True, True)
    with pytest.raises(AlreadyAppliedError, match="fused_attention = True"):
        apply(both, "use_fused_attention", catalogue)


def test_a_measured_session_gets_the_commands(catalogue: Catalogue) -> None:
    session = run(catalogue)
    measured = Session(msgspec.structs.replace(session.meta, origin="measured"), session.tables, session.strings)
    with pytest.raises(NotSimulatableError, match="measured on hardware") as caught:
        apply(measured, "enable_graph_mode", catalogue)
    assert caught.value.do is not None
    assert caught.value.do.startswith("run these commands on your machine: torch.npu.NPUGraph()")


def test_a_strategy_without_a_twin_is_refused(catalogue: Catalogue) -> None:
    with pytest.raises(NotSimulatableError, match="does not model it") as caught:
        apply(run(catalogue), "quantize_weights", catalogue)
    assert caught.value.do is not None
    assert "do quantize_weights" in caught.value.do


def test_unknown_names_are_not_found(catalogue: Catalogue) -> None:
    session = run(catalogue)
    with pytest.raises(NotFoundError, match="no strategy named"):
        apply(session, "wish_harder", catalogue)
    nowhere = Session(
        msgspec.structs.replace(session.meta, soc=msgspec.structs.replace(session.meta.soc, id=None)), session.tables, session.strings
    )
    with pytest.raises(NotFoundError, match="names no chip"):
        apply(nowhere, "enable_graph_mode", catalogue)


def test_a_change_that_does_not_fit_is_reported(catalogue: Catalogue) -> None:
    session = run(catalogue, "sd3", Options(steps=1, denoise_steps=1, batch=32))
    with pytest.raises(OutOfDeviceMemoryError, match="out of device memory"):
        apply(session, "increase_batch", catalogue)
