"""The rules, in one visible list."""

from __future__ import annotations

from typing import Final

import msgspec

from kb.diagnose.rules.pipeline_imbalance import pipeline_imbalance
from kb.diagnose.rules.unfused_attention import unfused_attention
from kb.domain.catalogue import CauseId
from kb.domain.protocols import AnyRule, RuleKind


class RuleEntry(msgspec.Struct, frozen=True):
    """A rule, what it is shown, and the causes it is responsible for: it judges each of them every time."""

    rule: AnyRule
    kind: RuleKind
    causes: tuple[CauseId, ...]


RULES: Final[tuple[RuleEntry, ...]] = (
    RuleEntry(unfused_attention, "rank", ("unfused_attention",)),
    RuleEntry(pipeline_imbalance, "cluster", ("pipeline_imbalance",)),
)
