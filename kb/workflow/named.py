"""Job: the report behind a name: a report file of ours, a saved diagnosis, or a capture by path or by the beginning of its name."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kb.domain.catalogue import Catalogue
from kb.domain.diagnosis import Diagnosis
from kb.domain.record import Record
from kb.domain.text import Text
from kb.errors import ContentError, UnusableCaptureError
from kb.report.report import Report
from kb.workflow.diagnose import Diagnosed, diagnose_paths
from kb.workflow.draft import draft_from_file
from kb.workflow.location import shipped_catalogue
from kb.workflow.recent import capture_named
from kb.workflow.report import profile_report, saved_report
from kb.workflow.workspace import Workspace


class NamedReport(msgspec.Struct, frozen=True):
    """``remark`` says which capture was taken when the name did not say it in full."""

    report: Report
    catalogue: Catalogue
    remark: Text = Text()


def report_in(path: Path) -> NamedReport:
    """The report in a file. Raises UnusableCaptureError for a file that holds none."""
    saved = saved_report(path)
    if saved is None:
        raise _no_report(path)
    return NamedReport(saved, shipped_catalogue())


def record_in(path: Path) -> Record:
    """The record that a report file carries, or that an author wrote (Markdown, JSON). Raises UnusableCaptureError for other files,
    UsageError for a report without findings."""
    if not path.is_file():
        raise _no_report(path)
    try:
        return draft_from_file(path)
    except ContentError as error:
        raise _no_report(path, f" ({error.what.removeprefix(path.name).lstrip(': 0123456789')})") from error


def _no_report(path: Path, why: str = "") -> UnusableCaptureError:
    return UnusableCaptureError(
        f"{path}: no report record in it{why}" if path.exists() else f"{path} does not exist",
        allowed="HTML, PDF or JSON written by kb report, profiler report or profiler analyze",
        do="write one: profiler report --session PROFILE --output report.html",
    )


def diagnosed_session(name: str, place: Workspace, folder: Path) -> tuple[Diagnosed, Text]:
    """The diagnosis of the capture ``name`` means (see ``kb.workflow.recent``), and the remark about the choice."""
    taken = capture_named(name, place, folder)
    return diagnose_paths((taken.path,)), taken.remark


def session_report(name: str, place: Workspace, folder: Path) -> NamedReport:
    """The report of a capture, with its pictures and without similar cases."""
    diagnosed, remark = diagnosed_session(name, place, folder)
    return NamedReport(profile_report(diagnosed, None), diagnosed.catalogue, remark)


def diagnosis_of(named: NamedReport, source: str) -> Diagnosis:
    """The report's diagnosis. Raises UnusableCaptureError for a report of a record or a comparison."""
    if named.report.diagnosis is None:
        raise UnusableCaptureError(f"{source} holds no diagnosis", allowed="the report of a profile", do="profiler analyze --data PROFILE")
    return named.report.diagnosis
