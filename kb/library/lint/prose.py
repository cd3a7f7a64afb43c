"""Checks of words: both languages present and in their own script, titles in one style, nothing left to fill in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kb.domain.text import LANGS, Lang, Text
from kb.library.lint.document import Document
from kb.library.lint.problem import Problem, problem
from kb.text.language import chinese_share

LONGEST_TITLE: Final[dict[Lang, int]] = {"zh": 60, "en": 120}
"""Characters of a title that still fits a line of a list."""
LEAST_CHINESE: Final = 0.15
"""Share of CJK characters below which a text does not count as Chinese: names and figures may fill the rest."""
_LEFT_OPEN = re.compile(r"\b(?:TODO|TBD|FIXME|XXX|lorem ipsum|to be filled in)\b|待补|待填|占位", re.IGNORECASE)
_NAMES: Final[dict[Lang, str]] = {"zh": "中文", "en": "英文"}


def check_languages(document: Document) -> Iterator[Problem]:
    """Each text has both sides, the Chinese one in Chinese and the English one without it."""
    body = () if document.record.template is not None else ((("body",), document.record.body),)
    for steps, text in (*document.texts(), *body):
        line = document.line_with("# English") if steps == ("body",) else document.line_of(steps)
        yield from _sides(document.file, line, text, required=steps[-1] not in ("note", "finding", "reason"))


def _sides(file: str, line: int, text: Text, *, required: bool) -> Iterator[Problem]:
    if not text.zh.strip() and not text.en.strip() and not required:
        return
    for lang in LANGS:
        side = text.zh if lang == "zh" else text.en
        if not side.strip():
            yield problem(file, line, "language", zh=f"缺{_NAMES[lang]}", en=f"no text in {lang}")
    if text.en.strip() and chinese_share(text.en) > 0:
        yield problem(file, line, "language", zh="英文一侧有汉字", en=f"Chinese characters on the English side: {_short(text.en)}")
    if text.zh.strip() and chinese_share(text.zh) < LEAST_CHINESE:
        yield problem(file, line, "language", zh="中文一侧几乎没有汉字", en=f"hardly any Chinese on the Chinese side: {_short(text.zh)}")


def check_open_ends(document: Document) -> Iterator[Problem]:
    """No placeholder is left."""
    for steps, text in (*document.texts(), (("body",), document.record.body)):
        for side in (text.zh, text.en):
            found = _LEFT_OPEN.search(side)
            if found is not None:
                line = document.line_with(found[0]) if steps == ("body",) else document.line_of(steps)
                yield problem(document.file, line, "open-end", zh=f"还没写完：{found[0]}", en=f"left to fill in: {found[0]}")


def check_title(document: Document) -> Iterator[Problem]:
    """Titles: one line, no full stop or exclamation mark at the end, not too long, not in capitals."""
    title, line = document.record.title, document.line_of(("title",))
    for lang in LANGS:
        side = title.zh if lang == "zh" else title.en
        if len(side) > LONGEST_TITLE[lang]:
            limit = LONGEST_TITLE[lang]
            yield problem(
                document.file, line, "title", zh=f"标题超过 {limit} 字", en=f"title longer than {limit} characters: {_short(side)}"
            )
        if side.rstrip() != side or side.endswith((".", "。", "!", "！")):
            yield problem(
                document.file, line, "title", zh="标题不以句号、叹号或空格结尾", en=f"title ends in a stop or blank: {_short(side)}"
            )
    if title.en.isupper() or (title.en[:1].islower() and title.en[:1].isascii()):
        yield problem(
            document.file, line, "title", zh="英文标题首字母大写、其余不全大写", en=f"title not in sentence case: {_short(title.en)}"
        )


def check_symptoms(document: Document) -> Iterator[Problem]:
    """A recipe's case has two to four symptoms, none of them repeated, none being the title."""
    if document.record.kind != "recipe":
        return
    for at, case in enumerate(document.record.cases):
        line = document.line_of(("cases", at, "symptoms"))
        if not 2 <= len(case.symptoms) <= 4:
            yield problem(
                document.file, line, "symptoms", zh="每个案例要有 2 到 4 条症状", en=f"{len(case.symptoms)} symptoms, 2 to 4 wanted"
            )
        said = [text.en for text in case.symptoms] + [text.zh for text in case.symptoms]
        if len(set(said)) < len(said) or {document.record.title.en, document.record.title.zh} & set(said):
            yield problem(document.file, line, "symptoms", zh="症状重复，或照抄标题", en="a symptom is repeated or copies the title")


def _short(text: str) -> str:
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= 60 else f"{line[:57]}..."
