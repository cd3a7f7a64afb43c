"""Claim sheets typed from tables of figures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from kb.audit.claims import Claim, Sheet, When, decimals_step

Row = list[Any]
_FIGURE = re.compile(r"([-+]?[\d,]*\.?\d+)\s*(\S*)\Z")


def claim(row: Row, source: str = "") -> Claim:
    """From ``[subject and metric, moment or limit, figure or list, other end of a range]``."""
    name, moment, figure, *end = row
    subject, _, metric = name.rpartition(" ")
    shared: dict[str, Any] = {"metric": metric, "subject": subject, "source": source}
    if moment in ("max", "min"):
        shared |= {"when": "target", "bound": moment}
    elif moment == "constant":
        shared |= {"constant": True}
    else:
        shared |= {"when": cast("When", moment)}
    if isinstance(figure, list):
        return Claim(**shared, values=tuple(map(float, figure)))
    value, unit, step = read(figure)
    upper = read(end[0])[0] if end else None
    return Claim(**shared, value=value, unit=unit, step=step, upper=upper)


def read(figure: str) -> tuple[float, str, float]:
    match = _FIGURE.match(figure)
    assert match is not None, figure
    return float(match[1].replace(",", "")), match[2], decimals_step(match[1])


def sheet(rows: Iterable[Row], **about: Any) -> Sheet:
    return Sheet(claims=tuple(claim(row) for row in rows), **about)


def seed_sheets(path: Path) -> dict[str, Sheet]:
    """The tables of both seed articles, one sheet a scenario; each claim names its row."""
    found = {}
    for name, entry in json.loads(path.read_text(encoding="utf-8")).items():
        claims = tuple(claim(row, source) for source, rows in entry.pop("claims").items() for row in rows)
        strategies = tuple(entry.pop("strategies", ()))
        found[name] = Sheet(claims=claims, strategies=strategies, **entry)
    return found
