"""``api_statistic.csv``: host calls summed by name."""

from __future__ import annotations

from pathlib import Path

from kb.profile.ascend.columns import Specs
from kb.profile.ascend.part import Part, schema_table
from kb.profile.ascend.table import read_table
from kb.session.builder import Strings

FILE = "api_statistic.csv"


def read_api_totals(path: Path, label: str, specs: Specs, strings: Strings) -> Part:
    """The ``api_totals`` table of ``path``; layer ``hccl`` of old exports is ``communication``. Raises MalformedInputError."""
    read = read_table(path, label, specs, strings)
    return Part(label, schema_table("api_totals", read, label, strings), None, read.dropped, read.violations)
