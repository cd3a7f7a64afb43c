"""Things several rules need, computed once for each view."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Made = TypeVar("Made")


class Memo:
    """Keeps what was computed from one view, by key. A view never changes, so neither does what follows from it."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The value of ``key``, made on the first call."""
        if key not in self._kept:
            self._kept[key] = make()
        found: Made = self._kept[key]
        return found
