"""Gains recomputed from attached sessions, and the tiers they carry."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

import msgspec
from msgspec.structs import replace

from kb.domain.case import Case, Outcome, Result
from kb.domain.comparison import Comparison, Verdict
from kb.domain.protocols import Artefacts
from kb.domain.provenance import Origin, Provenance, capped, weakest
from kb.domain.quantity import Quantity, dimension
from kb.domain.record import SIMULATED_TAG, Record
from kb.domain.text import Text
from kb.errors import KbError
from kb.session.codec import from_bytes
from kb.session.session import Session

RESULTS: Final[dict[Verdict, Result]] = {"improved": "improved", "no_change": "no_gain", "regressed": "worse", "inconclusive": "unknown"}
STEP_METRIC: Final = "step_time"
LARGEST_SET: Final = 16
"""Sessions among which before and after are looked for."""


class Recomputed(msgspec.Struct, frozen=True, kw_only=True):
    """One outcome against the sessions: the comparison that carries it (None: none does), the tier, and why."""

    strategy: str
    tier: Provenance
    comparison: Comparison | None
    contradicted: bool
    reason: Text


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What a record's sessions carry: its tier, each outcome with figures in order, reasons for what they do not carry,
    and a token over content, sessions and recomputed times that changes when any of them does."""

    tier: Provenance
    outcomes: tuple[Recomputed, ...]
    reasons: tuple[Text, ...]
    token: str
    software: tuple[tuple[str, str], ...] = ()

    @property
    def best(self) -> Comparison | None:
        """The first comparison that carries an outcome."""
        return next((item.comparison for item in self.outcomes if item.comparison is not None), None)


def evidence_of(record: Record, artefacts: Artefacts) -> Evidence:
    """Recompute every outcome of ``record`` from its attached sessions.

    An outcome keeps a tier above ``claimed`` when some pair of sessions, in their order, gives its times before and after
    within rounding and its result beyond the noise. A session that is missing or damaged carries nothing. Never raises for
    what the sessions hold.
    """
    outcomes = [outcome for case in record.cases for outcome in case.outcomes]
    if not record.sessions:
        bare = tuple(_unsupported(outcome, _NO_SESSIONS, contradicted=False) for outcome in outcomes)
        reasons = (_NO_SESSIONS,) if record.provenance != "claimed" else ()
        return Evidence(tier="claimed", outcomes=bare, reasons=reasons, token=_token(record, ()))
    sessions, faults = _sessions(record.sessions, artefacts)
    comparisons = tuple(_comparisons(sessions)) if any(_has_figures(outcome) for outcome in outcomes) else ()
    judged = tuple(_judged(outcome, comparisons, faults) for outcome in outcomes)
    return Evidence(
        tier=_record_tier(record, judged, [origin for origin, _ in sessions], faults),
        outcomes=judged,
        reasons=tuple(dict.fromkeys((*faults, *(item.reason for item in judged if item.reason.en)))),
        token=_token(record, comparisons),
        software=tuple(sorted({pair for _, session in sessions for pair in session.meta.software.items()})),
    )


_NO_SESSIONS: Final = Text(zh="没有附带采集", en="no sessions are attached")


def with_tiers(record: Record, evidence: Evidence) -> Record:
    """The record with the tiers its evidence carries; one that states simulated figures stays marked as such."""
    tiers: Iterator[Recomputed] = iter(evidence.outcomes)
    cases: list[Case] = []
    for case in record.cases:
        outcomes = tuple(replace(outcome, provenance=next(tiers).tier) for outcome in case.outcomes)
        cases.append(replace(case, outcomes=outcomes))
    tags = record.tags
    if record.simulated and evidence.tier == "claimed" and SIMULATED_TAG not in tags:
        tags = (*tags, SIMULATED_TAG)
    return replace(record, provenance=evidence.tier, cases=tuple(cases), tags=tags)


def _sessions(names: Sequence[str], artefacts: Artefacts) -> tuple[list[tuple[Origin, Session]], tuple[Text, ...]]:
    found, faults = [], []
    for name in names[:LARGEST_SET]:
        try:
            session = from_bytes(artefacts.get(name), source=f"session {name[:12]}")
        except KbError as error:
            faults.append(Text(zh=f"采集 {name[:12]} 不可用：{error.what}", en=f"session {name[:12]} cannot be used: {error.what}"))
        else:
            found.append((session.meta.origin, session))
    return found, tuple(faults)


