"""A growing casebook: resumed, interrupted, without repetition, and readable as case records."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from kb.errors import ContentError, UsageError
from kb.recommend.outcomes import table_of
from kb.tune.growth_journal import append, current, distinct, opened, read_journal
from kb.tune.growth_records import record_of
from kb.tune.growth_runs import GrownRun, grown_run
from kb.workflow.grow import fitted, grow
from kb.workflow.location import shipped_catalogue
from kb_cli.boundary import run_program

RUNS = 3


def quiet(_stage: str, _done: int, _total: int, /) -> None:
    pass


@pytest.fixture(scope="module")
def runs() -> tuple[GrownRun, ...]:
    catalogue = shipped_catalogue()
    return tuple(grown_run(1, number, catalogue) for number in range(RUNS))


def test_a_run_holds_what_was_tried_and_what_a_profile_shows(runs: tuple[GrownRun, ...]) -> None:
    for run in runs:
        assert len(run.trials) > 10
        assert not {trial.strategies[0] for trial in run.trials} & set(run.idle)
        assert run.traits["log_step"] > 0
        assert 0.999 < sum(run.traits[part] for part in ("compute", "comm_exposed", "copy_exposed")) + sum(
            value for name, value in run.traits.items() if name.startswith("idle_")
        ) < 1.001  # fmt: skip


def test_growing_again_makes_equal_runs(runs: tuple[GrownRun, ...]) -> None:
    assert grown_run(1, 0, shipped_catalogue()) == runs[0]


def test_the_journal_goes_on_where_it_stopped(tmp_path: Path, runs: tuple[GrownRun, ...]) -> None:
    journal = tmp_path / "deep" / "seed-1.jsonl"
    opened(journal)
    append(journal, runs[0])
    append(journal, runs[1])
    with journal.open("ab") as file:
        file.write(msgspec.json.encode(runs[2])[:100])  # killed in the middle of a line
    assert read_journal(journal) == runs[:2]
    grown = grow(journal, sessions=RUNS, seed=1, jobs=1, progress=quiet)
    assert (grown.runs, grown.made) == (RUNS, 1)
    assert current(read_journal(journal), 1) == runs
    assert grow(journal, sessions=RUNS, seed=1, jobs=1, progress=quiet).made == 0


def test_a_damaged_journal_is_named_and_kept(tmp_path: Path, runs: tuple[GrownRun, ...]) -> None:
    journal = tmp_path / "seed-1.jsonl"
    append(journal, runs[0])
    journal.write_bytes(journal.read_bytes() + b'{"seed": "seven"}\n')
    before = journal.read_bytes()
    with pytest.raises(ContentError, match="line 2 is not a grown run"):
        grow(journal, sessions=RUNS, seed=1, jobs=1, progress=quiet)
    assert journal.read_bytes() == before


def test_runs_of_another_simulator_or_seed_do_not_count(runs: tuple[GrownRun, ...]) -> None:
    old = msgspec.structs.replace(runs[0], simulator="sim-0.0")
    other = msgspec.structs.replace(runs[1], seed=8)
    assert current((old, other, runs[2]), 1) == (runs[2],)


def test_equal_settings_count_once_whatever_their_noise(runs: tuple[GrownRun, ...]) -> None:
    again = msgspec.structs.replace(runs[0], number=9, options={**runs[0].options, "seed": 123})
    assert distinct((*runs, again)) == runs


def test_nonsense_counts_are_refused(tmp_path: Path) -> None:
    for sessions, seed, jobs in ((0, 1, 1), (1, -1, 1), (1, 1, 0)):
        with pytest.raises(UsageError):
            grow(tmp_path / "x.jsonl", sessions=sessions, seed=seed, jobs=jobs, progress=quiet)


def test_records_say_simulated_and_keep_failures(runs: tuple[GrownRun, ...]) -> None:
    catalogue = shipped_catalogue()
    results = set()
    for run in runs:
        record = record_of(run, catalogue)
        assert (record.kind, record.provenance) == ("case", "simulated")
        assert record.title.zh.endswith("（仿真）")
        outcomes = [outcome for case in record.cases for outcome in case.outcomes]
        assert len(outcomes) == len(run.trials) + len(run.idle)
        assert {outcome.provenance for outcome in outcomes} == {"simulated"}
        results |= {outcome.result for outcome in outcomes}
        gains = {outcome.strategy: outcome.gain_fraction for outcome in outcomes}
        for trial in run.trials:
            if trial.gain is not None:
                assert gains[trial.strategies[0]] == pytest.approx(trial.gain, abs=1e-6)
    assert {"improved", "no_gain", "worse"} <= results


def test_the_table_of_the_records_holds_the_runs(runs: tuple[GrownRun, ...]) -> None:
    catalogue = shipped_catalogue()
    table = table_of([record_of(run, catalogue) for run in runs], {})
    assert table.cases == sum(len(run.trials) for run in runs)
    assert table.groups == tuple(run.group for run in runs)
    for row, run in enumerate(runs):
        for trial in run.trials:
            place = table.strategies.index(trial.strategies[0])
            assert table.tried[row, place]
            if trial.gain is not None:
                assert table.gains[row, place] == pytest.approx(trial.gain, abs=1e-3)
        for name in run.idle:
            place = table.strategies.index(name)
            assert not table.tried[row, place]
            assert table.gains[row, place] == 0
        for name, value in run.traits.items():
            assert table.values[row, table.traits.index(name)] == pytest.approx(value, rel=2e-3, abs=1e-4)


def test_too_few_runs_teach_nothing(tmp_path: Path, runs: tuple[GrownRun, ...]) -> None:
    journal = tmp_path / "seed-1.jsonl"
    append(journal, runs[0])
    with pytest.raises(UsageError, match="1 runs of seed 1"):
        fitted(journal, seed=1, sessions=RUNS, progress=quiet)


def test_the_command_grows_and_writes_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = tmp_path / "cases.jsonl"
    arguments = ["grow", "--sessions", "1", "--seed", "1", "--jobs", "1", "--no-fit", "--records", str(records), "--json"]
    assert run_program("kb", arguments) == 0
    payload = json.loads(capsys.readouterr().out)
    assert (payload["runs"], payload["made"], payload["provenance"]) == (1, 1, "simulated")
    assert json.loads(records.read_text(encoding="utf-8").splitlines()[0])["provenance"] == "simulated"
    assert run_program("kb", ["grow", "--sessions", "0"]) == 2


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    journal = tmp_path / "seed-1.jsonl"
    arguments = f"grow --sessions 60 --seed 1 --jobs 1 --no-fit --journal {journal}"
    words = [sys.executable, "-m", "kb_cli", *arguments.split()]
    # A test runner in the background may ignore SIGINT, and a child inherits that.
    program = subprocess.Popen(words, stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    deadline = time.monotonic() + 120
    while not (journal.is_file() and journal.read_bytes()) and time.monotonic() < deadline:
        time.sleep(0.05)
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=120)
    assert program.returncode == 130
    kept = read_journal(journal)
    assert 0 < len(kept) < 60
    assert journal.read_bytes().endswith(b"\n")
