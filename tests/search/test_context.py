from __future__ import annotations

from kb.domain.accounting import Accounting
from kb.domain.diagnosis import ClusterDiagnosis, SessionDiagnosis
from kb.domain.finding import Evidence, Finding, Where
from kb.domain.quantity import Quantity
from kb.domain.soc import SocRef
from kb.domain.text import Text
from kb.search.context import case_context
from kb.session.meta import Capture, Model, SessionMeta
from kb.session.session import Session


def finding(cause: str, exposed_ns: int, **observed: float) -> Finding:
    evidence = (Evidence(file="kernel_details.csv", row=2, metric="stage_ratio", value=1.7, unit="ratio"),)
    return Finding(cause=cause, priority="P1", exposed_ns=exposed_ns, share=0.1, gain_bound_ns=exposed_ns, confidence=0.5, message=Text(),
                   where=Where(), evidence=evidence, observed=observed)  # fmt: skip


def diagnosed(*findings: Finding) -> SessionDiagnosis:
    accounting = Accounting(step="1", step_ns=1000, preparing_ns=None, parts={"compute": 750, "idle_unknown": 250, "idle_gc": 0})
    return SessionDiagnosis(name="run", rank=0, stage=None, origin="measured", steps=1, accounting=accounting, findings=findings,
                            healthy=(), not_judged=())  # fmt: skip


def session(**meta: object) -> Session:
    return Session(SessionMeta(name="run", origin="measured", capture=Capture(format="ascend_text"), **meta), {}, ())  # type: ignore[arg-type]


def test_what_the_capture_tells_is_in_the_context() -> None:
    run = session(model=Model(name="SD3", type="diffusion", phase="inference"), soc=SocRef(id="910b3", family="A2"), world_size=4,
                  software={"cann": "8.1"})  # fmt: skip
    context = case_context(run, diagnosed(), ClusterDiagnosis())
    assert (context.model, context.model_type, context.phase) == ("SD3", "diffusion", "inference")
    assert (context.soc, context.soc_family, context.devices, context.software) == ("910b3", "A2", 4, {"cann": "8.1"})


def test_what_it_does_not_tell_stays_unknown() -> None:
    context = case_context(session(), diagnosed(), ClusterDiagnosis())
    assert (context.model, context.soc, context.soc_family, context.devices, context.causes) == (None, None, "unknown", None, ())


def test_causes_of_rank_and_cluster_stand_by_exposed_time_once() -> None:
    cluster = ClusterDiagnosis(findings=(finding("pipeline_imbalance", 500), finding("gc_pause", 1)))
    context = case_context(session(), diagnosed(finding("gc_pause", 90), finding("unfused_attention", 100)), cluster)
    assert context.causes == ("pipeline_imbalance", "unfused_attention", "gc_pause")


def test_metrics_carry_units_and_those_without_one_are_left_out() -> None:
    context = case_context(session(), diagnosed(finding("a", 1, l2_hit_ratio=0.4, stage_ratio=1.7, kernels=12.0)), ClusterDiagnosis())
    assert context.metrics == {
        "step_time": Quantity(1000.0, "ns"),
        "compute_share": Quantity(0.75, "ratio"),
        "idle_unknown_share": Quantity(0.25, "ratio"),
        "l2_hit_ratio": Quantity(0.4, "ratio"),
        "stage_ratio": Quantity(1.7, "ratio"),
    }
