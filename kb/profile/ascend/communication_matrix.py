"""``communication_matrix.json``: bytes and time between each pair of ranks of a group."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from kb.errors import MalformedInputError
from kb.profile.ascend.communication import LARGEST, lines_of_keys
from kb.profile.ascend.document import read_json
from kb.profile.ascend.part import Part
from kb.session.builder import Strings
from kb.session.builder import table as made_table

FILE: Final = "communication_matrix.json"
_PAIR: Final = re.compile(r"(\d{1,9})-(\d{1,9})", re.ASCII)
_MEGABYTE: Final = 1e6
_MILLISECOND: Final = 1e6
_LARGEST: Final = 1e12
_COLUMNS: Final = ("op", "src_rank", "dst_rank", "transport", "bytes", "transit_ns", "row")


class _Link(msgspec.Struct, frozen=True, rename={"transport": "Transport Type", "size": "Transit Size(MB)", "time": "Transit Time(ms)"}):
    transport: str | None = None
    size: float = 0.0
    time: float = 0.0


# An empty class is written as the list [].
_Class = dict[str, dict[str, _Link]] | list[None]


class _Step(msgspec.Struct, frozen=True):
    p2p: _Class = {}
    collective: _Class = {}


def read_matrix(path: Path, label: str, strings: Strings) -> Part:
    """The ``comm_links`` table of ``path``; ranks are local to the group. Raises MalformedInputError."""
    steps, data = read_json(path, label, dict[str, _Step], LARGEST)
    rows = list(_rows(steps, label, lines_of_keys(data)))
    if not rows:
        return Part(label)
    columns = {name: [row[index] for row in rows] for index, name in enumerate(_COLUMNS)}
    return Part(label, made_table("comm_links", {**columns, "file": [label] * len(rows)}, strings))


def _rows(steps: Mapping[str, _Step], label: str, lines: Mapping[str, int]) -> Iterator[tuple[object, ...]]:
    for step in steps.values():
        for operators in (step.collective, step.p2p):
            for key, links in operators.items() if isinstance(operators, dict) else ():
                line = lines.get(key, 1)
                for pair, link in links.items():
                    match = _PAIR.fullmatch(pair)
                    if match is None or int(match[1]) >= 2**31 or int(match[2]) >= 2**31:
                        raise MalformedInputError(f"{label}:{line}: {key} {pair[:60]!r} is no pair of ranks", allowed="source-target")
                    if not (0 <= link.size < _LARGEST and 0 <= link.time < _LARGEST):
                        raise MalformedInputError(f"{label}:{line}: {key} {pair}: size or time out of range", do="export again")
                    yield key, int(match[1]), int(match[2]), link.transport, link.size * _MEGABYTE, link.time * _MILLISECOND, line
