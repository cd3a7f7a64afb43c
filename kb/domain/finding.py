"""What a rule says about a session or a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from kb.domain.catalogue import CauseId, StrategyId
from kb.domain.text import Text

Priority = Literal["P0", "P1", "P2", "P3"]
Scope = Literal["rank", "cluster"]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One cited cell: ``row`` is the 1-based line of ``file`` (header = 1), or a key path in a JSON file.

    ``value`` is what stands there (or what was computed from the named rows, then ``metric`` says how),
    in ``unit``.
    """

    file: str
    row: int | str
    metric: str
    value: float | int | str
    unit: str


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """Place of a finding. ``ranks`` and ``stages`` for cluster findings; the rest when the capture has it."""

    module: str | None = None
    frame: str | None = None
    operators: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    stages: tuple[int, ...] = ()


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One cause, with its cost and its proof.

    ``exposed_ns``: time of the step attributed to the cause. ``share``: exposed_ns / step_ns (0..1).
    ``gain_bound_ns``: upper bound of what removing it can save, never above ``exposed_ns``.
    ``confidence``: calibrated probability that the cause is right (0..1). ``observed`` and ``healthy``:
    the seen value beside the expected one, by metric name. A finding without evidence is never shown.
    """

    cause: CauseId
    priority: Priority
    exposed_ns: int
    share: float
    gain_bound_ns: int
    confidence: float
    message: Text
    where: Where
    evidence: tuple[Evidence, ...]
    strategies: tuple[StrategyId, ...] = ()
    scope: Scope = "rank"
    observed: Mapping[str, float] = {}
    healthy: Mapping[str, float] = {}
    notes: tuple[Text, ...] = ()


class Healthy(msgspec.Struct, frozen=True, kw_only=True):
    """A check that passed, with the value that made it pass."""

    cause: CauseId
    message: Text
    metric: str | None = None
    value: float | None = None
    unit: str | None = None
    evidence: tuple[Evidence, ...] = ()


class NotJudged(msgspec.Struct, frozen=True, kw_only=True):
    """A check that could not be made: why, and the capture that would allow it."""

    cause: CauseId
    reason: Text
    capture: Text = Text()
    fault: bool = False
    """True when a rule raised: a defect of ours, exit code 4."""


Judgement = Finding | Healthy | NotJudged
