"""Whether the captures of a record bear out that its strategy, and not something else, made the difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from msgspec.structs import replace

from kb.audit.claims import Note
from kb.domain.case import Case, Outcome
from kb.domain.catalogue import Catalogue, CauseId
from kb.domain.comparison import Comparison
from kb.domain.protocols import Artefacts
from kb.domain.record import Record
from kb.domain.text import Text
from kb.errors import KbError
from kb.session.codec import from_bytes
from kb.session.session import Session
from kb.workflow.compare import compared
from kb.workflow.evidence import LARGEST_SET, Evidence, Recomputed

RULE: Final = "attribution"
_PART: Final = 0.1
"""Part of the saved time that causes of the strategy must have given up: what shrank by less explains nothing."""


def attributed(record: Record, evidence: Evidence, artefacts: Artefacts, catalogue: Catalogue) -> tuple[Record, tuple[Note, ...]]:
    """The record with what its captures do not bear out marked as suggested only, and a note about each such outcome.

    ``evidence`` is that of ``record``. An outcome recomputed from captures keeps its figures, result and tier either way: the step did
    change. It speaks for its strategy only where the diagnosis before names a cause that the strategy is for, and where, for a gain, these
    causes gave up a tenth of the saved time at least.
    """
    if not any(item.comparison is not None for item in evidence.outcomes):
        return record, ()
    seen = tuple(_with_causes(record.sessions, artefacts))
    judged: Iterator[Recomputed] = iter(evidence.outcomes)
    cases: list[Case] = []
    notes: list[Note] = []
    for case in record.cases:
        outcomes = []
        for outcome in case.outcomes:
            doubt = _doubt(outcome, next(judged).comparison, seen, catalogue)
            outcomes.append(outcome if doubt is None else replace(outcome, reported_to_work=False, note=_beside(outcome.note, doubt.text)))
            notes += [doubt] if doubt is not None else []
        cases.append(replace(case, outcomes=tuple(outcomes)))
    return (replace(record, cases=tuple(cases)) if notes else record), tuple(notes)


def _with_causes(names: Sequence[str], artefacts: Artefacts) -> Iterator[Comparison]:
    """Every pair of before and after of one rank, with the causes of both sides."""
    for before, after in combinations(tuple(_readable(names, artefacts)), 2):
        if before.meta.rank == after.meta.rank:
            yield compared([before], [after])


def _readable(names: Sequence[str], artefacts: Artefacts) -> Iterator[Session]:
    for name in names[:LARGEST_SET]:
        try:
            yield from_bytes(artefacts.get(name), source=f"session {name[:12]}")
        except KbError:
            continue  # the evidence says so already


def _doubt(outcome: Outcome, carried: Comparison | None, seen: Sequence[Comparison], catalogue: Catalogue) -> Note | None:
    if carried is None or not outcome.reported_to_work:
        return None
    times = carried.before_step_ns, carried.after_step_ns
    own = next((item for item in seen if (item.before_step_ns, item.after_step_ns) == times), None)
    causes = meant_for(outcome.strategy, catalogue)
    known = [delta for delta in own.causes if delta.before_ns > 0] if own is not None else []
    answered = [delta for delta in known if delta.name in causes]
    named = ", ".join(delta.name for delta in known) or "-"
    if not answered:
        text = Text(
            zh=f"{outcome.strategy}：改动前的诊断没有它所针对的原因（诊断为 {named}），差异不能归于它",
            en=f"{outcome.strategy}: the diagnosis before names no cause it is for (it names {named}), so the change is not credited to it",
        )
        return Note(rule=RULE, severity="high", formula=f"{outcome.strategy} -> {', '.join(sorted(causes)) or '-'}", text=text)
    saved, gone = times[0] - times[1], sum(delta.saved_ns for delta in answered)
    if outcome.result != "improved" or gone >= _PART * saved:
        return None
    figures = f"{gone / 1e6:.2f} ms", f"{saved / 1e6:.2f} ms"
    told = ", ".join(delta.name for delta in answered)
    text = Text(
        zh=f"{outcome.strategy}：它所针对的 {told} 只减少了 {figures[0]}，单步却减少 {figures[1]}，差异不能归于它",
        en=f"{outcome.strategy}: {told}, which it is for, gave up {figures[0]} of {figures[1]} saved, so the gain is not credited to it",
    )
    return Note(rule=RULE, severity="high", formula=f"{figures[0]} < {_PART:.0%} x {figures[1]}", text=text)


def meant_for(strategy: str, catalogue: Catalogue) -> frozenset[CauseId]:
    """The causes a strategy is for, by either side of the catalogue; none for an unknown strategy."""
    entry = catalogue.strategies.get(strategy)
    own = entry.addresses if entry is not None else ()
    return frozenset((*own, *(name for name, cause in catalogue.causes.items() if strategy in cause.strategies)))


def _beside(note: Text, doubt: Text) -> Text:
    if doubt.en in note.en:
        return note
    return Text(zh="；".join(filter(None, (note.zh, doubt.zh))), en="; ".join(filter(None, (note.en, doubt.en))))
