"""Steps and tuning runs as documents and as JSON, every figure with its unit and its origin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kb.domain.catalogue import Catalogue, Command
from kb.domain.plan import Plan
from kb.domain.text import Lang, Text
from kb.errors import install
from kb.report.comparison import verdict_line
from kb.report.document import Block, Bullets, CodeBlock, Document, Heading, Note, Paragraph, TableBlock
from kb.report.labels import Labels, labels
from kb.report.numbers import amount, duration, rate, signed_percent
from kb.report.payload import comparison_payload, plain
from kb.tune.figures import Figures
from kb.tune.judging import Limit
from kb.tune.loop import Round, Stop, Tuning
from kb.tune.stepping import Status, Step

STATUSES: Final[Mapping[Status, Text]] = {
    "kept": Text("采用", "kept"),
    "rolled_back": Text("已回退", "rolled back"),
    "conflict": Text("冲突，未执行", "conflict, not run"),
    "refused": Text("不可行，未执行", "impossible, not run"),
    "in_place": Text("已生效", "already in place"),
    "by_hand": Text("仿真不支持，须手动", "not simulated, by hand"),
}
STOPS: Final[Mapping[Stop, Text]] = {
    "limits_hold": Text("约束全部满足", "every limit holds"),
    "nothing_left": Text("没有更多可信的改进", "nothing credible is left"),
    "trials": Text("试验次数用完", "the bound of trials is reached"),
    "time": Text("时间用完", "the bound of time is reached"),
}

UNASKED_LOSS: Final = 0.005
"""A growth of the relative error above this is pointed out when nobody set a budget for it."""


def steps_document(name: str, steps: Sequence[Step], before: Figures, after: Figures, limits: Sequence[Limit], lang: Lang) -> Document:
    """What became of every step of a plan, and the figures at both ends."""
    words = labels(lang)
    blocks: list[Block] = [Heading(2, words.either(f"逐步验证：{name}", f"Step by step: {name}")), Note("simulated", words("simulated"))]
    for number, step in enumerate(steps, start=1):
        blocks += _step(number, step, words)
    blocks += [_table((("", before), ("", after)), words), *_limits(limits, words)]
    return Document(tuple(blocks), lang=lang)


def _step(number: int, step: Step, words: Labels) -> Iterator[Block]:
    yield Heading(3, f"{number}. {step.strategy}: {STATUSES[step.status].pick(words.lang)}")
    if step.comparison is not None and step.comparison.verdict != "not_comparable":
        yield Paragraph(verdict_line(step.comparison, words))
    changed = step.changed.pick(words.lang)
    lines = [*([changed] if changed else []), *(reason.pick(words.lang) for reason in step.reasons)]
    if step.status == "rolled_back" and step.roll_back.pick(words.lang):
        lines.append(f"{words('roll_back')}: {step.roll_back.pick(words.lang)}")
    yield Bullets(tuple(lines))


def tuning_document(name: str, tuning: Tuning, catalogue: Catalogue, lang: Lang) -> Document:
    """A whole run: every round, both ends, limits, cuts, why it ended, and the real tools' commands for what was kept."""
    words = labels(lang)
    blocks: list[Block] = [
        Heading(2, words.either(f"闭环调优：{name}", f"Closed-loop tuning: {name}")),
        Note("simulated", words("simulated")),
    ]
    if tuning.rounds:
        header = ("#", words.either("原因", "cause"), words.either("改动", "change"), words.either("预期单步收益", "expected, of the step"),
                  words.either("目标收益", "gain of the target"), words.either("结果", "result"))  # fmt: skip
        rows = tuple(_round(number, item, words) for number, item in enumerate(tuning.rounds, start=1))
        blocks.append(TableBlock(header, rows, right=(3, 4)))
    blocks.append(_table(((words("before"), tuning.baseline), (words("after"), tuning.best)), words))
    blocks += _limits(tuning.limits, words)
    blocks.append(Bullets(tuple(_ending(tuning, words))))
    if tuning.cuts:
        blocks.append(Heading(3, words.either("从搜索空间中剪去", "Cut from the search space")))
        blocks.append(Bullets(tuple(f"{cut.knob} = {cut.value}: {cut.reason.pick(lang)}" for cut in tuning.cuts)))
    blocks += _by_hand(tuning, catalogue, words)
    return Document(tuple(blocks), lang=lang)


