"""Communication operators and links of a session as the exporter's JSON."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import msgspec

from kb.session.session import Session, Table

_MILLISECONDS: Final = 6
_MICROSECONDS: Final = 3
_MEGABYTE: Final = 1e6
_STATES: Final = (
    ("Transit Time(ms)", "transit_ns"),
    ("Wait Time(ms)", "wait_ns"),
    ("Synchronization Time(ms)", "sync_ns"),
    ("Idle Time(ms)", "idle_ns"),
)


def communication_bytes(session: Session, table: Table) -> bytes:
    """``communication.json``: operators by step and class. Times keep every ns."""
    document: dict[str, dict[str, dict[str, object]]] = {}
    for row in range(len(table)):
        step = document.setdefault(f"step{_text(session, table, 'step_id', row) or ''}", {"p2p": {}, "collective": {}})
        kind = "p2p" if _text(session, table, "kind", row) == "p2p" else "collective"
        spans: dict[str, msgspec.Raw] = {"Elapse Time(ms)": _decimal(int(table["duration_ns"][row]), _MILLISECONDS)}
        if table["start_ns"][row] >= 0:
            spans["Start Timestamp(us)"] = _decimal(int(table["start_ns"][row]), _MICROSECONDS)
        for name, column in _STATES:
            spans[name] = _decimal(max(int(table[column][row]), 0) if column in table else 0, _MILLISECONDS)
        size = float(table["bytes"][row]) / _MEGABYTE if "bytes" in table else 0.0
        key = f"{_text(session, table, 'name', row)}@{_text(session, table, 'group', row) or 'unknown'}"
        bandwidth = {"SDMA": {"Transit Size(MB)": size}} if size > 0 else {}
        step[kind][key] = {"Communication Time Info": spans, "Communication Bandwidth Info": bandwidth}
    return msgspec.json.format(msgspec.json.encode(document), indent=1)


def matrix_bytes(session: Session, table: Table) -> bytes:
    """``communication_matrix.json``: links by operator."""
    links: dict[str, dict[str, object]] = defaultdict(dict)
    for row in range(len(table)):
        link: dict[str, object] = {"Transport Type": _text(session, table, "transport", row) or "N/A"}
        for name, column, scale in (("Transit Size(MB)", "bytes", _MEGABYTE), ("Transit Time(ms)", "transit_ns", 1e6)):
            value = float(table[column][row]) if column in table else 0.0
            link[name] = value / scale if value == value else 0.0
        key = _text(session, table, "op", row) or "total"
        links[key if "@" in key else f"{key}@unknown"][f"{table['src_rank'][row]}-{table['dst_rank'][row]}"] = link
    return msgspec.json.format(msgspec.json.encode({"step": {"p2p": {}, "collective": links}}), indent=1)


def _text(session: Session, table: Table, column: str, row: int) -> str | None:
    return session.text(int(table[column][row])) if column in table else None


def _decimal(ns: int, places: int) -> msgspec.Raw:
    unit = 10**places
    return msgspec.Raw(f"{ns // unit}.{ns % unit:0{places}d}".encode())
