"""From module to operator to hardware: a tree with numbers at every node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from kb.domain.finding import Evidence
from kb.domain.quantity import Quantity

Level = Literal["session", "module", "operator", "hardware", "event"]


class DrillNode(msgspec.Struct, frozen=True, kw_only=True):
    """``time_ns`` is exclusive of siblings; children sum to at most it."""

    level: Level
    name: str
    time_ns: int
    share: float
    metrics: Mapping[str, Quantity] = {}
    evidence: tuple[Evidence, ...] = ()
    children: tuple[DrillNode, ...] = ()


class DrillDown(msgspec.Struct, frozen=True, kw_only=True):
    """One target of one session."""

    session: str
    target: str
    root: DrillNode
