"""Small values the tests of the recommender share."""

from __future__ import annotations

from kb.domain.accounting import Accounting
from kb.domain.case import Case, CaseContext, Hit, Outcome
from kb.domain.catalogue import Catalogue, Cause, Command, Strategy
from kb.domain.diagnosis import ClusterDiagnosis, Diagnosis, SessionDiagnosis
from kb.domain.finding import Evidence, Finding, Priority, Where
from kb.domain.provenance import Provenance
from kb.domain.quantity import Quantity
from kb.domain.recommendation import RankedStrategy, Recommendation
from kb.domain.record import Record
from kb.domain.text import Text
from kb.recommend.support import PastCase

T = Text("文", "text")
STEP = 1_000_000


def strategy(name: str, **changes: object) -> Strategy:
    return Strategy(id=name, name=T, definition=T, **changes)  # type: ignore[arg-type]  # keyword passthrough of a test factory


def cause(name: str, **changes: object) -> Cause:
    return Cause(id=name, **{"layer": "graph", "name": T, "definition": T, "evidence": T, **changes})  # type: ignore[arg-type]  # as above


STRATEGIES = {
    "use_fused_attention": strategy("use_fused_attention", effort="model_code", precision_risk="low"),
    "increase_batch": strategy("increase_batch", effort="flag", precision_risk="none", conflicts=("retile",)),
    "lower_precision": strategy(
        "lower_precision", effort="launch_script", precision_risk="high", changes_model=True, may_need_retraining=True
    ),
    "retile": strategy("retile", effort="kernel", precision_risk="none"),
    "guess": strategy("guess", effort="flag", precision_risk="unknown"),
    "bind": strategy(
        "bind",
        effort="environment",
        precision_risk="none",
        simulatable=True,
        commands=(
            Command(tool="torch_npu", text="export CPU_AFFINITY_CONF=1", documented_for="6.0"),
            Command(tool="numactl", text="numactl --cpunodebind=0 python train.py", verified=True),
            Command(tool="deepspeed", text='"zero_optimization": {"stage": 2}'),
        ),
    ),
}
CATALOGUE = Catalogue(
    causes={
        "slow": cause("slow", strategies=("use_fused_attention", "increase_batch")),
        "waits": cause("waits", layer="host", strategies=("bind",)),
    },
    strategies=STRATEGIES,
    metrics={},
    socs={},
    glossary=(),
)


def ranked(name: str, gain: float, high: float | None = None, *, low: float = 0.0, cause: str = "slow") -> RankedStrategy:
    return RankedStrategy(
        id=name, cause=cause, gain_fraction=gain, gain_ns=round(gain * STEP), interval=(low, gain if high is None else high),
        interval_level=0.8, confidence=0.5, cases=(), provenance="claimed", effort=STRATEGIES[name].effort,
        simulatable=STRATEGIES[name].simulatable, rationale=T,
    )  # fmt: skip


def recommendation(*items: RankedStrategy) -> Recommendation:
    return Recommendation(strategies=items, excluded=(), feasible=True)


def finding(name: str, priority: Priority) -> Finding:
    return Finding(
        cause=name, priority=priority, exposed_ns=400_000, share=0.4, gain_bound_ns=300_000, confidence=0.8, message=T, where=Where(),
        evidence=(Evidence(file="k.csv", row=2, metric="Duration", value=1, unit="us"),), strategies=CATALOGUE.causes[name].strategies,
    )  # fmt: skip


def diagnosis(*findings: Finding) -> Diagnosis:
    books = Accounting(step="1", step_ns=STEP, preparing_ns=None, parts={"compute": STEP})
    one = SessionDiagnosis(
        name="x", rank=0, stage=None, origin="measured", steps=1, accounting=books, findings=findings, healthy=(), not_judged=()
    )
    return Diagnosis(sessions=(one,), cluster=ClusterDiagnosis())


def outcome(
    name: str, metric: str, before: str, after: str, *, tier: Provenance = "measured", better: str = "lower", share: float | None = None
) -> Outcome:
    """``before`` and ``after`` as "4.1 GB"."""
    sides = []
    for text in (before, after):
        value, unit = text.split()
        sides.append(Quantity(float(value), unit))
    worse = (sides[1].value < sides[0].value) == (better == "higher")
    return Outcome(strategy=name, result="worse" if worse else "improved", metric=metric, before=sides[0], after=sides[1],
                   better=better, provenance=tier, share=share)  # type: ignore[arg-type]  # fmt: skip


def record(slug: str, *outcomes: Outcome, tier: Provenance = "measured", kind: str = "recipe", cause: str = "slow",
           context: CaseContext | None = None) -> Record:  # fmt: skip
    case = Case(cause=cause, context=context or CaseContext(), outcomes=outcomes, finding=T, symptoms=(T,))
    return Record(kind=kind, slug=slug, title=T, summary=T, body=T, provenance=tier, cases=(case,))  # type: ignore[arg-type]


def past(own: Record) -> PastCase:
    hit = Hit(
        slug=own.slug, version=1, origin="library", kind=own.kind, title=T, score=1, similarity=0.5, why=(), provenance=own.provenance
    )
    return PastCase(hit=hit, record=own)
