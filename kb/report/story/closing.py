"""What is fine, what could not be judged and how to capture it, and what the capture itself is."""

from __future__ import annotations

from collections.abc import Iterator

from kb.domain.catalogue import Catalogue
from kb.domain.diagnosis import Diagnosis, SessionDiagnosis
from kb.domain.finding import Healthy, NotJudged
from kb.report.document import Block, Bullets, Fold, Heading, Note, TableBlock
from kb.report.health import health_document
from kb.report.labels import Labels
from kb.report.numbers import duration
from kb.report.pictures.facts import SessionFacts
from kb.report.report import Report
from kb.report.story.names import cause_name, session_name

_LONG = 8
"""Entries from which a list folds on a page."""
_DETAILED = 2
"""Sessions up to which the health of each is told in full."""


def limit_blocks(diagnosis: Diagnosis, catalogue: Catalogue, words: Labels) -> Iterator[Block]:
    """Checks that passed, and checks that could not be made; long lists fold."""
    healthy, skipped = _passed(diagnosis, words), _skipped(diagnosis, words)
    if not healthy and not skipped:
        return
    yield Heading(2, words("report.limits"))
    if healthy:
        lines = (f"✓ {cause_name(item.cause, catalogue, words)} ({place}): {item.message.pick(words.lang)}" for item, place in healthy)
        passed = Bullets(tuple(lines))
        yield from _titled(words("healthy"), passed, len(healthy))
    if skipped:
        header = (words("cause"), words("place"), words("why"), words.either("怎样采集", "how to capture it"))
        table = TableBlock(header, tuple(_row(item, place, catalogue, words) for item, place in skipped))
        yield from _titled(words("not_judged"), table, len(skipped))


def _titled(title: str, block: Block, count: int) -> Iterator[Block]:
    if count > _LONG:
        yield Fold(f"{title} ({count})", (block,))
    else:
        yield from (Heading(3, title), block)


def _passed(diagnosis: Diagnosis, words: Labels) -> list[tuple[Healthy, str]]:
    """Each passed check once for each thing it says, with every place that says so."""
    places: dict[tuple[str, str], tuple[Healthy, list[str]]] = {}
    judged = [(words("cluster"), diagnosis.cluster.healthy), *((session_name(s, words), s.healthy) for s in diagnosis.sessions)]
    for place, items in judged:
        for item in items:
            places.setdefault((item.cause, item.message.en), (item, []))[1].append(place)
    return [(item, ", ".join(found)) for item, found in places.values()]


def _skipped(diagnosis: Diagnosis, words: Labels) -> list[tuple[NotJudged, str]]:
    """Each skipped check once, with every place it was skipped at."""
    places: dict[tuple[str, str, str], tuple[NotJudged, list[str]]] = {}
    judged = [(words("cluster"), diagnosis.cluster.not_judged), *((session_name(s, words), s.not_judged) for s in diagnosis.sessions)]
    for place, items in judged:
        for item in items:
            places.setdefault((item.cause, item.reason.en, item.capture.en), (item, []))[1].append(place)
    return [(item, ", ".join(found)) for item, found in places.values()]


def _row(item: NotJudged, place: str, catalogue: Catalogue, words: Labels) -> tuple[str, ...]:
    return (cause_name(item.cause, catalogue, words), place, item.reason.pick(words.lang), item.capture.pick(words.lang) or "–")


def capture_blocks(report: Report, words: Labels) -> Iterator[Block]:
    """Identity of every session, the notes of its accounting, and the health of the capture."""
    if not report.facts and report.health is None:
        return
    yield Heading(2, words("report.capture"))
    if report.facts:
        header = (
            words("session"),
            words("model"),
            words("chip"),
            words.either("格式", "format"),
            words.either("级别", "level"),
            words("kernel_rows"),
        )
        yield TableBlock(header, tuple(_identity(item) for item in report.facts), right=(5,))
    lines = _shared_notes(report, words)
    if lines:
        yield Bullets(lines)
    if report.health is not None:
        blocks = health_document(report.health, words.lang).blocks
        title = blocks[0].text if isinstance(blocks[0], Heading) else words("capture_health")
        # The page says "simulated" once, at its top; what each session lacks, "not judged" says where it matters.
        kept = [block for block in blocks[1:] if not isinstance(block, Note)]
        if len(report.health.sessions) > _DETAILED:
            kept = kept[: 1 + next(place for place, block in enumerate(kept) if isinstance(block, TableBlock))]
        yield Fold(title, tuple(Heading(4, block.text) if isinstance(block, Heading) else block for block in kept))


def _sessions(report: Report) -> tuple[SessionDiagnosis, ...]:
    return report.diagnosis.sessions if report.diagnosis else ()


def _shared_notes(report: Report, words: Labels) -> tuple[str, ...]:
    """Each note once, with every session it is about; no name where it is about all of several."""
    owners: dict[str, list[str]] = {}
    for session in _sessions(report):
        for note in _notes(session, words):
            owners.setdefault(note, []).append(session_name(session, words))
    everyone = len(_sessions(report))
    return tuple(note if len(names) == everyone else f"{', '.join(names)}: {note}" for note, names in owners.items())


def _notes(session: SessionDiagnosis, words: Labels) -> Iterator[str]:
    books = session.accounting
    yield f"{words('steps_captured')} {session.steps}"
    if books.preparing_ns:
        yield f"{words('preparing')} {duration(books.preparing_ns)}"
    yield from (note.pick(words.lang) for note in books.notes)


def _identity(item: SessionFacts) -> tuple[str, ...]:
    soc = item.soc.id or item.soc.reported_name or item.soc.family
    cores = f" ({item.soc.cores} cores)" if item.soc.cores else ""
    return (
        item.name,
        item.model.name or item.model.type or "–",
        f"{soc}{cores}",
        item.capture.format,
        item.capture.level or "–",
        f"{item.tasks:,}",
    )
