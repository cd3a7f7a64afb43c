"""Job: lint content."""

from __future__ import annotations

from pathlib import Path

from kb.diagnose.thresholds import load_thresholds
from kb.library.lint.collection import Linted, lint
from kb.library.location import library_root


def lint_content(path: Path | None) -> Linted:
    """Lint ``path``, or the shipped library. Raises NotFoundError when there is nothing to lint."""
    shipped = library_root()
    return lint(path or shipped, shipped=shipped, thresholds=set(load_thresholds().values))
