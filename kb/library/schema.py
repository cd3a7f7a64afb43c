"""What a content type allows at a given place: the part of an error message that helps the author."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import inspect

_STEP = re.compile(r"\.(\w+)|\[([^\]]*)\]")
_PLACE = re.compile(r" - at `(?:key in )?(\$[^`]*)`\Z")
Steps = tuple[str | int, ...]
"""A place in nested content: field names and positions; ``"*"`` for a step msgspec does not name."""


def split_error(error: msgspec.MsgspecError) -> tuple[str, str]:
    """msgspec's message as (what is wrong, path); the path is ``$`` for the whole value."""
    text = str(error)
    match = _PLACE.search(text)
    return (text, "$") if match is None else (text[: match.start()], match[1])


def steps_of(path: str) -> Steps:
    """``$.cases[0].context.metrics[...]`` as ``("cases", 0, "context", "metrics", "*")``."""
    return tuple(name or (int(index) if index.isdigit() else "*") for name, index in _STEP.findall(path))


def allowed_at(kind: object, path: str) -> str | None:
    """The fields (``?`` = optional) or values that type ``kind`` takes at ``path``; None where it is a plain type."""
    found: Any = inspect.type_info(kind)
    for step in steps_of(path):
        found = _inside(found, step)
    return None if found is None else _described(found)


def _inside(kind: Any, step: str | int) -> Any:
    for option in _options(kind):
        match option:
            case inspect.StructType():
                return next((field.type for field in option.fields if field.encode_name == step), None)
            case inspect.VarTupleType():
                return option.item_type
            case inspect.TupleType() if isinstance(step, int) and step < len(option.item_types):
                return option.item_types[step]
            case inspect.DictType():
                return option.value_type
    return None


def _described(kind: Any) -> str | None:
    for option in _options(kind):
        if isinstance(option, inspect.StructType):
            return "fields " + ", ".join(field.encode_name + ("" if field.required else "?") for field in option.fields)
        if isinstance(option, inspect.LiteralType):
            return ", ".join(str(value) for value in option.values)
    return None


def _options(kind: Any) -> tuple[Any, ...]:
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)
