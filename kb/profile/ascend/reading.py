"""What stays the same for all ranks of one import."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kb.profile.ascend.columns import Specs, load_aliases
from kb.profile.ascend.metrics import Metrics, load_metrics
from kb.profile.ascend.recipes import Expected, load_expected


@dataclass(frozen=True, slots=True)
class Reading:
    """The user's root, the alias map, the counter columns, and what a complete export holds."""

    base: Path
    aliases: Mapping[str, Specs]
    metrics: Metrics
    expected: Expected

    def label(self, path: Path) -> str:
        """``path`` as evidence names it: relative to the user's root, with forward slashes."""
        return Path(os.path.relpath(path, self.base)).as_posix()


def reading_of(base: Path) -> Reading:
    """A reading with the shipped data files; ``base`` is the folder evidence is relative to."""
    return Reading(base, load_aliases(), load_metrics(), load_expected())
