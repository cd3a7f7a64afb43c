"""Job: from a diagnosis to ranked strategies."""

from __future__ import annotations

from kb.domain.recommendation import Constraints, Recommendation
from kb.recommend.ranking import recommend
from kb.recommend.weights import load_weights
from kb.workflow.casebook import Casebook
from kb.workflow.diagnose import Diagnosed
from kb.workflow.search import similar


def recommend_for(casebook: Casebook, diagnosed: Diagnosed, constraints: Constraints) -> Recommendation:
    """Strategies for ``diagnosed`` under ``constraints``, supported by the casebook."""
    meta = diagnosed.sessions[0].meta
    past = similar(casebook, diagnosed)
    family = constraints.soc_family or meta.soc.family
    return recommend(diagnosed.diagnosis, past, casebook.catalogue, constraints, load_weights(), family=family, phase=meta.model.phase)
