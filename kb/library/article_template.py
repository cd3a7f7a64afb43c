"""The form of a diagnosis template that the CANN Profiler article uses: Chinese keys and free text.

Its steps name causes in words. A table beside this module says which; a cause id in backticks always wins, and that is how
such a file is written here. The form is in one language: the English side is made from ids, and is lost on writing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from kb.domain.template import Check, Template
from kb.domain.text import Text
from kb.errors import ContentError
from kb.library.decoding import decode_json
from kb.text.slug import slug_of

MARK: Final = "诊断路径"
"""The key by which such a file is recognised."""
_NUMBERED = re.compile(r"\s*\d+\s*[.、)）]\s*")
_CAUSE = re.compile(r"\s*[（(]?`([a-z][a-z0-9_]*)`[)）]?")
_VALUE = re.compile(r"\s*(?:[<>]=?|≥|≤|＞|＜)?\s*(\d+(?:\.\d+)?)\s*(%?)")


class ArticleTemplate(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"models": "适用模型", "steps": MARK, "thresholds": "关键指标阈值", "pitfalls": "避坑指南", "description": "说明"},
):
    """The file as it stands. A threshold is text such as ``>35% → 高风险``, or a number under ``cause.name``."""

    template_name: str
    steps: tuple[str, ...]
    models: tuple[str, ...] = ()
    thresholds: Mapping[str, str | float] = {}
    pitfalls: tuple[str, ...] = ()
    description: str = ""


class _Phrase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    words: tuple[str, ...]
    cause: str
    threshold: str = ""


class _Phrases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    steps: tuple[_Phrase, ...]
    thresholds: tuple[_Phrase, ...]


def is_article_form(data: bytes) -> bool:
    """Whether ``data`` is a JSON object with the article's keys."""
    try:
        return MARK in msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


def read_article_template(data: bytes, *, source: str) -> Template:
    """A template in the article's form. Raises ContentError naming ``source`` and the step whose cause is not clear."""
    found = decode_json(data, msgspec.json.Decoder(ArticleTemplate), source=source)
    phrases = _phrases()
    checks: dict[str, Check] = {}
    for at, step in enumerate(found.steps):
        check = _check(step, phrases.steps, f"{source}: $.{MARK}[{at}]")
        checks.setdefault(check.cause, check)
    notes = [Text(zh=text, en=text) for text in found.pitfalls]
    for name, value in found.thresholds.items():
        notes += _set_threshold(checks, name, value, phrases.thresholds)
    count = len(checks)
    return Template(
        slug=_slug(found.template_name),
        name=Text(zh=found.template_name, en=found.template_name.replace("_", " ")),
        description=Text(
            zh=found.description or f"文章格式的模板，{count} 项检查。", en=f"A template in the article's form with {count} checks."
        ),
        checks=tuple(checks.values()),
        models=found.models,
        pitfalls=tuple(notes),
    )


def write_article_template(template: Template) -> bytes:
    """``template`` in the article's form, its causes in backticks, so that reading gives the same checks and thresholds back."""
    made = ArticleTemplate(
        template_name=template.slug.replace("-", "_"),
        steps=tuple(f"{at}. {check.reason.pick('zh')}（`{check.cause}`）" for at, check in enumerate(template.checks, start=1)),
        models=template.models,
        thresholds={f"{check.cause}.{name}": value for check in template.checks for name, value in check.thresholds.items()},
        pitfalls=tuple(pitfall.pick("zh") for pitfall in template.pitfalls),
        description=template.description.pick("zh"),
    )
    return msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n"


def _phrases() -> _Phrases:
    return msgspec.json.decode(Path(__file__).with_name("article_phrases.json").read_bytes(), type=_Phrases)


def _check(step: str, phrases: Sequence[_Phrase], place: str) -> Check:
    text = _NUMBERED.sub("", step, count=1)
    named = _CAUSE.search(text)
    cause = named[1] if named is not None else _meant(text, phrases)
    if cause is None:
        words = "、".join(dict.fromkeys("+".join(phrase.words) for phrase in phrases))
        raise ContentError(f"{place}: no cause is clear from {step!r}", allowed=f"a cause id in backticks, or words such as {words}",
                           do="write the cause's id in backticks")  # fmt: skip
    return Check(cause=cause, reason=Text(zh=_CAUSE.sub("", text).strip() or cause, en=f"The author's step for `{cause}`."))


def _meant(text: str, phrases: Sequence[_Phrase]) -> str | None:
    folded = text.casefold()
    return next((phrase.cause for phrase in phrases if all(word in folded for word in phrase.words)), None)


def _set_threshold(checks: dict[str, Check], name: str, value: str | float, phrases: Sequence[_Phrase]) -> tuple[Text, ...]:
    """Put a threshold into its check, by name or into the reason; what belongs to no check is returned as a note."""
    cause, _, exact = name.partition(".")
    if cause in checks and exact:
        checks[cause] = _with_threshold(checks[cause], exact, _number(value))
        return ()
    folded = name.casefold()
    phrase = next((item for item in phrases if item.cause in checks and all(word in folded for word in item.words)), None)
    if phrase is None:
        return (Text(zh=f"{name}：{value}", en=f"Threshold as written: {name} {value}"),)
    check, number = checks[phrase.cause], _number(value)
    if phrase.threshold and number is not None:
        check = _with_threshold(check, phrase.threshold, number)
    said = Text(zh=f"{check.reason.zh}（{name} {value}）", en=check.reason.en)
    checks[phrase.cause] = replace(check, reason=said)
    return ()


def _with_threshold(check: Check, name: str, value: float | None) -> Check:
    return check if value is None else replace(check, thresholds={**check.thresholds, name: value})


def _number(value: str | float) -> float | None:
    """``>35% → …`` as 0.35; None where no number leads."""
    if isinstance(value, float):
        return value
    found = _VALUE.match(value)
    if found is None:
        return None
    return float(found[1]) * (0.01 if found[2] else 1.0)


def _slug(name: str) -> str:
    """The name as a slug; a name without a letter or digit gets one from its hash."""
    return slug_of(name, "template") or f"template-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
