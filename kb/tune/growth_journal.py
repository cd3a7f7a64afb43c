"""The journal of a growing casebook: a line a finished run, appended at once, so that nothing finished is lost."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from kb.errors import ContentError
from kb.profile.simulated.setup import SIMULATOR
from kb.tune.growth_runs import GrownRun


def read_journal(path: Path) -> tuple[GrownRun, ...]:
    """The finished runs in ``path``, () when there is no file. A last line that was cut off is left out, and removed on the next
    append. Raises ContentError naming the line for anything else that is not a run."""
    if not path.is_file():
        return ()
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise ContentError(f"{path}: {error.strerror}", do="check that the journal may be read") from error
    decoder = msgspec.json.Decoder(GrownRun)
    found = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            found.append(decoder.decode(line))
        except msgspec.DecodeError as error:
            raise ContentError(f"{path}: line {number} is not a grown run: {error}", do="move the file away and grow again") from error
    return tuple(found)


def opened(path: Path) -> None:
    """Make ``path`` ready for appending: its folder exists, and a last line without an end is gone.

    Raises ContentError where that cannot be.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            data = path.read_bytes()
            kept = data.rfind(b"\n") + 1
            if kept != len(data):
                with path.open("r+b") as file:
                    file.truncate(kept)
    except OSError as error:
        raise ContentError(f"{path}: {error.strerror}", do="choose a journal that can be written") from error


def append(path: Path, run: GrownRun) -> None:
    """Add a finished run. Raises ContentError when it cannot be written."""
    try:
        with path.open("ab") as file:
            file.write(msgspec.json.encode(run) + b"\n")
    except OSError as error:
        raise ContentError(f"{path}: {error.strerror}", do="free space, then run the command again: it goes on where it stopped") from error


def current(runs: Iterable[GrownRun], seed: int) -> tuple[GrownRun, ...]:
    """Those of ``seed`` that this version of the simulator made, by number."""
    kept = {run.number: run for run in runs if run.seed == seed and run.simulator == SIMULATOR}
    return tuple(kept[number] for number in sorted(kept))


def distinct(runs: Iterable[GrownRun]) -> tuple[GrownRun, ...]:
    """The first of the runs with equal settings."""
    first: dict[str, GrownRun] = {}
    for run in runs:
        first.setdefault(run.key, run)
    return tuple(first.values())
