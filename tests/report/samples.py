"""A report made by hand: every kind of block, in both languages, from values that no other part of the product decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from kb.domain.accounting import Accounting
from kb.domain.case import Answer, Hit, Why
from kb.domain.catalogue import Catalogue, Cause, Command, Strategy
from kb.domain.comparison import Comparison, Delta
from kb.domain.diagnosis import ClusterDiagnosis, Diagnosis, SessionDiagnosis
from kb.domain.drilldown import DrillDown, DrillNode
from kb.domain.finding import Evidence, Finding, Healthy, NotJudged, Where
from kb.domain.plan import Plan, PlanStep
from kb.domain.provenance import Origin
from kb.domain.quantity import Quantity
from kb.domain.recommendation import CaseSupport, RankedStrategy, Recommendation
from kb.domain.record import Record
from kb.domain.soc import SocRef
from kb.domain.text import Text
from kb.report.figures import Bin
from kb.report.pictures.facts import session_facts
from kb.report.report import Report, Reuse
from kb.session import builder
from kb.session.health import assess
from kb.session.meta import Capture, Model, SessionMeta
from kb.session.session import Session

MS = 1_000_000
_SLOW = Text("太慢了", "It takes too long")
CATALOGUE = Catalogue(
    causes={
        "slow_thing": Cause(
            id="slow_thing",
            layer="operator",
            name=Text("慢东西", "Slow thing"),
            definition=Text("它慢。", "It is slow."),
            evidence=Text("时长", "duration"),
            strategies=("make_fast",),
        )
    },
    strategies={
        "make_fast": Strategy(
            id="make_fast",
            name=Text("让它快", "Make it fast"),
            definition=Text("快", "fast"),
            commands=(Command(tool="tool", text="tool --fast"),),
        )
    },
    metrics={},
    socs={},
    glossary=(),
)


def session(
    durations_us: Sequence[int] = (400, 100, 100, 200), *, name: str = "run", origin: Origin = "measured", types: Sequence[str] = ()
) -> Session:
    """One step of kernels one after the other with 10 us between them, alternating matrix and vector, on one stream."""
    count = len(durations_us)
    strings = builder.Strings()
    lengths = np.array(durations_us, np.int64) * 1000
    starts = np.concatenate([[0], np.cumsum(lengths[:-1] + 10_000)]) if count else lengths
    columns: dict[str, Any] = {
        "start_ns": starts + 5 * MS,
        "duration_ns": lengths,
        "name": [f"kernel_{place}" for place in range(count)],
        "op_type": list(types) or ["MatMulV3" if place % 2 == 0 else "Add" for place in range(count)],
        "core": ["AI_CORE" if place % 2 == 0 else "AI_VECTOR_CORE" for place in range(count)],
        "stream": np.full(count, 2),
        "input_shapes": ["8,16;16,4"] * count,
        "output_shapes": ["8,4"] * count,
        "l2_hit_ratio": np.full(count, 0.5),
    }
    meta = SessionMeta(
        name=name, origin=origin, capture=Capture(format="test"), rank=0, model=Model(name=name, batch=2), soc=SocRef(reported_name="Chip")
    )
    counters: dict[str, Any] = {"start_ns": [0, MS, 2 * MS], "name": ["device allocated [MiB]"] * 3, "value": [10.0, 30.0, 20.0]}
    tables = [builder.table("kernels", columns, strings), builder.table("counters", counters, strings)]
    return builder.session(meta, tables, strings)


def finding(message: Text = _SLOW, *, share: float = 0.5) -> Finding:
    """One finding with proof."""
    return Finding(
        cause="slow_thing",
        priority="P0",
        exposed_ns=round(share * 10 * MS),
        share=share,
        gain_bound_ns=round(share * 8 * MS),
        confidence=0.8,
        message=message,
        where=Where(operators=("MatMulV3",)),
        evidence=(Evidence(file="kernel_details.csv", row=7, metric="Duration(us)", value=123.5, unit="us"),),
        strategies=("make_fast",),
        observed={"things": 3.0},
        healthy={"things": 0.0},
    )


def diagnosis(
    findings: tuple[Finding, ...] = (finding(),),
    *,
    name: str = "run",
    origin: Origin = "measured",
    step_ns: int = 10 * MS,
    unexplained_ns: int = 0,
    compute: bool = True,
) -> Diagnosis:
    """One session with ``findings``, something healthy and something not judged. A fifth of the step is idle, all of it
    without ``compute``."""
    books = Accounting(
        step="3", step_ns=step_ns, preparing_ns=None, parts={"compute": step_ns - step_ns // 5, "idle_unknown": step_ns // 5}
    )
    if not compute:
        books = replace(books, parts={"idle_unknown": step_ns})
    own = SessionDiagnosis(
        name=name,
        rank=0,
        stage=None,
        origin=origin,
        steps=4,
        accounting=books,
        findings=findings,
        healthy=(Healthy(cause="slow_thing", message=Text("很好", "just fine")),),
        not_judged=(NotJudged(cause="other_thing", reason=Text("缺数据", "no data"), capture=Text("多采", "capture more")),),
        unexplained_ns=unexplained_ns,
    )
    return Diagnosis(sessions=(own,), cluster=ClusterDiagnosis(captured_ranks=(0,), world_size=1))


RANKED = RankedStrategy(
    id="make_fast",
    cause="slow_thing",
    gain_fraction=0.2,
    gain_ns=2 * MS,
    interval=(0.1, 0.3),
    interval_level=0.8,
    confidence=0.5,
    cases=(CaseSupport(ref="old-case@1", similarity=0.7, gain_fraction=0.25, provenance="measured"),),
    provenance="measured",
    effort="flag",
    simulatable=False,
    rationale=Text("有案例", "a case says so"),
)
COMPARISON = Comparison(
    before="before",
    after="after",
    verdict="improved",
    before_step_ns=10 * MS,
    after_step_ns=8 * MS,
    gain_fraction=0.2,
    interval=(0.15, 0.25),
    interval_level=0.9,
    noise_fraction=0.02,
    n=(4, 4),
    origins=("measured", "measured"),
    parts=(Delta(name="compute", before_ns=8 * MS, after_ns=6 * MS),),
)


def full_report(*, text: str = "run", origin: Origin = "measured") -> Report:
    """Every chapter filled. ``text`` stands wherever data may bring text of its own."""
    captured = session(name=text, origin=origin, types=(text or "Mul", "Add", "Add", "Cast"))
    both = Text(text, text)
    leaf = DrillNode(level="operator", name=text, time_ns=2 * MS, share=0.2, metrics={"l2": Quantity(0.5, "ratio")})
    hit = Hit(
        slug="old-case",
        version=1,
        origin="library",
        kind="recipe",
        title=both,
        score=1.0,
        similarity=0.7,
        why=(Why(feature="cause", text=both, contribution=1.0),),
        provenance="measured",
    )
    step = PlanStep(
        strategy="make_fast",
        priority="P0",
        title=both,
        commands=CATALOGUE.strategies["make_fast"].commands,
        expected_gain_fraction=0.2,
        provenance="measured",
        verify=both,
        roll_back=both,
        risks=(both,),
    )
    record = Record(kind="recipe", slug="made-by-hand", title=both, summary=both, body=both)
    return Report(
        diagnosis=diagnosis((finding(both),), name=text, origin=origin),
        facts=(session_facts(captured, CATALOGUE),),
        health=assess((captured,)),
        recommendation=Recommendation(strategies=(RANKED,), excluded=(), feasible=True, notes=(both,)),
        plan=Plan(session=text, steps=(step,)),
        answer=Answer(hits=(hit,), abstained=False),
        reuse=(Reuse(cause="slow_thing", cases=3, improved=2, families=("A2",), model_types=("diffusion",)),),
        pitfalls=(both,),
        comparison=COMPARISON,
        after=session_facts(session(name="after"), CATALOGUE),
        drilldown=DrillDown(
            session=text, target=text, root=DrillNode(level="module", name=text, time_ns=4 * MS, share=0.4, children=(leaf,))
        ),
        record=record,
        calibration=(Bin(0.7, 0.6, 10), Bin(0.9, 0.95, 20)),
        calibration_error=0.05,
    )
