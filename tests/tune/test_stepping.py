"""Plans, step by step: each kept, rolled back, refused or in conflict."""

from __future__ import annotations

import msgspec
import pytest

from kb.domain.catalogue import Catalogue
from kb.domain.recommendation import Constraints
from kb.errors import NotFoundError
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import simulate
from kb.profile.simulated.setup import Setup
from kb.session.session import Session
from kb.tune.figures import figures_of
from kb.tune.refusal import NotSimulatableError
from kb.tune.stepping import Step, run_steps, state_of


def quiet(_stage: str, _done: int, _total: int) -> None:
    return


def statuses(steps: tuple[Step, ...]) -> dict[str, str]:
    return {step.strategy: step.status for step in steps}


def test_each_step_stands_on_what_was_kept_before_it(profile: Session, shipped: Catalogue) -> None:
    order = ("use_fused_attention", "avoid_layout_conversion", "enable_graph_mode", "increase_stream_depth")
    end, steps = run_steps(profile, order, shipped, Constraints(), quiet)
    assert statuses(steps) == {
        "use_fused_attention": "kept",
        "avoid_layout_conversion": "in_place",
        "enable_graph_mode": "kept",
        "increase_stream_depth": "rolled_back",
    }
    # The deeper queue did nothing once the graph is launched as a whole; the state does not have it.
    assert (end.setup.options.graph_launch, end.setup.options.stream_depth) == (True, 2)
    compared = [step for step in steps if step.after is not None]
    assert [step.before.latency_ns for step in compared][1:] == [
        step.after.latency_ns if step.status == "kept" else step.before.latency_ns for step in compared if step.after is not None
    ][:-1]
    assert end.figures.latency_ns < compared[0].before.latency_ns


def test_a_regression_is_rolled_back_with_the_comparison_that_shows_it(shipped: Catalogue) -> None:
    options = Options(steps=3, noise=0.0, graph_launch=True, tile_m=128, tile_n=128, cooling=1.0)
    session = simulate(Setup(model="bert-base", soc=shipped.soc("910b2"), options=options))[0]
    end, (step,) = run_steps(session, ("cap_clock_or_power",), shipped, Constraints(), quiet)
    assert step.status == "rolled_back"
    assert step.comparison is not None
    assert step.comparison.verdict == "regressed"
    assert step.gain is not None
    assert step.gain < -0.01
    assert end.session is session


def test_the_catalogues_conflicts_hold_in_both_directions(shipped: Catalogue) -> None:
    options = Options(steps=2, noise=0.0, layout_conversions=2, batch=8)
    session = simulate(Setup(model="bert-base", soc=shipped.soc("910b2"), options=options))[0]
    order = ("avoid_layout_conversion", "convert_weight_layout")
    _, steps = run_steps(session, order, shipped, Constraints(), quiet)
    assert statuses(steps) == {"avoid_layout_conversion": "kept", "convert_weight_layout": "conflict"}
    assert "avoid_layout_conversion" in steps[1].reasons[0].en
    assert steps[1].after is None


def test_the_precision_budget_rolls_int8_back(profile: Session, shipped: Catalogue) -> None:
    options = msgspec.structs.replace(state_of(profile, shipped).setup.options, batch=32, graph_launch=True)
    session = simulate(msgspec.structs.replace(state_of(profile, shipped).setup, options=options))[0]
    _, (free,) = run_steps(session, ("lower_precision",), shipped, Constraints(), quiet)
    _, (bound,) = run_steps(session, ("lower_precision",), shipped, Constraints(max_precision_loss=0.005), quiet)
    assert free.status == "kept"
    assert bound.status == "rolled_back"
    assert "precision loss" in bound.reasons[0].en


def test_a_memory_limit_rolls_a_larger_batch_back(profile: Session, shipped: Catalogue) -> None:
    figures = state_of(profile, shipped).figures
    limits = Constraints(target="throughput", max_memory_b=figures.memory_b * 1.0001)
    _, (step,) = run_steps(profile, ("increase_batch",), shipped, limits, quiet)
    assert step.status == "rolled_back"
    assert "memory" in step.reasons[0].en


def test_what_cannot_run_is_refused_with_the_reason_and_the_plan_goes_on(shipped: Catalogue) -> None:
    session = simulate(Setup(model="sd3", soc=shipped.soc("910b2"), options=Options(steps=1, denoise_steps=1, batch=32)))[0]
    _, steps = run_steps(session, ("increase_batch", "change_tensor_parallel", "reduce_comm_volume"), shipped, Constraints(), quiet)
    assert [step.status for step in steps] == ["refused", "refused", "by_hand"]
    assert "out of device memory" in steps[0].reasons[0].en
    assert "cannot be split" in steps[1].reasons[0].en


def test_measured_sessions_and_unknown_strategies_are_errors(profile: Session, shipped: Catalogue) -> None:
    measured = Session(msgspec.structs.replace(profile.meta, origin="measured"), profile.tables, profile.strings)
    with pytest.raises((NotSimulatableError, NotFoundError)):
        run_steps(measured, ("reduce_comm_volume",), shipped, Constraints(), quiet)
    with pytest.raises(NotFoundError, match="no strategy named"):
        run_steps(profile, ("wish_harder",), shipped, Constraints(), quiet)


def test_microbatches_count_only_where_the_model_is_split_into_them(shipped: Catalogue) -> None:
    session = simulate(Setup(model="resnet50-train", soc=shipped.soc("910a"), options=Options(steps=2, batch=4, microbatches=4)))[0]
    assert figures_of(session, Options(batch=4, microbatches=4)).samples == 4
