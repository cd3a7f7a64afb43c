"""Cache files are removed when nobody can still be opening them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

GRACE_S: Final = 600.0
"""Age from which a file no manifest names is removed: a reader opens it milliseconds after reading the manifest."""


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
