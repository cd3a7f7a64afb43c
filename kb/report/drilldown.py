"""A drill-down in words: a tree of figures, and what was found about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kb.domain.catalogue import Catalogue
from kb.domain.drilldown import DrillDown, DrillNode
from kb.domain.finding import Finding
from kb.domain.quantity import Quantity
from kb.domain.text import Lang
from kb.report.document import Block, Bullets, CodeBlock, Document, Heading, Note, Paragraph
from kb.report.labels import Labels, labels
from kb.report.numbers import duration, percent

CHILDREN = 8
"""Shown below a node; the rest is summed in one line."""
_METRICS = 4


def drilldown_document(
    trees: Sequence[DrillDown], findings: Sequence[Finding], catalogue: Catalogue, lang: Lang, *, compared: bool, simulated: bool
) -> Document:
    """One section a session: the tree, then the findings with their strategies."""
    words = labels(lang)
    blocks: list[Block] = [Heading(1, f"{words('figure.path')}: {trees[0].target}" if trees else words("figure.path"))]
    if simulated:
        blocks.append(Note("simulated", words.either("数据来自仿真，不是实测", "simulated data, not measured")))
    for tree in trees:
        blocks += [Heading(2, tree.session), CodeBlock("\n".join(lines(tree.root, compared=compared)))]
    blocks += _found(findings, catalogue, words)
    return Document(tuple(blocks), lang, title=trees[0].target if trees else "")


def lines(node: DrillNode, *, compared: bool = False, indent: str = "") -> Iterator[str]:
    """The tree as text, a line a node: level, name, time with its share of the step, figures, and the row it comes from."""
    figures = [_change(node) if compared else f"{duration(node.time_ns)} ({percent(node.share)})"]
    figures += [] if compared else [f"{name} {_value(value)}" for name, value in list(node.metrics.items())[:_METRICS]]
    cited = f"  [{node.evidence[0].file}:{node.evidence[0].row}]" if node.evidence else ""
    yield f"{indent}{node.level}  {node.name}  {', '.join(figures)}{cited}"
    for child in node.children[:CHILDREN]:
        yield from lines(child, compared=compared, indent=f"{indent}  ")
    rest = node.children[CHILDREN:]
    if rest:
        yield f"{indent}  … +{len(rest)}  {duration(sum(child.time_ns for child in rest))}"


def _change(node: DrillNode) -> str:
    change = node.metrics["change"].value * 1e3
    sign = "+" if change > 0 else "-" if change < 0 else ""
    before, after = (duration(node.metrics[side].value * 1e3) for side in ("before", "after"))
    return f"{before} → {after} ({sign}{duration(abs(change))})"


def _value(value: Quantity) -> str:
    if value.unit == "ratio":
        return percent(value.value)
    return f"{value.value:,.4g} {value.unit}" if value.unit != "count" else f"{value.value:,.0f}"


def _found(findings: Sequence[Finding], catalogue: Catalogue, words: Labels) -> Iterator[Block]:
    yield Heading(2, words.either("相关发现", "What was found about it"))
    if not findings:
        yield Paragraph(words.either("没有涉及这一部分的发现", "nothing was found about this part"))
        return
    for finding in findings:
        cause = catalogue.causes[finding.cause]
        yield Paragraph(f"{finding.priority} {cause.name.pick(words.lang)} ({finding.cause}): {finding.message.pick(words.lang)}")
        names = [f"{catalogue.strategies[each].name.pick(words.lang)} ({each})" for each in finding.strategies]
        if names:
            yield Bullets(tuple(names))
