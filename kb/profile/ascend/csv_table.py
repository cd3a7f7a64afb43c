"""The columns read from one CSV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kb.session.meta import Violation
from kb.session.session import Array


@dataclass(frozen=True, slots=True)
class CsvTable:
    """``columns`` by our names, ``lines`` (int32, 1-based, header = 1), ``header`` as written, ``dropped`` ragged rows."""

    columns: Mapping[str, Array]
    lines: Array
    header: tuple[str, ...]
    dropped: int
    violations: tuple[Violation, ...] = ()

    def __len__(self) -> int:
        return len(self.lines)

    def where(self, mask: Array) -> CsvTable:
        """The rows of a boolean mask, in order."""
        kept = {name: values[mask] for name, values in self.columns.items()}
        return CsvTable(kept, self.lines[mask], self.header, self.dropped, self.violations)
