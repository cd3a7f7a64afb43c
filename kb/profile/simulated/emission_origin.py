"""Where a simulated row would have been read: a file of the simulator's and a line."""

from __future__ import annotations

import numpy as np

from kb.session.builder import Strings
from kb.session.session import Array

FIRST_ROW = 2
"""Line of the first row below a header."""


def origin(name: str, rows: int, strings: Strings) -> dict[str, Array]:
    """The columns ``file`` and ``row`` of a table."""
    return {"file": np.full(rows, strings.code(f"simulated/{name}")), "row": np.arange(FIRST_ROW, rows + FIRST_ROW)}
