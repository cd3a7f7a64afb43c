"""``profiler validate-optimization``"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from kb.domain.comparison import Comparison
from kb.errors import ExitCode, UsageError
from kb.report.comparison import comparison_document
from kb.report.document import Block, Bullets, Document, Heading, TableBlock
from kb.report.labels import Labels, labels
from kb.report.markdown import MarkdownRenderer
from kb.report.numbers import duration, signed_percent
from kb.report.payload import comparison_payload
from kb.report.plain import PlainRenderer
from kb.workflow.apply import refuse_foreign_paths
from kb.workflow.compare import compare_paths
from kb.workflow.location import shipped_catalogue
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Two captures, and what to validate."""

    before: Annotated[Path, Flag("--before", "The profile before the optimisation.", "PATH")]
    after: Annotated[Path, Flag("--after", "The profile after it.", "PATH")]
    metrics: Annotated[str, Flag("--metrics", "What to look at, split by commas: latency_gain, bottleneck_elimination, p99.", "NAMES")] = (
        "latency_gain, bottleneck_elimination"
    )
    output: Annotated[Path | None, Flag("--output", "Also write the validation to this new Markdown file.", "FILE.md")] = None
    force: Annotated[bool, Flag("--force", "Overwrite the output file.")] = False


def run(options: Options, console: Console) -> int:
    """Compare, say what each bottleneck gave, warn of new ones. Exit status 6 for a regression, 1 when nothing can be compared (the
    comparison says why)."""
    names = [name.strip() for name in options.metrics.split(",") if name.strip()]
    unknown = [name for name in names if name not in _METRICS]
    if unknown or not names:
        raise UsageError(f"no metric {', '.join(unknown) or options.metrics!r}", allowed=", ".join(_METRICS))
    refuse_foreign_paths(options.before, options.after)
    comparison = compare_paths(options.before, options.after)
    words = labels(console.lang)
    blocks: list[Block] = [Heading(2, words.either("优化验证", "Validation of the optimisation"))]
    for name in names:
        blocks += _METRICS[name](comparison, words)
    document = Document(tuple(blocks), lang=console.lang)
    if options.output is not None:
        write_new(options.output, MarkdownRenderer().render(document), force=options.force)
        console.remark(f"已写入 {options.output}", f"wrote {options.output}")
    if console.as_json:
        console.json({"metrics": names, **comparison_payload(comparison)})
    else:
        console.text(PlainRenderer().render(document))
    if comparison.verdict == "not_comparable":
        why = "; ".join(reason.pick(console.lang) for reason in comparison.reasons)
        console.remark(f"两次采集不可比：{why}", f"the two captures are not comparable: {why}")
        return ExitCode.CANNOT
    return ExitCode.REGRESSION if comparison.verdict == "regressed" else ExitCode.DONE


def _latency(comparison: Comparison, words: Labels) -> list[Block]:
    return list(comparison_document(comparison, words.lang).blocks)


def _bottlenecks(comparison: Comparison, words: Labels) -> list[Block]:
    catalogue = shipped_catalogue()
    header = (words.either("瓶颈", "bottleneck"), words("before"), words("after"), words("saved"), words.either("结论", "conclusion"))
    rows = []
    for delta in comparison.causes:
        state = words.either("仍在", "still there")
        if delta.name in comparison.resolved_causes:
            state = words.either("已消除", "eliminated")
        elif delta.name in comparison.new_causes:
            state = words.either("新瓶颈", "new bottleneck")
        name = catalogue.cause(delta.name).name.pick(words.lang)
        rows.append((f"{name} ({delta.name})", duration(delta.before_ns), duration(delta.after_ns), duration(delta.saved_ns), state))
    blocks: list[Block] = [Heading(3, words.either("每个瓶颈的收益", "What each bottleneck gave"))]
    blocks.append(TableBlock(header, tuple(rows), right=(1, 2, 3)))
    if comparison.new_causes:
        listed = ", ".join(catalogue.cause(name).name.pick(words.lang) for name in comparison.new_causes)
        blocks.append(Bullets((words.either(f"预警：出现新瓶颈 {listed}", f"warning: new bottlenecks {listed}"),)))
    return blocks


def _tail(comparison: Comparison, words: Labels) -> list[Block]:
    if comparison.p99_ns is None:
        return [Bullets((words.either("步数不足，无法给出 P99", "too few steps for a P99"),))]
    first, second = comparison.p99_ns
    return [Bullets((f"P99: {duration(first)} → {duration(second)} ({signed_percent(1 - second / first)})",))]


_METRICS: Final[Mapping[str, Callable[[Comparison, Labels], list[Block]]]] = {
    "latency_gain": _latency,
    "bottleneck_elimination": _bottlenecks,
    "p99": _tail,
}

COMMAND = Command(
    "Did the optimisation work: the gain, what each bottleneck gave, and what is new.",
    Options,
    run,
    (
        "profiler validate-optimization --before sd3_baseline.prof --after sd3_optimized.prof "
        '--metrics "latency_gain, bottleneck_elimination" --output optimization_validation.md',
    ),
)
