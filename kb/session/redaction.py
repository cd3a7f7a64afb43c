"""Take personal and secret text out of a session before it is shared.

Masked: home folders, user, host and job names, network addresses, mail addresses, and secrets, wherever they stand: strings of
tables, environment, options, file names, remarks. Names found in the environment are masked in every other text too.
Numbers, times, shapes and names of kernels stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from kb.domain.text import Text
from kb.session.meta import Missing, SessionMeta, Violation
from kb.session.session import Session

MASK: Final = "[redacted]"
SHORTEST_NAME: Final = 4
"""Shorter names from the environment are not looked for elsewhere: they would hit ordinary words."""
_SECRET_NAME: Final = re.compile(
    r"token|secret|passw|passwd|passphrase|credential|api_?key|access_?key|private_?key|cookie|auth|session_?id|signature|dsn|webhook",
    re.IGNORECASE,
)
_IDENTITY_NAME: Final = re.compile(
    r"(?:^|_)(?:user|username|logname|login|owner|author|email|host|hostname|host_name|node|nodename|nodelist|addr|address|ip|ips|iface|job|jobname|"
    r"job_name|jobid|job_id|task_name|cluster|home|pwd|oldpwd|namespace|pod|pod_name|account|project|team|tenant|mail)(?:$|_)",
    re.IGNORECASE,
)
_ORDINARY: Final = frozenset({"localhost", "true", "false", "none", "null", "default", "user", "host", "root", "prod", "test", "0.0.0.0"})  # noqa: S104  # words that identify nobody
# Each pattern keeps enough to understand the text and drops what identifies a person or a machine.
_PATTERNS: Final = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), MASK),
    (re.compile(r"(\w[\w+.-]*://)[^/\s:@]+:[^/\s@]+@"), rf"\1{MASK}@"),
    (re.compile(r"(?<![\w.])(/(?:home|Users|export/home|data/home|mnt/home)/)[^/\s:\"']+"), r"\1user"),
    (re.compile(r"(?<![\w.])/root(?=/|\b)"), "/home/user"),
    (re.compile(r"([A-Za-z]:\\+Users\\+)[^\\\s:\"']+"), r"\1user"),
    (re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}", re.IGNORECASE), rf"\1 {MASK}"),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*"), MASK),
    (
        re.compile(
            r"\b(?:hf|ghp|gho|ghu|ghs|ghr|github_pat|glpat|sk|pk|rk|xox[abpors]|npm|pypi|dop_v1|AKIA|ASIA|LTAI)[-_]?[A-Za-z0-9_-]{12,}"
        ),
        MASK,
    ),
    (
        re.compile(
            r"((?:token|secret|passw(?:or)?d|passwd|api[_-]?key|access[_-]?key|credential)s?[\"']?\s*[=:]\s*[\"']?)[^\s\"'&,;]+",
            re.IGNORECASE,
        ),
        rf"\1{MASK}",
    ),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"), "user@example.invalid"),
    (re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])"), "192.0.2.1"),
    (
        re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}(?![\w:])|(?<![\w:])fe80:(?::?[0-9a-fA-F]{1,4})+(?![\w:])"),
        "2001:db8::1",
    ),
    (re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![\w:])"), "00:00:5e:00:53:01"),
    (re.compile(r"(?<![\w./-])(?:[\w-]+\.)+(?:com|net|org|cn|internal|local|corp|lan|intra)(?![\w.])"), "host.example.invalid"),
)


def redact_text(text: str, names: Iterable[str] = ()) -> str:
    """``text`` with every known form of personal and secret text masked, and each of ``names`` besides."""
    for pattern, masked in _PATTERNS:
        text = pattern.sub(masked, text)
    for name in names:
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", MASK, text)
    return text


def redact(session: Session) -> Session:
    """The session with every text masked; numbers, times and names of kernels stay."""
    names = _names(session.meta.environment)
    strings = tuple(redact_text(text, names) for text in session.strings)
    return Session(_meta(session.meta, names), session.tables, strings)


def _names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Values of the environment that name a person, machine or job, longest first."""
    found = {
        value.strip()
        for name, value in environment.items()
        if (_IDENTITY_NAME.search(name) or _SECRET_NAME.search(name)) and len(value.strip()) >= SHORTEST_NAME and "/" not in value
    }
    return tuple(sorted((value for value in found if value.lower() not in _ORDINARY and not value.isdigit()), key=len, reverse=True))


def _meta(meta: SessionMeta, names: tuple[str, ...]) -> SessionMeta:
    def masked(text: str) -> str:
        return redact_text(text, names)

    def both(text: Text) -> Text:
        return Text(masked(text.zh), masked(text.en))

    return replace(
        meta,
        name=masked(meta.name),
        capture=replace(meta.capture, files=tuple(map(masked, meta.capture.files))),
        environment={name: _value(name, value, names) for name, value in meta.environment.items()},
        options={name: _option(name, value, names) for name, value in meta.options.items()},
        software={name: masked(value) for name, value in meta.software.items()},
        missing=tuple(Missing(what=masked(gap.what), why=both(gap.why), capture=both(gap.capture)) for gap in meta.missing),
        violations=tuple(
            Violation(oracle=found.oracle, detail=masked(found.detail), difference_ns=found.difference_ns) for found in meta.violations
        ),
    )


def _value(name: str, value: str, names: tuple[str, ...]) -> str:
    if not value:
        return value
    personal = _SECRET_NAME.search(name) or (_IDENTITY_NAME.search(name) and value.lower() not in _ORDINARY and not value.isdigit())
    return MASK if personal else redact_text(value, names)


def _option(name: str, value: str | float | bool | None, names: tuple[str, ...]) -> str | int | float | bool | None:
    return _value(name, value, names) if isinstance(value, str) else value
