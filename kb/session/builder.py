"""Collects rows of an importer or simulator and makes a session of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from kb.session.meta import SessionMeta
from kb.session.schema import NUMPY_DTYPES, TABLES
from kb.session.session import Array, Session, Table


class Strings:
    """Interns strings: equal text, equal code. None and empty text are missing (-1)."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, text: str | None) -> int:
        """The code of ``text``."""
        return self._codes.setdefault(text, len(self._codes)) if text else -1

    def codes(self, texts: Sequence[str | None]) -> Array:
        """Codes as int32."""
        known = cast("dict[str | None, int]", self._codes)  # asked for None too, which it never holds
        found = list(map(known.get, texts))
        if None in found:  # something is new or missing
            found = [known.setdefault(text, len(known)) if text else -1 for text in texts] if any(texts) else [-1] * len(found)
        return np.array(found, np.int32)

    def frozen(self) -> tuple[str, ...]:
        """All strings, in code order."""
        return tuple(self._codes)


def table(name: str, columns: Mapping[str, Sequence[Any] | Array], strings: Strings) -> Table:
    """A table of the schema from plain sequences: text columns are interned, dtypes set, rows sorted.

    Columns whose value is None are left out. Sorting is stable, so equal starts keep the source order.
    """
    spec = TABLES[name]
    arrays: dict[str, Array] = {}
    for column in spec.columns:
        values = columns.get(column.name)
        if values is None:
            continue
        if column.dtype == "code" and not isinstance(values, np.ndarray):
            values = strings.codes(values)
        made = np.asarray(values)
        arrays[column.name] = np.ascontiguousarray(made, dtype=NUMPY_DTYPES[column.dtype])
    unknown = set(columns) - {column.name for column in spec.columns}
    if unknown:
        raise KeyError(f"columns not in the schema of {name}: {', '.join(sorted(unknown))}")
    made_table = Table(name, arrays)
    if spec.sort and spec.sort in made_table and np.any(np.diff(made_table[spec.sort]) < 0):
        return made_table.where(np.argsort(made_table[spec.sort], kind="stable"))
    return made_table


def session(meta: SessionMeta, tables: Sequence[Table], strings: Strings) -> Session:
    """The session. Empty tables are left out: a table that exists has rows."""
    return Session(meta, {made.name: made for made in tables if len(made)}, strings.frozen())
