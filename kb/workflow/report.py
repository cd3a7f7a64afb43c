"""Job: a report from profiles, a saved diagnosis, a report file, or a stored record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kb.compare.comparison import compare
from kb.domain.case import Case
from kb.domain.catalogue import Catalogue, CauseId
from kb.domain.recommendation import Constraints
from kb.domain.text import Text
from kb.domain.version import Version, parse_ref
from kb.errors import MalformedInputError
from kb.recommend.plan import plan
from kb.recommend.support import PastCase
from kb.report.archive import is_archive, read_archive
from kb.report.pictures.facts import session_facts
from kb.report.reading import diagnosis_in, is_diagnosis
from kb.report.report import Report, Reuse
from kb.session.health import assess
from kb.session.session import Session
from kb.workflow.casebook import Casebook
from kb.workflow.compare import pair
from kb.workflow.diagnose import Diagnosed
from kb.workflow.draft import Wording, draft_from_sessions
from kb.workflow.recommend import recommend_from
from kb.workflow.search import case_answer, past_cases

_PICTURES = 8
"""Sessions whose tables are drawn; of the others only identity, findings and breakdown are shown."""
_PITFALLS = 6
_HEAD = 4096
_LIKELY = (".html", ".htm", ".pdf", ".json")


def saved_report(path: Path) -> Report | None:
    """The report in a file of ours (HTML, PDF, JSON) or in a saved diagnosis; None when ``path`` is something else."""
    if not path.is_file() or path.suffix.lower() not in _LIKELY or not _promising(path):
        return None
    data = path.read_bytes()
    if is_archive(data):
        return read_archive(data, source=path.name)
    if path.suffix.lower() != ".json":
        return None
    try:
        document = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise MalformedInputError(f"{path.name}: not JSON: {error}", do="name a profile, a report file or a saved diagnosis") from error
    return Report(diagnosis=diagnosis_in(document, source=path.name)) if is_diagnosis(document) else None


def _promising(path: Path) -> bool:
    """Whether the file may be ours. A trace is JSON too, and may be too large to read for nothing."""
    if path.suffix.lower() != ".json":
        return True
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return is_archive(head) or b'"sessions"' in head


def profile_report(diagnosed: Diagnosed, casebook: Casebook | None) -> Report:
    """The report of diagnosed profiles. Without a casebook it says nothing about cases, strategies and reuse."""
    facts = tuple(
        session_facts(session, diagnosed.catalogue, pictures=place < _PICTURES) for place, session in enumerate(diagnosed.sessions)
    )
    record = draft_from_sessions(diagnosed, Wording()) if diagnosed.diagnosis.all_findings() else None
    report = Report(diagnosis=diagnosed.diagnosis, facts=facts, health=assess(diagnosed.sessions), record=record)
    return report if casebook is None else _advised(report, casebook, diagnosed)


def with_comparison(report: Report, before: Sequence[Session], after: Sequence[Session], catalogue: Catalogue) -> Report:
    """``report`` with what changed between two captures. Raises NotComparableError when they share no rank."""
    first, second = pair(tuple(before), tuple(after))
    return replace(report, comparison=compare(first, second), after=session_facts(second, catalogue))


def record_report(casebook: Casebook, ref: str) -> Report:
    """A stored record as a report, with how far its causes reach. Raises NotFoundError for an unknown one."""
    version = casebook.store.get(parse_ref(ref))
    causes = tuple(dict.fromkeys(case.cause for case in version.record.cases))
    return Report(version=version, record=version.record, reuse=reuse(casebook, causes))


def _advised(report: Report, casebook: Casebook, diagnosed: Diagnosed) -> Report:
    answer = case_answer(casebook, diagnosed)
    past = past_cases(casebook, answer)
    diagnosis = diagnosed.diagnosis
    ranked = recommend_from(casebook, diagnosed, past, Constraints())
    return replace(
        report,
        answer=replace(answer, notes=(*answer.notes, *casebook.notes)),
        recommendation=ranked,
        plan=plan(ranked, diagnosis, casebook.catalogue, software=diagnosed.sessions[0].meta.software),
        reuse=reuse(casebook, tuple(dict.fromkeys(finding.cause for finding in diagnosis.all_findings()))),
        pitfalls=_pitfalls(past, diagnosed),
    )


def _pitfalls(past: Sequence[PastCase], diagnosed: Diagnosed) -> tuple[Text, ...]:
    """What went wrong in the cases that share a cause with this diagnosis."""
    causes = {finding.cause for finding in diagnosed.diagnosis.all_findings()}
    records = [item.record for item in past if any(case.cause in causes for case in item.record.cases)]
    return tuple(dict.fromkeys(text for record in records for text in record.pitfalls))[:_PITFALLS]


def reuse(casebook: Casebook, causes: Sequence[CauseId]) -> tuple[Reuse, ...]:
    """How far each cause reaches in the casebook, in the order given."""
    summaries = casebook.store.summaries()
    versions: Iterator[Version] = iter(casebook.store.versions([item.id for item in summaries]).values())
    cases = [case for version in versions for case in version.record.cases]
    return tuple(_reach(cause, [case for case in cases if case.cause == cause]) for cause in causes)


def _reach(cause: CauseId, cases: list[Case]) -> Reuse:
    return Reuse(
        cause=cause,
        cases=len(cases),
        improved=sum(any(outcome.result == "improved" and outcome.reported_to_work for outcome in case.outcomes) for case in cases),
        families=tuple(sorted({case.context.soc_family for case in cases} - {"unknown"})),
        model_types=tuple(sorted({case.context.model_type for case in cases if case.context.model_type})),
    )
