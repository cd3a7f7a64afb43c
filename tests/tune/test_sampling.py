"""The search of our own over numeric knobs: no setting twice, none outside the space, seeds first, the optimum of what it can exhaust."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tune.advice import advice

from kb.domain.catalogue import Catalogue
from kb.domain.recommendation import Constraints
from kb.profile.simulated.setup import Setup
from kb.tune.journal import Journal
from kb.tune.knobs import method_here
from kb.tune.loop import tune
from kb.tune.sampling import walked
from kb.tune.space import Choice, Knob
from kb.tune.trials import Bounds, header_of

SPACES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(
    lambda sizes: tuple(Knob(name=f"k{place}", values=tuple(range(size))) for place, size in enumerate(sizes))
)


def asked(
    space: tuple[Knob, ...],
    starts: Sequence[Mapping[str, Choice]],
    cost: Callable[[tuple[Choice, ...]], float | None],
    *,
    seed: int,
    most: int,
) -> list[tuple[Choice, ...]]:
    found = []
    for values, tell in walked(space, starts, seed=seed, most=most):
        setting = tuple(values[knob.name] for knob in space)
        found.append(setting)
        tell(cost(setting))
    return found


@given(space=SPACES, seed=st.integers(0, 99), data=st.data())
def test_settings_are_of_the_space_never_repeated_and_the_starts_come_first(
    space: tuple[Knob, ...], seed: int, data: st.DataObject
) -> None:
    whole = list(product(*(knob.values for knob in space)))
    costs = dict(zip(whole, data.draw(st.lists(st.none() | st.floats(0, 9), min_size=len(whole), max_size=len(whole))), strict=True))
    start = data.draw(st.sampled_from(whole))
    starts = [dict(zip((knob.name for knob in space), start, strict=True))]
    found = asked(space, starts, costs.__getitem__, seed=seed, most=1000)
    assert found[0] == start
    assert len(found) == len(set(found))
    assert set(found) <= set(whole)
    assert found == asked(space, starts, costs.__getitem__, seed=seed, most=1000)
    assert found[:3] == asked(space, starts, costs.__getitem__, seed=seed, most=3)


@given(weights=st.lists(st.integers(1, 9), min_size=5, max_size=5), best=st.lists(st.integers(0, 7), min_size=5, max_size=5))
def test_knobs_that_add_up_need_two_rounds_at_most(weights: list[int], best: list[int]) -> None:
    """Of 32,768 settings the cheapest is among the first 5 x 7 + 1 asked: one round over every knob finds it."""
    space = tuple(Knob(name=f"k{place}", values=tuple(range(8))) for place in range(5))

    def cost(setting: tuple[Choice, ...]) -> float:
        return float(sum(weight * abs(int(value) - at) for weight, value, at in zip(weights, setting, best, strict=True)))

    assert tuple(best) in asked(space, [dict.fromkeys((knob.name for knob in space), 0)], cost, seed=1, most=36)


def test_a_space_that_can_be_exhausted_is() -> None:
    """A trap for one knob at a time: the cheapest setting has only costly neighbours."""
    space = (Knob(name="a", values=(0, 1, 2)), Knob(name="b", values=(0, 1, 2)))
    costs: dict[tuple[Choice, ...], float] = dict.fromkeys(product((0, 1, 2), (0, 1, 2)), 5.0)
    costs |= {(0, 0): 1.0, (2, 2): 0.0}
    assert (2, 2) in asked(space, [{"a": 0, "b": 0}], costs.__getitem__, seed=3, most=99)


def quiet(_stage: str, _done: int, _total: int) -> None:
    return


def test_a_run_without_optuna_turns_knobs_and_says_how(small: Setup, shipped: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kb.tune.knobs.find_spec", lambda _name: None)
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    assert method_here() == "coordinates"
    space = (Knob(name="stream_depth", values=(1, 2, 64)), Knob(name="batch", values=(1, 2)))
    runs = []
    for _ in range(2):
        with Journal(None, header_of(small, Constraints())) as journal:
            bounds = Bounds(trials=12, seconds=60.0, knob_trials=6)
            tuning, _session = tune(
                small, shipped, Constraints(), advice(shipped), journal, bounds=bounds, progress=quiet, space=space, strategies=False
            )
            runs.append(tuning)
    assert runs[0].method == "coordinates"
    assert runs[0].best.latency_ns < runs[0].baseline.latency_ns
    assert runs[0].changed["stream_depth"][1] == 64
    assert runs[0].rounds == runs[1].rounds


def test_most_bounds_the_walk() -> None:
    space = tuple(Knob(name=f"k{place}", values=tuple(range(9))) for place in range(6))
    taken = list(islice(walked(space, [], seed=0, most=7), 99))
    assert len(taken) == 7
