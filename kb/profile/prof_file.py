"""The backend for ``.prof`` files: one of them, or a folder of them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kb.domain.sniff import Sniff
from kb.errors import MalformedInputError, UnusableCaptureError
from kb.files import open_regular
from kb.session.session import Session

FORMAT: Final = "prof"
SUFFIX: Final = ".prof"
LARGEST_FILE: Final = 2 << 30
"""Bytes; the writer never makes a larger one."""


class ProfFile:
    """Reads sessions this program wrote; their origin (measured or simulated) comes with them."""

    name: str = FORMAT

    def sniff(self, path: Path) -> Sniff | None:
        """The ``.prof`` files at ``path`` by their names, or None."""
        files = _files(path)
        return Sniff(format=FORMAT, roots=tuple(map(str, files))) if files else None

    def load(self, path: Path) -> tuple[Session, ...]:
        """One session a file, ordered by rank (unknown ranks last). Raises UnusableCaptureError or MalformedInputError."""
        files = _files(path)
        if not files:
            raise UnusableCaptureError(f"{path}: no {SUFFIX} file here", allowed=f"a {SUFFIX} file or a folder of them")
        return tuple(sorted(map(_load, files), key=_order))


def _files(path: Path) -> tuple[Path, ...]:
    if path.is_file():
        return (path,) if path.suffix == SUFFIX else ()
    if not path.is_dir():
        return ()
    try:
        return tuple(sorted(child for child in path.iterdir() if child.suffix == SUFFIX and child.is_file()))
    except OSError as error:
        raise UnusableCaptureError(f"{path}: cannot be listed: {error.strerror}", do="check the permissions") from error


def _load(path: Path) -> Session:
    from kb.session.codec import from_bytes  # zipfile costs 10 ms that the other backends need not pay

    try:
        with open_regular(path) as handle:
            data = handle.read(LARGEST_FILE + 1)
    except OSError as error:
        raise MalformedInputError(f"{path}: cannot be read: {error.strerror}", do="check the file and its permissions") from error
    if len(data) > LARGEST_FILE:
        raise MalformedInputError(f"{path}: larger than {LARGEST_FILE} bytes", do="this program never writes such a file")
    return from_bytes(data, source=str(path))


def _order(session: Session) -> tuple[bool, int, str]:
    return session.meta.rank is None, session.meta.rank or 0, session.meta.name


PROF_FILE: Final = ProfFile()
