"""The replayed step against the simulator: cheaper launches help as far as the replay says, and never the other way."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from kb.diagnose.diagnosis import diagnose, diagnose_views, views_of
from kb.diagnose.operators import load_classes
from kb.diagnose.view import rank_view
from kb.domain.catalogue import Catalogue
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import simulate
from kb.profile.simulated.setup import Setup
from kb.recommend.replay import queue_free, replayed
from kb.recommend.traits import traits
from kb.session.session import Session, Table
from kb.workflow.location import shipped_catalogue


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return shipped_catalogue()


def _kernels(durations: list[int]) -> Table:
    return Table("kernels", {"duration_ns": np.array(durations), "connection_id": np.arange(len(durations))})


def _launches(starts: list[int], cost: int) -> Table:
    count = len(starts)
    return Table("host_ops", {"start_ns": np.array(starts), "duration_ns": np.full(count, cost), "connection_id": np.arange(count)})


def test_a_host_bound_step_ends_with_its_last_launch() -> None:
    kernels, launches = _kernels([2, 2, 2]), _launches([0, 10, 20], 10)
    assert replayed(kernels, launches, 1.0) == 32  # launched at 10, 20, 30
    assert replayed(kernels, launches, 0.5) == 17
    assert replayed(kernels, launches, 0.0) == 6  # the kernels alone
    assert queue_free(kernels, launches) == 32


def test_a_device_bound_step_gains_nothing_from_cheaper_launches() -> None:
    kernels, launches = _kernels([100, 100]), _launches([0, 5], 5)
    assert replayed(kernels, launches, 1.0) == 205
    assert replayed(kernels, launches, 0.5) == pytest.approx(202.5)


def test_a_host_that_waited_for_the_queue_is_seen() -> None:
    assert queue_free(_kernels([10, 10, 10]), _launches([0, 50, 100], 5)) == 35


def test_without_launches_there_is_no_answer() -> None:
    assert replayed(_kernels([1]), _launches([], 1), 1.0) is None
    assert queue_free(_kernels([1]), _launches([], 1)) is None


def _session(catalogue: Catalogue, options: Options) -> Session:
    return simulate(Setup(model="bert-base", soc=catalogue.socs["910b2"], options=options, seed=2))[0]


def test_the_replay_foretells_what_half_the_launch_cost_saves(catalogue: Catalogue) -> None:
    base = Options(steps=3, stream_depth=1024, noise=0.0)
    before, after = (_session(catalogue, msgspec.structs.replace(base, host_scale=scale)) for scale in (2.0, 1.0))
    view = rank_view(before, load_classes(), catalogue.socs)
    steps = [diagnose((session,), catalogue).sessions[0].accounting.step_ns for session in (before, after)]
    said = traits((before,), diagnose((before,), catalogue), catalogue.socs)["replay.half"]
    assert view.kernels is not None
    assert said == pytest.approx(1 - steps[1] / steps[0], abs=0.08)


def test_traits_are_finite_and_need_no_options(catalogue: Catalogue) -> None:
    session = _session(catalogue, Options(steps=3))
    bare = Session(msgspec.structs.replace(session.meta, options={}, simulator=None), session.tables, session.strings)
    found = [traits((one,), diagnose((one,), catalogue), catalogue.socs) for one in (session, bare)]
    assert found[0] == found[1]
    assert all(np.isfinite(value) for value in found[0].values())
    shares = [value for name, value in found[0].items() if name.startswith(("role.", "share.", "bound."))]
    assert all(0.0 <= value <= 1.0 + 1e-9 for value in shares)


def test_a_poorer_capture_shows_fewer_traits_not_zeros(catalogue: Catalogue) -> None:
    session = _session(catalogue, Options(steps=3))
    kept = {name: table for name, table in session.tables.items() if name not in ("host_ops", "counters", "allocations")}
    poorer = Session(session.meta, kept, session.strings)
    whole, part = (set(traits((one,), diagnose((one,), catalogue), catalogue.socs)) for one in (session, poorer))
    assert part < whole
    assert {"launches", "memory.reserved", "clock"} <= whole - part


def test_nothing_to_look_at_has_no_traits(catalogue: Catalogue) -> None:
    assert traits((), diagnose((), catalogue), catalogue.socs) == {}


def test_the_books_of_the_diagnosis_are_used_again(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = tuple(_session(catalogue, Options(steps=3, host_scale=scale)) for scale in (1.0, 2.0))
    views = views_of(sessions, catalogue)
    diagnosis = diagnose_views(views, catalogue)
    assert diagnosis == diagnose(sessions, catalogue)
    again = traits(sessions, diagnosis, catalogue.socs)
    monkeypatch.setattr("kb.recommend.traits.rank_view", lambda *_: pytest.fail("the session was accounted for a second time"))
    assert traits(sessions, diagnosis, catalogue.socs, views) == again
