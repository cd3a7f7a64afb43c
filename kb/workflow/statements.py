"""Everything one session's diagnosis says, as single statements with the words they can be found by and what they cite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from kb.diagnose.composition import load_draws
from kb.diagnose.operators import load_classes
from kb.diagnose.view import rank_view
from kb.domain.accounting import PARTS
from kb.domain.catalogue import Catalogue, CauseId
from kb.domain.diagnosis import ClusterDiagnosis, SessionDiagnosis
from kb.domain.finding import Evidence, Finding, Healthy, NotJudged
from kb.domain.text import Text
from kb.report.labels import labels
from kb.report.numbers import duration, percent
from kb.report.pictures.operators import OperatorFact, operator_facts
from kb.report.pictures.tasks import step_tasks
from kb.report.story.names import session_name
from kb.session.session import Session
from kb.workflow.diagnose import Diagnosed

Kind = Literal["finding", "operator", "part", "healthy", "not_judged"]
_CELLS = 3
_TYPES = 40
"""Operator types, those of most time, that can be asked for."""

_UNEXPLAINED = Text("采集中没有事件能解释", "no captured event explains it")
_NO_DEVICE = Text("没有采集到设备活动：设备上的任何问题都无法判断", "no device activity was captured: nothing on the device can be judged")


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """``topic`` is what it is about, ``words`` all that a question may call it; ``weight_ns`` is the time it speaks about;
    ``cites`` are file, row and value."""

    kind: Kind
    text: Text
    topic: str
    words: str
    cites: tuple[str, ...] = ()
    cause: CauseId | None = None
    weight_ns: int = 0
    open: bool = False
    """A loss without a finding, larger than those with one."""


def statements(diagnosed: Diagnosed) -> tuple[Statement, ...]:
    """Findings, operator types, parts of the step, healthy parts and what was not judged, across ranks and of every session.

    Of several sessions each statement names its own; what several say in the same words is said once.
    """
    catalogue, several = diagnosed.catalogue, len(diagnosed.sessions) > 1
    cluster = diagnosed.diagnosis.cluster
    across = [*(_finding(item, catalogue) for item in cluster.findings), *_judgements(cluster, catalogue)]
    own: list[tuple[Statement, Text]] = []
    for session, diagnosis in zip(diagnosed.sessions, diagnosed.diagnosis.sessions, strict=True):
        place = Text(zh=session_name(diagnosis, labels("zh")), en=session_name(diagnosis, labels("en")))
        own += [(item, place) for item in _session(session, diagnosis, catalogue)]
    told = _placed(own) if several else [item for item, _ in own]
    findings = sorted((item for item in told if item.kind == "finding"), key=lambda item: -item.weight_ns)
    return (*across, *findings, *(item for item in told if item.kind != "finding"))


def _session(session: Session, diagnosis: SessionDiagnosis, catalogue: Catalogue) -> Iterator[Statement]:
    yield from (_finding(item, catalogue) for item in diagnosis.findings)
    yield from _operators(session)
    books = diagnosis.accounting
    for part in PARTS:
        if books.parts.get(part):
            told = _part(part, books.parts[part], books.step_ns)
            yield _opened(told, diagnosis) if part == "idle_unknown" and diagnosis.leaves_open(diagnosis.findings) else told
    yield from _judgements(diagnosis, catalogue)


def _opened(part: Statement, diagnosis: SessionDiagnosis) -> Statement:
    why = _UNEXPLAINED if diagnosis.saw_device() else _NO_DEVICE
    return msgspec.structs.replace(part, text=Text(zh=f"{part.text.zh}（{why.zh}）", en=f"{part.text.en} ({why.en})"), open=True)


def _judgements(judged: ClusterDiagnosis | SessionDiagnosis, catalogue: Catalogue) -> Iterator[Statement]:
    yield from (_healthy(item, catalogue) for item in judged.healthy)
    yield from (_not_judged(note, catalogue) for note in judged.not_judged)


def _placed(own: Sequence[tuple[Statement, Text]]) -> list[Statement]:
    """Each statement with the places that say it in the same words."""
    held: dict[tuple[str, str], tuple[Statement, list[Text]]] = {}
    for item, place in own:
        held.setdefault((item.kind, item.text.en), (item, []))[1].append(place)
    return [_at(item, places) for item, places in held.values()]


def _at(item: Statement, places: Sequence[Text]) -> Statement:
    zh, en = "、".join(place.zh for place in places), ", ".join(place.en for place in places)
    return msgspec.structs.replace(item, text=Text(zh=f"{zh}：{item.text.zh}", en=f"{en}: {item.text.en}"))


def _not_judged(note: NotJudged, catalogue: Catalogue) -> Statement:
    said = Text(zh=_joined(note.reason.zh, note.capture.zh), en=_joined(note.reason.en, note.capture.en))
    name = catalogue.cause(note.cause).name
    told = Text(zh=f"{name.zh}：未能判断（{said.zh}）", en=f"{name.en}: not judged ({said.en})")
    return Statement(
        kind="not_judged", text=told, topic=_names(note.cause, catalogue), words=_cause_words(note.cause, catalogue), cause=note.cause
    )


def cells(evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """The first cells as one citation each."""
    return tuple(f"{item.file}:{item.row} {item.metric} = {item.value} {item.unit}".rstrip() for item in evidence[:_CELLS])


def _joined(reason: str, capture: str) -> str:
    return f"{reason} → {capture}" if capture else reason


def _finding(item: Finding, catalogue: Catalogue) -> Statement:
    place = " ".join(filter(None, (item.where.module, item.where.frame, *item.where.operators)))
    topic = f"{_names(item.cause, catalogue)} {_lost(item.cause)} {place}"
    zh, en = "；".join(note.zh for note in item.notes), "; ".join(note.en for note in item.notes)
    return Statement(
        kind="finding",
        text=Text(zh=f"{item.message.zh}（{zh}）", en=f"{item.message.en} ({en})") if item.notes else item.message,
        topic=topic,
        words=f"{topic} {_cause_words(item.cause, catalogue)} {item.message.zh} {item.message.en}",
        cites=cells(item.evidence),
        cause=item.cause,
        weight_ns=item.exposed_ns,
    )


def _healthy(item: Healthy, catalogue: Catalogue) -> Statement:
    name = catalogue.cause(item.cause).name
    return Statement(
        kind="healthy",
        text=Text(zh=f"{name.zh}：正常（{item.message.zh}）", en=f"{name.en}: healthy ({item.message.en})"),
        topic=_names(item.cause, catalogue),
        words=_cause_words(item.cause, catalogue),
        cause=item.cause,
        cites=cells(item.evidence),
    )


def _lost(cause: CauseId) -> str:
    """What the part of the step is called that the cause costs first; nothing for compute, which every operator is part of."""
    part = load_draws().get(cause, ("",))[0]
    return f"{labels('zh')(f'part.{part}')} {labels('en')(f'part.{part}')}" if part in PARTS and part != "compute" else ""


def _names(cause: CauseId, catalogue: Catalogue) -> str:
    entry = catalogue.cause(cause)
    return " ".join((cause.replace("_", " "), entry.name.zh, entry.name.en, *entry.aliases))


def _cause_words(cause: CauseId, catalogue: Catalogue) -> str:
    definition = catalogue.cause(cause).definition
    return f"{_names(cause, catalogue)} {definition.zh} {definition.en}"


def _operators(session: Session) -> Iterator[Statement]:
    tasks = step_tasks(rank_view(session, load_classes()))
    if tasks is None:
        return
    total = int(tasks.durations.sum()) or 1
    yield from (_operator(row, total) for row in operator_facts(tasks, _TYPES))


def _operator(row: OperatorFact, total: int) -> Statement:
    took, share, mean = duration(row.total_ns), percent(row.total_ns / total), duration(row.total_ns / row.count)
    figures = "".join(f", {name} {percent(value)}" for name, value in sorted(row.metrics.items()))
    return Statement(
        kind="operator",
        text=Text(
            zh=f"{row.name}：{row.count:,} 次，共 {took}（占算子时间 {share}），平均 {mean}{figures}",
            en=f"{row.name}: {row.count:,} calls, {took} in all ({share} of operator time), {mean} each{figures}",
        ),
        topic=row.name,
        words=row.name,
        weight_ns=row.total_ns,
    )


def _part(part: str, value: int, step_ns: int) -> Statement:
    zh, en = labels("zh")(f"part.{part}"), labels("en")(f"part.{part}")
    said = f"{duration(value)} ({percent(value / step_ns if step_ns else 0.0)})"
    names = f"{zh} {en} {part.replace('_', ' ')}"
    return Statement(kind="part", text=Text(zh=f"{zh}：{said}", en=f"{en}: {said}"), topic=names, words=names, weight_ns=value)
