"""A diagnosis as a document: books first, then findings with their proof, then what is healthy and what is unknown."""

from __future__ import annotations

from collections.abc import Iterator

from kb.domain.accounting import PARTS, Accounting
from kb.domain.catalogue import Catalogue
from kb.domain.diagnosis import ClusterDiagnosis, Diagnosis, SessionDiagnosis
from kb.domain.finding import Finding, Healthy, NotJudged
from kb.domain.text import Lang
from kb.report.document import Block, Bullets, Document, Heading, Note, Paragraph, TableBlock
from kb.report.evidence_names import evidence_name
from kb.report.labels import Labels, labels
from kb.report.numbers import duration, percent

_EVIDENCE_SHOWN = 6


def diagnosis_document(diagnosis: Diagnosis, catalogue: Catalogue, lang: Lang) -> Document:
    """Everything the diagnosis says, in ``lang``."""
    words = labels(lang)
    blocks: list[Block] = [Heading(1, words("diagnosis"))]
    if any(session.origin == "simulated" for session in diagnosis.sessions):
        blocks.append(Note("simulated", words("simulated")))
    blocks += _cluster(diagnosis.cluster, catalogue, words)
    for session in diagnosis.sessions:
        blocks += _session(session, catalogue, words)
    return Document(tuple(blocks))


def _session(session: SessionDiagnosis, catalogue: Catalogue, words: Labels) -> Iterator[Block]:
    yield Heading(2, _session_title(session, words))
    yield _books(session.accounting, words)
    facts = [f"{words('steps_captured')}: {session.steps}"]
    if session.accounting.preparing_ns:
        facts.append(f"{words('preparing')}: {duration(session.accounting.preparing_ns)}")
    yield Bullets((*facts, *(note.pick(words.lang) for note in session.accounting.notes)))
    if session.leaves_open(session.findings):
        spent, share = duration(session.unexplained_ns), percent(session.unexplained_ns / session.accounting.step_ns)
        yield Paragraph(
            words.either(
                f"未解释的损失：空闲 {spent}（{share}），原因未知，大于下面任何一项发现",
                f"not explained: {spent} ({share}) idle, cause unknown; more than any finding below",
            )
        )
    if not session.findings:
        yield Paragraph(words("no_findings"))
    yield from _judgements(session.findings, session.healthy, session.not_judged, catalogue, words)


def _session_title(session: SessionDiagnosis, words: Labels) -> str:
    place = [f"{words('rank')} {session.rank}"] if session.rank is not None else []
    place += [f"{words('stage')} {session.stage}"] if session.stage is not None else []
    step = f"{words('step')} {session.accounting.step}: {duration(session.accounting.step_ns)}"
    return f"{session.name} ({', '.join([*place, step])})"


def _books(accounting: Accounting, words: Labels) -> TableBlock:
    rows = [
        (words(f"part.{part}"), duration(accounting.parts.get(part, 0)), percent(accounting.share(part)))
        for part in PARTS
        if accounting.parts.get(part, 0)
    ]
    total = sum(accounting.parts.values())
    rows.append(("=", duration(total), percent(total / accounting.step_ns if accounting.step_ns else 0.0)))
    return TableBlock((words("part"), words("time"), words("share")), tuple(rows), right=(1, 2))


def _cluster(cluster: ClusterDiagnosis, catalogue: Catalogue, words: Labels) -> Iterator[Block]:
    if not (cluster.findings or cluster.healthy or cluster.not_judged):
        return
    captured = len(cluster.captured_ranks)
    of = str(cluster.world_size or cluster.group_size or "?")
    yield Heading(2, f"{words('cluster')} ({words.either(f'采集到 {captured} / {of} 张卡', f'{captured} of {of} ranks captured')})")
    yield from _judgements(cluster.findings, cluster.healthy, cluster.not_judged, catalogue, words)


def _judgements(findings: tuple[Finding, ...], healthy: tuple[Healthy, ...], skipped: tuple[NotJudged, ...], catalogue: Catalogue,
                words: Labels) -> Iterator[Block]:  # fmt: skip
    for finding in findings:
        yield from _finding(finding, catalogue, words)
    if healthy:
        yield Heading(3, words("healthy"))
        yield Bullets(tuple(f"{_cause_name(item.cause, catalogue, words.lang)}: {item.message.pick(words.lang)}" for item in healthy))
    if skipped:
        yield Heading(3, words("not_judged"))
        yield Bullets(tuple(_skipped(item, catalogue, words.lang) for item in skipped))


def _skipped(item: NotJudged, catalogue: Catalogue, lang: Lang) -> str:
    parts = [f"{_cause_name(item.cause, catalogue, lang)}: {item.reason.pick(lang)}", item.capture.pick(lang)]
    return " → ".join(part for part in parts if part)


def _finding(finding: Finding, catalogue: Catalogue, words: Labels) -> Iterator[Block]:
    yield Heading(3, f"{finding.priority} · {_cause_name(finding.cause, catalogue, words.lang)} ({finding.cause})")
    yield Paragraph(finding.message.pick(words.lang))
    yield Bullets(
        (
            f"{words('exposed')}: {duration(finding.exposed_ns)} = {percent(finding.share)}",
            f"{words('gain_bound')}: {duration(finding.gain_bound_ns)}",
            f"{words('confidence')}: {finding.confidence:.2f}",
            f"{words('strategies')}: {', '.join(finding.strategies) or '-'}",
            *(note.pick(words.lang) for note in finding.notes),
        )
    )
    shown = finding.evidence[:_EVIDENCE_SHOWN]
    rows = tuple((item.file, str(item.row), evidence_name(item.metric, words.lang), f"{item.value} {item.unit}".strip()) for item in shown)
    yield TableBlock((words("evidence"), "#", words("metric"), ""), rows, right=(1, 3))
    if len(finding.evidence) > len(shown):
        more = len(finding.evidence) - len(shown)
        yield Paragraph(words.either(f"另有 {more} 行证据，见 --json", f"{more} more evidence rows: see --json"))


def _cause_name(cause: str, catalogue: Catalogue, lang: Lang) -> str:
    known = catalogue.causes.get(cause)
    return known.name.pick(lang) if known else cause
