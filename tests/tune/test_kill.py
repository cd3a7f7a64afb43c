"""A tuning run that is killed without warning."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from kb.domain.catalogue import Catalogue
from kb.domain.recommendation import Constraints
from kb.profile.simulated.setup import Setup
from kb.tune.journal import Journal
from kb.tune.trials import header_of

PROGRAM = """
    import sys
    from pathlib import Path

    import msgspec
    from tune.advice import advice

    from kb.domain.recommendation import Constraints
    from kb.library.catalogue import load_catalogue
    from kb.profile.simulated.options import Options
    from kb.profile.simulated.setup import Setup
    from kb.tune.journal import Journal
    from kb.tune.loop import tune
    from kb.tune.space import Knob
    from kb.tune.trials import Bounds, header_of

    shipped = load_catalogue(Path(sys.argv[1]))
    setup = Setup(model="bert-base", soc=shipped.soc("910b2"), options=Options(steps=3, noise=0.0), seed=3)
    with Journal(Path(sys.argv[2]), header_of(setup, Constraints())) as journal:
        tuning, _ = tune(
            setup, shipped, Constraints(), advice(shipped), journal, bounds=Bounds(trials=30, seconds=60.0, knob_trials=6),
            progress=lambda *_: None, space=(Knob(name="stream_depth", values=(2, 8, 64)),),
        )
    print(tuning.best.latency_ns, tuning.trials, tuning.replayed)
"""


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL")
def test_sigkill_loses_no_finished_trial(tmp_path: Path, checkout: Path, small: Setup, shipped: Catalogue) -> None:
    script, journal = tmp_path / "run.py", tmp_path / "j.jsonl"
    script.write_text(textwrap.dedent(PROGRAM))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout), str(checkout / "tests")])}
    command = [sys.executable, str(script), str(checkout), str(journal)]
    killed = 0
    for target in (2, 4):
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        while process.poll() is None:
            if journal.exists() and journal.read_bytes().count(b"\n") > target:
                process.send_signal(signal.SIGKILL)
                killed += process.wait() == -signal.SIGKILL
            time.sleep(0.002)
    assert killed == 2
    kept = journal.read_bytes()
    finished = kept[: kept.rfind(b"\n") + 1]
    with Journal(journal, header_of(small, Constraints())) as opened:
        count = opened.begun
    assert count >= 4
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    best, trials, replayed = map(int, done.stdout.split())
    assert journal.read_bytes().startswith(finished)
    assert replayed == count
    untouched = subprocess.run([*command[:-1], str(tmp_path / "other.jsonl")], env=environment, capture_output=True, text=True, check=True)
    assert untouched.stdout.split() == [str(best), str(trials), "0"]
