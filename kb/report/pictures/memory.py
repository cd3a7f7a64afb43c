"""Device memory over time, and other sampled counters."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

import numpy as np

from kb.report.figures import Curves, Role, Series
from kb.session.session import Array, Session

_POINTS: Final = 600
_LINES: Final = 5
_ROLES: Final[tuple[Role, ...]] = ("cube", "communication", "vector", "mix", "copy")
_UNIT: Final = re.compile(r"(.*?)\s*\[(.+)\]\Z")


def resource_curves(session: Session) -> tuple[Curves, ...]:
    """One chart for each unit among the counters, memory first; counters that never move are no picture.

    Without memory counters, live bytes from the allocations.
    """
    found = sorted(_counters(session).items(), key=lambda item: ("B" not in item[0], item[0]))
    charts = [_chart(unit, series) for unit, series in found]
    charts = [chart for chart in charts if any(len(set(line.y)) > 1 for line in chart.series)]
    if not any("B" in chart.y_title for chart in charts):
        live = _live(session)
        charts += [live] if live is not None else []
    return tuple(charts)


def _counters(session: Session) -> dict[str, list[tuple[str, Array, Array]]]:
    table = session.table("counters")
    found: dict[str, list[tuple[str, Array, Array]]] = {}
    if table is None:
        return found
    begin = int(table["start_ns"].min())
    for code in np.unique(table["name"]).tolist():
        rows = table["name"] == code
        match = _UNIT.fullmatch(session.text(code) or "?")
        name, unit = (match[1], match[2]) if match else (session.text(code) or "?", "")
        found.setdefault(unit, []).append((name, (table["start_ns"][rows] - begin) / 1e6, table["value"][rows]))
    return found


def _chart(unit: str, series: list[tuple[str, Array, Array]]) -> Curves:
    largest = sorted(series, key=lambda item: -float(np.nanmax(item[2], initial=0.0)))[:_LINES]
    lines = tuple(Series(name, _ROLES[place], *_thinned(x, y)) for place, (name, x, y) in enumerate(largest))
    return Curves("ms", unit, lines, filled=unit.endswith("B"))


def _live(session: Session) -> Curves | None:
    table = session.table("allocations")
    if table is None:
        return None
    ended = table["end_ns"] >= 0 if "end_ns" in table else np.zeros(len(table), bool)
    times = np.concatenate([table["start_ns"], table["end_ns"][ended] if ended.any() else table["start_ns"][:0]])
    change = np.concatenate([table["bytes"], -table["bytes"][ended]])
    order = np.argsort(times, kind="stable")
    x, y = (times[order] - int(times.min())) / 1e6, np.cumsum(change[order]) / 2**20
    return Curves("ms", "MiB", (Series("live", "cube", *_thinned(x, y)),), filled=True)


def _thinned(x: Array, y: Array) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """At most ``_POINTS`` points; the lowest and the highest of every bucket stay, so that no peak is lost."""
    good = np.isfinite(y)
    x, y = x[good], y[good]
    if len(x) > _POINTS:
        edges = np.linspace(0, len(x), _POINTS // 2 + 1).astype(int)
        picks = [low + np.array([np.argmin(y[low:high]), np.argmax(y[low:high])]) for low, high in pairwise(edges)]
        chosen = np.unique(np.concatenate(picks))
        x, y = x[chosen], y[chosen]
    return tuple(np.round(x, 4).tolist()), tuple(np.round(y, 3).tolist())
