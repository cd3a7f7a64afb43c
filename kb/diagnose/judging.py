"""From what a rule measured to its judgement: the same suppression, priority, confidence and evidence for every rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from kb.diagnose.confidence import confidence
from kb.diagnose.figures import percent
from kb.diagnose.thresholds import priority
from kb.diagnose.view import RankView
from kb.domain.catalogue import CauseId
from kb.domain.finding import Evidence, Finding, Healthy, Judgement, NotJudged, Scope, Where
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds
from kb.session.session import Array

CITED = 5
"""Rows cited for a finding about many kernels: the longest ones."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule measured on one rank. Times in ns; ``gain_ns`` is an upper bound and cut to ``exposed_ns``.

    Below the share ``least`` of the step the loss counts as healthy. ``major`` and ``minor`` count missing pieces of
    evidence as ``thresholds.confidence`` does. ``observed`` and ``healthy`` hold values by metric name.
    """

    cause: CauseId
    exposed_ns: int
    gain_ns: int
    least: float
    message: Text
    evidence: Sequence[Evidence] = ()
    where: Where = Where()
    observed: Mapping[str, float] = {}
    healthy: Mapping[str, float] = {}
    notes: Sequence[Text] = ()
    major: int = 0
    minor: int = 0


def judged(view: RankView, thresholds: Thresholds, measured: Measured) -> tuple[Judgement, ...]:
    """A finding, or Healthy with the share seen when it is too small or leaves no row to cite."""
    return judged_step(view.accounting.step_ns, "rank", thresholds, measured)


def judged_step(step_ns: int, scope: Scope, thresholds: Thresholds, measured: Measured) -> tuple[Judgement, ...]:
    """The same for a step of ``step_ns`` of one rank or of the whole cluster."""
    exposed = min(measured.exposed_ns, step_ns)
    share = exposed / step_ns if step_ns else 0.0
    if share < measured.least or exposed <= 0 or not measured.evidence:
        return (healthy(measured.cause, share, measured.evidence),)
    margin = share / measured.least if measured.least else None
    return (
        Finding(
            cause=measured.cause,
            priority=priority(share, thresholds),
            exposed_ns=exposed,
            share=share,
            gain_bound_ns=max(0, min(measured.gain_ns, exposed)),
            confidence=confidence(thresholds, measured.cause, margin, major=measured.major, minor=measured.minor),
            message=measured.message,
            where=measured.where,
            evidence=tuple(measured.evidence),
            scope=scope,
            observed={"exposed_share": share, **measured.observed},
            healthy={"exposed_share": measured.least, **measured.healthy},
            notes=tuple(measured.notes),
        ),
    )


def healthy(cause: CauseId, share: float, evidence: Sequence[Evidence] = (), message: Text | None = None) -> Healthy:
    """The cause costs only ``share`` (0..1) of the step."""
    seen = percent(share)
    text = message or Text(f"只占本步 {seen}", f"costs {seen} of the step")
    return Healthy(cause=cause, message=text, metric="exposed_share", value=share, unit="ratio", evidence=tuple(evidence))


def skipped(cause: CauseId, reason: Text, capture: Text | None = None) -> tuple[Judgement, ...]:
    """The check cannot be made; ``capture`` says what would allow it."""
    return (NotJudged(cause=cause, reason=reason, capture=capture or Text()),)


def longest(view: RankView, rows: Array, limit: int = CITED) -> tuple[Evidence, ...]:
    """The longest of the step's kernels at ``rows`` (positions in ``view.kernels``), each by its own row."""
    kernels = view.kernels
    if kernels is None or not len(rows):
        return ()
    durations = kernels["duration_ns"][rows]
    chosen = rows[np.argsort(-durations, kind="stable")[:limit]]
    return tuple(_kernel(view, int(row)) for row in chosen.tolist())


def _kernel(view: RankView, row: int) -> Evidence:
    kernels = view.kernels
    assert kernels is not None  # only called with rows of it
    label = view.session.text(int(kernels["op_type"][row])) or view.session.text(int(kernels["name"][row])) or "?"
    position = int(view.books.kernel_rows[row])
    return view.evidence("kernels", position, f"Duration of {label}", int(kernels["duration_ns"][row]) / 1e3, "us")


def of_table(view: RankView, name: str, rows: Array, limit: int = CITED) -> tuple[Evidence, ...]:
    """The longest rows of another table with names and durations (positions in the session's table)."""
    table = view.session.tables[name]
    chosen = rows[np.argsort(-table["duration_ns"][rows], kind="stable")[:limit]]
    label = "name" if "name" in table else "kind"
    return tuple(
        view.evidence(
            name, row, f"duration of {view.session.text(int(table[label][row])) or '?'}", int(table["duration_ns"][row]) / 1e3, "us"
        )
        for row in chosen.tolist()
    )


def types_of(view: RankView, rows: Array) -> tuple[str, ...]:
    """Operator types (names where there are none) of the step's kernels at ``rows``, sorted."""
    if view.kernels is None:
        return ()
    types = view.kernels["op_type"][rows]
    codes = np.unique(np.where(types >= 0, types, view.kernels["name"][rows]))
    return tuple(sorted(view.session.strings[code] for code in codes.tolist() if code >= 0))
