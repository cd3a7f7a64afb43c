"""Everything a report draws of one session, free of language."""

from __future__ import annotations

import msgspec

from kb.diagnose.operators import OperatorClasses, load_classes
from kb.diagnose.view import rank_view
from kb.domain.catalogue import Catalogue
from kb.domain.soc import SocRef
from kb.report.figures import Curves, Frame, Roofline, Timeline
from kb.report.pictures.flame import flame_root
from kb.report.pictures.memory import resource_curves
from kb.report.pictures.operators import OperatorFact, operator_facts
from kb.report.pictures.roofline import roofline
from kb.report.pictures.tasks import step_tasks
from kb.report.pictures.timeline import timeline
from kb.session.meta import Capture, Model
from kb.session.session import Session

_OPERATORS = 20


class SessionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One session. ``flame`` and ``timeline`` are None when no device task of the step was captured; frame names on the first
    two levels and causes of bubbles are keys of the labels. ``tasks`` counts device tasks of the whole capture."""

    name: str
    rank: int | None
    model: Model
    soc: SocRef
    capture: Capture
    software: dict[str, str]
    tasks: int
    operators: tuple[OperatorFact, ...] = ()
    flame: Frame | None = None
    timeline: Timeline | None = None
    roofline: Roofline | None = None
    curves: tuple[Curves, ...] = ()


def session_facts(session: Session, catalogue: Catalogue, *, pictures: bool = True) -> SessionFacts:
    """Facts of ``session``; without ``pictures`` only its identity."""
    meta = session.meta
    kernels = session.table("kernels")
    bare = SessionFacts(
        name=meta.name,
        rank=meta.rank,
        model=meta.model,
        soc=meta.soc,
        capture=meta.capture,
        software=dict(meta.software),
        tasks=len(kernels) if kernels is not None else 0,
    )
    return _drawn(bare, session, catalogue, load_classes()) if pictures else bare


def _drawn(bare: SessionFacts, session: Session, catalogue: Catalogue, classes: OperatorClasses) -> SessionFacts:
    view = rank_view(session, classes)
    curves = resource_curves(session)
    tasks = step_tasks(view)
    if tasks is None:
        return msgspec.structs.replace(bare, curves=curves)
    idle = sum(value for part, value in view.accounting.parts.items() if part.startswith("idle"))
    return msgspec.structs.replace(
        bare,
        operators=operator_facts(tasks, _OPERATORS),
        flame=flame_root(tasks, idle),
        timeline=timeline(tasks),
        roofline=roofline(tasks, catalogue),
        curves=curves,
    )
