"""What published text may hold: it is untrusted, whoever wrote it and however it came in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kb.domain.record import Record, checked_slug
from kb.domain.text import Text
from kb.domain.version import parse_ref
from kb.errors import ContentError
from kb.library.body import ALLOWED_LINKS, checked_link, read_body, write_body

LARGEST_BYTES: Final = 2**20
"""Bytes of canonical JSON; a record is text written by people, a larger one is a mistake."""
_HASH: Final = re.compile(r"[0-9a-f]{64}\Z")
_MARKUP: Final = re.compile(r"<\s*/?\s*[a-zA-Z!?][^<>]*>")
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")


def checked_content(record: Record) -> Record:
    """``record`` itself, or ContentError naming the field: raw HTML, a link that is neither http(s), mailto nor relative,
    control or direction characters, a parent or session that is no hash, a link to no record name."""
    source = f"record {record.slug}"
    checked_slug(record.slug)
    read_body(write_body(record.body), source=f"{source}, body")
    for name, text in _lines(record):
        for side in (text.zh, text.en):
            _check_line(side, f"{source}, {name}")
    for side in (record.body.zh, record.body.en):
        _check_characters(side, f"{source}, body")
    for cited in record.sources:
        _check_line(cited.title, f"{source}, sources")
        if not checked_link(cited.url):
            raise ContentError(f"{source}: link to {cited.url}", allowed=ALLOWED_LINKS, do="change or remove the link")
    for link in record.links:
        parse_ref(link)
    for name, hashes in (("parents", record.parents), ("sessions", record.sessions)):
        for item in hashes:
            if _HASH.match(item) is None:
                raise ContentError(f"{source}: {name}: {item!r}", allowed="sha256 as 64 lower-case hex digits", do="correct or remove it")
    return record


def _lines(record: Record) -> Iterator[tuple[str, Text]]:
    yield from (("title", record.title), ("summary", record.summary))
    yield from (("pitfalls", text) for text in record.pitfalls)
    yield from (("tags", Text(zh=tag, en=tag)) for tag in record.tags)
    for case in record.cases:
        named = (("finding", (case.finding,)), ("symptoms", case.symptoms), ("constraints", case.constraints), ("cautions", case.cautions))
        yield from ((name, text) for name, texts in named for text in texts)
        yield from (("note", outcome.note) for outcome in case.outcomes)
    if record.template is not None:
        yield from (("template", text) for text in (record.template.name, record.template.description, *record.template.pitfalls))


def _check_line(text: str, place: str) -> None:
    _check_characters(text, place)
    found = _MARKUP.search(text)
    if found is not None:
        raise ContentError(f"{place}: raw HTML {found[0][:40]!r}", allowed="plain text", do="write it without angle brackets")


def _check_characters(text: str, place: str) -> None:
    found = _CONTROL.search(text)
    if found is not None:
        raise ContentError(
            f"{place}: control character U+{ord(found[0]):04X}", allowed="printable text, tabs and line breaks", do="remove it"
        )
