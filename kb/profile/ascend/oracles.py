"""Identities a sound export obeys; a breach says the files were cut, mixed or edited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kb.session.builder import Strings
from kb.session.meta import STEP_ORACLE, Violation
from kb.session.session import Array, Table

STEP_TOLERANCE_NS: Final = 1_000
"""Sums of the exporter's own columns agree to 130 ns on every real sample."""
KERNEL_TOLERANCE_NS: Final = 1_000
"""Sums of some 2,500 kernels agree with the step's totals to 26 ns on every real sample; each row adds at most 1 ns of rounding."""


_STEP_COLUMNS: Final = ("computing_ns", "comm_not_overlapped_ns", "overlapped_ns", "communication_ns", "free_ns", "stage_ns", "bubble_ns")


@dataclass(frozen=True, slots=True)
class KernelSums:
    """Of one step: summed durations (ns) of computing and of communicating rows, and how many rows there are."""

    computing_ns: int
    communicating_ns: int
    rows: int


def violations(kernels: Table | None, step_trace: Table | None, strings: Strings) -> tuple[Violation, ...]:
    """Every identity that does not hold, with its difference in ns. Linear in rows."""
    if step_trace is None:
        return ()
    known = strings.frozen()
    found = [*_step_identities(step_trace, known)]
    if kernels is not None:
        found += _kernel_identities(kernel_sums(kernels, strings), step_trace, known)
    return tuple(found)


def kernel_sums(kernels: Table, strings: Strings) -> Mapping[int, KernelSums]:
    """Sums by step code; -1 holds rows of no named step."""
    communicating = kernels["core"] == strings.code("COMMUNICATION")
    steps = kernels["step_id"] if "step_id" in kernels else np.full(len(kernels), -1)
    codes, places = np.unique(steps, return_inverse=True)
    sums = np.zeros((len(codes), 2), dtype=np.int64)
    np.add.at(sums, (places, communicating.astype(np.intp)), kernels["duration_ns"])
    counts = np.bincount(places, minlength=len(codes))
    return {int(code): KernelSums(int(pair[0]), int(pair[1]), int(rows)) for code, pair, rows in zip(codes, sums, counts, strict=True)}


def step_differences(step_trace: Table) -> Mapping[str, Array]:
    """Left side minus right side of each identity within a step, ns a row; NaN where a column is missing."""
    column = {name: _with_gaps(step_trace[name]) for name in _STEP_COLUMNS}
    exposed = column["comm_not_overlapped_ns"]
    whole = column["computing_ns"] + exposed + column["free_ns"] - column["stage_ns"] - column["bubble_ns"]
    return {
        STEP_ORACLE: whole,
        "Communication - Overlapped = Communication(Not Overlapped)": column["communication_ns"] - column["overlapped_ns"] - exposed,
    }


def _with_gaps(values: Array) -> Array:
    return np.where(values == -1, np.nan, values.astype(np.float64))


def _step_identities(step_trace: Table, known: Sequence[str]) -> Iterator[Violation]:
    for oracle, difference in step_differences(step_trace).items():
        for index in np.flatnonzero(np.abs(difference) > STEP_TOLERANCE_NS):
            yield _violation(oracle, step_trace, int(index), int(difference[index]), known)


def _kernel_identities(sums: Mapping[int, KernelSums], step_trace: Table, known: Sequence[str]) -> Iterator[Violation]:
    for index, step in enumerate(step_trace["step_id"]):
        found = sums.get(int(step)) if set(sums) != {-1} or len(step_trace) > 1 else sums[-1]
        if found is None:
            continue
        for oracle, total, column in (
            ("sum of computing kernels = Computing", found.computing_ns, "computing_ns"),
            ("sum of communication kernels = Communication", found.communicating_ns, "communication_ns"),
        ):
            stated = int(step_trace[column][index])
            if stated != -1 and abs(total - stated) > KERNEL_TOLERANCE_NS + found.rows:
                yield _violation(oracle, step_trace, index, total - stated, known)


def _violation(oracle: str, step_trace: Table, index: int, difference: int, known: Sequence[str]) -> Violation:
    step = step_trace["step_id"][index]
    where = f"{known[step_trace['file'][index]]}:{step_trace['row'][index]}"
    detail = f"{where}: step {known[step] if step >= 0 else 'unmarked'} is off by {difference} ns"
    return Violation(oracle=oracle, detail=detail, difference_ns=difference)
