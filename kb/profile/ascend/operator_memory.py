"""``operator_memory.csv``: device memory blocks with the operator that asked for them."""

from __future__ import annotations

from pathlib import Path

from kb.profile.ascend.cells import RuinedTimestampError
from kb.profile.ascend.columns import Specs
from kb.profile.ascend.part import Part, schema_table
from kb.profile.ascend.table import read_table
from kb.session.builder import Strings
from kb.session.meta import Missing

FILE = "operator_memory.csv"


def read_allocations(path: Path, label: str, specs: Specs, strings: Strings) -> Part:
    """The ``allocations`` table of ``path``; an empty release means alive at the end.

    Spreadsheet-ruined timestamps make the file a missing entry. Raises MalformedInputError for other damage.
    """
    try:
        read = read_table(path, label, specs, strings)
    except RuinedTimestampError as error:
        return Part(label, missing=(Missing(what="allocations", why=error.what, capture=error.do or ""),))
    return Part(label, schema_table("allocations", read, label, strings), None, read.dropped, read.violations)