def _comparisons(sessions: Sequence[tuple[Origin, Session]]) -> Iterator[Comparison]:
    from kb.compare.comparison import compare

    for (_, before), (_, after) in combinations(sessions, 2):
        if before.meta.rank == after.meta.rank:
            yield compare(before, after)


def _has_figures(outcome: Outcome) -> bool:
    return outcome.before is not None and outcome.after is not None


def _judged(outcome: Outcome, comparisons: Sequence[Comparison], faults: Sequence[Text]) -> Recomputed:
    if not _has_figures(outcome):
        return _unsupported(outcome, Text(), contradicted=False)
    if outcome.metric != STEP_METRIC:
        return _unsupported(outcome, _not_recomputable(outcome), contradicted=False)
    near = next((item for item in comparisons if _same_times(outcome, item)), None)
    if near is None:
        return _unsupported(outcome, faults[0] if faults else _contradiction(outcome, comparisons), contradicted=not faults)
    if RESULTS.get(near.verdict) != outcome.result:
        reason = Text(
            zh=f"{outcome.strategy}：重算的判定是 {near.verdict}，记录写 {outcome.result}",
            en=f"{outcome.strategy}: the recomputed verdict is {near.verdict}, the record says {outcome.result}",
        )
        return _unsupported(outcome, reason, contradicted=True)
    if near.verdict == "inconclusive":
        return _unsupported(outcome, Text(zh="差异没有超出噪声", en="the difference is not beyond the noise"), contradicted=False)
    tier = weakest(*(capped("measured", origin) for origin in near.origins))
    return Recomputed(strategy=outcome.strategy, tier=tier, comparison=near, contradicted=False, reason=Text())


def _unsupported(outcome: Outcome, reason: Text, *, contradicted: bool) -> Recomputed:
    return Recomputed(strategy=outcome.strategy, tier="claimed", comparison=None, contradicted=contradicted, reason=reason)


def _not_recomputable(outcome: Outcome) -> Text:
    return Text(
        zh=f"{outcome.metric} 目前不能由采集重算，只能重算 {STEP_METRIC}",
        en=f"{outcome.metric} cannot be recomputed from sessions yet, only {STEP_METRIC} can",
    )


def _contradiction(outcome: Outcome, comparisons: Sequence[Comparison]) -> Text:
    if not comparisons:
        return Text(zh="附带的采集不成对", en="the attached sessions make no pair of before and after")
    best = comparisons[0]
    seen = f"{best.before_step_ns / 1e6:.6g} ms -> {best.after_step_ns / 1e6:.6g} ms"
    return Text(
        zh=f"{outcome.strategy}：记录写 {outcome.before} -> {outcome.after}，重算得 {seen}",
        en=f"{outcome.strategy}: the record says {outcome.before} -> {outcome.after}, recomputed {seen}",
    )


def _same_times(outcome: Outcome, comparison: Comparison) -> bool:
    pairs = ((outcome.before, comparison.before_step_ns), (outcome.after, comparison.after_step_ns))
    return all(stated is not None and _rounds_to(stated, ns) for stated, ns in pairs)


def _rounds_to(stated: Quantity, nanoseconds: int) -> bool:
    """Whether ``nanoseconds`` printed with the digits of ``stated`` is ``stated``."""
    if dimension(stated.unit)[0] != "time":
        return False
    printed = f"{stated.value:.12g}"
    decimals = len(printed.partition(".")[2]) if "e" not in printed else 9
    seen = Quantity(float(nanoseconds), "ns").to(stated.unit)
    return abs(seen - stated.value) <= 0.5 * 10.0**-decimals * (1 + 1e-9)


def _record_tier(record: Record, judged: Sequence[Recomputed], origins: Sequence[Origin], faults: Sequence[Text]) -> Provenance:
    if faults or not origins or any(item.contradicted for item in judged):
        return "claimed"
    carried = [item.tier for item in judged if item.comparison is not None]
    if carried:
        return weakest(*carried)
    # Nothing to recompute: sessions of the simulator still say what kind of run the record speaks about.
    return "simulated" if "simulated" in origins and record.provenance != "claimed" else "claimed"


def _token(record: Record, comparisons: Sequence[Comparison]) -> str:
    times = [(item.before_step_ns, item.after_step_ns, item.verdict) for item in comparisons]
    outcomes = [outcome for case in record.cases for outcome in case.outcomes]
    stated = [(item.strategy, str(item.before), str(item.after), item.result) for item in outcomes]
    return hashlib.sha256(msgspec.json.encode([record.slug, record.sessions, stated, times])).hexdigest()
