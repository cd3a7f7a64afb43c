"""Hard constraints: each removes a strategy with a reason, or lets it pass."""

from __future__ import annotations

from kb.domain.catalogue import EFFORTS, Strategy
from kb.domain.recommendation import Constraints, Excluded
from kb.domain.soc import SocFamily
from kb.domain.text import Text
from kb.recommend.effects import load_priors


def exclusion(
    strategy: Strategy, constraints: Constraints, family: SocFamily, phase: str | None, model_type: str | None = None
) -> Excluded | None:
    """Why ``strategy`` is not allowed here; None when it is."""
    reason = (
        _by_name(strategy, constraints)
        or _by_cost(strategy, constraints)
        or _by_precision(strategy, constraints)
        or _by_place(strategy, family, phase)
        or _by_model(strategy, model_type)
    )
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
    if strategy.may_need_retraining and not constraints.allow_retrain:
        return Text(zh="可能需要重新训练或校准，而约束不允许", en="may need training or calibrating again, which --no-retrain rules out")
    if EFFORTS.index(strategy.effort) > EFFORTS.index(constraints.max_effort):
        return Text(
            zh=f"工作量 {strategy.effort} 超过上限 {constraints.max_effort}",
            en=f"effort {strategy.effort} is above {constraints.max_effort}",
        )
    return None


def _by_precision(strategy: Strategy, constraints: Constraints) -> Text | None:
    """The most that its class of risk stands for must stay within the limit; a class without a known bound never does."""
    limit = constraints.max_precision_loss
    if limit is None:
        return None
    bound = load_priors().precision_loss.get(strategy.precision_risk)
    if bound is None:
        return Text(zh="精度损失没有已知上限", en="its loss of precision has no known bound")
    if bound[1] > limit:
        return Text(
            zh=f"精度损失最多可达 {bound[1]:.2%}，超过上限 {limit:.2%}",
            en=f"it may lose up to {bound[1]:.2%} of precision, above the limit of {limit:.2%}",
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


def _by_model(strategy: Strategy, model_type: str | None) -> Text | None:
    if not strategy.model_types or model_type is None or model_type in strategy.model_types:
        return None
    known = ", ".join(strategy.model_types)
    return Text(zh=f"只适用于 {known} 模型，本次为 {model_type}", en=f"applies to models of type {known}, this one is {model_type}")
