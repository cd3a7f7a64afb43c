"""One picture of a report alone, large, for a look instead of a read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kb.domain.catalogue import Catalogue, CauseId
from kb.domain.diagnosis import Diagnosis
from kb.domain.finding import Finding
from kb.domain.text import Lang
from kb.errors import KbError, NotFoundError
from kb.report.document import Block, Document, Figure, Heading, Note
from kb.report.figures import HeatMap, Node, Tree
from kb.report.labels import Labels, labels
from kb.report.numbers import duration, percent
from kb.report.report import Report
from kb.report.story.charts import breakdown_figure, heat_figure, path_figure, picture_blocks
from kb.report.story.impact import simulated_note
from kb.report.story.names import session_name

_WORST: Final = 0.25
"""Share of the step from which a cell of the severity map has the full colour."""


def view_document(report: Report, view: str, catalogue: Catalogue, lang: Lang) -> Document:
    """The pictures of ``view`` (an entry of ``VIEWS``).

    Raises NotFoundError for another name, KbError when the report carries nothing such a picture could show.
    """
    if view not in VIEWS:
        raise NotFoundError(f"no view is called {view!r}", allowed=", ".join(VIEWS), do="choose one of them")
    words = labels(lang)
    title = words(f"view.{view}")
    blocks = tuple(VIEWS[view](report, catalogue, words))
    if not any(isinstance(block, Figure) for block in blocks):
        raise KbError(
            f"the report holds nothing to draw as {view}",
            allowed="a report written from the profile itself (kb report), which carries its pictures",
            do=f"profiler visualize --session PROFILE --view {view}",
        )
    return Document((Heading(1, title), *simulated_note(report, words), *blocks), lang=lang, title=title)


def _heat(report: Report, catalogue: Catalogue, words: Labels) -> Iterator[Block]:
    """Causes by session, then operator types by time and counters where the report carries them."""
    if report.diagnosis is not None and report.findings:
        yield _severity(report.diagnosis, catalogue, words)
    item = next((item for item in report.facts if item.operators), None)
    if item is not None:
        yield heat_figure(item, words)


def _severity(diagnosis: Diagnosis, catalogue: Catalogue, words: Labels) -> Figure:
    rows = tuple(dict.fromkeys(finding.cause for finding in diagnosis.all_findings()))
    columns = tuple(session_name(session, words) for session in diagnosis.sessions)
    found = [_by_cause(session.findings) for session in diagnosis.sessions]
    if diagnosis.cluster.findings:
        columns = (words("cluster"), *columns)
        found.insert(0, _by_cause(diagnosis.cluster.findings))
    cells = [[column.get(row) for column in found] for row in rows]
    chart = HeatMap(
        rows=tuple(catalogue.cause(row).name.pick(words.lang) for row in rows),
        columns=columns,
        heat=tuple(tuple(None if cell is None else min(1.0, cell.share / _WORST) for cell in row) for row in cells),
        texts=tuple(
            tuple("–" if cell is None else f"{duration(cell.exposed_ns)} · {percent(cell.share)}" for cell in row) for row in cells
        ),
    )
    return Figure("severity", words("figure.severity"), chart, words("figure.severity.caption"))


def _said(cell: Finding | None) -> str:
    return "–" if cell is None else f"{duration(cell.exposed_ns)} · {percent(cell.share)}"


def _by_cause(findings: tuple[Finding, ...]) -> Mapping[CauseId, Finding]:
    return {finding.cause: finding for finding in reversed(findings)}


def _breakdown(report: Report, catalogue: Catalogue, words: Labels) -> Iterator[Block]:
    del catalogue  # every view is called alike
    if report.diagnosis is not None:
        yield breakdown_figure(report.diagnosis, words)


def _tree(report: Report, catalogue: Catalogue, words: Labels) -> Iterator[Block]:
    """Symptom, cause and remedy from left to right."""
    if report.diagnosis is None or not report.findings:
        return
    causes = tuple(_cause_node(finding, catalogue, words.lang) for finding in _by_cause(report.findings).values())
    causes = tuple(sorted(causes, key=lambda node: -(node.share or 0.0)))
    levels = (words("step"), words("cause"), words("strategy"))
    yield Figure("tree", words("view.tree"), Tree(levels, (Node(words("step"), children=causes),)))


def _cause_node(finding: Finding, catalogue: Catalogue, lang: Lang) -> Node:
    remedies = tuple(Node(catalogue.strategy(name).name.pick(lang), name, "good") for name in finding.strategies)
    detail = f"{duration(finding.exposed_ns)} · {percent(finding.share)}"
    return Node(catalogue.cause(finding.cause).name.pick(lang), detail, "bad", finding.share, remedies)


def _pictures(kind: str) -> Callable[[Report, Catalogue, Labels], Iterator[Block]]:
    def drawn(report: Report, catalogue: Catalogue, words: Labels) -> Iterator[Block]:
        del catalogue  # every view is called alike
        for block in picture_blocks(report.facts, words):
            if not isinstance(block, Figure | Heading | Note) or (isinstance(block, Figure) and block.name.startswith(kind)):
                yield block

    return drawn


def _path(report: Report, catalogue: Catalogue, words: Labels) -> Iterator[Block]:
    del catalogue  # every view is called alike
    if report.drilldown is not None:
        yield path_figure(report.drilldown, words)


VIEWS: Final[Mapping[str, Callable[[Report, Catalogue, Labels], Iterator[Block]]]] = {
    "heatmap": _heat,
    "breakdown": _breakdown,
    "tree": _tree,
    "timeline": _pictures("timeline"),
    "flame": _pictures("flame"),
    "roofline": _pictures("roofline"),
    "curves": _pictures("curves"),
    "path": _path,
}
