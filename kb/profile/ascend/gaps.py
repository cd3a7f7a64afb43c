"""What a session lacks, with the reason and the capture that would bring it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kb.profile.ascend.recipes import Expected
from kb.session.meta import Missing
from kb.session.session import Table

_KERNELS = "kernels"


def gaps(tables: Mapping[str, Table], lacking: Sequence[str], stated: Sequence[Missing], expected: Expected) -> tuple[Missing, ...]:
    """Absent tables, empty or absent kernel columns, and the unknown facts named in ``lacking``.

    ``stated`` are reasons the readers already gave; they win over the general ones.
    """
    known = {missing.what for missing in stated}
    general = [*_tables(tables, expected), *_kernel_columns(tables.get(_KERNELS), expected), *(expected.facts[name] for name in lacking)]
    return (*stated, *(missing for missing in general if missing.what not in known))


def _tables(tables: Mapping[str, Table], expected: Expected) -> Iterator[Missing]:
    return (missing for missing in expected.tables if missing.what not in tables)


def _kernel_columns(kernels: Table | None, expected: Expected) -> Iterator[Missing]:
    for missing in expected.kernel_columns if kernels is not None else ():
        column = missing.what.removeprefix(f"{_KERNELS}.")
        if kernels is None or column not in kernels or _is_empty(kernels, column):
            yield missing


def _is_empty(kernels: Table, column: str) -> bool:
    values = kernels[column]
    return bool(np.all(np.isnan(values) if values.dtype.kind == "f" else values == -1))
