"""From sessions or a file to a record that may be published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from kb.domain.canonical import parse_record
from kb.domain.case import Case, Outcome
from kb.domain.catalogue import Catalogue
from kb.domain.comparison import Comparison
from kb.domain.finding import Finding
from kb.domain.provenance import Origin, Provenance, capped
from kb.domain.quantity import Quantity
from kb.domain.record import Record, checked_slug
from kb.domain.text import Lang, Text
from kb.errors import KbError, NotComparableError, UsageError
from kb.library.markdown import parse_markdown
from kb.report.archive import is_archive, read_archive
from kb.report.diagnosis import diagnosis_document
from kb.report.document import Document, Heading
from kb.report.markdown import MarkdownRenderer
from kb.report.numbers import duration, percent
from kb.text.slug import slug_of
from kb.workflow.diagnose import Diagnosed
from kb.workflow.evidence import RESULTS
from kb.workflow.search import contexts_of

_CASES = 5
_REPORTS = (".html", ".pdf")


class Wording(msgspec.Struct, frozen=True, kw_only=True):
    """What the author may set; None = derived."""

    slug: str | None = None
    title: Text | None = None
    tags: tuple[str, ...] = ()


def is_record_file(path: Path) -> bool:
    """Whether ``path`` holds a record (an author's Markdown or JSON, or a report of ours) rather than a profile."""
    return path.is_file() and path.suffix in (".md", ".json", *_REPORTS) and "trace" not in path.name


def draft_from_file(path: Path) -> Record:
    """The record in a Markdown or JSON file or in a report, with the tiers it states: publication lowers them to what its
    sessions carry."""
    data = path.read_bytes()
    if path.suffix in _REPORTS or is_archive(data):
        return _from_report(data, path)
    if path.suffix == ".json":
        return parse_record(data, source=path.name)
    return parse_markdown(_utf8(data, path), source=path.name)


def _from_report(data: bytes, path: Path) -> Record:
    record = read_archive(data, source=path.name).record
    if record is None:
        raise UsageError(f"{path.name} holds nothing to publish: its diagnosis has no findings", do="publish a recipe of your own")
    return record


def _utf8(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path.name} is not UTF-8 text (byte {error.start})", do="save it as UTF-8") from error


def draft_from_sessions(
    diagnosed: Diagnosed, wording: Wording, *, comparison: Comparison | None = None, strategy: str | None = None
) -> Record:
    """A recipe from a diagnosis; with ``comparison`` and ``strategy`` the outcome of the strategy is part of it.

    Its tier is what the evidence carries: recomputed gains of simulated sessions are ``simulated``, of measured ones
    ``measured``; a diagnosis without a second profile claims no gain.
    """
    findings = diagnosed.diagnosis.all_findings()
    if not findings:
        raise KbError("nothing to publish: the diagnosis has no findings", do="publish a Markdown recipe of your own: kb publish FILE.md")
    origin = _origin(diagnosed)
    catalogue = diagnosed.catalogue
    tier: Provenance = capped("measured", origin) if comparison is not None or origin == "simulated" else "claimed"
    outcomes = (_outcome(comparison, catalogue.strategy(strategy).id, tier),) if comparison is not None and strategy else ()
    cases = _cases(diagnosed, findings, outcomes, strategy)
    return Record(
        kind="recipe",
        slug=checked_slug(wording.slug or _slug(diagnosed, findings[0])),
        title=wording.title or _title(diagnosed, findings[0], catalogue),
        summary=_summary(findings, catalogue),
        body=Text(zh=_body(diagnosed, "zh"), en=_body(diagnosed, "en")),
        provenance=tier,
        tags=wording.tags,
        cases=cases,
    )


def _origin(diagnosed: Diagnosed) -> Origin:
    return "simulated" if any(session.meta.origin == "simulated" for session in diagnosed.sessions) else "measured"


def _outcome(comparison: Comparison, strategy: str, tier: Provenance) -> Outcome:
    if comparison.verdict == "not_comparable":
        reasons = "; ".join(reason.en for reason in comparison.reasons)
        raise NotComparableError(f"the two captures are not comparable: {reasons}", do="kb compare shows why")
    beyond_noise = comparison.verdict != "inconclusive"
    return Outcome(
        strategy=strategy,
        result=RESULTS[comparison.verdict],
        metric="step_time",
        before=Quantity(comparison.before_step_ns / 1e6, "ms"),
        after=Quantity(comparison.after_step_ns / 1e6, "ms"),
        provenance=tier if beyond_noise else "claimed",
    )


def _cases(diagnosed: Diagnosed, findings: Sequence[Finding], outcomes: tuple[Outcome, ...], strategy: str | None) -> tuple[Case, ...]:
    """One case a cause; the outcome belongs to the first finding that names the strategy, else to the first finding."""
    context = max(contexts_of(diagnosed), key=lambda item: len(item.causes))
    by_cause = list({finding.cause: finding for finding in reversed(findings)}.values())[::-1][:_CASES]
    owner = next((finding for finding in by_cause if strategy in finding.strategies), by_cause[0])
    return tuple(
        Case(cause=finding.cause, context=context, finding=finding.message, outcomes=outcomes if finding is owner else ())
        for finding in by_cause
    )


def _slug(diagnosed: Diagnosed, finding: Finding) -> str:
    meta = diagnosed.sessions[0].meta
    return slug_of(f"{meta.model.name or meta.name} {finding.cause}", "diagnosis")


def _title(diagnosed: Diagnosed, finding: Finding, catalogue: Catalogue) -> Text:
    meta = diagnosed.sessions[0].meta
    subject, cause = meta.model.name or meta.name, catalogue.cause(finding.cause).name
    return Text(zh=f"{subject}：{cause.zh}", en=f"{subject}: {cause.en}")


def _summary(findings: Sequence[Finding], catalogue: Catalogue) -> Text:
    def sentence(lang: Lang) -> str:
        names = (
            f"{catalogue.cause(item.cause).name.pick(lang)} {duration(item.exposed_ns)} ({percent(item.share)})" for item in findings[:3]
        )
        return ("；" if lang == "zh" else "; ").join(names)

    return Text(zh=sentence("zh"), en=sentence("en"))


def _body(diagnosed: Diagnosed, lang: Lang) -> str:
    document = diagnosis_document(diagnosed.diagnosis, diagnosed.catalogue, lang)
    blocks = tuple(block for block in document.blocks if not (isinstance(block, Heading) and block.level == 1))
    return MarkdownRenderer().render(Document(blocks)).strip()
