"""Who says something."""

from __future__ import annotations

import os


def author(given: str | None) -> str:
    """The name given, else ``KB_AUTHOR``, else anonymous."""
    return given or os.environ.get("KB_AUTHOR") or "anonymous"
