"""From ranked strategies to ordered steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kb.domain.catalogue import Catalogue, Strategy, StrategyId
from kb.domain.diagnosis import Diagnosis
from kb.domain.finding import Priority
from kb.domain.plan import Plan, PlanStep
from kb.domain.recommendation import RankedStrategy, Recommendation
from kb.domain.text import Text
from kb.recommend.plan_files import Forms, chosen, load_forms, step_files, tools_in

_PRECISION = ("low", "medium", "high", "unknown")
_RISKY = ("medium", "high", "unknown")


def plan(recommendation: Recommendation, diagnosis: Diagnosis, catalogue: Catalogue, *, limit: int = 3, tools: Sequence[str] = (),
         software: Mapping[str, str] | None = None, priorities: Sequence[Priority] = ()) -> Plan:  # fmt: skip
    """The first ``limit`` strategies as steps, most urgent finding first and within it in the order of the recommendation.

    A strategy that conflicts with a chosen one is left out, and the plan says so. ``tools`` are those the user works with: only their
    commands are shown where there are any. Without, the tools of ``software`` (of the capture) come first. ``priorities``
    keeps only steps of these; empty = all.
    """
    items, left_out = _chosen(recommendation, diagnosis, catalogue, limit, priorities)
    forms = load_forms()
    known = tuple(tools) or tools_in(software or {}, forms)
    ordered = sorted(items, key=lambda item: _priority(item, diagnosis))
    steps = tuple(
        _step(number, item, diagnosis, catalogue.strategy(item.id), forms, known, only=bool(tools))
        for number, item in enumerate(ordered, start=1)
    )
    total = composed(items)
    return Plan(
        session=diagnosis.sessions[0].name if diagnosis.sessions else "",
        steps=steps,
        expected=total[0] if items else None,
        interval=total[1:] if items else None,
        left_out=left_out,
        notes=recommendation.notes,
        feasible=recommendation.feasible,
        closest=recommendation.closest,
    )


def _chosen(recommendation: Recommendation, diagnosis: Diagnosis, catalogue: Catalogue, limit: int,
            priorities: Sequence[Priority]) -> tuple[list[RankedStrategy], tuple[tuple[StrategyId, Text], ...]]:  # fmt: skip
    items: list[RankedStrategy] = []
    left_out: list[tuple[StrategyId, Text]] = []
    for item in recommendation.strategies:
        if len(items) == limit:
            break
        if priorities and _priority(item, diagnosis) not in priorities:
            continue
        against = next((other.id for other in items if _conflict(item.id, other.id, catalogue)), None)
        if against is None:
            items.append(item)
        else:
            left_out.append((item.id, Text(zh=f"与 {against} 冲突", en=f"conflicts with {against}")))
    return items, tuple(left_out)


def _conflict(one: StrategyId, other: StrategyId, catalogue: Catalogue) -> bool:
    return other in catalogue.strategy(one).conflicts or one in catalogue.strategy(other).conflicts


def composed(items: Sequence[RankedStrategy]) -> tuple[float, float, float]:
    """Expected, low and high fraction of the step that ``items`` save together.

    Changes against one cause share its time: together they save at most the highest bound among them. What different causes save is
    taken one after the other from what is left, so the sum never passes the whole step. More samples in a step make it no shorter, so
    what saves time of a sample only is left out.
    """
    left = [1.0, 1.0, 1.0]
    shortening = [item for item in items if item.per == "step"]
    for cause in dict.fromkeys(item.cause for item in shortening):
        own = [item for item in shortening if item.cause == cause]
        most = max(item.interval[1] for item in own)
        for place, saved in enumerate(([i.gain_fraction for i in own], [i.interval[0] for i in own], [i.interval[1] for i in own])):
            remaining = 1.0
            for fraction in saved:
                remaining *= 1.0 - fraction
            left[place] *= 1.0 - min(1.0 - remaining, most)
    return 1.0 - left[0], 1.0 - left[1], 1.0 - left[2]


def _step(number: int, item: RankedStrategy, diagnosis: Diagnosis, strategy: Strategy, forms: Forms, tools: Sequence[str],
          *, only: bool) -> PlanStep:  # fmt: skip
    commands = chosen(strategy.commands, tools, only=only)
    return PlanStep(
        strategy=strategy.id,
        priority=_priority(item, diagnosis),
        title=strategy.name,
        commands=commands,
        expected_gain_fraction=item.gain_fraction,
        per=item.per,
        provenance=item.provenance,
        verify=strategy.verify,
        roll_back=strategy.roll_back,
        risks=_risks(strategy, tools, only=only),
        cause=item.cause,
        interval=item.interval,
        interval_level=item.interval_level,
        confidence=item.confidence,
        effort=item.effort,
        simulatable=item.simulatable,
        prerequisites=strategy.prerequisites,
        precision_check=_precision_check(strategy),
        effects=item.effects,
        files=step_files(number, strategy.id, commands, forms),
    )


def _priority(item: RankedStrategy, diagnosis: Diagnosis) -> Priority:
    found = [finding.priority for finding in diagnosis.all_findings() if finding.cause == item.cause]
    return min(found, default="P3")


def _risks(strategy: Strategy, tools: Sequence[str], *, only: bool) -> tuple[Text, ...]:
    risks = []
    if strategy.precision_risk in _RISKY:
        risks.append(
            Text(
                zh=f"精度风险：{strategy.precision_risk}，改后须校验输出",
                en=f"precision risk: {strategy.precision_risk}; check the outputs after the change",
            )
        )
    if strategy.may_need_retraining:
        risks.append(Text(zh="可能需要重新训练或校准", en="may need training or calibrating again"))
    if strategy.commands and only and not any(command.tool in tools for command in strategy.commands):
        risks.append(
            Text(zh="没有针对所选工具链的命令，以下是其他工具的", en="no command for the chosen toolchain; those of other tools are shown")
        )
    return tuple(risks)


def _precision_check(strategy: Strategy) -> Text:
    if strategy.precision_risk not in _PRECISION:
        return Text()
    return Text(
        zh="固定随机种子，对同一批输入比较改动前后的输出（最大与平均相对误差），再看任务指标；超过界限就回退",
        en="fix the seed and compare the outputs of the same inputs before and after (largest and mean relative error), "
        "then the task's metric; roll back beyond the limit",
    )
