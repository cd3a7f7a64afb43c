"""Cache files: written whole or not at all, removed when nobody can still be opening them."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path
from typing import Final

GRACE_S: Final = 600.0
"""Age from which a file no manifest names is removed: a reader opens it milliseconds after reading the manifest."""


def write_durably(path: Path, data: bytes) -> None:
    """Put ``data`` at ``path`` through a temporary file; on return it survives power loss. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        with fresh.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def collect(folder: Path, pattern: str, *, keep: str, grace_s: float = GRACE_S) -> None:
    """Remove files that fit ``pattern`` and are older than ``grace_s`` seconds, except ``keep``."""
    limit = time.time() - grace_s
    for path in folder.glob(pattern):
        try:
            if path.name != keep and path.stat().st_mtime < limit:
                path.unlink()
        except FileNotFoundError:
            # Another process collects at the same time.
            continue
