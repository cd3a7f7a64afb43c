"""The answer to a problem told in words, as a document."""

from __future__ import annotations

from kb.domain.catalogue import Catalogue
from kb.domain.field import FieldAnswer, FieldCause, FieldStrategy
from kb.domain.text import Lang
from kb.report.document import Block, Bullets, Document, Heading, Note, Paragraph, TableBlock
from kb.report.labels import Labels, labels
from kb.report.numbers import percent


def field_document(answer: FieldAnswer, catalogue: Catalogue, lang: Lang) -> Document:
    """Likely causes with what to look for, then what to try."""
    words = labels(lang)
    blocks: list[Block] = [Heading(2, words("field.causes"))]
    blocks += [Note("capture", note.pick(lang)) for note in answer.notes]
    blocks.append(Paragraph(_learnt(answer, words)))
    header = (words("cause"), words("field.probability"), words("field.words"), words("cases"))
    blocks.append(TableBlock(header, tuple(_cause(item, catalogue, words) for item in answer.causes), right=(1,)))
    blocks.append(Bullets(tuple(f"{item.id}: {catalogue.causes[item.id].evidence.pick(lang)}" for item in answer.causes[:3])))
    if answer.strategies:
        tried = (words("strategy"), words("field.weight"), words("cause"), words("field.tried"))
        rows = tuple(_strategy(item, catalogue, words) for item in answer.strategies)
        blocks += [Heading(3, words("strategies")), TableBlock(tried, rows, right=(1,))]
    else:
        blocks.append(Note("caution", words("field.none")))
    return Document(tuple(blocks))


def _learnt(answer: FieldAnswer, words: Labels) -> str:
    if not answer.calibrated_on:
        return words.either(f"由 {answer.cases} 个案例和目录学得。", f"Learnt from {answer.cases} cases and the catalogue.")
    return words.either(
        f"由 {answer.cases} 个案例和目录学得；概率用 {answer.calibrated_on} 个留出的案例校准。",
        f"Learnt from {answer.cases} cases and the catalogue; probabilities calibrated on {answer.calibrated_on} cases left out.",
    )


def _cause(item: FieldCause, catalogue: Catalogue, words: Labels) -> tuple[str, ...]:
    name = f"{catalogue.causes[item.id].name.pick(words.lang)} ({item.id})"
    return (name, percent(item.probability), ", ".join(item.words) or "-", ", ".join(item.records) or "-")


def _strategy(item: FieldStrategy, catalogue: Catalogue, words: Labels) -> tuple[str, ...]:
    name = f"{catalogue.strategies[item.id].name.pick(words.lang)} ({item.id})"
    return (name, percent(item.probability), item.cause, f"{item.worked}/{item.tried}")
