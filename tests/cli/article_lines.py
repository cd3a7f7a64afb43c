"""The commands of an article, as a reader would paste them: continuations joined, comments dropped."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

PROGRAMS = ("profiler", "cann-profile", "cann-tune", "atc", "aoe")
_START = re.compile(rf"(?<![\w./-])(?:{'|'.join(PROGRAMS)})\s+(?:-|[a-z])")
_PROSE = re.compile(r"[，。；、（]|（|\.\.\.$")


def article_lines(text: str) -> Iterator[str]:
    """Each command line, in order; a line that mentions a command inside a sentence gives the command's words only."""
    lines = iter(text.splitlines())
    for line in lines:
        match = _START.search(line)
        if match is None:
            continue
        command = line[match.start() :]
        while _uncommented(command).rstrip().endswith("\\"):
            command = _uncommented(command).rstrip()[:-1] + " " + next(lines).strip()
        command = _uncommented(command).strip()
        if match.start() and not line[: match.start()].isspace():
            command = re.split(r"[，。；（）|]", command)[0].strip()
        yield command


def _uncommented(command: str) -> str:
    """Without a trailing ``# comment`` that stands outside quotes."""
    quoted = ""
    for at, character in enumerate(command):
        if quoted:
            quoted = "" if character == quoted else quoted
        elif character in "\"'":
            quoted = character
        elif character == "#" and (at == 0 or command[at - 1].isspace()):
            return command[:at]
    return command


def words_of(command: str) -> list[str]:
    """The command's words as a shell splits them."""
    return shlex.split(command)
