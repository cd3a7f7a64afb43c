"""Ranks in processes of their own, when there is enough to read to pay for them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

WORTH_IT: Final = 64 << 20
"""Bytes: below this processes and the way back of their columns cost more than they save."""
_Job = TypeVar("_Job")
_Made = TypeVar("_Made")


def in_parallel(read: Callable[[_Job], _Made], jobs: Sequence[_Job], size: int) -> list[_Made]:
    """``read`` of every job, in order; in several processes when ``size`` bytes are worth it. Errors of a job come through.

    ``read``, jobs and results must be picklable. A program with threads of its own reads one after the other.
    """
    workers = min(len(jobs), os.cpu_count() or 1)
    if workers < 2 or size < WORTH_IT or threading.active_count() > 1 or not hasattr(os, "fork"):
        return [read(job) for job in jobs]
    import multiprocessing  # with the pool 25 ms that a small profile need not pay
    from concurrent.futures import ProcessPoolExecutor

    # Forked children need no importable main module, and with one thread there is no lock they could inherit held.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork")) as pool:
        return list(pool.map(read, jobs))