def _round(number: int, item: Round, words: Labels) -> tuple[str, ...]:
    change = item.strategy or ", ".join(f"{name} = {value}" for name, value in item.values.items())
    expected = "-" if item.expected is None else signed_percent(item.expected)
    gain = "-" if item.gain is None else signed_percent(item.gain)
    reasons = "; ".join(reason.pick(words.lang) for reason in item.reasons)
    state = words.either("采用", "kept") if item.kept else words.either("未采用", "not kept")
    return str(number), item.cause or words.either("数值搜索", "numeric search"), change, expected, gain, f"{state}: {reasons}"


def _ending(tuning: Tuning, words: Labels) -> Iterator[str]:
    lang = words.lang
    yield words.either(
        f"结束原因：{STOPS[tuning.stop].pick(lang)}；{tuning.trials} 次试验（其中 {tuning.replayed} 次取自日志），{tuning.seconds:.1f} s",
        f"ended: {STOPS[tuning.stop].pick(lang)}; {tuning.trials} trials, {tuning.replayed} from the journal, {tuning.seconds:.1f} s",
    )
    if tuning.changed:
        moved = ", ".join(f"{name}: {before} → {after}" for name, (before, after) in tuning.changed.items())
        yield words.either(f"改变的选项：{moved}", f"options changed: {moved}")
    loss = tuning.best.precision_loss
    if loss > UNASKED_LOSS and not any(limit.name == "precision" for limit in tuning.limits):
        yield words.either(
            f"注意：未设精度预算，结果的相对误差增加 {100 * loss:.2f} %（仿真）；用 --max-precision-loss 限制",
            f"caution: the relative error of results grows by {100 * loss:.2f} % (emulated) and no --max-precision-loss was set",
        )
    sources = [seed.source for seed in tuning.seeds if seed.source not in ("present", "all of them")]
    if sources:
        yield words.either(f"数值搜索的起点来自：{', '.join(sources)}", f"the numeric search began from {', '.join(sources)}")
    if tuning.method == "coordinates":
        yield words.either(
            f"数值搜索逐个参数进行（未安装 Optuna）；若需 Optuna 采样：{install('tune')}",
            f"the numeric search went knob by knob (Optuna is not installed); to sample with it: {install('tune')}",
        )


def _by_hand(tuning: Tuning, catalogue: Catalogue, words: Labels) -> Iterator[Block]:
    named = list(dict.fromkeys((*tuning.kept, *tuning.by_hand)))
    if not named:
        return
    yield Heading(3, words.either("真实工具的命令", "Commands of the real tools"))
    for name in named:
        strategy = catalogue.strategy(name)
        how = words.either("已在仿真中验证", "tried on the simulator") if name in tuning.kept else words.either("未仿真", "not simulated")
        yield Bullets((f"{strategy.name.pick(words.lang)} ({name}; {how})",))
        if strategy.commands:
            yield CodeBlock("\n".join(_command(command, words) for command in strategy.commands))


def _command(command: Command, words: Labels) -> str:
    state = words("command_verified") if command.verified else words("command_unverified")
    return f"{command.text}    # {command.tool}, {state}"


def commands_document(plan: Plan, lang: Lang, following: str) -> Document:
    """The plan for a real machine: commands first, then what to run after each of them."""
    words = labels(lang)
    blocks: list[Block] = [Heading(2, words.either(f"在您的机器上：{plan.session}", f"On your machine: {plan.session}"))]
    for number, step in enumerate(plan.steps, start=1):
        blocks.append(Heading(3, f"{number}. {step.title.pick(lang)} ({step.strategy})"))
        if step.commands:
            blocks.append(CodeBlock("\n".join(_command(command, words) for command in step.commands)))
        lines = [
            f"{words(key)}: {text.pick(lang)}" for key, text in (("verify", step.verify), ("roll_back", step.roll_back)) if text.pick(lang)
        ]
        blocks.append(Bullets((*lines, *(risk.pick(lang) for risk in step.risks))))
    blocks.append(Paragraph(words.either("只做第一步，重新采集，然后比较：", "Make the first change only, capture again, then compare:")))
    blocks.append(CodeBlock(following))
    return Document(tuple(blocks), lang=lang)


