"""What a diagnosed session is about, in the encoding that stored cases use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kb.domain.case import CaseContext
from kb.domain.diagnosis import ClusterDiagnosis, SessionDiagnosis
from kb.domain.finding import Finding
from kb.domain.quantity import UNITS, Quantity
from kb.session.session import Session

# Unit of an observed metric by the end of its name, for those no evidence row states.
_SUFFIX_UNITS: Final = {"_ns": "ns", "_us": "us", "_ms": "ms", "_bytes": "B", "_ratio": "ratio", "_rate": "ratio", "_share": "ratio",
                        "_fraction": "ratio", "_utilization": "ratio", "_count": "count"}  # fmt: skip


def case_context(session: Session, diagnosis: SessionDiagnosis, cluster: ClusterDiagnosis) -> CaseContext:
    """The context of one rank and of the cluster it belongs to. What the capture does not tell stays unknown.

    ``causes`` are the ids of the findings of both, by exposed time. ``metrics`` hold ``step_time`` (ns), the share of
    each part of the accounting that is not zero (``compute_share``, ratio), and the observed values of findings whose unit is known.
    """
    meta = session.meta
    findings = sorted((*diagnosis.findings, *cluster.findings), key=lambda finding: -finding.exposed_ns)
    return CaseContext(
        model=meta.model.name,
        model_type=meta.model.type,
        phase=meta.model.phase,
        soc=meta.soc.id or meta.soc.reported_name,
        soc_family=meta.soc.family,
        devices=cluster.world_size or meta.world_size,
        software=dict(meta.software),
        causes=tuple(dict.fromkeys(finding.cause for finding in findings)),
        metrics={**_accounted(diagnosis), **_observed(findings)},
    )


def _accounted(diagnosis: SessionDiagnosis) -> dict[str, Quantity]:
    accounting = diagnosis.accounting
    shares = {f"{part}_share": Quantity(accounting.share(part), "ratio") for part, ns in accounting.parts.items() if ns > 0}
    return {"step_time": Quantity(float(accounting.step_ns), "ns"), **shares}


def _observed(findings: Iterable[Finding]) -> dict[str, Quantity]:
    found: dict[str, Quantity] = {}
    for finding in findings:
        for name, quantity in _quantities(finding):
            found.setdefault(name, quantity)
    return found


def _quantities(finding: Finding) -> Iterator[tuple[str, Quantity]]:
    stated = {row.metric: row.unit for row in finding.evidence if row.unit in UNITS}
    for name, value in finding.observed.items():
        unit = stated.get(name) or next((unit for suffix, unit in _SUFFIX_UNITS.items() if name.endswith(suffix)), None)
        if unit is not None:
            yield name, Quantity(value, unit)
