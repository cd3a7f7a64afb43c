"""The whole report as a document: verdict first, proof next, then what to do, what is unknown and what was captured."""

from __future__ import annotations

from collections.abc import Iterator

from kb.domain.catalogue import Catalogue
from kb.domain.comparison import Comparison
from kb.domain.diagnosis import Diagnosis, SessionDiagnosis
from kb.domain.text import Lang
from kb.report.comparison import comparison_document
from kb.report.document import Block, Bullets, Document, Figure, Heading, TableBlock
from kb.report.figures import BeforeAfter, Pair, Reliability
from kb.report.labels import Labels, labels
from kb.report.records import version_document
from kb.report.report import Report
from kb.report.story.advice import advice_blocks, case_blocks
from kb.report.story.charts import breakdown_figure, heat_figure, operator_table, path_figure, picture_blocks, version_figures
from kb.report.story.closing import capture_blocks, limit_blocks
from kb.report.story.findings import finding_blocks
from kb.report.story.headline import comparison_headline, headline
from kb.report.story.impact import impact_blocks, simulated_note


def report_document(report: Report, catalogue: Catalogue, lang: Lang) -> Document:
    """The report in ``lang``; the document carries no record yet (see ``kb.report.archive``)."""
    words = labels(lang)
    blocks: list[Block] = [Heading(1, _title(report, words))]
    blocks += simulated_note(report, words)
    if report.version is not None:
        blocks += version_document(report.version, catalogue, lang).blocks[1:]
        if report.version.record.links:
            blocks += (Heading(2, words("related")), Bullets(report.version.record.links))
    if report.diagnosis is not None:
        blocks += _diagnosis(report, report.diagnosis, catalogue, words)
    elif report.comparison is not None:
        blocks += _comparison(report, report.comparison, words)
    if report.calibration:
        chart = Reliability(report.calibration, report.calibration_error)
        blocks.append(Figure("reliability", words("figure.reliability"), chart))
    blocks += case_blocks(report, catalogue, words)
    if report.diagnosis is not None:
        blocks += limit_blocks(report.diagnosis, catalogue, words)
    blocks += capture_blocks(report, words)
    return Document(tuple(blocks), lang=lang, title=_title(report, words))


def _title(report: Report, words: Labels) -> str:
    if report.version is not None:
        return report.version.record.title.pick(words.lang)
    if report.diagnosis is None and report.comparison is not None:
        return f"{words('comparison')}: {report.comparison.before} → {report.comparison.after}"
    names = [item.model.name or item.name for item in report.facts] or [session.name for session in _sessions(report)]
    subject = next(iter(names), "")
    if len(set(names)) > 1:
        subject += words.either(f" 等 {len(names)} 份采集", f" and {len(names) - 1} more")
    chip = next((item.soc.reported_name or item.soc.id for item in report.facts if item.soc.reported_name or item.soc.id), None)
    return f"{words('report')}: {subject}" + (f" ({chip})" if chip else "")


def _sessions(report: Report) -> tuple[SessionDiagnosis, ...]:
    return report.diagnosis.sessions if report.diagnosis else ()


def _diagnosis(report: Report, diagnosis: Diagnosis, catalogue: Catalogue, words: Labels) -> Iterator[Block]:
    yield headline(report, diagnosis, catalogue, words)
    if report.comparison is not None:
        yield from _comparison(report, report.comparison, words)
    yield Heading(2, words("report.where"))
    figure = breakdown_figure(diagnosis, words)
    yield figure
    yield from finding_blocks(report, diagnosis, catalogue, words)
    yield from advice_blocks(report, catalogue, words)
    yield from impact_blocks(report, words)
    if report.drilldown is not None:
        yield path_figure(report.drilldown, words)
    yield from picture_blocks(report.facts, words)
    item = next((item for item in report.facts if item.operators), None)
    if item is not None:
        yield Heading(2, words("report.operators"))
        yield operator_table(item, words)
        yield heat_figure(item, words)


def _comparison(report: Report, comparison: Comparison, words: Labels) -> Iterator[Block]:
    yield Heading(2, words("report.comparison"))
    yield comparison_headline(comparison, words)
    # The page says "simulated" once, at its top; the headline says what the first sentence would.
    yield from (block for block in comparison_document(comparison, words.lang).blocks if isinstance(block, Bullets | TableBlock))
    whole = Pair(words("step"), comparison.before_step_ns, comparison.after_step_ns, _interval(comparison))
    parts = (Pair(words(f"part.{delta.name}"), delta.before_ns, delta.after_ns) for delta in comparison.parts)
    chart = BeforeAfter(words("before"), words("after"), (whole, *(pair for pair in parts if pair.before_ns or pair.after_ns)))
    yield Figure("pairs", words("figure.pairs"), chart)
    if report.after is not None:
        before = next((item for item in report.facts if item.name == comparison.before), None) or next(iter(report.facts), None)
        yield from version_figures(before, report.after, words) if before is not None else ()


def _interval(comparison: Comparison) -> tuple[int, int]:
    """The interval of the gain as times of the step after the change."""
    low, high = comparison.interval
    return round(comparison.before_step_ns * (1 - high)), round(comparison.before_step_ns * (1 - low))
