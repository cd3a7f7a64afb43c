"""Findings, each with cost, proof and remedies; and the tree from causes to cases."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kb.domain.catalogue import Catalogue
from kb.domain.diagnosis import Diagnosis
from kb.domain.finding import Evidence, Finding
from kb.domain.recommendation import RankedStrategy
from kb.report.document import Block, Figure, FindingBlock, Heading, Paragraph, Remedy, TableBlock, Tile
from kb.report.evidence_names import evidence_name
from kb.report.figures import Node, Tree
from kb.report.labels import Labels
from kb.report.numbers import duration, percent
from kb.report.report import Report
from kb.report.story.names import cause_name, metric_name, owner_of, strategy_name

_EVIDENCE = 8
_OBSERVED = 5
_REMEDIES = 4
_TREE_EVIDENCE = 2
_TREE_FINDINGS = 4
_TREE_REMEDIES = 3


def finding_blocks(report: Report, diagnosis: Diagnosis, catalogue: Catalogue, words: Labels) -> Iterator[Block]:
    """The chapter on findings."""
    yield Heading(2, words("report.findings"))
    if not report.findings:
        yield Paragraph(words("no_findings"))
        return
    for place, finding in enumerate(report.findings):
        yield replace(_block(finding, report, diagnosis, catalogue, words), open=place == 0)
    tree = cause_tree(report, catalogue, words)
    yield Figure("causes", words("figure.causes"), tree)


def _block(finding: Finding, report: Report, diagnosis: Diagnosis, catalogue: Catalogue, words: Labels) -> FindingBlock:
    known = catalogue.causes.get(finding.cause)
    ranked = _by_gain(finding, report)
    remarks = [known.definition.pick(words.lang)] if known else []
    remarks += [note.pick(words.lang) for note in finding.notes]
    return FindingBlock(
        priority=finding.priority,
        title=cause_name(finding.cause, catalogue, words),
        code=finding.cause,
        place=_place(finding, diagnosis, words),
        message=finding.message.pick(words.lang),
        share=finding.share,
        tiles=tuple(_tiles(finding, catalogue, words)),
        evidence_title=f"{words('evidence')} ({len(finding.evidence)})",
        evidence=_evidence(finding.evidence, words),
        remedies_title=words("strategies"),
        remedies=tuple(_remedy(strategy, finding, report, catalogue, words) for strategy in ranked[:_REMEDIES]),
        remarks=tuple(filter(None, [*remarks, _others(ranked[_REMEDIES:], catalogue, words)])),
    )


def _by_gain(finding: Finding, report: Report) -> tuple[str, ...]:
    """The finding's strategies, those with the largest expected gain first."""
    gains = {strategy: item.gain_fraction for strategy in finding.strategies if (item := _ranked(strategy, finding, report))}
    return tuple(sorted(finding.strategies, key=lambda strategy: -gains.get(strategy, 0.0)))


def _others(strategies: tuple[str, ...], catalogue: Catalogue, words: Labels) -> str:
    if not strategies:
        return ""
    names = [strategy_name(strategy, catalogue, words) for strategy in strategies]
    return words.either(f"其他可选策略：{'、'.join(names)}", f"Other strategies: {', '.join(names)}")


def _place(finding: Finding, diagnosis: Diagnosis, words: Labels) -> str:
    where = finding.where
    spots = [owner_of(finding, diagnosis, words), where.module or "", where.frame or "", ", ".join(where.operators)]
    return " · ".join(spot for spot in spots if spot)


def _tiles(finding: Finding, catalogue: Catalogue, words: Labels) -> Iterator[Tile]:
    yield Tile(words("exposed"), duration(finding.exposed_ns), percent(finding.share))
    yield Tile(words("gain_bound"), duration(finding.gain_bound_ns))
    yield Tile(words("confidence"), f"{finding.confidence:.2f}")
    for metric, value in list(finding.observed.items())[:_OBSERVED]:
        if metric == "exposed_share":
            continue
        healthy = finding.healthy.get(metric)
        beside = f"{words('expected_value')} {_number(metric, healthy)}" if healthy is not None else ""
        yield Tile(metric_name(metric, catalogue, words), _number(metric, value), beside)


def _number(metric: str, value: float) -> str:
    if metric.endswith("_ns"):
        return duration(value)
    return percent(value) if metric.endswith("_share") else f"{value:.4g}"


def _evidence(rows: tuple[Evidence, ...], words: Labels) -> TableBlock:
    header = (words("place"), words.either("行", "row"), words("metric"), words("value"))
    shown = tuple((item.file, str(item.row), evidence_name(item.metric, words.lang), _cell(item)) for item in rows[:_EVIDENCE])
    more = len(rows) - len(shown)
    return TableBlock(header, (*shown, ("…", str(more), "", "")) if more else shown, right=(1, 3))


def _cell(item: Evidence) -> str:
    value = f"{item.value:.6g}" if isinstance(item.value, float) else str(item.value)
    return f"{value} {item.unit}".strip()


def _remedy(strategy: str, finding: Finding, report: Report, catalogue: Catalogue, words: Labels) -> Remedy:
    ranked = _ranked(strategy, finding, report)
    name = strategy_name(strategy, catalogue, words)
    if ranked is None:
        return Remedy(name, strategy)
    low, high = ranked.interval
    expected = f"{words('expected')} {percent(ranked.gain_fraction)} = {duration(ranked.gain_ns)} [{percent(low)}, {percent(high)}]"
    return Remedy(name, strategy, expected, words(f"provenance.{ranked.provenance}"))


def _ranked(strategy: str, finding: Finding, report: Report) -> RankedStrategy | None:
    ranked = report.recommendation.strategies if report.recommendation else ()
    return next((item for item in ranked if item.id == strategy and item.cause == finding.cause), None)


def cause_tree(report: Report, catalogue: Catalogue, words: Labels) -> Tree:
    """Cause, evidence, strategy, case from left to right."""
    levels = (words("cause"), words("evidence"), words("strategy"), words("cases"))
    return Tree(levels, tuple(_root(finding, report, catalogue, words) for finding in report.findings[:_TREE_FINDINGS]))


def _root(finding: Finding, report: Report, catalogue: Catalogue, words: Labels) -> Node:
    remedies = tuple(_branch(strategy, finding, report, catalogue, words) for strategy in _by_gain(finding, report)[:_TREE_REMEDIES])
    proofs = [
        Node(evidence_name(item.metric, words.lang), f"{_cell(item)} · {item.file}:{item.row}", "accent")
        for item in finding.evidence[:_TREE_EVIDENCE]
    ]
    first = Node(proofs[0].name, proofs[0].detail, "accent", None, remedies) if proofs else Node("–", "", "other", None, remedies)
    name = f"{finding.priority} · {cause_name(finding.cause, catalogue, words)}"
    return Node(name, f"{duration(finding.exposed_ns)} = {percent(finding.share)}", "bad", finding.share, (first, *proofs[1:]))


def _branch(strategy: str, finding: Finding, report: Report, catalogue: Catalogue, words: Labels) -> Node:
    ranked = _ranked(strategy, finding, report)
    cases = ranked.cases[:3] if ranked else ()
    leaves = tuple(Node(case.ref, f"{words(f'provenance.{case.provenance}')} · {_gain(case.gain_fraction)}", "cube") for case in cases)
    expected = f"{words('expected')} {percent(ranked.gain_fraction)}" if ranked else ""
    return Node(strategy_name(strategy, catalogue, words), expected, "good", None, leaves)


def _gain(fraction: float | None) -> str:
    return "–" if fraction is None else percent(fraction)
