"""A diagnosed pipeline as a document: the verdict, its nodes, what holds it up, and what the recommended resources gave."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from kb.domain.pipeline import NodeChange, PipelineAnalysis, PipelineFigures, PipelineFinding
from kb.domain.text import Lang
from kb.report.document import Block, Bullets, Document, Heading, Note, Paragraph, TableBlock
from kb.report.labels import Labels, labels


def pipeline_document(analysis: PipelineAnalysis, lang: Lang) -> Document:
    """Everything the analysis says, in ``lang``."""
    words = labels(lang)
    blocks: list[Block] = [Heading(1, words.either(f"流水线诊断：{analysis.name}", f"Pipeline diagnosis: {analysis.name}"))]
    if analysis.origin == "simulated":
        blocks.append(Note("simulated", words("simulated")))
    blocks.append(Paragraph(_verdict(analysis, words)))
    blocks += [Heading(2, words.either("节点", "Nodes")), _nodes(analysis.figures, words)]
    if analysis.findings:
        blocks.append(Heading(2, words("findings")))
    for finding in analysis.findings:
        blocks += _finding(finding, analysis.figures, words)
    if analysis.healthy:
        blocks += [Heading(2, words.either("健康节点", "Healthy nodes")), Bullets(analysis.healthy)]
    if analysis.planned is not None:
        blocks += [Heading(2, words.either("建议的资源配比及其仿真结果", "Recommended resources and their simulated outcome"))]
        blocks += [Bullets(tuple(_change(change, words) for change in analysis.plan)), _outcome(analysis.figures, analysis.planned, words)]
    return Document(tuple(blocks), lang, analysis.name)


def _verdict(analysis: PipelineAnalysis, words: Labels) -> str:
    found = analysis.figures
    load = analysis.loads[analysis.bottleneck]
    if not analysis.stable:
        return words.either(
            f"不可能稳定：到达 {found.offered:.1f} 请求/s，瓶颈节点 {analysis.bottleneck} 负载 {load:.2f}（≥ 1）；"
            f"实际吞吐 {found.throughput:.1f} 请求/s，排队只会变长。",
            f"It cannot be stable: {found.offered:.1f} requests/s come and bottleneck {analysis.bottleneck} has load {load:.2f} "
            f"(1 or more); {found.throughput:.1f} requests/s leave, and the queue only grows.",
        )
    return words.either(
        f"稳定：到达 {found.offered:.1f} 请求/s，吞吐 {found.throughput:.1f} 请求/s；"
        f"负载最高的节点是 {analysis.bottleneck}（{load:.2f}）。",
        f"Stable: {found.offered:.1f} requests/s come, {found.throughput:.1f} leave; the busiest node is {analysis.bottleneck} "
        f"(load {load:.2f}).",
    )


def _nodes(found: PipelineFigures, words: Labels) -> TableBlock:
    header = words.either(
        "节点,并发,缓冲,到达 1/s,能力 1/s,负载,服务 ms,等待 ms,p99 ms,最大队列,利用率,被堵,空闲",
        "node,workers,buffer,arrivals 1/s,capacity 1/s,load,service ms,wait ms,p99 ms,max queue,utilisation,blocked,idle",
    )
    rows = tuple(
        (
            node.name, str(node.concurrency), _buffer(node.buffer), f"{node.rate:.1f}", f"{node.capacity:.1f}", f"{node.load:.2f}",
            f"{node.service_ms:.1f}", f"{node.wait_ms:.1f}", f"{node.latency_p99_ms:.1f}", str(node.depth_max), f"{node.utilisation:.0%}",
            f"{node.blocked:.0%}", f"{node.idle:.0%}",
        )
        for node in found.nodes
    )  # fmt: skip
    return TableBlock(tuple(header.split(",")), rows, right=tuple(range(1, 13)))


def _finding(finding: PipelineFinding, before: PipelineFigures, words: Labels) -> Iterator[Block]:
    yield Heading(3, f"{finding.priority} · {finding.cause} · {finding.node}")
    yield Paragraph(finding.message.pick(words.lang))
    yield Bullets((*finding.evidence, *(_change(change, words) for change in finding.changes)))
    if finding.outcome is not None:
        yield _outcome(before, finding.outcome, words)


def _change(change: NodeChange, words: Labels) -> str:
    parts = []
    if change.concurrency_after != change.concurrency_before:
        parts.append(words.either("并发", "workers") + f" {change.concurrency_before} → {change.concurrency_after}")
    if change.buffer_after != change.buffer_before:
        parts.append(words.either("缓冲", "buffer") + f" {_buffer(change.buffer_before)} → {_buffer(change.buffer_after)}")
    return f"{change.node}: {', '.join(parts) or words.either('不变', 'unchanged')}"


def _outcome(before: PipelineFigures, after: PipelineFigures, words: Labels) -> TableBlock:
    rows = (
        (words.either("吞吐 请求/s", "throughput requests/s"), f"{before.throughput:.1f}", f"{after.throughput:.1f}"),
        (words.either("吞吐区间 p5–p95", "throughput p5 to p95"), _span(before), _span(after)),
        (words.either("延迟 p50 ms", "latency p50 ms"), f"{before.latency_p50_ms:.0f}", f"{after.latency_p50_ms:.0f}"),
        (words.either("延迟 p99 ms", "latency p99 ms"), f"{before.latency_p99_ms:.0f}", f"{after.latency_p99_ms:.0f}"),
        (words.either("最多在途请求", "most requests inside"), str(before.waiting_max), str(after.waiting_max)),
    )
    header = ("", words.either("现在", "now"), words.either("之后（仿真）", "after (simulated)"))
    return TableBlock(header, rows, right=(1, 2))


def _span(found: PipelineFigures) -> str:
    return f"{found.throughput_low:.1f}–{found.throughput_high:.1f}"


def _buffer(size: int | None) -> str:
    return "∞" if size is None else str(size)


def pipeline_payload(analysis: PipelineAnalysis) -> dict[str, Any]:
    """``profiler analyze-pipeline --json``; units stand in the key names, rates are requests a second."""
    made: dict[str, Any] = msgspec.to_builtins(analysis)
    return made
