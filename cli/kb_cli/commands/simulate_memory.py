"""``kb simulate memory``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from kb.domain.quantity import parse_quantity
from kb.errors import ExitCode, UsageError
from kb.report.document import Block, Bullets, Document, Heading, Note, TableBlock
from kb.report.labels import Labels, labels
from kb.report.numbers import amount, duration, percent
from kb.report.payload import plain
from kb.report.plain import PlainRenderer
from kb.tune.memory import TECHNIQUES, Schedule, Usage, schedule
from kb.workflow.location import shipped_catalogue
from kb.workflow.simulate import DEFAULT_SOC, options_from
from kb.workflow.subject import subject
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console

MOST_POOL_B = 1e12


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """A model and the techniques to apply."""

    model: Annotated[str, Argument("A model file or a built-in name.", "MODEL")]
    techniques: Annotated[str, Flag("--techniques", f"Split by commas, in order: {', '.join(TECHNIQUES)}.", "NAMES")] = ",".join(TECHNIQUES)
    pool_size: Annotated[str, Flag("--pool-size", "Most the pool may hold.", "SIZE")] = "512MB"
    soc: Annotated[str, Flag("--soc", "Chip: a name, CORESxMHZ, or a JSON file of your own.", "SOC")] = DEFAULT_SOC
    batch: Annotated[int, Flag("--batch", "Batch size.", "N")] = 1
    planner: Annotated[str, Flag("--planner", "How memory is placed before.", choices=("none", "first_fit", "best_fit", "pool"))] = "none"
    set: Annotated[tuple[str, ...], Flag("--set", "Any other option of the simulator; may be given often.", "NAME=VALUE")] = ()


def run(options: Options, console: Console) -> int:
    """Lifetimes, then one technique after the other."""
    names = tuple(name.strip() for name in options.techniques.split(",") if name.strip())
    if not names:
        raise UsageError("--techniques names none", allowed=", ".join(TECHNIQUES))
    pool_b = parse_quantity(options.pool_size).to("B")
    if not 1 <= pool_b < MOST_POOL_B:
        raise UsageError(f"--pool-size {options.pool_size}", allowed="1B to 1TB", do="as in 512MB")
    own = options_from(options.set, {"batch": options.batch, "planner": options.planner})
    found = subject(options.model, shipped_catalogue(), soc=options.soc, seed=1, options=own)
    if found.remark.en:
        console.remark(found.remark.zh, found.remark.en)
    done = schedule(found.setup, names, pool_b=int(pool_b))
    if console.as_json:
        console.json(_payload(done))
    else:
        console.text(PlainRenderer().render(_document(done, options, console)))
    return ExitCode.DONE


def _document(done: Schedule, options: Options, console: Console) -> Document:
    words = labels(console.lang)
    header = (
        words.either("手段", "technique"), words.either("峰值", "peak"), words.either("占用", "held"),
        words.either("碎片率", "fragmentation"),
        words.either("分配次数", "allocations"), words.either("整理搬运", "moved"), words("step"), "",
    )  # fmt: skip
    rows = [(words("before"), *_cells(done.before), "")]
    for row in done.rows:
        technique = TECHNIQUES[row.technique]
        name = f"{technique.name.pick(console.lang)} ({technique.strategy})"
        rows.append((name, *(_cells(row.after) if row.after is not None else ("-",) * 6), row.why.pick(console.lang)))
    blocks: list[Block] = [
        Heading(2, words.either(f"显存调度：{options.model}", f"Memory schedule of {options.model}")),
        Note("simulated", words("simulated")),
        TableBlock(header, tuple(rows), right=(1, 2, 3, 4, 5, 6)),
        Bullets((_summary(done, words),)),
        Heading(3, words.either("峰值时刻的活跃张量", "Values alive at the peak, before")),
        Bullets(tuple(f"{item.operator}: {amount(item.size_b)} [{item.first}, {item.last}]" for item in done.peak)),
    ]
    return Document(tuple(blocks), lang=console.lang)


def _summary(done: Schedule, words: Labels) -> str:
    before, after = done.before, done.after
    share = 1.0 - after.reserved_b / before.reserved_b if before.reserved_b else 0.0
    figures = f"{amount(before.reserved_b)} → {amount(after.reserved_b)} (-{percent(share)})"
    calls = f"{before.allocations} → {after.allocations}"
    return words.either(f"占用 {figures}，分配 {calls}，{done.values} 个张量", f"held {figures}, allocations {calls}, {done.values} values")


def _cells(usage: Usage) -> tuple[str, ...]:
    return (
        amount(usage.peak_b),
        amount(usage.reserved_b),
        percent(usage.fragmentation),
        str(usage.allocations),
        amount(usage.moved_b),
        duration(usage.step_ns),
    )


def _payload(done: Schedule) -> dict[str, Any]:
    rows = [
        {**plain(row), "strategy": TECHNIQUES[row.technique].strategy, "result": "no_gain" if row.after is None else "improved"}
        for row in done.rows
    ]
    return {
        "origin": "simulated",
        "before": plain(done.before),
        "after": plain(done.after),
        "techniques": rows,
        "peak": [plain(item) for item in done.peak],
        "values": done.values,
    }


COMMAND = Command(
    "Schedule device memory: lifetimes, reuse, in-place, pool, defragmentation, recomputation, each with what it does.",
    Options,
    run,
    (
        "kb simulate memory bert-large --soc 310p3 --batch 16",
        'kb simulate memory sd3 --techniques "inplace_activation, memory_pooling, fragmentation_defrag" --pool-size 512MB --json',
    ),
)
