"""What changed between two records: by field, by list item, by unit, and prose as text."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from kb.domain.case import Case, Outcome
from kb.domain.quantity import Quantity, dimension
from kb.domain.record import Record, Source
from kb.domain.template import Check
from kb.domain.text import LANGS, Text

Kind = Literal["added", "removed", "changed", "respelled", "moved"]
ALIKE: Final = 0.6
"""Similarity (0..1) from which two texts of a list count as one that was edited."""
CONTEXT_LINES: Final = 1
_SAME: Final = 1e-9


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One difference at ``path``. ``respelled`` is the same amount in another unit or with other digits; ``moved`` the same item at
    another place. ``lines`` is a line diff for prose, with the marks ``-``, ``+`` and blank."""

    path: str
    kind: Kind
    before: str = ""
    after: str = ""
    lines: tuple[str, ...] = ()


def diff_records(before: Record, after: Record) -> tuple[Change, ...]:
    """Every difference, in the order of a record's fields; empty for equal records."""
    return tuple(_fields("", before, after))


def _fields(path: str, before: msgspec.Struct, after: msgspec.Struct) -> Iterator[Change]:
    for name in before.__struct_fields__:
        yield from _values(f"{path}.{name}".removeprefix("."), getattr(before, name), getattr(after, name))


def _values(path: str, before: Any, after: Any) -> Iterator[Change]:
    if before == after and type(before) is type(after):
        return
    if isinstance(before, Quantity) and isinstance(after, Quantity):
        yield _quantity(path, before, after)
    elif isinstance(before, Text) and isinstance(after, Text):
        yield from _text(path, before, after)
    elif isinstance(before, dict) and isinstance(after, dict):
        yield from _mapping(path, before, after)
    elif isinstance(before, tuple) and isinstance(after, tuple):
        yield from _list(path, before, after)
    elif isinstance(before, msgspec.Struct) and type(before) is type(after):
        yield from _fields(path, before, after)
    else:
        yield _replaced(path, before, after)


def _replaced(path: str, before: Any, after: Any) -> Change:
    kind: Kind = "added" if before is None else "removed" if after is None else "changed"
    return Change(path=path, kind=kind, before=_shown(before), after=_shown(after))


def _quantity(path: str, before: Quantity, after: Quantity) -> Change:
    same_kind = dimension(before.unit)[0] == dimension(after.unit)[0]
    converted = after.to(before.unit) if same_kind else None
    if converted is not None and abs(converted - before.value) <= _SAME * max(abs(before.value), abs(converted)):
        return Change(path=path, kind="respelled", before=_shown(before), after=_shown(after))
    relative = ""
    if converted is not None and before.value:
        relative = f" ({100 * (converted / before.value - 1):+.3g} %)"
    return Change(path=path, kind="changed", before=_shown(before), after=_shown(after) + relative)


def _text(path: str, before: Text, after: Text) -> Iterator[Change]:
    for lang in LANGS:
        first, last = getattr(before, lang), getattr(after, lang)
        if first == last:
            continue
        side = f"{path}.{lang}"
        if "\n" in first or "\n" in last:
            yield Change(path=side, kind="changed", lines=tuple(_lines(first, last)))
        else:
            kind: Kind = "added" if not first else "removed" if not last else "changed"
            yield Change(path=side, kind=kind, before=first, after=last)


def _lines(before: str, after: str) -> Iterator[str]:
    hunks = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=CONTEXT_LINES)
    yield from (line for line in hunks if not line.startswith(("---", "+++")))


def _mapping(path: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    for key in [*before, *(key for key in after if key not in before)]:
        yield from _values(f"{path}.{key}", before.get(key), after.get(key))


def _list(path: str, before: tuple[Any, ...], after: tuple[Any, ...]) -> Iterator[Change]:
    """Items are matched by what identifies them, then texts by likeness; order alone is a move."""
    pairs, removed, added = _matched(before, after)
    for old, new in pairs:
        yield from _values(f"{path}[{_name(before[old])}]", before[old], after[new])
    yield from (Change(path=f"{path}[{_name(before[at])}]", kind="removed", before=_shown(before[at])) for at in removed)
    yield from (Change(path=f"{path}[{_name(after[at])}]", kind="added", after=_shown(after[at])) for at in added)
    order = [new for _, new in pairs]
    if order != sorted(order):
        yield Change(path=path, kind="moved", before=", ".join(map(_name, before)), after=", ".join(map(_name, after)))


def _matched(before: Sequence[Any], after: Sequence[Any]) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    free = list(range(len(after)))
    pairs: list[tuple[int, int]] = []
    tests: tuple[Callable[[Any, Any], bool], ...] = (lambda one, two: one == two, lambda one, two: _key(one) == _key(two), _alike)
    for same in tests:
        for at, item in enumerate(before):
            if any(at == old for old, _ in pairs):
                continue
            found = next((place for place in free if same(item, after[place])), None)
            if found is not None:
                free.remove(found)
                pairs.append((at, found))
    pairs.sort()
    held = {old for old, _ in pairs}
    return pairs, [at for at in range(len(before)) if at not in held], free


def _alike(first: Any, second: Any) -> bool:
    """Whether two texts are one that was edited."""
    if not isinstance(first, Text) or not isinstance(second, Text):
        return False
    ratios = [difflib.SequenceMatcher(None, getattr(first, lang), getattr(second, lang)).ratio() for lang in LANGS if getattr(first, lang)]
    return bool(ratios) and max(ratios) >= ALIKE


def _key(item: Any) -> object:
    """What identifies an item of a list while its other fields may change."""
    match item:
        case Case():
            return ("case", item.cause, item.context.model, item.context.soc_family)
        case Outcome():
            return ("outcome", item.strategy, item.metric)
        case Source():
            return ("source", item.url or item.title)
        case Check():
            return ("check", item.cause)
        case _:
            return item


def _name(item: Any) -> str:
    match item:
        case Case():
            return item.cause
        case Outcome():
            return f"{item.strategy}/{item.metric}"
        case Source():
            return item.url or item.title
        case Check():
            return item.cause
        case Text():
            return (item.en or item.zh)[:24]
        case _:
            return str(item)[:24]


def _shown(value: Any) -> str:
    match value:
        case None:
            return ""
        case Quantity():
            return f"{value.value:,.12g} {value.unit}"
        case Text():
            return value.en or value.zh
        case msgspec.Struct():
            return msgspec.json.encode(value).decode()
        case _:
            return str(value)
