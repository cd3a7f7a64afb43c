"""Job: sessions from a path written in another format."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from kb.errors import KbError, UsageError
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


_PROF: Final = ".prof"
_TRACE: Final = ".pt.trace.json.gz"
_ENDINGS: Final[Mapping[str, str]] = {"prof": _PROF, "chrome": _TRACE}


def convert(source: Path, target: Path, form: str, *, redacted: bool = False, export: bool = False) -> tuple[Path, ...]:
    """Write every session of ``source`` in the format ``form`` and return what was written, one path a session: into the folder
    ``target``, or, when its name ends as files of the format do, the one session into the file ``target``.

    Origins travel with the sessions. Raises KbError for a name that is taken, UsageError for several sessions and a file's name,
    UnusableCaptureError when nothing can be read.
    """
    names_file = form in _ENDINGS and target.name.lower().endswith(_ENDINGS[form]) and not target.is_dir()
    if names_file:
        _refuse_taken(target)
    if export:
        export_raw(source)
    sessions = tuple(redact(session) if redacted else session for session in load(source))
    if names_file and len(sessions) > 1:
        raise UsageError(
            f"{source} holds {len(sessions)} sessions, {target} names one file",
            allowed="a folder for several",
            do=f"kb convert {source} {target.name.removesuffix(_ENDINGS[form])} writes a file each",
        )
    if names_file:
        return (_file(target, _bytes(sessions[0], form)),)
    return tuple(_WRITERS[form](session, target) for session in sessions)


def _prof(session: Session, folder: Path) -> Path:
    return _file(folder / f"{_plain(session.meta.name)}{_PROF}", _bytes(session, "prof"))


def _chrome(session: Session, folder: Path) -> Path:
    return _file(folder / f"{_plain(session.meta.name)}{_TRACE}", _bytes(session, "chrome"))


def _bytes(session: Session, form: str) -> bytes:
    return to_bytes(session) if form == "prof" else gzip.compress(trace_bytes(session), mtime=0)


def _file(path: Path, data: bytes) -> Path:
    _refuse_taken(path)
    write_whole(path, [data])
    return path


def _refuse_taken(path: Path) -> None:
    if path.exists():
        raise KbError(f"{path} is already there", do="choose another folder, or remove it first")


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)


_WRITERS: Final[Mapping[str, Callable[[Session, Path], Path]]] = {
    "prof": _prof, "ascend-text": write_rank, "ascend-db": write_rank_database, "chrome": _chrome,
}  # fmt: skip
