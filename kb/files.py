"""Files written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO


def write_whole(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Put ``parts`` at ``path`` so that a reader sees the old file or the new one, never a piece, and the new one
    survives power loss once this returns: temporary neighbour, fsync, rename, fsync of the folder.

    Makes the folder when it is absent. Raises OSError (disk full, no permission) about ``path`` and then leaves nothing behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = _neighbour(path)
    try:
        _write(fresh, parts)
        fresh.replace(path)
    except OSError as error:
        # The neighbour's name means nothing to the reader.
        raise _about(error, path) from error
    finally:
        fresh.unlink(missing_ok=True)
    sync_folder(path.parent)


def check_place(path: Path) -> None:
    """Raise the OSError about ``path`` that ``write_whole`` would meet at once: no folder can be made there, nothing written in it."""
    folder = next((item for item in path.absolute().parents if item.exists()), Path(path.anchor))
    probe = _neighbour(path if folder == path.absolute().parent else folder / "new")
    try:
        with probe.open("xb"):
            pass
        probe.unlink()
    except OSError as error:
        raise _about(error, path) from error


def _neighbour(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")


def _about(error: OSError, path: Path) -> OSError:
    return OSError(error.errno, error.strerror, str(path))


def _write(fresh: Path, parts: Iterable[bytes | memoryview]) -> None:
    with fresh.open("xb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable. Windows cannot open a folder and journals renames itself."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def open_regular(path: Path) -> BinaryIO:
    """``path`` for reading, if it is a regular file. A pipe or device would wait for ever or never end: OSError (EINVAL)."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        os.close(handle)
        code = errno.EISDIR if is_folder else errno.EINVAL
        raise OSError(code, os.strerror(code) if is_folder else "not a regular file", str(path))
    return os.fdopen(handle, "rb")
