"""A diagnosis back from the JSON of ``kb diagnose --json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kb.domain.accounting import Accounting, Part
from kb.domain.diagnosis import ClusterDiagnosis, Diagnosis, SessionDiagnosis
from kb.domain.finding import Finding, Healthy, NotJudged
from kb.domain.provenance import Origin
from kb.domain.text import Text
from kb.errors import MalformedInputError
from kb.report.plausibility import impossibilities


class _Session(msgspec.Struct, frozen=True):
    """One session of the payload; keys as in ``kb.report.payload``."""

    name: str
    origin: Origin
    step: str
    step_ns: int
    steps: int
    accounting_ns: Mapping[Part, int]
    findings: tuple[Finding, ...]
    healthy: tuple[Healthy, ...]
    not_judged: tuple[NotJudged, ...]
    rank: int | None = None
    stage: int | None = None
    preparing_ns: int | None = None
    splits_ns: Mapping[str, Mapping[str, int]] = {}
    accounting_source: str = ""
    notes: tuple[Text, ...] = ()
    violations: tuple[str, ...] = ()
    unexplained_ns: int = 0


class _Diagnosis(msgspec.Struct, frozen=True):
    sessions: tuple[_Session, ...]
    cluster: ClusterDiagnosis
    template: str = "auto"


def is_diagnosis(document: Any) -> bool:
    """Whether decoded JSON looks like a saved diagnosis."""
    return isinstance(document, dict) and {"sessions", "cluster"} <= document.keys()


def diagnosis_in(document: Mapping[str, Any], *, source: str) -> Diagnosis:
    """The diagnosis in decoded JSON. Raises MalformedInputError naming the place that does not fit or cannot be true."""
    try:
        read = msgspec.convert(document, _Diagnosis)
    except msgspec.ValidationError as error:
        raise MalformedInputError(f"{source}: not a saved diagnosis: {error}", do="write it with kb diagnose --json") from error
    diagnosis = Diagnosis(sessions=tuple(map(_session, read.sessions)), cluster=read.cluster, template=read.template)
    impossible = next(impossibilities(diagnosis), None)
    if impossible is not None:
        raise MalformedInputError(
            f"{source}: not a diagnosis that can be true: {impossible}",
            allowed="times of 0 ns or more, shares within 0..1, parts that add up to the step",
            do="write it again with kb diagnose --json",
        )
    return diagnosis


def _session(read: _Session) -> SessionDiagnosis:
    books = Accounting(
        step=read.step,
        step_ns=read.step_ns,
        preparing_ns=read.preparing_ns,
        parts=read.accounting_ns,
        splits=read.splits_ns,
        source=read.accounting_source,
        notes=read.notes,
    )
    return SessionDiagnosis(
        name=read.name,
        rank=read.rank,
        stage=read.stage,
        origin=read.origin,
        steps=read.steps,
        accounting=books,
        findings=read.findings,
        healthy=read.healthy,
        not_judged=read.not_judged,
        violations=read.violations,
        unexplained_ns=read.unexplained_ns,
    )
