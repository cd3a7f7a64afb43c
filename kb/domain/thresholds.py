"""Named numbers the rules compare with; a template overrides them by name."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kb.errors import UsageError


class Threshold(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A default with its unit and the reason for its value."""

    name: str
    value: float
    unit: str
    reason: str


class Thresholds(msgspec.Struct, frozen=True):
    """Values by name, all of them known."""

    values: Mapping[str, float]

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    def overridden(self, changes: Mapping[str, float]) -> Thresholds:
        """A copy with ``changes``. Raises UsageError for a name no rule reads."""
        unknown = sorted(set(changes) - set(self.values))
        if unknown:
            raise UsageError(f"unknown thresholds: {', '.join(unknown)}", allowed=", ".join(sorted(self.values)))
        return Thresholds({**self.values, **changes})
