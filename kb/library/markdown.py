"""Records as Markdown files: YAML front matter with every field but the body, then the body in both languages."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kb.domain.record import RECORD_SCHEMA, Record, checked_slug
from kb.domain.text import Text
from kb.errors import ContentError, UsageError
from kb.library.body import ALLOWED_LINKS, checked_link, read_body, write_body
from kb.library.decoding import misfit
from kb.library.frontmatter import FrontMatter, read_front_matter, write_front_matter
from kb.library.schema import split_error, steps_of

FENCE: Final = "---"


def parse_markdown(text: str, *, source: str) -> Record:
    """Read a record. Raises ContentError naming ``source``, and where possible line, field and what is allowed."""
    header, body, body_line = _split(text.replace("\r\n", "\n").removeprefix("\ufeff"), source)
    front = read_front_matter(header, source=source)
    if "body" in front.fields:
        raise ContentError(f"{source}:{front.line_of(('body',))}: body in the front matter", do="write it below, as # English and # 中文")
    record = _converted(front, read_body(body, source=source, first_line=body_line), source)
    _check(record, front, source)
    return record


def write_markdown(record: Record) -> str:
    """The canonical file of ``record``; ``parse_markdown`` gives the equal record back.

    Raises ContentError for a record that such a file cannot carry: raw HTML, a forbidden link, a level-1 heading
    inside the body, or a block of code that is not closed.
    """
    fields: dict[str, Any] = msgspec.to_builtins(record)
    fields.pop("body", None)
    text = f"{FENCE}\n{write_front_matter(fields)}{FENCE}\n\n{write_body(record.body)}"
    source = f"record {record.slug}"
    if parse_markdown(text, source=source) != record:
        raise ContentError(f"{source}: its text would not survive a Markdown file", do="remove control characters and unclosed blocks")
    return text


def _split(text: str, source: str) -> tuple[str, str, int]:
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        raise ContentError(
            f"{source}:1: no front matter", allowed=f"a first line {FENCE}, YAML, a line {FENCE}, the body", do="add the front matter"
        )
    for at in range(1, len(lines)):
        if lines[at].rstrip() == FENCE:
            return "\n".join(lines[1:at]) + "\n", "\n".join(lines[at + 1 :]), at + 2
    raise ContentError(f"{source}: the front matter is not closed", allowed=f"a line {FENCE} after the YAML", do=f"add the line {FENCE}")


def _converted(front: FrontMatter, body: Text, source: str) -> Record:
    try:
        return msgspec.convert(front.fields | {"body": msgspec.to_builtins(body)}, Record)
    except msgspec.ValidationError as error:
        line = front.line_of(steps_of(split_error(error)[1]))
        raise misfit(error, Record, source=f"{source}:{line}") from error


def _check(record: Record, front: FrontMatter, source: str) -> None:
    if record.schema > RECORD_SCHEMA:
        line = front.line_of(("schema",))
        raise ContentError(
            f"{source}:{line}: schema {record.schema} is newer than this program's {RECORD_SCHEMA}", do="upgrade diagnosis-recipes"
        )
    try:
        checked_slug(record.slug)
    except UsageError as error:
        raise ContentError(f"{source}:{front.line_of(('slug',))}: {error.what}", allowed=error.allowed, do=error.do) from error
    for at, cited in enumerate(record.sources):
        if not checked_link(cited.url):
            line = front.line_of(("sources", at, "url"))
            raise ContentError(f"{source}:{line}: link to {cited.url}", allowed=ALLOWED_LINKS, do="change or remove the link")
