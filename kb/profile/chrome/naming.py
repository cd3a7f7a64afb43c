"""What the name of a trace file tells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

SUFFIXES: Final = (".json", ".json.gz", ".trace")
_ENDINGS: Final = (".gz", ".json", ".trace", ".pt")


def session_name(path: Path) -> str:
    """The file name without its endings."""
    name = path.name
    for ending in _ENDINGS:
        name = name.removesuffix(ending)
    return name or path.name


def rank_in_name(name: str) -> int | None:
    """The rank in names such as ``rank-3.Jul_15.pt.trace.json`` or ``worker0.162.json``."""
    match = re.search(r"(?:rank|worker)[-_]?(\d{1,6})(?!\d)", name, re.ASCII | re.IGNORECASE)
    return int(match[1]) if match else None
