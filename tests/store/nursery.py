"""Starts writers, kills them, starts them again: run as a program by ``test_processes``.

Arguments: database, acknowledgement log, writers at a time, seconds (0: let each writer finish its work), versions a
writer. It forks from a process that has already imported the writer, so that lives are short and kills land in the work.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from store.examples import prepared, record

import kb.store.writing  # noqa: F401  # before the forks: see above
from kb.store.sqlite import open_store

MIN_ROUNDS = 5


def write(database: Path, log: Path, writer: str, count: int) -> None:
    """Publish ``count`` versions of a shared slug; a line in ``log`` acknowledges each."""
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    store = open_store(database, writable=True)
    for number in range(count):
        text = f"{writer} {number}"
        made = store.publish(record("shared", text), prepared({text: 1}), origin="workspace", author=writer)
        os.write(handle, f"{made.n} {made.sha256}\n".encode())
    store.close()


def child(database: Path, log: Path, count: int) -> int:
    """The process id of a new writer."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        write(database, log, f"writer {os.getpid()} {time.monotonic_ns()}", count)
        status = 0
    finally:
        os._exit(status)


def wait_for_growth(log: Path, *, lines: int) -> None:
    """Return when ``log`` has so many more lines, or after half a minute."""
    end, goal = time.monotonic() + 30, size(log) + lines
    while size(log) < goal and time.monotonic() < end:
        time.sleep(0.001)


def size(log: Path) -> int:
    """Acknowledgements so far."""
    return log.read_bytes().count(b"\n") if log.exists() else 0


def main() -> None:
    """See the module."""
    database, log, writers, seconds, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])
    if not seconds:
        statuses = [os.waitpid(pid, 0)[1] for pid in [child(database, log, count) for _ in range(writers)]]
        sys.exit(any(statuses))
    dice, end, kills, rounds = random.Random(7), time.monotonic() + seconds, 0, 0
    while time.monotonic() < end or rounds < MIN_ROUNDS:
        rounds += 1
        pids = [child(database, log, count) for _ in range(writers)]
        wait_for_growth(log, lines=dice.randrange(1, 8))
        time.sleep(dice.uniform(0, 0.02))
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            kills += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    sys.stdout.write(f"{kills}\n")


if __name__ == "__main__":
    main()
