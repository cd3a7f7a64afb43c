"""Files written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Put ``parts`` at ``path`` so that a reader sees the old file or the new one, never a piece, and the new one
    survives power loss once this returns: temporary neighbour, fsync, rename, fsync of the folder.

    Makes the folder when it is absent. Raises OSError (disk full, no permission) and then leaves nothing behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with fresh.open("xb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable. Windows cannot open a folder and journals renames itself."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
