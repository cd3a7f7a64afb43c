"""The passage of a record that answers the query best, in each language."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Final

from kb.domain.record import Record
from kb.domain.text import Text
from kb.text.script import fold

MAX_CHARACTERS: Final = 200


def snippet(record: Record, tokens: Set[str]) -> Text:
    """The summary, finding, symptom or note that holds most of ``tokens`` (the summary when none does); long ones are cut."""
    best = max(_passages(record), key=lambda passage: _held(passage, tokens))
    return Text(zh=_cut(best.zh), en=_cut(best.en))


def _passages(record: Record) -> Iterator[Text]:
    yield record.summary
    for case in record.cases:
        yield from (text for text in (case.finding, *case.symptoms, *(outcome.note for outcome in case.outcomes)) if text.zh or text.en)


def _held(passage: Text, tokens: Set[str]) -> int:
    """How many tokens stand in the text, also as parts of words: near enough to choose a passage, at a tenth of tokenising it."""
    text = fold(f"{passage.zh}\n{passage.en}").lower()
    return sum(token in text for token in tokens)


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= MAX_CHARACTERS else f"{flat[: MAX_CHARACTERS - 1]}…"
