"""What a check reports."""

from __future__ import annotations

import msgspec

from kb.domain.text import Text


class Problem(msgspec.Struct, frozen=True):
    """One thing to correct. ``file`` is relative to what was linted, ``line`` counts from 1, ``rule`` is the check's id."""

    file: str
    line: int
    rule: str
    message: Text


def problem(file: str, line: int, rule: str, *, zh: str, en: str) -> Problem:
    """A problem said in both languages."""
    return Problem(file=file, line=line, rule=rule, message=Text(zh=zh, en=en))
