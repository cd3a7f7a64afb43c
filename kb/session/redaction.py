"""Take personal and secret text out of a session before it is shared."""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from kb.session.session import Session

MASK: Final = "[redacted]"
_SECRET_NAME = re.compile(r"token|secret|passw|passwd|credential|api_?key|private_?key|cookie|auth", re.IGNORECASE)
# Each pattern keeps enough to understand the text and drops what identifies a person or a machine.
_PATTERNS: Final = (
    (re.compile(r"(?<![\w.])(/(?:home|Users)/)[^/\s:\"']+"), r"\1user"),
    (re.compile(r"([A-Za-z]:\\Users\\)[^\\\s:\"']+"), r"\1user"),
    (re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"), "192.0.2.1"),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"), "user@example.invalid"),
    (re.compile(r"\b(?:hf|ghp|gho|glpat|sk|xox[bap])[-_][A-Za-z0-9_-]{12,}"), MASK),
)


def redact_text(text: str) -> str:
    """``text`` with home folders, addresses, mail addresses and known token shapes masked."""
    for pattern, masked in _PATTERNS:
        text = pattern.sub(masked, text)
    return text


def redact(session: Session) -> Session:
    """The session with every string and environment value masked; numbers, times and names of kernels stay."""
    environment = {
        name: MASK if _SECRET_NAME.search(name) and value else redact_text(value) for name, value in session.meta.environment.items()
    }
    meta = replace(session.meta, environment=environment, name=redact_text(session.meta.name))
    return Session(meta, session.tables, tuple(redact_text(text) for text in session.strings))
