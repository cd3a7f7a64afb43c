"""Fusion switch files: the vendor's JSON, and the article's few lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from kb.errors import MalformedInputError, UsageError
from kb.tune.rewriting import RULES, Rule, rule_named

_PATTERN: Final = re.compile(r'fusion_pattern\s*:\s*"([^"]+)"\s*(?:→|->)\s*"([^"]+)"')
_ENABLE: Final = re.compile(r"enable\s*:\s*(true|false)", re.IGNORECASE)
_GROUPS: Final = ("GraphFusion", "UBFusion")
LARGEST: Final = 1 << 20
"""B of a switch file."""


class Switches(msgspec.Struct, frozen=True, kw_only=True):
    """Rules switched on, those switched off, and patterns the simulator does not model (left alone, and said so)."""

    on: tuple[Rule, ...]
    off: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def read_switches(path: Path) -> Switches:
    """The switches in a file. Raises UsageError without the file, MalformedInputError for anything that is neither form."""
    if not path.is_file():
        raise UsageError(f"no fusion switch file {path}", allowed="a JSON file of switches, or lines of fusion_pattern and enable")
    data = path.read_bytes()
    if len(data) > LARGEST:
        raise MalformedInputError(f"{path} is larger than {LARGEST} bytes", do="check which file this is")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MalformedInputError(f"{path} is not UTF-8 text (byte {error.start})", do="save it as UTF-8") from error
    states = dict(_from_json(text, path) if text.lstrip().startswith("{") else _from_lines(text, path))
    return _switches(states)


def _switches(states: Mapping[str, bool]) -> Switches:
    everything = states.get("ALL")
    named = {name: rule_named(name) for name in states if name != "ALL"}
    on = [rule for name, rule in named.items() if rule is not None and states[name]]
    off = [rule.id for name, rule in named.items() if rule is not None and not states[name]]
    if everything:
        on += [rule for rule in RULES.values() if rule.id not in off]
    unknown = tuple(name for name, rule in named.items() if rule is None)
    return Switches(on=tuple(dict.fromkeys(on)), off=tuple(off), unknown=unknown)


def _from_json(text: str, path: Path) -> Iterator[tuple[str, bool]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedInputError(f"{path}: not JSON: {error}", do=_FORM) from error
    switch = document.get("Switch") if isinstance(document, dict) else None
    if not isinstance(switch, dict):
        raise MalformedInputError(f"{path}: no Switch in it", do=_FORM)
    for group in _GROUPS:
        yield from _entries(switch.get(group, {}), path)


def _entries(group: Any, path: Path) -> Iterator[tuple[str, bool]]:
    if not isinstance(group, dict):
        raise MalformedInputError(f"{path}: a group of switches is no object", do=_FORM)
    for name, state in group.items():
        if state not in ("on", "off"):
            raise MalformedInputError(f"{path}: {name} is {state!r}", allowed="on, off", do=_FORM)
        yield str(name), state == "on"


_FORM: Final = 'write {"Switch": {"GraphFusion": {"ALL": "on"}, "UBFusion": {"ALL": "off"}}}, or fusion_pattern and enable lines'


def _from_lines(text: str, path: Path) -> Iterator[tuple[str, bool]]:
    """``fusion_pattern: "A + B" → "C"`` lines, each with the ``enable`` that follows it (on without one)."""
    found = list(_PATTERN.finditer(text))
    if not found:
        raise MalformedInputError(f"{path}: no fusion pattern in it", do=_FORM)
    for number, match in enumerate(found):
        end = found[number + 1].start() if number + 1 < len(found) else len(text)
        enabled = _ENABLE.search(text, match.end(), end)
        yield match[1], enabled is None or enabled[1].lower() == "true"
