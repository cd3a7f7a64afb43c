"""From ranked strategies to ordered steps."""

from __future__ import annotations

from kb.domain.catalogue import Catalogue, Strategy
from kb.domain.diagnosis import Diagnosis
from kb.domain.finding import Priority
from kb.domain.plan import Plan, PlanStep
from kb.domain.recommendation import RankedStrategy, Recommendation
from kb.domain.text import Text

_RISKY = ("medium", "high", "unknown")


def plan(recommendation: Recommendation, diagnosis: Diagnosis, catalogue: Catalogue, *, limit: int = 3) -> Plan:
    """The first ``limit`` strategies as steps, in the order of the recommendation; conflicting later ones are left out."""
    chosen: list[RankedStrategy] = []
    for item in recommendation.strategies:
        conflicts = set(catalogue.strategy(item.id).conflicts)
        if len(chosen) < limit and not conflicts & {other.id for other in chosen}:
            chosen.append(item)
    name = diagnosis.sessions[0].name if diagnosis.sessions else ""
    return Plan(session=name, steps=tuple(_step(item, diagnosis, catalogue.strategy(item.id)) for item in chosen))


def _step(item: RankedStrategy, diagnosis: Diagnosis, strategy: Strategy) -> PlanStep:
    return PlanStep(
        strategy=strategy.id,
        priority=_priority(item, diagnosis),
        title=strategy.name,
        commands=strategy.commands,
        expected_gain_fraction=item.gain_fraction,
        provenance=item.provenance,
        verify=strategy.verify,
        roll_back=strategy.roll_back,
        risks=_risks(strategy),
    )


def _priority(item: RankedStrategy, diagnosis: Diagnosis) -> Priority:
    found = [finding.priority for finding in diagnosis.all_findings() if finding.cause == item.cause]
    return min(found, default="P3")


def _risks(strategy: Strategy) -> tuple[Text, ...]:
    if strategy.precision_risk not in _RISKY:
        return ()
    return (
        Text(
            zh=f"精度风险：{strategy.precision_risk}，改后须校验输出",
            en=f"precision risk: {strategy.precision_risk}; check the outputs after the change",
        ),
    )
