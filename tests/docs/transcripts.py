"""Console transcripts in the documents: commands after ``$``, and what they print, with ``…`` for any text or any lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ANY = "…"


@dataclass(frozen=True)
class Shown:
    """A command as it stands in a document, and the output shown below it."""

    page: str
    line: int
    command: str
    output: tuple[str, ...]


def transcripts(page: Path) -> Iterator[tuple[Shown, ...]]:
    """The ``console`` blocks of a page, each a sequence of commands that share a folder."""
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield tuple(_commands(page.name, match[1], text.count("\n", 0, match.start()) + 1))


def _commands(page: str, block: str, first: int) -> Iterator[Shown]:
    command, at, output = "", first, list[str]()
    for number, line in enumerate(block.splitlines(), start=first + 1):
        if line.startswith("$ "):
            if command:
                yield Shown(page, at, command, tuple(output))
            command, at, output = line[2:], number, []
        else:
            output.append(line)
    if command:
        yield Shown(page, at, command, tuple(output))


def agrees(shown: tuple[str, ...], printed: str) -> bool:
    """Whether what was printed is what is shown: ``…`` alone on a line stands for any lines, inside a line for any text."""
    pattern = "".join(
        "(?:.*\\n)*?" if line.strip() == ANY else ".*?".join(map(re.escape, line.rstrip().split(ANY))) + "\\n" for line in shown
    )
    lines = [line.rstrip() for line in printed.strip("\n").splitlines()]
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None
