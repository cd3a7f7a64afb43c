"""Job: sessions from a path written in another format."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from kb.errors import KbError
from kb.files import write_whole
from kb.profile.ascend.writing import write_rank
from kb.profile.ascend.writing_db import write_rank_database
from kb.profile.chrome.writing import trace_bytes
from kb.profile.exporting import export_raw
from kb.profile.sources import load
from kb.session.codec import to_bytes
from kb.session.redaction import redact
from kb.session.session import Session

FORMATS: Final = ("prof", "ascend-text", "ascend-db", "chrome")


def convert(source: Path, folder: Path, form: str, *, redacted: bool = False, export: bool = False) -> tuple[Path, ...]:
    """Write every session of ``source`` into ``folder`` in the format ``form`` and return what was written, one path a session.

    Origins travel with the sessions. Raises KbError for a name that is taken, UnusableCaptureError when nothing can be read.
    """
    if export:
        export_raw(source)
    sessions = tuple(redact(session) if redacted else session for session in load(source))
    return tuple(_WRITERS[form](session, folder) for session in sessions)


def _prof(session: Session, folder: Path) -> Path:
    return _file(folder / f"{_plain(session.meta.name)}.prof", to_bytes(session))


def _chrome(session: Session, folder: Path) -> Path:
    return _file(folder / f"{_plain(session.meta.name)}.pt.trace.json.gz", gzip.compress(trace_bytes(session), mtime=0))


def _file(path: Path, data: bytes) -> Path:
    if path.exists():
        raise KbError(f"{path} is already there", do="choose another folder, or remove it first")
    write_whole(path, [data])
    return path


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)


_WRITERS: Final[Mapping[str, Callable[[Session, Path], Path]]] = {
    "prof": _prof, "ascend-text": write_rank, "ascend-db": write_rank_database, "chrome": _chrome,
}  # fmt: skip
