"""Records as documents: a version in full, a card's one screen, a list, a history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from kb.domain.case import Case, Outcome
from kb.domain.catalogue import Catalogue
from kb.domain.event import Event
from kb.domain.gallery import Contributor, GalleryEntry, GalleryPage
from kb.domain.record import Record
from kb.domain.template import Template
from kb.domain.text import Lang
from kb.domain.version import Version
from kb.report.document import Block, Bullets, Document, Heading, Note, Paragraph, Prose, TableBlock
from kb.report.labels import Labels, labels
from kb.report.numbers import signed_percent


def version_document(version: Version, catalogue: Catalogue, lang: Lang) -> Document:
    """One version: identity, cases with their outcomes, body, pitfalls, sources. Depends on the version only,
    so that an old version reads the same for ever."""
    record, words = version.record, labels(lang)
    blocks: list[Block] = [Heading(1, record.title.pick(lang)), Bullets(_identity(version, words))]
    if record.simulated:
        blocks.append(Note("simulated", words("simulated")))
    blocks.append(Paragraph(record.summary.pick(lang)))
    for case in record.cases:
        blocks += _case(case, catalogue, words)
    if record.template is not None:
        blocks += _template(record.template, words)
    if record.body.pick(lang):
        blocks.append(Prose(record.body.pick(lang)))
    blocks += _tail(record, words)
    return Document(tuple(blocks))


def draft_document(record: Record, made_from: str, lang: Lang) -> Document:
    """A record that is not published: no version, author or hash, and it says so."""
    words = labels(lang)
    origin = words.either(f"由 {made_from} 生成，尚未发布", f"made from {made_from}, not published")
    blocks: list[Block] = [Heading(1, record.title.pick(lang)), Note("caution", origin)]
    if record.simulated:
        blocks.append(Note("simulated", words("simulated")))
    blocks += [Paragraph(record.summary.pick(lang)), Prose(record.body.pick(lang)), *_tail(record, words)]
    return Document(tuple(blocks))


def _identity(version: Version, words: Labels) -> tuple[str, ...]:
    record = version.record
    return (
        f"{version.ref} · {record.kind} · {words('provenance')}: {words(f'provenance.{record.provenance}')} · {record.licence}",
        f"{words('author')}: {version.author} · {words('published')}: {timestamp(version.created_ns)}",
        f"{words('hash')}: {version.sha256}",
    )


def timestamp(nanoseconds: int) -> str:
    """UTC, to the second, ISO 8601."""
    return datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _case(case: Case, catalogue: Catalogue, words: Labels) -> Iterator[Block]:
    known = catalogue.causes.get(case.cause)
    yield Heading(2, f"{known.name.pick(words.lang) if known else case.cause} ({case.cause})")
    if case.finding.pick(words.lang):
        yield Paragraph(case.finding.pick(words.lang))
    if case.symptoms:
        yield Paragraph(f"{words('symptoms')}: {'; '.join(text.pick(words.lang) for text in case.symptoms)}")
    if case.outcomes:
        header = (words("strategy"), words("metric"), words("before"), words("after"), words("saved"), words("provenance"), words("result"))
        yield TableBlock(header, tuple(_outcome(outcome, words) for outcome in case.outcomes), right=(2, 3, 4))
    if case.cautions:
        yield Note("caution", f"{words('cautions')}: {'; '.join(text.pick(words.lang) for text in case.cautions)}")


def _outcome(outcome: Outcome, words: Labels) -> tuple[str, ...]:
    gain = outcome.gain_fraction
    result = outcome.result if outcome.reported_to_work else f"{outcome.result} ({words('suggested_only')})"
    return (
        outcome.strategy,
        outcome.metric,
        str(outcome.before or "-"),
        str(outcome.after or "-"),
        signed_percent(gain) if gain is not None else "-",
        words(f"provenance.{outcome.provenance}"),
        result,
    )


def _template(template: Template, words: Labels) -> Iterator[Block]:
    yield Heading(2, words("checks"))
    rows = []
    for place, check in enumerate(template.checks, start=1):
        limits = ", ".join(f"{name} = {value:g}" for name, value in check.thresholds.items()) or "-"
        rows.append((str(place), check.cause, limits, check.reason.pick(words.lang)))
    yield TableBlock(("#", words("cause"), words.either("阈值", "thresholds"), words("why")), tuple(rows))


def _tail(record: Record, words: Labels) -> Iterator[Block]:
    if record.pitfalls:
        yield Heading(2, words("pitfalls"))
        yield Bullets(tuple(text.pick(words.lang) for text in record.pitfalls))
    if record.sources:
        yield Heading(2, words("sources"))
        yield Bullets(tuple(f"{source.title} {source.url}".strip() for source in record.sources))


def contributor_table(contributors: Sequence[Contributor], words: Labels) -> TableBlock:
    """The ladder: how many of somebody's records are verified, reproduced and reused."""
    rows = tuple(
        (item.author, str(item.records), str(item.verified), str(item.reproduced), str(item.reused), f"{item.steps}/3")
        for item in contributors
    )
    header = (words("author"), words("gallery.count"), words("gallery.verified"), words("gallery.reproduced"), words("gallery.worked"),
              words("gallery.steps"))  # fmt: skip
    return TableBlock(header, rows, right=(1, 2, 3, 4, 5))


def gallery_document(page: GalleryPage, lang: Lang) -> Document:
    """A page of the gallery as a table: identity, tier, use and what it is about."""
    words = labels(lang)
    rows = tuple(
        (
            f"{entry.slug}@{entry.n}",
            entry.kind,
            words(f"provenance.{entry.provenance}") + (" ✓" if entry.verified else ""),
            f"{entry.worked}/{entry.uses}",
            str(entry.reproductions),
            "-" if entry.impact is None else f"{entry.impact:.0f}",
            entry.title.pick(lang),
        )
        for entry in page.entries
    )
    header = (words("record"), words("kind"), words("provenance"), f"{words('gallery.worked')}/{words('gallery.uses')}",
              words("gallery.reproduced"), f"{words('gallery.impact')} (/100)", words("title"))  # fmt: skip
    return Document((TableBlock(header, rows, right=(3, 4, 5)),))


def list_document(entries: Sequence[GalleryEntry], lang: Lang) -> Document:
    """A table of records."""
    words = labels(lang)
    rows = tuple(
        (f"{entry.slug}@{entry.n}", entry.kind, words(f"provenance.{entry.provenance}"), entry.origin, entry.title.pick(lang))
        for entry in entries
    )
    header = (words("record"), words("kind"), words("provenance"), words.either("来自", "from"), words("title"))
    return Document((TableBlock(header, rows),))


def history_document(versions: Sequence[Version], events: Sequence[Event], lang: Lang) -> Document:
    """Versions of one slug, oldest first, with what was said about each."""
    words = labels(lang)
    rows = tuple((str(item.ref), timestamp(item.created_ns), item.author, item.record.provenance, item.sha256[:12]) for item in versions)
    header = (words("record"), words("published"), words("author"), words("provenance"), words("hash"))
    blocks: list[Block] = [Heading(2, words("versions")), TableBlock(header, rows)]
    names = {item.sha256: str(item.ref) for item in versions}
    said = tuple(
        f"{timestamp(event.at_ns)} {names.get(event.subject, event.subject[:12])}: {event.kind} ({event.author})" for event in events
    )
    if said:
        blocks.append(Bullets(said))
    return Document(tuple(blocks))
