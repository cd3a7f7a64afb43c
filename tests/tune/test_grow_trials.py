"""Trials without a profile tell what a whole simulation and ``kb apply`` tell."""

from __future__ import annotations

import msgspec
import pytest

from kb.domain.catalogue import Catalogue
from kb.errors import UsageError
from kb.profile.simulated.lengths import Memo, step_lengths
from kb.profile.simulated.memory import OutOfDeviceMemoryError
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import simulate_ranks
from kb.profile.simulated.setup import Setup
from kb.profile.simulated.twins import TWINS
from kb.tune.application import apply
from kb.tune.growth import CHIPS, FAMILIES, drawn, family_of
from kb.tune.growth_trials import _INERT, applicable, idle, meant, phase_of, trials
from kb.workflow.location import shipped_catalogue


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return shipped_catalogue()


SETTINGS = {
    "bert-base": Options(steps=3),
    "yolov8n": Options(steps=4, loader_ms=3.0, gc_ms=1.0, dynamic_shapes=2, jit_compile=True),
    "qwen3-0.6b-decode": Options(steps=3, batch=4, context=512, tensor_parallel=2, streams=2, host_syncs=3),
    "resnet50-train": Options(steps=3, data_parallel=2, checkpoint_ms=2.0, cooling=0.3),
    "qwen3-0.6b-train": Options(steps=3, sequence=128, microbatches=2, pipeline_parallel=2, stage_shift=4, recompute="full"),
}


@pytest.mark.parametrize("model", SETTINGS)
def test_lengths_are_those_of_the_profile(catalogue: Catalogue, model: str) -> None:
    setup = Setup(model=model, soc=catalogue.socs["910b2"], options=SETTINGS[model], seed=3)
    truths = [truth for _, truth in simulate_ranks(setup)]
    expected = tuple(max(truth.steps[step].step_ns for truth in truths) for step in range(setup.options.steps))
    assert step_lengths(setup, {}).steps_ns == expected


@pytest.mark.parametrize("model", ["bert-base", "yolov8n"])
def test_what_is_remembered_changes_nothing(catalogue: Catalogue, model: str) -> None:
    setup = Setup(model=model, soc=catalogue.socs["910b2"], options=SETTINGS[model], seed=3)
    shared: Memo = {}
    for change in TWINS.values():
        changed = msgspec.structs.replace(setup, options=change.apply(setup.options))
        if changed.options.world_size == 1 and changed.options.expert_parallel == 1:
            assert step_lengths(changed, shared) == step_lengths(changed, {}), change


def test_inert_options_change_no_step(catalogue: Catalogue) -> None:
    """The shortcut of the trials, without the shortcut."""
    setup = Setup(model="qwen3-0.6b-train", soc=catalogue.socs["910b2"], options=Options(steps=2, sequence=64, microbatches=1), seed=1)
    memo: Memo = {}
    before = step_lengths(setup, memo).step_ns
    for change in TWINS.values():
        if change.option in _INERT and _INERT[change.option](setup.options):
            options = change.apply(setup.options)
            assert step_lengths(msgspec.structs.replace(setup, options=options), memo).step_ns == before, change


def test_a_trial_gains_what_applying_gains(catalogue: Catalogue) -> None:
    setup = Setup(model="bert-base", soc=catalogue.socs["910b2"], options=Options(steps=4), seed=5)
    session = simulate_ranks(setup)[0][0]
    names = ("use_fused_attention", "enable_graph_mode", "increase_batch")
    tried = {trial.strategies[0]: trial.gain for trial in trials(setup, [(name,) for name in names], {})}
    for name in names:
        assert tried[name] == pytest.approx(apply(session, name, catalogue).per_sample_gain, abs=2e-3), name


def test_more_devices_are_paid_for(catalogue: Catalogue) -> None:
    setup = Setup(model="qwen3-0.6b-decode", soc=catalogue.socs["910b2"], options=Options(steps=2, context=256), seed=5)
    (trial,) = trials(setup, [("change_tensor_parallel",)], {})
    assert trial.after_ns is not None
    assert trial.gain == pytest.approx(1 - 2 * trial.after_ns / trial.before_ns, abs=1e-6)


def test_a_run_without_room_has_no_gain(catalogue: Catalogue) -> None:
    setup = Setup(model="sd3", soc=catalogue.socs["910b2"], options=Options(steps=1, denoise_steps=1, batch=32))
    (trial,) = trials(setup, [("increase_batch",)], {})
    assert (trial.gain, trial.after_ns) == (None, None)


def test_offered_strategies_are_either_tried_or_idle(catalogue: Catalogue) -> None:
    for number in range(6):
        setup = drawn(5, number, catalogue.socs)
        offered = meant(setup, catalogue)
        assert sorted((*applicable(setup, catalogue), *idle(setup, catalogue))) == sorted(offered)
        for name in idle(setup, catalogue):
            change = TWINS[name]
            assert change.apply(setup.options) == setup.options or change.option.endswith(("parallel", "microbatches", "shift"))


def test_draws_are_equal_for_equal_seeds_and_fit(catalogue: Catalogue) -> None:
    for number in range(8):
        setup = drawn(11, number, catalogue.socs)
        assert setup == drawn(11, number, catalogue.socs)
        assert step_lengths(msgspec.structs.replace(setup, options=msgspec.structs.replace(setup.options, steps=1)), {}).step_ns > 0
        assert setup.soc.id in CHIPS


def test_runs_differ_between_numbers_and_seeds(catalogue: Catalogue) -> None:
    made = [drawn(seed, number, catalogue.socs) for seed in (1, 2) for number in range(5)]
    assert len({msgspec.json.encode(setup.options) + setup.model.encode() for setup in made}) >= 9


def test_every_drawn_model_has_one_family() -> None:
    names = [name for names in FAMILIES.values() for name in names]
    assert len(set(names)) == len(names)
    assert family_of("bert-large") == "bert"
    assert family_of("something-new") == "something-new"


def test_phases_are_those_sessions_state(catalogue: Catalogue) -> None:
    for model in ("bert-base", "qwen3-0.6b-decode", "qwen3-0.6b-prefill"):
        setup = Setup(model=model, soc=catalogue.socs["910b2"], options=Options(steps=1, sequence=32, context=64))
        assert simulate_ranks(setup)[0][0].meta.model.phase == phase_of(setup)


def test_impossible_layouts_are_refused(catalogue: Catalogue) -> None:
    with pytest.raises(UsageError, match="cannot be split"):
        step_lengths(Setup(model="bert-base", soc=catalogue.socs["910b2"], options=Options(tensor_parallel=2)), {})
    huge = Setup(model="sd3", soc=catalogue.socs["310p3"], options=Options(batch=64, denoise_steps=1, steps=1))
    with pytest.raises(OutOfDeviceMemoryError):
        step_lengths(huge, {})
