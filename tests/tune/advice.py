"""Advice without a casebook: every simulatable strategy of the causes a profile shows, with the bound as the expectation."""

from __future__ import annotations

from collections.abc import Callable

from kb.diagnose.diagnosis import diagnose
from kb.domain.catalogue import Catalogue
from kb.domain.recommendation import RankedStrategy, Recommendation
from kb.profile.simulated.twins import TWINS
from kb.session.session import Session


def advice(catalogue: Catalogue) -> Callable[[Session], Recommendation]:
    def advise(session: Session) -> Recommendation:
        found = diagnose([session], catalogue)
        ranked = [
            RankedStrategy(
                id=name,
                cause=finding.cause,
                gain_fraction=finding.share / 2,
                gain_ns=finding.gain_bound_ns // 2,
                interval=(0.0, finding.share),
                interval_level=0.8,
                confidence=finding.confidence,
                cases=(),
                provenance="claimed",
                effort=catalogue.strategies[name].effort,
                simulatable=name in TWINS,
            )
            for finding in found.all_findings()
            for name in finding.strategies
            if name in catalogue.strategies
        ]
        unique = {item.id: item for item in reversed(ranked)}
        return Recommendation(strategies=tuple(reversed(unique.values())), excluded=(), feasible=True)

    return advise
