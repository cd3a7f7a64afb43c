"""The health of a capture as a document: verdict first, then each session, then what cannot be checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kb.domain.text import Lang, Text
from kb.report.document import Block, Bullets, Document, Heading, Note, TableBlock
from kb.report.labels import Labels, labels
from kb.report.numbers import duration
from kb.session.health import Disabled, Health, SessionHealth


def health_document(health: Health, lang: Lang) -> Document:
    """Everything ``health`` says, in ``lang``."""
    words = labels(lang)
    blocks: list[Block] = [Heading(1, f"{words('capture_health')}: {words(f'health.{health.verdict}')}")]
    of = str(health.world_size or health.group_size or "?")
    captured = len(health.captured_ranks)
    reasons = tuple(reason.pick(lang) for reason in health.reasons)
    blocks.append(Bullets((words.either(f"采集到 {captured} / {of} 张卡", f"{captured} of {of} ranks captured"), *reasons)))
    if any(session.origin == "simulated" for session in health.sessions):
        blocks.append(Note("simulated", words("simulated")))
    blocks.append(_table(health.sessions, words))
    for session in health.sessions:
        blocks += _session(session, words)
    if health.disabled:
        blocks += [Heading(2, words("not_judged")), Bullets(tuple(_disabled(item, words) for item in health.disabled))]
    return Document(tuple(blocks))


def _table(sessions: tuple[SessionHealth, ...], words: Labels) -> TableBlock:
    header = (words("session"), words("rank"), words("verdict"), words("kernel_rows"), words("steps_captured"), words("dropped_rows"))
    rows = tuple(
        (
            session.name,
            "?" if session.rank is None else str(session.rank),
            words(f"health.{session.verdict}"),
            str(session.kernels),
            str(session.steps),
            str(session.dropped_rows),
        )
        for session in sessions
    )
    return TableBlock(header, rows, right=(1, 3, 4, 5))


def _session(session: SessionHealth, words: Labels) -> Iterator[Block]:
    lines = [reason.pick(words.lang) for reason in session.reasons]
    lines += [f"{item.oracle}: {item.detail} ({duration(item.difference_ns)})" for item in session.violations]
    lines += [f"{words('missing')} {item.what}: {item.why.pick(words.lang)}{_how((item.capture,), words)}" for item in session.missing]
    if lines:
        yield Heading(2, session.name)
        yield Bullets(tuple(lines))


def _disabled(item: Disabled, words: Labels) -> str:
    return f"{item.name.pick(words.lang)}: {words('missing')} {', '.join(item.lacks)}{_how(item.capture, words)}"


def _how(capture: Sequence[Text], words: Labels) -> str:
    ways = [text for text in dict.fromkeys(item.pick(words.lang) for item in capture) if text]
    return f" → {'; '.join(ways)}" if ways else ""
