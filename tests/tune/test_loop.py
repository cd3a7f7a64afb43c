"""The closed loop on a small model: ends for the right reason, keeps only what helps, and resumes exactly."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tune.advice import advice

from kb.domain.catalogue import Catalogue
from kb.domain.recommendation import Constraints, Recommendation
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import simulate
from kb.profile.simulated.setup import Setup
from kb.session.session import Session
from kb.tune.figures import figures_of
from kb.tune.journal import Journal
from kb.tune.judging import limits_of
from kb.tune.loop import Tuning, tune
from kb.tune.space import Knob
from kb.tune.trials import Bounds, header_of

BOUNDS = Bounds(trials=40, seconds=60.0, knob_trials=6)
DEPTHS = (Knob(name="stream_depth", values=(2, 8, 64)),)


def quiet(_stage: str, _done: int, _total: int) -> None:
    return


def run(
    setup: Setup,
    catalogue: Catalogue,
    limits: Constraints = Constraints(),  # noqa: B008  # frozen
    *,
    journal: Path | None = None,
    bounds: Bounds = BOUNDS,
    space: tuple[Knob, ...] | None = DEPTHS,
) -> tuple[Tuning, Session]:
    with Journal(journal, header_of(setup, limits)) as kept:
        return tune(setup, catalogue, limits, advice(catalogue), kept, bounds=bounds, progress=quiet, space=space)


@pytest.fixture(scope="module")
def tuned(small: Setup, shipped: Catalogue) -> tuple[Tuning, Session]:
    return run(small, shipped)


def test_it_ends_when_nothing_credible_is_left(tuned: tuple[Tuning, Session]) -> None:
    tuning, session = tuned
    assert tuning.stop == "nothing_left"
    assert tuning.best.latency_ns < 0.5 * tuning.baseline.latency_ns
    assert figures_of(session, tuning.options).latency_ns == tuning.best.latency_ns


def test_the_state_moves_only_by_kept_rounds(tuned: tuple[Tuning, Session]) -> None:
    tuning = tuned[0]
    state = tuning.baseline
    for item in tuning.rounds:
        assert item.before == state
        if item.kept:
            assert item.after is not None
            assert item.after.latency_ns < state.latency_ns
            state = item.after
    assert state == tuning.best


def test_what_changed_is_exactly_the_difference_of_options(tuned: tuple[Tuning, Session], small: Setup) -> None:
    tuning = tuned[0]
    again = msgspec.structs.replace(small.options, **{name: pair[1] for name, pair in tuning.changed.items()})
    assert again == tuning.options
    assert all(before != after for before, after in tuning.changed.values())


def test_a_run_is_repeatable(tuned: tuple[Tuning, Session], small: Setup, shipped: Catalogue) -> None:
    again, _ = run(small, shipped)
    assert msgspec.structs.replace(again, seconds=0.0) == msgspec.structs.replace(tuned[0], seconds=0.0)


def test_it_ends_as_soon_as_missed_limits_hold(small: Setup, shipped: Catalogue, tuned: tuple[Tuning, Session]) -> None:
    full = tuned[0]
    limit = (full.baseline.latency_ns + full.best.latency_ns) / 2
    tuning, _ = run(small, shipped, Constraints(max_latency_ns=limit))
    assert (tuning.stop, tuning.met) == ("limits_hold", True)
    assert tuning.trials < full.trials
    assert not limits_of(Constraints(max_latency_ns=limit), tuning.rounds[-1].before)[0].holds


def test_limits_out_of_reach_are_missed_and_said(small: Setup, shipped: Catalogue) -> None:
    tuning, _ = run(small, shipped, Constraints(max_latency_ns=1_000.0))
    assert (tuning.stop, tuning.met) == ("nothing_left", False)
    assert "limit ≤ 0.001 ms" in tuning.limits[0].text.en


def test_a_limit_that_holds_from_the_start_is_a_budget(small: Setup, shipped: Catalogue, tuned: tuple[Tuning, Session]) -> None:
    roomy = Constraints(max_memory_b=60e9)
    tuning, _ = run(small, shipped, roomy)
    assert tuning.best.latency_ns == tuned[0].best.latency_ns
    assert tuning.met


@pytest.mark.parametrize(("bounds", "stop"), [(Bounds(trials=2, seconds=60.0), "trials"), (Bounds(trials=99, seconds=1e-9), "time")])
def test_bounds_end_it_and_keep_what_was_found(small: Setup, shipped: Catalogue, bounds: Bounds, stop: str) -> None:
    tuning, session = run(small, shipped, bounds=bounds)
    assert tuning.stop == stop
    assert tuning.trials <= bounds.trials
    assert figures_of(session, tuning.options).latency_ns == tuning.best.latency_ns


def test_a_resumed_run_makes_no_trial_twice_and_ends_alike(tmp_path: Path, small: Setup, shipped: Catalogue) -> None:
    path = tmp_path / "j.jsonl"
    first, _ = run(small, shipped, journal=path, bounds=Bounds(trials=4, seconds=60.0, knob_trials=6))
    assert first.stop == "trials"
    part = path.read_bytes()
    second, _ = run(small, shipped, journal=path)
    whole, _ = run(small, shipped)
    assert path.read_bytes().startswith(part)
    assert second.replayed == first.trials
    assert (second.best, second.options, second.rounds, second.trials) == (whole.best, whole.options, whole.rounds, whole.trials)
    lines = path.read_bytes().splitlines()
    assert len(lines) == 1 + second.trials
    third, _ = run(small, shipped, journal=path)
    assert (third.replayed, third.best) == (third.trials, whole.best)
    assert path.read_bytes().splitlines() == lines


def test_trials_of_the_journal_count_towards_the_bound(tmp_path: Path, small: Setup, shipped: Catalogue) -> None:
    path, few = tmp_path / "j.jsonl", Bounds(trials=4, seconds=60.0, knob_trials=6)
    run(small, shipped, journal=path)
    again, _ = run(small, shipped, journal=path, bounds=few)
    fresh, _ = run(small, shipped, bounds=few)
    assert (again.trials, again.replayed, again.stop) == (4, 4, "trials")
    assert (again.rounds, again.best) == (fresh.rounds, fresh.best)


def test_an_interrupt_keeps_finished_trials(tmp_path: Path, small: Setup, shipped: Catalogue) -> None:
    path, seen = tmp_path / "j.jsonl", []

    def progress(_stage: str, done: int, _total: int) -> None:
        seen.append(done)
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Journal(path, header_of(small, Constraints())) as journal:
        tune(small, shipped, Constraints(), advice(shipped), journal, bounds=BOUNDS, progress=progress, space=DEPTHS)
    assert len(path.read_bytes().splitlines()) == 1 + 3
    resumed, _ = run(small, shipped, journal=path)
    assert resumed.replayed == 3


def test_impossible_strategies_are_tried_without_running(shipped: Catalogue) -> None:
    setup = Setup(model="qwen3-0.6b-decode", soc=shipped.soc("910b2"), options=Options(steps=2, noise=0.0, tensor_parallel=2))

    def advise(session: Session) -> Recommendation:
        found = advice(shipped)(session)
        item = found.strategies[0]
        return msgspec.structs.replace(found, strategies=(msgspec.structs.replace(item, id="change_tensor_parallel", simulatable=True),))

    with Journal(None, header_of(setup, Constraints())) as journal:
        bounds = Bounds(devices=2)
        tuning, _ = tune(setup, shipped, Constraints(), advise, journal, bounds=bounds, progress=quiet, knobs=False)
    assert [(item.kept, item.after) for item in tuning.rounds] == [(False, None)]
    assert tuning.rounds[0].reasons[0].en == "needs 4 devices, 2 are there"


def test_conflicting_strategies_are_not_run(shipped: Catalogue) -> None:
    setup = Setup(model="bert-base", soc=shipped.soc("910b2"), options=Options(steps=2, noise=0.0, layout_conversions=1, batch=8))
    profile = simulate(setup)[0]
    found = advice(shipped)(profile)
    item = found.strategies[0]
    both = tuple(msgspec.structs.replace(item, id=name) for name in ("avoid_layout_conversion", "convert_weight_layout"))
    with Journal(None, header_of(setup, Constraints())) as journal:
        tuning, _ = tune(
            setup,
            shipped,
            Constraints(),
            lambda _session: msgspec.structs.replace(found, strategies=both),
            journal,
            bounds=BOUNDS,
            progress=quiet,
            knobs=False,
        )
    states = {item.strategy: (item.kept, item.after is None) for item in tuning.rounds}
    assert states == {"avoid_layout_conversion": (True, False), "convert_weight_layout": (False, True)}


def test_seeds_of_the_numeric_search_come_from_the_recommendation(shipped: Catalogue, small: Setup) -> None:
    tuning, _ = run(small, shipped, bounds=Bounds(trials=2, seconds=60.0))
    assert tuning.seeds == ()
    launched = msgspec.structs.replace(small, options=msgspec.structs.replace(small.options, fused_attention=True))
    done, _ = run(launched, shipped, space=(Knob(name="stream_depth", values=(2, 4, 8, 16)),))
    assert done.seeds[0].source == "present"
