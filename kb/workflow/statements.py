"""Everything one session's diagnosis says, as single statements with the words they can be found by and what they cite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from kb.domain.accounting import PARTS
from kb.domain.catalogue import Catalogue, CauseId
from kb.domain.diagnosis import ClusterDiagnosis, SessionDiagnosis
from kb.domain.finding import Evidence, Finding, Healthy
from kb.domain.text import Text
from kb.report.labels import labels
from kb.report.numbers import duration, percent
from kb.report.pictures.facts import SessionFacts, session_facts
from kb.report.pictures.operators import OperatorFact
from kb.workflow.diagnose import Diagnosed

Kind = Literal["finding", "operator", "part", "healthy", "not_judged"]
_CELLS = 3


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """``words`` are what a question may call it; ``weight_ns`` is the time it speaks about; ``cites`` are file, row and value."""

    kind: Kind
    text: Text
    words: str
    cites: tuple[str, ...] = ()
    cause: CauseId | None = None
    weight_ns: int = 0


def statements(diagnosed: Diagnosed) -> tuple[Statement, ...]:
    """Findings, operator types, parts of the step, healthy parts and what was not judged, of every session."""
    catalogue = diagnosed.catalogue
    found = [_finding(item, catalogue) for item in diagnosed.diagnosis.all_findings()]
    for session, diagnosis in zip(diagnosed.sessions, diagnosed.diagnosis.sessions, strict=True):
        facts = session_facts(session, catalogue, pictures=False)
        found += _operators(facts)
        found += [_part(part, diagnosis.accounting.parts[part], diagnosis.accounting.step_ns) for part in PARTS
                  if diagnosis.accounting.parts.get(part)]  # fmt: skip
        found += [_healthy(item, catalogue) for item in diagnosis.healthy]
    parts: tuple[ClusterDiagnosis | SessionDiagnosis, ...] = (diagnosed.diagnosis.cluster, *diagnosed.diagnosis.sessions)
    for part in parts:
        for note in part.not_judged:
            said = Text(zh=_joined(note.reason.zh, note.capture.zh), en=_joined(note.reason.en, note.capture.en))
            name = catalogue.cause(note.cause).name
            told = Text(zh=f"{name.zh}：未能判断（{said.zh}）", en=f"{name.en}: not judged ({said.en})")
            found.append(Statement(kind="not_judged", text=told, words=_cause_words(note.cause, catalogue), cause=note.cause))
    return tuple(found)


def cells(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """The first cells as one citation each."""
    return tuple(f"{item.file}:{item.row} {item.metric} = {item.value} {item.unit}".rstrip() for item in evidence[:_CELLS])


def _joined(reason: str, capture: str) -> str:
    return f"{reason} → {capture}" if capture else reason


def _finding(item: Finding, catalogue: Catalogue) -> Statement:
    place = " ".join(filter(None, (item.where.module, item.where.frame, *item.where.operators)))
    return Statement(
        kind="finding",
        text=item.message,
        words=f"{_cause_words(item.cause, catalogue)} {item.message.zh} {item.message.en} {place}",
        cites=cells(item.evidence),
        cause=item.cause,
        weight_ns=item.exposed_ns,
    )


def _healthy(item: Healthy, catalogue: Catalogue) -> Statement:
    name = catalogue.cause(item.cause).name
    text = Text(zh=f"{name.zh}：正常（{item.message.zh}）", en=f"{name.en}: healthy ({item.message.en})")
    return Statement(kind="healthy", text=text, words=_cause_words(item.cause, catalogue), cause=item.cause, cites=cells(item.evidence))


def _cause_words(cause: CauseId, catalogue: Catalogue) -> str:
    entry = catalogue.cause(cause)
    return " ".join((cause.replace("_", " "), entry.name.zh, entry.name.en, *entry.aliases, entry.definition.zh, entry.definition.en))


def _operators(facts: SessionFacts) -> Iterator[Statement]:
    total = sum(row.total_ns for row in facts.operators) or 1
    for row in facts.operators:
        yield _operator(row, total)


def _operator(row: OperatorFact, total: int) -> Statement:
    took, share, mean = duration(row.total_ns), percent(row.total_ns / total), duration(row.total_ns / row.count)
    figures = "".join(f", {name} {percent(value)}" for name, value in sorted(row.metrics.items()))
    return Statement(
        kind="operator",
        text=Text(
            zh=f"{row.name}：{row.count:,} 次，共 {took}（占算子时间 {share}），平均 {mean}{figures}",
            en=f"{row.name}: {row.count:,} calls, {took} in all ({share} of operator time), {mean} each{figures}",
        ),
        words=row.name,
        weight_ns=row.total_ns,
    )


def _part(part: str, value: int, step_ns: int) -> Statement:
    zh, en = labels("zh")(f"part.{part}"), labels("en")(f"part.{part}")
    said = f"{duration(value)} ({percent(value / step_ns if step_ns else 0.0)})"
    return Statement(
        kind="part", text=Text(zh=f"{zh}：{said}", en=f"{en}: {said}"), words=f"{zh} {en} {part.replace('_', ' ')}", weight_ns=value
    )
