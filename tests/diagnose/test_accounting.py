from __future__ import annotations

import pytest
from diagnose.factories import Kernel, made, view_of
from hypothesis import given
from hypothesis import strategies as st

from kb.diagnose.accounting import Books, account
from kb.diagnose.operators import load_classes
from kb.domain.accounting import PARTS, TOLERANCE
from kb.session.session import Session

SPANS = st.lists(st.tuples(st.integers(0, 80), st.integers(0, 25)), max_size=12)
CLASSES = load_classes()


def books_of(session: Session) -> Books:
    assert not session.self_check()
    return account(session, CLASSES)


def points(spans: list[tuple[int, int]], window: range) -> set[int]:
    return {point for start, length in spans for point in range(start, start + length) if point in window}


@given(compute=SPANS, comm=SPANS, copy=SPANS, begin=st.integers(0, 50), length=st.integers(1, 60))
def test_parts_of_any_tasks_sum_to_the_marked_step_exactly(
    compute: list[tuple[int, int]], comm: list[tuple[int, int]], copy: list[tuple[int, int]], begin: int, length: int
) -> None:
    kernels = [Kernel(op_type="Add", start=start, duration=size) for start, size in compute]
    kernels += [Kernel(op_type="hcom_allReduce_", core="COMMUNICATION", start=start, duration=size) for start, size in comm]
    books = books_of(made(kernels=kernels, copies=copy, steps=[("1", begin, begin + length, 0)])).accounting
    window = range(begin, begin + length)
    computing, talking, copying = (points(spans, window) for spans in (compute, comm, copy))
    assert sum(books.parts.values()) == books.step_ns == length
    assert books.parts["compute"] == len(computing)
    assert books.parts["comm_exposed"] == len(talking - computing)
    assert books.parts["copy_exposed"] == len(copying - talking - computing)
    assert books.splits["comm"]["overlapped"] == len(talking & computing)


@given(st.integers(1, 10**12), st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 10**12))
def test_parts_of_exporter_totals_sum_to_stage_plus_bubble(compute: int, comm: int, bubble: int, free: int) -> None:
    row = {"computing_ns": compute, "comm_not_overlapped_ns": comm + bubble, "bubble_ns": bubble, "free_ns": free}
    books = books_of(made(trace=[row]))
    assert not books.violations
    assert set(books.accounting.parts) == set(PARTS)
    assert sum(books.accounting.parts.values()) == books.accounting.step_ns == compute + comm + bubble + free
    assert books.accounting.parts["comm_exposed"] == comm
    assert books.accounting.parts["idle_bubble"] == bubble


def test_rounding_of_the_exporter_joins_the_idle_time() -> None:
    books = books_of(made(trace=[{"computing_ns": 70_000, "free_ns": 30_000, "stage_ns": 100_130}])).accounting
    assert (books.imbalance_ns, books.parts["idle_unknown"], books.parts["compute"]) == (0, 30_130, 70_000)


def test_a_difference_within_the_tolerance_stays_visible() -> None:
    books = books_of(made(trace=[{"computing_ns": 70_000_000, "free_ns": 30_000_000, "stage_ns": 100_050_000}]))
    assert not books.violations
    assert books.accounting.imbalance_ns == -50_000
    assert any("50000" in note.en for note in books.accounting.notes)


def test_a_large_difference_is_a_violation_and_never_hidden() -> None:
    books = books_of(made(trace=[{"computing_ns": 70_000_000, "free_ns": 30_000_000, "stage_ns": 150_000_000}]))
    (violation,) = books.violations
    assert violation.difference_ns == books.accounting.imbalance_ns == -50_000_000
    assert abs(books.accounting.imbalance_ns) > TOLERANCE * books.accounting.step_ns
    assert any("do not balance" in note.en for note in books.accounting.notes)


def test_more_bubble_than_exposed_communication_is_a_violation() -> None:
    row = {"computing_ns": 70_000_000, "comm_not_overlapped_ns": 10_000_000, "bubble_ns": 30_000_000, "free_ns": 50_000_000}
    assert books_of(made(trace=[row])).violations


def test_preparing_lies_beside_the_step() -> None:
    books = books_of(made(trace=[{"computing_ns": 100, "preparing_ns": 40}])).accounting
    assert (books.step_ns, books.preparing_ns) == (100, 40)
    assert books_of(made(trace=[{"computing_ns": 100}])).accounting.preparing_ns is None


def test_idle_causes_that_totals_cannot_show_are_said_to_be_unknown() -> None:
    books = books_of(made(trace=[{"computing_ns": 100, "free_ns": 50}])).accounting
    assert books.parts["idle_unknown"] == 50
    assert any("idle" in note.en and "trace or DB" in note.en for note in books.notes)


def test_compute_is_split_by_engine_beside_the_parts() -> None:
    cores = ("AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV", "AI_CPU", "DSA_SQE", None)
    kernels = [Kernel(op_type="Op", core=core, start=1000 * place, duration=10 + place) for place, core in enumerate(cores)]
    split = view_of(made(kernels=kernels)).accounting.splits["compute"]
    assert split == {"cube": 10, "vector": 11, "mix": 25, "ai_cpu": 14, "random": 15, "other": 16}


@pytest.mark.parametrize(("core", "name"), [("HCCL", "x"), ("COMMUNICATION", "x"), (None, "hcom_allReduce__1_2")])
def test_communication_is_known_by_core_or_by_name(core: str | None, name: str) -> None:
    books = books_of(made(kernels=[Kernel(op_type=None, core=core, name=name, start=0, duration=10)])).accounting
    assert (books.parts["comm_exposed"], books.parts["compute"]) == (10, 0)


def test_communication_of_a_session_without_communication_kernels_comes_from_its_operators() -> None:
    run = made(
        kernels=[Kernel(op_type="Add", start=0, duration=1), Kernel(op_type="Add", start=9, duration=1)],
        exchanges=["hcom_a"],
        exchange_ns=6,
    )
    assert books_of(run).accounting.parts["comm_exposed"] == 5


def test_a_session_without_any_step_has_empty_books_that_say_so() -> None:
    books = books_of(made())
    assert (books.step, books.accounting.step_ns, books.steps) == (None, 0, 0)
    assert books.accounting.notes


def test_a_marked_step_without_device_tasks_says_that_none_were_captured() -> None:
    books = books_of(made(steps=[("1", 0, 100, 0)])).accounting
    assert books.parts["idle_unknown"] == 100
    assert any("no device activity" in note.en for note in books.notes)
