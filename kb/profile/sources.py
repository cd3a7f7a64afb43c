"""Where profiles come from: the table of backends, and the one way in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from kb.domain.protocols import Backend
from kb.domain.sniff import Sniff
from kb.errors import MalformedInputError, UnusableCaptureError
from kb.profile.allocation import keep_freed_blocks
from kb.profile.ascend.backend import ALLOWED, ASCEND
from kb.profile.ascend.recipes import capture_commands
from kb.profile.chrome.backend import ALLOWED as CHROME_ALLOWED
from kb.profile.chrome.backend import CHROME_TRACE
from kb.profile.prof_file import PROF_FILE
from kb.session.session import Session

BACKENDS: Final[tuple[Backend[Session], ...]] = (PROF_FILE, ASCEND, CHROME_TRACE)
"""Asked in this order; the first that recognises a path reads it."""
_SHOWN: Final = 6
_ARCHIVES: Final = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


def sniff(path: Path) -> Sniff | None:
    """What the first backend that knows ``path`` sees there; None when none does. Reads names and first bytes; an archive is
    unpacked to look inside.

    Raises UnusableCaptureError when the system refuses to look.
    """
    with _reachable(path):
        if _is_archive(path):
            from kb.profile.archives import unpacked  # zip and tar cost 15 ms that folders need not pay

            with unpacked(path) as folder:
                seen = _sniffed(folder)
                return None if seen is None else _inside(seen, folder, path)
        return _sniffed(path)


def load(path: Path) -> tuple[Session, ...]:
    """One session a rank, ordered by rank. Raises UnusableCaptureError (exit code 3) saying what was found, what is
    allowed and how to capture it; MalformedInputError names file and row."""
    with _reachable(path):
        if _is_archive(path):
            from kb.profile.archives import unpacked  # zip and tar cost 15 ms that folders need not pay

            with unpacked(path) as folder:
                return _loaded(folder, str(path))
        return _loaded(path, str(path))


def _is_archive(path: Path) -> bool:
    return path.name.lower().endswith(_ARCHIVES) and path.is_file()


def _sniffed(path: Path) -> Sniff | None:
    return next((seen for backend in BACKENDS if (seen := backend.sniff(path)) is not None), None)


def _loaded(path: Path, shown: str) -> tuple[Session, ...]:
    keep_freed_blocks()
    for backend in BACKENDS:
        if backend.sniff(path) is not None:
            return tuple(backend.load(path))
    if path.suffix.lower() == ".json" and path.is_file():
        raise _no_trace(path, shown)
    raise UnusableCaptureError(f"{shown}: {_seen(path)}", allowed=f"{ALLOWED}; {CHROME_ALLOWED}; or a .prof file", do=capture_commands())


_LARGEST_LOOK: Final = 64 << 20
"""Bytes of a JSON file that are read to say what it is instead of a trace."""


def _no_trace(path: Path, shown: str) -> UnusableCaptureError:
    """What a JSON file is that no backend knows: whoever has such a file needs no advice on capturing."""
    trace = "a PyTorch profiler trace, an ONNX Runtime profile, or an Ascend capture"
    size = path.stat().st_size
    if not size:
        return MalformedInputError(f"{shown} is empty", allowed=trace, do="check where the file comes from")
    if size > _LARGEST_LOOK:
        return UnusableCaptureError(f"{shown}: JSON, but no profile", allowed=trace, do="name the capture")
    try:
        document = msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return MalformedInputError(f"{shown}: not JSON: {error}", allowed=trace, do="check where the file comes from, or name the capture")
    inside = ", ".join(map(repr, list(document)[:4])) if isinstance(document, dict) else ""
    kind = f"an object with {inside or 'nothing'}" if isinstance(document, dict) else "a list" if isinstance(document, list) else "a value"
    return UnusableCaptureError(f"{shown}: JSON ({kind[:200]}), but no profile", allowed=trace, do="name the capture")


def _inside(seen: Sniff, folder: Path, archive: Path) -> Sniff:
    def shown(text: str) -> str:
        return text.replace(str(folder), str(archive))

    return Sniff(format=seen.format, roots=tuple(map(shown, seen.roots)), remarks=tuple(map(shown, seen.remarks)))


@contextmanager
def _reachable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnusableCaptureError(f"{path}: cannot be read: {error.strerror}", do="check the path and its permissions") from error


def _seen(path: Path) -> str:
    if path.is_dir():
        names = sorted(child.name + ("/" if child.is_dir() else "") for child in path.iterdir())
        if not names:
            return "no profile: the folder is empty"
        more = f", .. ({len(names)} entries)" if len(names) > _SHOWN else ""
        return f"no profile, found {', '.join(names[:_SHOWN])}{more}"
    return "a file, but no profile of a kind this version reads" if path.exists() else "no such file or folder"
