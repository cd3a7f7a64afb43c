"""The journal: nothing finished is lost, nothing foreign is taken."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.domain.recommendation import Constraints
from kb.errors import ConflictError, MalformedInputError, UsageError
from kb.profile.simulated.options import Options
from kb.profile.simulated.setup import Setup
from kb.tune.figures import Figures
from kb.tune.journal import Entry, Journal, key_of
from kb.tune.trials import header_of

FIGURES = Figures(latency_ns=1_000, memory_b=2_000, samples=1)


def entry(n: int) -> Entry:
    return Entry(n=n, kind="knobs", name=f"t{n}", key=key_of({"batch": n}), against="", options={"batch": n}, figures=FIGURES)


def test_what_was_added_is_there_again(tmp_path: Path, small: Setup) -> None:
    path, header = tmp_path / "run" / "j.jsonl", header_of(small, Constraints())
    with Journal(path, header) as journal:
        for n in range(3):
            journal.add(entry(n))
    with Journal(path, header) as again:
        assert list(again.entries()) == [entry(n) for n in range(3)]
        assert (again.begun, again.known(key_of({"batch": 1}))) == (3, entry(1))
        assert again.known(key_of({"batch": 9})) is None
        again.add(entry(3))
    assert len(path.read_bytes().splitlines()) == 5


@settings(max_examples=60)
@given(cut=st.integers(0, 400))
def test_a_file_cut_anywhere_keeps_every_whole_line(tmp_path_factory: pytest.TempPathFactory, small: Setup, cut: int) -> None:
    path, header = tmp_path_factory.mktemp("cut") / "j.jsonl", header_of(small, Constraints())
    with Journal(path, header) as journal:
        for n in range(3):
            journal.add(entry(n))
    data = path.read_bytes()
    kept = data[: max(0, len(data) - cut)]
    path.write_bytes(kept)
    whole = max(0, kept.count(b"\n") - 1)
    with Journal(path, header) as again:
        assert [item.n for item in again.entries()] == list(range(whole))
        again.add(entry(7))
    with Journal(path, header) as third:
        assert [item.n for item in third.entries()] == [*range(whole), 7]


def test_a_journal_of_another_run_is_refused_and_named(tmp_path: Path, small: Setup) -> None:
    path = tmp_path / "j.jsonl"
    with Journal(path, header_of(small, Constraints())):
        pass
    before = path.read_bytes()
    for setup, limits, word in (
        (msgspec.structs.replace(small, model="bert-large"), Constraints(), "model is bert-base"),
        (msgspec.structs.replace(small, options=Options(batch=2)), Constraints(), "batch is 1, not 2"),
        (small, Constraints(max_latency_ns=1e6), "max_latency_ns is None, not 1000000.0"),
        (msgspec.structs.replace(small, seed=4), Constraints(), "seed is 3, not 4"),
    ):
        with pytest.raises(UsageError, match=word):
            Journal(path, header_of(setup, limits))
    assert path.read_bytes() == before


def test_damage_before_the_last_line_is_an_error_not_a_loss(tmp_path: Path, small: Setup) -> None:
    path, header = tmp_path / "j.jsonl", header_of(small, Constraints())
    with Journal(path, header) as journal:
        journal.add(entry(0))
        journal.add(entry(1))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"n": 0, "kind": "dance"}\n' + lines[2])
    with pytest.raises(MalformedInputError, match=r"j\.jsonl:2"):
        Journal(path, header)
    path.write_bytes(b"not json\n" + b"".join(lines[1:]))
    with pytest.raises(MalformedInputError, match=r"j\.jsonl:1"):
        Journal(path, header)


def test_two_runs_never_write_one_journal(tmp_path: Path, small: Setup) -> None:
    path, header = tmp_path / "j.jsonl", header_of(small, Constraints())
    with Journal(path, header), pytest.raises(ConflictError, match="in use by another run"):
        Journal(path, header)
    with Journal(path, header) as free:
        free.add(entry(0))


def test_a_pipe_is_no_journal(tmp_path: Path, small: Setup) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="no regular file"):
        Journal(tmp_path / "pipe", header_of(small, Constraints()))


def test_without_a_path_nothing_is_written(tmp_path: Path, small: Setup) -> None:
    with Journal(None, header_of(small, Constraints())) as journal:
        journal.add(entry(0))
        assert journal.known(entry(0).key) == entry(0)
    assert list(tmp_path.iterdir()) == []
