"""Damaged captures of every format by the thousand: only our errors, each naming its file; no hang; bounded memory.

    python benchmarks/fuzz_import.py [--n 100000] [--seed 1] [--first 0] [--workers 2] [--minutes M] [--out rows.jsonl]

Inputs are numbered; number and seed make an input again. They are read by worker processes that catch nothing but our
errors: whatever else happens ends the worker, is counted as a fault with its last words, and the next worker goes on behind
it. So is an input that takes longer than a minute. ``--minutes`` ends early. The last line is JSON: inputs done, refused,
accepted, faults, the slowest input in seconds, the peak memory of a worker in 10^6 bytes, CPU seconds. ``--out`` keeps
one row a fault.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from profiles.mutations import corpus, mutations_of  # the tests' own damage, after the path to it

from kb.errors import KbError
from kb.profile.sources import load
from kb.session.codec import to_bytes

LONGEST_S = 60
_ARCHIVES = ("one.zip", "one.tar.gz")


def fault_of(root: Path, file: str, name: str) -> tuple[str, bool]:
    """What went wrong at one damaged capture (empty: nothing), and whether it was refused. Other errors come through."""
    try:
        for session in load(root):
            breaches = session.self_check()
            if breaches:
                return breaches[0], False
            to_bytes(session)
    except KbError as error:
        named = name in _ARCHIVES or file in error.what
        return "" if named else f"unnamed: {error.what}", True
    return "", False


def work(seed: int, numbers: range) -> None:
    """Read inputs and say before and after each what it is and how it went, one JSON line each."""
    with tempfile.TemporaryDirectory() as folder:
        captures = corpus(Path(folder))
        sound = {name: path.read_bytes() for name, (_, path) in captures.items()}
        for number in numbers:
            rng = random.Random(f"{seed}/{number}")
            name = rng.choice(list(captures))
            root, path = captures[name]
            mutation = rng.choice(mutations_of(name))
            path.write_bytes(mutation(sound[name], rng))
            print(json.dumps({"number": number, "what": f"{name} {mutation.__name__}"}), flush=True)
            begin = time.monotonic()
            fault, refused = fault_of(root, path.name, name)
            took = time.monotonic() - begin
            print(json.dumps({"done": number, "fault": fault, "refused": refused, "s": took, "peak_kb": _peak_kb()}), flush=True)
            path.write_bytes(sound[name])


def _peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@dataclass
class Tally:
    """What all workers found."""

    done: int = 0
    refused: int = 0
    peak_kb: int = 0
    slowest: tuple[float, str] = (0.0, "")
    faults: list[dict[str, object]] = field(default_factory=list)


@dataclass
class Worker:
    """One process and the numbers it still has to do."""

    seed: int
    numbers: range
    words: IO[str]
    now: tuple[int, str] | None = None
    since: float = 0.0
    process: subprocess.Popen[str] = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        bounds = f"{self.numbers.start}:{self.numbers.stop}:{self.numbers.step}"
        command = [sys.executable, __file__, "--seed", str(self.seed), "--numbers", bounds]
        self.now, self.since = None, time.monotonic()
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.words, text=True, bufsize=1)

    def heard(self, line: str, tally: Tally) -> None:
        """Take one line of the process into the tally."""
        said = json.loads(line)
        if "number" in said:
            self.now, self.since = (said["number"], said["what"]), time.monotonic()
            return
        what = self.now[1] if self.now else ""
        tally.done += 1
        tally.refused += said["refused"]
        tally.peak_kb = max(tally.peak_kb, said["peak_kb"])
        tally.slowest = max(tally.slowest, (said["s"], f"{what} {said['done']}"))
        if said["fault"]:
            tally.faults.append({"number": said["done"], "what": what, "fault": said["fault"][:300]})
        self.numbers, self.now = range(said["done"] + self.numbers.step, self.numbers.stop, self.numbers.step), None

    def ended(self, tally: Tally) -> bool:
        """The process is gone: whether there is nothing left to do. An input it died at is a fault, the next goes on."""
        self.process.wait()
        if not self.numbers or self.now is None:
            if self.process.returncode:
                self.words.seek(0)
                raise SystemExit(f"a worker died between inputs:\n{self.words.read()[-2000:]}")
            return True
        number, what = self.now
        self.words.seek(0)
        last = (self.words.read().strip().splitlines() or [f"exit {self.process.returncode}"])[-1]
        tally.done += 1
        tally.faults.append({"number": number, "what": what, "fault": last[:300]})
        self.numbers = range(number + self.numbers.step, self.numbers.stop, self.numbers.step)
        return not self.numbers


def fuzzed(seed: int, numbers: range, workers: int, until: float) -> Tally:
    """Do ``numbers`` in ``workers`` processes until the clock says ``until``."""
    with ExitStack() as last_words:
        return _fuzzed(seed, numbers, workers, until, last_words)


def _fuzzed(seed: int, numbers: range, workers: int, until: float, last_words: ExitStack) -> Tally:
    tally, waiting = Tally(), selectors.DefaultSelector()
    for place in range(workers):
        words = last_words.enter_context(tempfile.TemporaryFile("w+"))  # noqa: SIM115  # the stack closes it
        own = Worker(seed, range(numbers.start + place, numbers.stop, workers), words)
        waiting.register(own.process.stdout or sys.stdin, selectors.EVENT_READ, own)
    said = 0
    while waiting.get_map() and time.monotonic() < until:
        for line, worker, stream in _lines(waiting):
            if line:
                worker.heard(line, tally)
            else:
                waiting.unregister(stream)
                if not worker.ended(tally):
                    worker.start()
                    waiting.register(worker.process.stdout or sys.stdin, selectors.EVENT_READ, worker)
        if tally.done // 1000 > said:
            said = tally.done // 1000
            print(f"{tally.done} of {len(numbers)}, {len(tally.faults)} faults", file=sys.stderr)
    for key in list(waiting.get_map().values()):
        key.data.process.kill()
        key.data.process.wait()
    return tally


def _lines(waiting: selectors.DefaultSelector) -> Iterator[tuple[str, Worker, IO[str]]]:
    ready = waiting.select(timeout=1)
    for key, _ in ready:
        worker: Worker = key.data
        stream = worker.process.stdout
        if stream is not None:
            yield stream.readline(), worker, stream
    for key in list(waiting.get_map().values()):
        if time.monotonic() - key.data.since > LONGEST_S:
            key.data.process.kill()  # its stream ends, and the input is a fault


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=24 * 60)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--numbers", help="be a worker for these inputs, FROM:TO:STEP")
    options = parser.parse_args()
    if options.numbers:
        work(options.seed, range(*map(int, options.numbers.split(":"))))
        return
    numbers = range(options.first, options.first + options.n)
    tally = fuzzed(options.seed, numbers, options.workers, time.monotonic() + 60 * options.minutes)
    if options.out:
        options.out.write_text("".join(json.dumps(fault) + "\n" for fault in tally.faults))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps({
        "inputs": tally.done, "asked": options.n, "first": options.first, "seed": options.seed, "refused": tally.refused,
        "accepted": tally.done - tally.refused - len(tally.faults), "faults": len(tally.faults), "slowest_s": round(tally.slowest[0], 3),
        "slowest": tally.slowest[1], "peak_rss_mb": round(tally.peak_kb * 1024 / 1e6, 1),
        "cpu_s": round(used.ru_utime + used.ru_stime, 1),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
