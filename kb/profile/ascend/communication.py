"""``communication.json``: elapsed, waiting and transmitting time of each communication operator."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from kb.errors import MalformedInputError
from kb.profile.ascend.cells import LATEST_NS, LONGEST_NS
from kb.profile.ascend.document import read_json
from kb.profile.ascend.part import Part
from kb.profile.decimals import scaled
from kb.session.builder import Strings
from kb.session.builder import table as made_table

FILE = "communication.json"
LARGEST: Final = 512 << 20
"""Bytes; the file grows with operators x transports and stays in the tens of megabytes for long captures."""
_TOTAL: Final = "Total Op Info"
_MICROSECONDS: Final = 3
_MILLISECONDS: Final = 6
"""Powers of ten from a unit to ns."""
_MEGABYTE: Final = 1e6
_LARGEST_MEGABYTES: Final = 1e12
_KEY: Final = re.compile(r'"([^"@\\]+@[^"\\]*)"\s*:')
# Numbers stay raw text until they are scaled to ns: a float cannot hold a timestamp in microseconds exactly.
_Number = msgspec.Raw


class _Times(msgspec.Struct, frozen=True, rename={
    "start": "Start Timestamp(us)", "elapse": "Elapse Time(ms)", "transit": "Transit Time(ms)", "wait": "Wait Time(ms)",
    "sync": "Synchronization Time(ms)", "idle": "Idle Time(ms)",
}):  # fmt: skip
    elapse: _Number
    start: _Number = _Number(b"-1")
    transit: _Number = _Number(b"0")
    wait: _Number = _Number(b"0")
    sync: _Number = _Number(b"0")
    idle: _Number = _Number(b"0")


class _Transport(msgspec.Struct, frozen=True, rename={"size": "Transit Size(MB)"}):
    size: float = 0.0


class _Operator(msgspec.Struct, frozen=True, rename={"times": "Communication Time Info", "transports": "Communication Bandwidth Info"}):
    times: _Times
    transports: dict[str, _Transport] = {}


# An empty class is written as the list [].
_Class = dict[str, _Operator] | list[None]


class _Step(msgspec.Struct, frozen=True):
    p2p: _Class = {}
    collective: _Class = {}


def read_communication(path: Path, label: str, strings: Strings) -> Part:
    """The ``comm_ops`` table of ``path``. Raises MalformedInputError.

    Starts are as exact as the file: the exporter rounds them to a float of microseconds. Times belong to one
    plane of the operator, as exported. HCCS, PCIE and SIO traffic is repeated under SDMA and counted once.
    """
    steps, data = read_json(path, label, dict[str, _Step], LARGEST)
    lines = lines_of_keys(data)
    rows = list(_rows(steps, label, lines))
    if not rows:
        return Part(label)
    columns = {name: [row[index] for row in rows] for index, name in enumerate(_COLUMNS)}
    columns["file"] = [label] * len(rows)
    return Part(label, made_table("comm_ops", columns, strings))


_COLUMNS: Final = ("start_ns", "duration_ns", "name", "kind", "group", "step_id", "transit_ns", "wait_ns", "sync_ns", "idle_ns",
                   "bytes", "row")  # fmt: skip


def _rows(steps: Mapping[str, _Step], label: str, lines: Mapping[str, int]) -> Iterator[tuple[object, ...]]:
    for step, classes in steps.items():
        for kind, operators in (("collective", classes.collective), ("p2p", classes.p2p)):
            if isinstance(operators, list):
                continue
            for key, operator in operators.items():
                if key == _TOTAL:
                    continue
                name, _, group = key.partition("@")
                where = f"{label}:{lines.get(key, 1)}: {step}.{kind}.{key}"
                times = _nanoseconds(operator.times, where)
                yield (*times[:2], name, kind, group, step.removeprefix("step"), *times[2:], _bytes(operator, where), lines.get(key, 1))


def _nanoseconds(times: _Times, where: str) -> tuple[int, ...]:
    start = _scaled(times.start, _MICROSECONDS, LATEST_NS, f"{where}: Start Timestamp(us)")
    spans = (
        ("Elapse", times.elapse),
        ("Transit", times.transit),
        ("Wait", times.wait),
        ("Synchronization", times.sync),
        ("Idle", times.idle),
    )
    return (max(start, -1), *(_scaled(value, _MILLISECONDS, LONGEST_NS, f"{where}: {name} Time(ms)") for name, value in spans))


def _scaled(value: msgspec.Raw, power: int, limit: int, where: str) -> int:
    text = bytes(value).decode(errors="replace")
    try:
        number = scaled(text, power)
    except ValueError as error:
        raise MalformedInputError(f"{where} {text[:60]!r}: {error}", do="export again") from error
    # Idle is a difference of floats, so it may miss zero by a rounding error; a real negative span is damage.
    if not -1000 <= number < limit:
        raise MalformedInputError(f"{where} {text[:60]!r}: out of range", do="export again")
    return max(number, 0) if power == _MILLISECONDS else number


def _bytes(operator: _Operator, where: str) -> float:
    sizes = {name: transport.size for name, transport in operator.transports.items()}
    if not all(0 <= size < _LARGEST_MEGABYTES for size in sizes.values()):
        raise MalformedInputError(f"{where}: Transit Size(MB) out of range", do="export again")
    inside_node = max(sizes.get("SDMA", 0.0), sum(sizes.get(name, 0.0) for name in ("HCCS", "PCIE", "SIO")))
    return (sizes.get("RDMA", 0.0) + inside_node) * _MEGABYTE


def lines_of_keys(data: bytes) -> Mapping[str, int]:
    """The line each ``operator@group`` key first stands on."""
    found: dict[str, int] = {}
    for number, line in enumerate(data.decode(errors="replace").split("\n"), 1):
        for key in _KEY.findall(line):
            found.setdefault(key, number)
    return found
