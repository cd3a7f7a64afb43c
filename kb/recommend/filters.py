"""Hard constraints: each removes a strategy with a reason, or lets it pass."""

from __future__ import annotations

from kb.domain.catalogue import EFFORTS, Strategy
from kb.domain.recommendation import Constraints, Excluded
from kb.domain.soc import SocFamily
from kb.domain.text import Text


def exclusion(strategy: Strategy, constraints: Constraints, family: SocFamily, phase: str | None) -> Excluded | None:
    """Why ``strategy`` is not allowed here; None when it is."""
    reason = _by_name(strategy, constraints) or _by_cost(strategy, constraints) or _by_place(strategy, family, phase)
    return Excluded(id=strategy.id, reason=reason) if reason else None


def _by_name(strategy: Strategy, constraints: Constraints) -> Text | None:
    if strategy.id in constraints.forbid:
        return Text(zh="用户禁止使用", en="forbidden by --forbid")
    if constraints.allow and strategy.id not in constraints.allow:
        return Text(zh="不在 --allow 列表中", en="not in --allow")
    return None


def _by_cost(strategy: Strategy, constraints: Constraints) -> Text | None:
    if strategy.changes_model and not constraints.allow_model_change:
        return Text(zh="需要修改模型，而约束不允许", en="changes the model, which --no-model-change rules out")
    if EFFORTS.index(strategy.effort) > EFFORTS.index(constraints.max_effort):
        return Text(
            zh=f"工作量 {strategy.effort} 超过上限 {constraints.max_effort}",
            en=f"effort {strategy.effort} is above {constraints.max_effort}",
        )
    return None


def _by_place(strategy: Strategy, family: SocFamily, phase: str | None) -> Text | None:
    if strategy.families and family != "unknown" and family not in strategy.families:
        known = ", ".join(strategy.families)
        return Text(zh=f"只适用于 {known}，本次为 {family}", en=f"applies to {known}, this session ran on {family}")
    if strategy.phases and phase and phase not in strategy.phases:
        known = ", ".join(strategy.phases)
        return Text(zh=f"只适用于阶段 {known}，本次为 {phase}", en=f"applies to {known}, this session is {phase}")
    return None