def _table(rows: Sequence[tuple[str, Figures]], words: Labels) -> TableBlock:
    named = [(name or words(key), figures) for (name, figures), key in zip(rows, ("before", "after"), strict=False)]
    header = ("", words("step"), words.either("吞吐", "throughput"), words.either("显存", "memory"),
              words.either("每样本能耗", "energy a sample"), words.either("精度损失（仿真）", "precision loss (emulated)"))  # fmt: skip
    return TableBlock(header, tuple((name, *_cells(figures)) for name, figures in named), right=(1, 2, 3, 4, 5))


def _cells(figures: Figures) -> tuple[str, ...]:
    energy = "-" if figures.energy_j is None else f"{figures.energy_j:.3g} J"
    return (
        duration(figures.latency_ns),
        f"{rate(figures.throughput)} /s",
        amount(figures.memory_b),
        energy,
        f"{100 * figures.precision_loss:.3f} %",
    )


def _limits(limits: Sequence[Limit], words: Labels) -> Iterator[Block]:
    if limits:
        marks = words.either("满足", "holds"), words.either("不满足", "missed")
        yield Bullets(tuple(f"{marks[0] if limit.holds else marks[1]}: {limit.text.pick(words.lang)}" for limit in limits))


def figures_payload(figures: Figures) -> dict[str, Any]:
    """Figures with units in the key names."""
    return {
        "latency_ns": figures.latency_ns,
        "mean_step_ns": figures.mean_ns or figures.latency_ns,
        "memory_b": figures.memory_b,
        "samples": figures.samples,
        "throughput_per_s": figures.throughput,
        "energy_j_per_sample": figures.energy_j,
        "precision_loss_fraction": figures.precision_loss,
        "provenance": "simulated",
    }


def step_payload(step: Step) -> dict[str, Any]:
    """One step."""
    return {
        "strategy": step.strategy,
        "status": step.status,
        "reasons": [plain(reason) for reason in step.reasons],
        "changed": plain(step.changed),
        "gain_fraction": step.gain,
        "comparison": None if step.comparison is None else comparison_payload(step.comparison),
        "before": figures_payload(step.before),
        "after": None if step.after is None else figures_payload(step.after),
        "commands": [plain(command) for command in step.commands],
        "roll_back": plain(step.roll_back),
    }


def limits_payload(limits: Sequence[Limit]) -> list[dict[str, Any]]:
    """Every limit and whether it holds."""
    return [{"name": limit.name, "holds": limit.holds, "excess_fraction": limit.excess, "text": plain(limit.text)} for limit in limits]


def tuning_payload(tuning: Tuning) -> dict[str, Any]:
    """A whole run."""
    return {
        "origin": "simulated",
        "baseline": figures_payload(tuning.baseline),
        "best": figures_payload(tuning.best),
        "met": tuning.met,
        "limits": limits_payload(tuning.limits),
        "stop": tuning.stop,
        "trials": tuning.trials,
        "replayed": tuning.replayed,
        "wall_s": tuning.seconds,
        "changed": {name: {"before": pair[0], "after": pair[1]} for name, pair in tuning.changed.items()},
        "kept": list(tuning.kept),
        "by_hand": list(tuning.by_hand),
        "rounds": [_round_payload(item) for item in tuning.rounds],
        "cuts": [{"knob": cut.knob, "value": cut.value, "reason": plain(cut.reason)} for cut in tuning.cuts],
        "numeric_search": tuning.method,
        "seeds": [{"source": seed.source, "values": dict(seed.values)} for seed in tuning.seeds],
    }


def _round_payload(item: Round) -> dict[str, Any]:
    return {
        "cause": item.cause,
        "strategy": item.strategy,
        "values": dict(item.values),
        "kept": item.kept,
        "expected_gain_fraction": item.expected,
        "interval": None if item.interval is None else list(item.interval),
        "gain_fraction": item.gain,
        "reasons": [plain(reason) for reason in item.reasons],
        "before": figures_payload(item.before),
        "after": None if item.after is None else figures_payload(item.after),
    }
