"""The backend for Chrome traces: PyTorch profiler (Kineto) and ONNX Runtime, one file or a folder of one a rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from kb.domain.sniff import Sniff
from kb.errors import MalformedInputError, UnusableCaptureError
from kb.profile.chrome import kineto, onnxruntime
from kb.profile.chrome.naming import SUFFIXES
from kb.profile.chrome.source import head
from kb.profile.parallel import in_parallel
from kb.session.session import Session

ALLOWED: Final = "a PyTorch profiler trace (.pt.trace.json, .json, .json.gz), an ONNX Runtime profile, or a folder of one a rank"
_HEAD: Final = 1 << 16
_TRACE: Final = ".trace.json"
_ASCEND_NAMES: Final = ("trace_view", "msprof_", "msprof.", "profiler_info", "profiler_metadata", "communication")
_ASCEND: Final = (b'"Ascend Hardware"', b'"CANN"', b'"enqueue_to_dequeue"')
_READERS: Final[Mapping[str, Callable[[Path, str], Session]]] = {
    kineto.FORMAT: kineto.read_kineto,
    onnxruntime.FORMAT: onnxruntime.read_onnxruntime,
}


class ChromeTrace:
    """Reads JSON traces of the Chrome event format, plain or gzip."""

    name: str = "chrome"

    def sniff(self, path: Path) -> Sniff | None:
        """The traces at ``path`` by names and first bytes, or None."""
        found = _traces(path)
        if not found:
            return None
        formats = sorted(set(found.values()))
        return Sniff(format=formats[0] if len(formats) == 1 else self.name, roots=tuple(map(str, found)))

    def load(self, path: Path) -> tuple[Session, ...]:
        """One session a file, ordered by rank (unknown ranks last). Raises UnusableCaptureError or MalformedInputError."""
        found = _traces(path)
        if not found:
            raise UnusableCaptureError(f"{path}: no JSON trace of a known kind here", allowed=ALLOWED)
        base = path if path.is_dir() else path.parent
        jobs = [(file, file.relative_to(base).as_posix(), kind) for file, kind in found.items()]
        return tuple(sorted(in_parallel(_read, jobs, sum(file.stat().st_size for file in found)), key=_order))


def _read(job: tuple[Path, str, str]) -> Session:
    file, label, kind = job
    return _READERS[kind](file, label)


def _order(session: Session) -> tuple[bool, int, str]:
    return session.meta.rank is None, session.meta.rank or 0, session.meta.name


def _traces(path: Path) -> dict[Path, str]:
    if path.is_file():
        files = [path] if path.name.endswith(SUFFIXES) else []
    elif path.is_dir():
        try:
            files = sorted(child for child in path.iterdir() if child.is_file() and child.name.endswith(SUFFIXES))
        except OSError as error:
            raise UnusableCaptureError(f"{path}: cannot be listed: {error.strerror}", do="check the permissions") from error
    else:
        files = []
    return {file: kind for file in files if (kind := _kind(file, alone=path.is_file()))}


def _kind(file: Path, *, alone: bool) -> str | None:
    if file.name.startswith(_ASCEND_NAMES):
        return None
    try:
        first = head(file, file.name, _HEAD)
    except MalformedInputError:
        return kineto.FORMAT if alone or _TRACE in file.name else None  # the reader names what is wrong with it
    if not first.strip() and _TRACE in file.name:
        return kineto.FORMAT  # the reader refuses it: an empty trace is a rank that went missing
    if any(marker in first for marker in _ASCEND):
        return None
    if onnxruntime.matches(first):
        return onnxruntime.FORMAT
    return kineto.FORMAT if kineto.matches(first) else None


CHROME_TRACE: Final = ChromeTrace()
