"""Whether the numbers of a diagnosis read from a file can be true: nobody who edits or damages one gets figures drawn from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from math import isfinite

from kb.domain.accounting import TOLERANCE, Accounting
from kb.domain.diagnosis import ClusterDiagnosis, Diagnosis, SessionDiagnosis
from kb.domain.finding import Evidence, Finding, Healthy

LONGEST_NS = 1 << 62
"""146 years; above it sums of times leave 64 bits."""


def impossibilities(diagnosis: Diagnosis) -> Iterator[str]:
    """Every number that cannot be true, by its place; none for a diagnosis of ours.

    Times are 0 or more, shares and confidence 0..1, gains within what is exposed, ranks 0 or more, everything finite; the parts
    of a step add up to it unless the diagnosis itself says that its books do not balance.
    """
    yield from chain.from_iterable(map(_session, diagnosis.sessions))
    yield from _cluster(diagnosis.cluster)


def _session(session: SessionDiagnosis) -> Iterator[str]:
    yield from _below_zero({"rank": session.rank, "stage": session.stage, "steps": session.steps})
    yield from _not_times({"unexplained_ns": session.unexplained_ns})
    yield from _books(session.accounting, trusted=not session.violations)
    yield from _judgements(session.findings, session.healthy)


def _cluster(cluster: ClusterDiagnosis) -> Iterator[str]:
    yield from _below_zero({"world_size": cluster.world_size, **{f"captured rank {rank}": rank for rank in cluster.captured_ranks}})
    yield from _judgements(cluster.findings, cluster.healthy)


def _books(books: Accounting, *, trusted: bool) -> Iterator[str]:
    split = {f"splits_ns {name}.{part}": value for name, parts in books.splits.items() for part, value in parts.items()}
    times = {"step_ns": books.step_ns, "preparing_ns": books.preparing_ns, **{f"accounting_ns {k}": v for k, v in books.parts.items()}}
    wrong = list(_not_times({**times, **split}))
    yield from wrong
    if not wrong and trusted and abs(books.imbalance_ns) > TOLERANCE * books.step_ns and books.step_ns:
        yield f"accounting_ns: the parts add up to {sum(books.parts.values()):,} ns, the step takes {books.step_ns:,} ns"


def _judgements(findings: tuple[Finding, ...], healthy: tuple[Healthy, ...]) -> Iterator[str]:
    for finding in findings:
        yield from (f"finding {finding.cause[:60]}: {reason}" for reason in _finding(finding))
    for item in healthy:
        values = {"value": item.value} if item.value is not None else {}
        yield from (f"check {item.cause[:60]}: {reason}" for reason in chain(_endless(values), _cited(item.evidence)))


def _finding(finding: Finding) -> Iterator[str]:
    yield from _not_times({"exposed_ns": finding.exposed_ns, "gain_bound_ns": finding.gain_bound_ns})
    if finding.gain_bound_ns > finding.exposed_ns:
        yield f"gain_bound_ns {finding.gain_bound_ns:,} is more than exposed_ns {finding.exposed_ns:,}"
    for name, value in (("share", finding.share), ("confidence", finding.confidence)):
        if not 0.0 <= value <= 1.0 + TOLERANCE:
            yield f"{name} {value:g} is not within 0..1"
    yield from _endless({**finding.observed, **finding.healthy})
    yield from _below_zero({f"rank {rank}": rank for rank in finding.where.ranks})
    yield from _cited(finding.evidence)


def _cited(evidence: tuple[Evidence, ...]) -> Iterator[str]:
    yield from _below_zero({f"row of {item.file[:60]}": item.row for item in evidence if isinstance(item.row, int)})
    yield from _endless({item.metric[:60]: item.value for item in evidence if not isinstance(item.value, str)})


def _not_times(values: Mapping[str, int | None]) -> Iterator[str]:
    for name, value in values.items():
        if value is not None and not 0 <= value <= LONGEST_NS:
            yield f"{name} {value:,} is not a time (0 ns or more)"


def _below_zero(values: Mapping[str, int | None]) -> Iterator[str]:
    return (f"{name} {value} is below zero" for name, value in values.items() if value is not None and value < 0)


def _endless(values: Mapping[str, float]) -> Iterator[str]:
    return (f"{name} is not finite" for name, value in values.items() if not isfinite(value))
