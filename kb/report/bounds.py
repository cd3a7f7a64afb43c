"""Keeps a page readable whatever a field holds: longer texts are cut, and the cut says how much there was."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from kb.report.document import Document
from kb.report.labels import Labels, labels

LONGEST: Final = 4_000
"""Characters of one text on the page; the record inside the file stays whole."""
LONGEST_PROSE: Final = 400_000
_Value = TypeVar("_Value")


def bounded(document: Document) -> Document:
    """The document with every over-long text cut."""
    words = labels(document.lang)
    blocks = tuple(_cut(block, words) for block in document.blocks)
    return msgspec.structs.replace(document, blocks=blocks, title=_cut(document.title, words))


def _cut(value: _Value, words: Labels, limit: int = LONGEST) -> _Value:
    found: Any = value
    if isinstance(value, str):
        found = _shortened(value, limit, words)
    elif isinstance(value, tuple) and value and not isinstance(value[0], int | float):
        found = tuple(_cut(item, words) for item in value)
    elif isinstance(value, msgspec.Struct):
        found = _struct(value, words)
    kept: _Value = found
    return kept


def _struct(value: msgspec.Struct, words: Labels) -> msgspec.Struct:
    long = {"markdown": LONGEST_PROSE}
    old = {name: getattr(value, name) for name in value.__struct_fields__}
    new = {name: _cut(item, words, long.get(name, LONGEST)) for name, item in old.items()}
    changed = {name: item for name, item in new.items() if item is not old[name]}
    return msgspec.structs.replace(value, **changed) if changed else value


def _shortened(text: str, limit: int, words: Labels) -> str:
    return text if len(text) <= limit else text[:limit] + words("cut").format(size=f"{len(text):,}")
