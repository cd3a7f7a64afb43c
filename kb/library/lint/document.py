"""One content file with its record and the lines of its fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kb.domain.record import Record
from kb.domain.text import Text
from kb.errors import ContentError
from kb.library.decoding import read_content
from kb.library.lint.places import Places
from kb.library.lint.problem import Problem
from kb.library.markdown import FENCE, parse_markdown
from kb.library.schema import Steps
from kb.library.templates import parse_template, template_record

SCHEMA: Final = "schema"
_LINE = re.compile(r":(\d+): ")
Said = tuple[Steps, Text]
"""A text of a record and where it stands."""


class Document:
    """A record as it stands in a file. ``file`` is the shown name."""

    def __init__(self, file: str, text: str, record: Record) -> None:
        self.file = file
        self.record = record
        self._lines = text.split("\n")
        is_markdown = self._lines[0].rstrip() == FENCE
        header = "\n".join(self._lines[1 : self._lines.index(FENCE, 1)]) + "\n" if is_markdown else text
        self._places = Places(header, offset=1 if is_markdown else 0)
        self._template = not is_markdown

    def line_of(self, steps: Steps) -> int:
        """Line of a field of the record; a template's fields are looked up where its file has them."""
        return self._places.line_of(_in_template(steps) if self._template else steps)

    def line_with(self, part: str) -> int:
        """The first line that holds ``part``; 1 when none does."""
        return next((at for at, line in enumerate(self._lines, start=1) if part in line), 1)

    def texts(self) -> Iterator[Said]:
        """Every two-language text of the record but the body."""
        record = self.record
        yield ("title",), record.title
        yield ("summary",), record.summary
        for at, pitfall in enumerate(record.pitfalls):
            yield ("pitfalls", at), pitfall
        for at, case in enumerate(record.cases):
            yield ("cases", at, "finding"), case.finding
            for name in ("symptoms", "constraints", "cautions"):
                yield from ((("cases", at, name, nth), text) for nth, text in enumerate(getattr(case, name)))
            yield from ((("cases", at, "outcomes", nth, "note"), outcome.note) for nth, outcome in enumerate(case.outcomes))
        if record.template is not None:
            yield from ((("checks", at, "reason"), check.reason) for at, check in enumerate(record.template.checks))


def _in_template(steps: Steps) -> Steps:
    names = {"title": "name", "summary": "description"}
    return tuple(names.get(step, step) if isinstance(step, str) else step for step in steps)


def read_document(path: Path, file: str) -> Document | Problem:
    """The file at ``path``, or the problem that keeps it from being read."""
    try:
        text = read_content(path).decode()
        is_template = path.suffix == ".json"
        record = template_record(parse_template(text.encode(), source=file)) if is_template else parse_markdown(text, source=file)
    except UnicodeDecodeError as error:
        return Problem(file, 1, SCHEMA, Text(f"不是 UTF-8（字节 {error.start}）", f"not UTF-8 at byte {error.start}"))
    except ContentError as error:
        return from_error(error, file)
    return Document(file, text, record)


def from_error(error: ContentError, file: str) -> Problem:
    """A loader's error as a problem; its line is taken from its message."""
    found = _LINE.search(error.what)
    said = error.what.removeprefix(file).lstrip(":0123456789 ")
    message = f"{said}; allowed: {error.allowed}" if error.allowed else said
    return Problem(file, int(found[1]) if found else 1, SCHEMA, Text(message, message))
