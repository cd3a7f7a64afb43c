"""The journal of a tuning run: every finished trial as one line of JSON, on disk before the next begins.

A run is a function of its setup, its limits, the casebook and the results of its trials. So it is resumed by running it again:
trials that the journal holds are not run a second time.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, TypeVar

import msgspec

from kb.errors import ConflictError, MalformedInputError, UsageError
from kb.files import sync_folder
from kb.profile.simulated.options import Setting
from kb.tune.figures import Figures

FORMAT: Final = "diagnosis-recipes tuning journal"
SCHEMA: Final = 1
_Kind = TypeVar("_Kind")


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """First line: what the trials are about. Two runs may share a journal only when all of it is equal."""

    format: str = FORMAT
    schema: int = SCHEMA
    simulator: str
    model: str
    graph: str = ""
    """SHA-256 of a model file's graph; "" for a built-in model."""
    soc: str
    seed: int
    options: Mapping[str, Setting]
    constraints: Mapping[str, object]


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One finished trial. ``key`` identifies its options (see ``key_of``). ``figures`` None: it could not run, ``why`` says so.

    ``noise`` is the band its comparison with ``against`` (a key, empty for the baseline) had, a fraction.
    """

    n: int
    kind: Literal["baseline", "strategy", "knobs"]
    name: str
    key: str
    against: str = ""
    options: Mapping[str, Setting]
    figures: Figures | None = None
    noise: float = 0.0
    why: str = ""
    wall_s: float = 0.0


def key_of(options: Mapping[str, Setting]) -> str:
    """Equal options, equal key: canonical JSON."""
    return msgspec.json.encode(dict(sorted(options.items()))).decode()


class Journal:
    """An open journal. Trials already in it are served by ``known``; ``add`` is durable when it returns.

    ``path`` None keeps everything in memory. Use as a context manager: the file is locked while it is open.
    """

    def __init__(self, path: Path | None, header: Header) -> None:
        """Opens or begins the journal. Raises UsageError when it belongs to another run, ConflictError when another process
        has it open, MalformedInputError when a line before the last is damaged."""
        self._entries: dict[tuple[str, str], Entry] = {}
        self._handle = -1
        self.count = 0
        self.begun = 0
        """Trials of earlier processes."""
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        try:
            _regular(self._handle, path)
            _locked(self._handle, path)
            self._begin(path, header)
        except BaseException:
            self.close()
            raise

    def _begin(self, path: Path, header: Header) -> None:
        lines, whole = _lines(self._handle)
        # What follows the last line end is a trial that was being written when the process died: it never finished.
        os.ftruncate(self._handle, whole)
        os.lseek(self._handle, 0, os.SEEK_END)
        if not lines:
            self._write(msgspec.json.encode(header))
            sync_folder(path.parent)
            return
        found = _decoded(lines[0], Header, path, 1)
        if found != msgspec.json.decode(msgspec.json.encode(header), type=Header):
            raise UsageError(
                f"{path} belongs to another run: {_difference(found, header)}",
                allowed="a journal of the same model, chip, options, seed and limits",
                do="name another journal, or remove this one to begin anew",
            )
        for number, line in enumerate(lines[1:], start=2):
            self._keep(_decoded(line, Entry, path, number))
        self.begun = self.count

    def known(self, key: str, against: str = "") -> Entry | None:
        """The finished trial of these options, compared with ``against``."""
        return self._entries.get((key, against))

    def entries(self) -> Iterator[Entry]:
        """Every finished trial in order."""
        yield from self._entries.values()

    def add(self, entry: Entry) -> None:
        """Keep a finished trial."""
        if self._handle >= 0:
            self._write(msgspec.json.encode(entry))
        self._keep(entry)

    def _keep(self, entry: Entry) -> None:
        self._entries[entry.key, entry.against] = entry
        self.count += 1

    def _write(self, data: bytes) -> None:
        view = memoryview(data + b"\n")
        while view:
            view = view[os.write(self._handle, view) :]
        os.fsync(self._handle)

    def close(self) -> None:
        """Release the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _regular(handle: int, path: Path) -> None:
    """A pipe or device would be read for ever."""
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        raise UsageError(f"{path} is no regular file", allowed="a file of its own for the journal", do="name another path")


def _locked(handle: int, path: Path) -> None:
    """Hold the file for this process. Windows has no such lock in its standard library's POSIX module; there it goes without."""
    if os.name == "nt":
        return
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise ConflictError(f"{path} is in use by another run", do="wait for it, or name another journal") from error


def _lines(handle: int) -> tuple[list[bytes], int]:
    """Whole lines, and the B they take."""
    data = b""
    while block := os.read(handle, 1 << 20):
        data += block
    whole = data.rfind(b"\n") + 1
    return data[:whole].splitlines(), whole


def _decoded(line: bytes, kind: type[_Kind], path: Path, number: int) -> _Kind:
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.MsgspecError as error:
        raise MalformedInputError(f"{path}:{number}: {error}", allowed="a journal of kb tune", do="remove it to begin anew") from error


def _difference(found: Header, wanted: Header) -> str:
    names = [name for name in Header.__struct_fields__ if getattr(found, name) != getattr(wanted, name)]
    shown = names[0]
    if shown not in ("options", "constraints"):
        return f"{shown} is {getattr(found, shown)}, not {getattr(wanted, shown)}"
    before, after = dict(getattr(found, shown)), dict(getattr(wanted, shown))
    moved = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return ", ".join(f"{name} is {before.get(name)}, not {after.get(name)}" for name in moved[:3])
