"""One product CSV as arrays of our columns, with the rows that had to be left out counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from kb.errors import MalformedInputError
from kb.profile.ascend.cells import RuinedTimestampError
from kb.profile.ascend.columns import CellError, Specs, converted, converted_spans, resolve
from kb.profile.ascend.csv_table import CsvTable
from kb.profile.ascend.metrics import Metrics, with_counters
from kb.profile.ascend.rows import Block, block, chunks, ends_inside_a_line, opened, read_header
from kb.session.builder import Strings
from kb.session.meta import Violation
from kb.session.session import Array

_EDITED = "take the file as the profiler wrote it, or export again"


def read_table(path: Path, label: str, specs: Specs, strings: Strings, metrics: Metrics | None = None) -> CsvTable:
    """Read ``path`` (named ``label`` in messages), with ``metrics`` also its counter columns. Linear in rows.

    Raises RuinedTimestampError for spreadsheet timestamps and MalformedInputError for everything else that is broken.
    """
    with opened(path, label) as handle:
        cut = ends_inside_a_line(handle)
        header, first = read_header(handle, label)
        specs = with_counters(specs, header, metrics) if metrics is not None else specs
        found = resolve(header, specs, label)
        parts: list[tuple[dict[str, Array], Array]] = []
        dropped = 0
        for chunk in chunks(handle, label, first):
            rows = block(chunk, len(header), label)
            dropped += rows.ragged
            parts.append(_arrays(rows, found, specs, strings, label))
    table = _joined(parts, header, dropped, _cut(label) if cut else ())
    if dropped and not len(table):
        raise MalformedInputError(f"{label}:{first}: no row has the {len(header)} cells of the header", do=_EDITED)
    return table


def _cut(label: str) -> tuple[Violation, ...]:
    detail = f"{label}: the last line has no line break, so the file may have been cut"
    return (Violation(oracle="a file ends with a line break", detail=detail, difference_ns=0),)


def _arrays(rows: Block, found: Mapping[str, int], specs: Specs, strings: Strings, label: str) -> tuple[dict[str, Array], Array]:
    arrays: dict[str, Array] = {}
    for column, index in found.items():
        try:
            kind = specs[column].kind
            if rows.spans is not None:
                arrays[column] = converted_spans(rows.spans, index, kind, strings)
            else:
                arrays[column] = converted(rows.columns[index], kind, strings)
        except CellError as error:
            refusal = RuinedTimestampError if error.ruined else MalformedInputError
            where = f"{label}:{rows.lines[error.index]}: {specs[column].names[0]} {error.cell[:60]!r}: {error}"
            raise refusal(where, do=_EDITED) from error
    return arrays, rows.lines


def _joined(
    parts: Sequence[tuple[dict[str, Array], Array]], header: tuple[str, ...], dropped: int, violations: tuple[Violation, ...]
) -> CsvTable:
    if not parts:
        return CsvTable({}, np.empty(0, "<i4"), header, dropped, violations)
    columns = {name: np.concatenate([arrays[name] for arrays, _ in parts]) for name in parts[0][0]}
    return CsvTable(columns, np.concatenate([lines for _, lines in parts]), header, dropped, violations)
