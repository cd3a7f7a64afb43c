"""Job: from a diagnosis to ranked strategies."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kb.domain.case import CaseContext, CaseQuery
from kb.domain.diagnosis import Diagnosis
from kb.domain.recommendation import Constraints, Recommendation
from kb.recommend.bounds import bounds_of
from kb.recommend.effects import load_priors
from kb.recommend.experience import GainModel
from kb.recommend.learnt import learnt_of
from kb.recommend.percentile import among_runs, load_kinds
from kb.recommend.ranking import recommend
from kb.recommend.support import PastCase
from kb.recommend.targets import Baseline, weighed
from kb.recommend.traits import traits
from kb.recommend.weights import load_weights
from kb.workflow.baseline import baseline_of
from kb.workflow.casebook import Casebook
from kb.workflow.diagnose import Diagnosed
from kb.workflow.gains import gains_of
from kb.workflow.potential import session_percentiles
from kb.workflow.search import find, past_cases, similar, told


def recommend_for(
    casebook: Casebook, diagnosed: Diagnosed, constraints: Constraints, *, samples: float | None = None, gains: GainModel | None = None
) -> Recommendation:
    """Strategies for ``diagnosed`` under ``constraints``, supported by the casebook.

    ``samples`` of one step, where the capture does not say. ``gains``: what is learnt from, where it is loaded already.
    """
    ranked = recommend_from(casebook, diagnosed, similar(casebook, diagnosed), constraints, samples=samples, gains=gains)
    return replace(ranked, percentiles=(*session_percentiles(casebook, diagnosed), *ranked.percentiles))


def recommend_from(casebook: Casebook, diagnosed: Diagnosed, past: tuple[PastCase, ...], constraints: Constraints, *,
                   samples: float | None = None, gains: GainModel | None = None) -> Recommendation:  # fmt: skip
    """The same with the similar cases already found."""
    meta = diagnosed.sessions[0].meta
    family = constraints.soc_family or meta.soc.family
    gains = gains or gains_of(casebook.workspace)
    shown = traits(diagnosed.sessions, diagnosed.diagnosis, casebook.catalogue.socs, diagnosed.views)
    learnt = learnt_of(gains, shown, family)
    ranked = recommend(
        diagnosed.diagnosis, past, casebook.catalogue, constraints, load_weights(), family=family, phase=meta.model.phase,
        model_type=meta.model.type, learnt=learnt,
    )  # fmt: skip
    told = weighed(
        ranked,
        past,
        casebook.catalogue,
        constraints,
        baseline_of(diagnosed, samples=samples),
        load_priors(),
        bounds_of(diagnosed.diagnosis),
    )
    if not shown.get("compute"):
        return told  # a capture without work on the device has no shares to compare
    return replace(told, percentiles=among_runs(gains.table, shown, meta.model.type, meta.model.phase, family, load_kinds()))


def recommend_saved(casebook: Casebook, diagnosis: Diagnosis, constraints: Constraints, *, samples: float | None = None) -> Recommendation:
    """The same for a diagnosis without its sessions: chip, model and phase are unknown unless ``constraints`` name the chip."""
    family = constraints.soc_family or "unknown"
    past = _alike(casebook, diagnosis, CaseContext(soc_family=family, causes=_causes(diagnosis)))
    ranked = recommend(diagnosis, past, casebook.catalogue, constraints, load_weights(), family=family, phase=None)
    longest = max((session.accounting.step_ns for session in diagnosis.sessions), default=0)
    return weighed(
        ranked,
        past,
        casebook.catalogue,
        constraints,
        Baseline(latency_ns=float(longest), samples=samples),
        load_priors(),
        bounds_of(diagnosis),
    )


def _causes(diagnosis: Diagnosis) -> tuple[str, ...]:
    ordered: Sequence[str] = [finding.cause for finding in sorted(diagnosis.all_findings(), key=lambda finding: -finding.exposed_ns)]
    return tuple(dict.fromkeys(ordered))


def _alike(casebook: Casebook, diagnosis: Diagnosis, context: CaseContext) -> tuple[PastCase, ...]:
    if not context.causes:
        return ()
    words = told(diagnosis, casebook.catalogue)
    return past_cases(casebook, find(casebook, CaseQuery(text=words, context=context, limit=10, include_simulated=True, composed=True)))
