"""Why a record was found, in both languages; the contributions sum to its score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kb.domain.case import Why
from kb.domain.catalogue import GlossaryRow
from kb.domain.text import Lang, Text
from kb.search.lexical import Lexical

SHOWN_WORDS: Final = 5
_FIELD_NAMES: Final[Mapping[str, Text]] = {
    "title": Text(zh="标题与摘要", en="title and summary"),
    "symptoms": Text(zh="现象", en="symptoms"),
    "strategy": Text(zh="策略", en="strategy"),
}
_LANGUAGE_NAMES: Final[Mapping[str, Text]] = {"zh": Text(zh="中文", en="Chinese"), "en": Text(zh="英文", en="English")}


def text_reason(cosine: float | None, contribution: float, field: str) -> Iterator[Why]:
    """The cosine with the record's nearest field; nothing for a record without vectors."""
    if cosine is None:
        return
    name, _, side = field.partition(".")
    said = Text()
    if field:
        where, tongue = _FIELD_NAMES[name], _LANGUAGE_NAMES[side]
        said = Text(zh=f"（{where.zh}，{tongue.zh}）", en=f" ({where.en}, {tongue.en})")
    yield Why(
        feature="text",
        text=Text(zh=f"文本相似度 {cosine:.2f}{said.zh}", en=f"text similarity {cosine:.2f}{said.en}"),
        contribution=contribution,
    )


def word_reasons(place: int, lang: Lang, lexical: Lexical, parts: Mapping[str, float], glossary: Sequence[GlossaryRow]) -> Iterator[Why]:
    """The shared words, and each glossary row that brought one. The baseline of the balancing goes with the words."""
    added = lexical.question.added
    scale = lexical.scores.weight / lexical.scores.moments[lang].spread(lexical.scores.widest)
    rows: dict[str, float] = {}
    for token, value in parts.items():
        if token in added:
            rows[added[token]] = rows.get(added[token], 0.0) + value * scale
    own = sorted((token for token in parts if token not in added), key=lambda token: (-parts[token], token))
    words = ", ".join(own[:SHOWN_WORDS])
    yield Why(
        feature="words",
        text=Text(zh=f"共同的词：{words}", en=f"shared words: {words}") if own else Text(zh="没有共同的词", en="no shared words"),
        contribution=lexical.scores.contribution(place, lang) - sum(rows.values()),
    )
    for entry in glossary if rows else ():
        if entry.id in rows:
            yield Why(
                feature=f"glossary:{entry.id}",
                text=Text(zh=f"术语表 {entry.id}：{_terms(entry)}", en=f"glossary row {entry.id}: {_terms(entry)}"),
                contribution=rows[entry.id],
            )


def _terms(row: GlossaryRow) -> str:
    return f"{row.zh[0] if row.zh else ''} = {row.en[0] if row.en else ''}"


def simulated_mark() -> Why:
    """Said on every record whose figures come from the simulator."""
    return Why(feature="provenance", text=Text(zh="仿真结果，非实测", en="simulated, not measured"), contribution=0.0)
