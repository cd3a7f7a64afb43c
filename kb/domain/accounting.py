"""Where every nanosecond of a step went: exclusive parts that add up to the step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from kb.domain.text import Text

Part = Literal["compute", "comm_exposed", "copy_exposed", "idle_launch", "idle_sync", "idle_input", "idle_peer", "idle_bubble",
               "idle_gc", "idle_io", "idle_unknown"]  # fmt: skip
PARTS: Final[tuple[Part, ...]] = ("compute", "comm_exposed", "copy_exposed", "idle_launch", "idle_sync", "idle_input", "idle_peer",
                                  "idle_bubble", "idle_gc", "idle_io", "idle_unknown")  # fmt: skip
TOLERANCE: Final = 1e-3
"""Largest allowed |sum of parts - step| / step."""


class Accounting(msgspec.Struct, frozen=True, kw_only=True):
    """One step of one rank.

    ``step_ns`` is Stage + Bubble where the export says so, else the span of the step's marker.
    ``preparing_ns`` lies beside the step. ``parts`` are exclusive and sum to ``step_ns`` within
    ``TOLERANCE``. ``splits`` stand beside the parts, never inside: for example
    ``{"compute": {"cube": .., "vector": .., "ai_cpu": ..}, "comm": {"wait": .., "transit": .., "idle": .., "overlapped": ..}}``.
    ``source`` names the table the parts come from; ``notes`` say what could not be split and why.
    """

    step: str
    step_ns: int
    preparing_ns: int | None
    parts: Mapping[Part, int]
    splits: Mapping[str, Mapping[str, int]] = {}
    source: str = ""
    notes: tuple[Text, ...] = ()

    def share(self, part: Part) -> float:
        """``part`` as a share (0..1) of the step; 0 for an empty step."""
        return self.parts.get(part, 0) / self.step_ns if self.step_ns else 0.0

    @property
    def imbalance_ns(self) -> int:
        """Sum of parts minus the step, in ns; 0 for perfect books."""
        return sum(self.parts.values()) - self.step_ns
