"""What the rule on unequal pipeline stages says, in both languages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kb.diagnose.figures import milliseconds, percent
from kb.diagnose.stages import Coverage, StageLoad
from kb.domain.text import Text

CAPTURE_STAGES: Final = Text(
    "每个流水段至少采集一张卡，并保留 profiler_metadata.json",
    "capture at least one rank of every stage and keep profiler_metadata.json",
)
SPLIT_MATTERS: Final = Text(
    "前向与反向的时间比例未知，取各假设比例中收益最大的一个作为上限",
    "the split between forward and backward is unknown; the bound is the largest over the assumed shares",
)
WAITING_UNKNOWN: Final = Text(
    "点对点通信无法单独看到，等待时间按全部暴露通信计",
    "exchanges cannot be told apart, so all exposed communication counts as waiting",
)
UNREPLAYED: Final = Text(
    "微批数得不出来或很大，或者采用交错（虚拟流水）调度：按微批无穷多的极限（最大值减平均值）给上限，比真实情况宽",
    "the number of microbatches is unknown or very large, or the schedule is interleaved: the bound is the limit of many "
    "microbatches (largest minus mean), wider than the truth",
)


def found(heavy: StageLoad, light: StageLoad, exposed_ns: int, share: float, gain_ns: int) -> Text:
    """The finding: both stages' compute, the waiting it causes, its share (0..1) of the step, and the bound."""
    most, least, times = milliseconds(heavy.compute_ns), milliseconds(light.compute_ns), heavy.times(light)
    exposed, part, gain = milliseconds(exposed_ns), percent(share), milliseconds(gain_ns)
    return Text(
        f"流水段不均衡：第 {heavy.stage} 段每步计算 {most}，是第 {light.stage} 段（{least}）的 {times:.2f} 倍；"
        f"由此多等 {exposed}（占本步 {part}），按调度回放，完全均衡最多可省 {gain}",
        f"the pipeline stages are unequal: stage {heavy.stage} computes {most} a step, {times:.2f} times stage {light.stage} ({least}); "
        f"that adds {exposed} of waiting ({part} of the step), and by replaying the schedule perfect balance saves at most {gain}",
    )


def even(ratio: float, cover: Coverage) -> Text:
    """The stages compute alike; ``ratio`` is largest over mean."""
    text = Text(
        f"各流水段计算均衡：最大值是平均值的 {ratio:.2f} 倍", f"the stages compute evenly: the largest is {ratio:.2f} times the mean"
    )
    return _covered(text, cover)


def harmless(ratio: float, cover: Coverage) -> Text:
    """The stages differ, but equal ones would not make the step shorter, or nobody waits."""
    text = Text(
        f"各流水段计算不等（最大值是平均值的 {ratio:.2f} 倍），但按调度回放，均衡不会缩短一步",
        f"the stages compute unequally (the largest is {ratio:.2f} times the mean), but by replaying the schedule balance saves nothing",
    )
    return _covered(text, cover)


def _covered(text: Text, cover: Coverage) -> Text:
    if cover.whole:
        return text
    seen = coverage(cover)
    return Text(f"{text.zh}；{seen.zh}", f"{text.en}; {seen.en}")


def no_pipeline(cover: Coverage) -> Text:
    """The job runs in one stage."""
    seen = coverage(cover)
    return Text(f"没有流水线并行；{seen.zh}", f"the job has no pipeline parallelism; {seen.en}")


def too_few(cover: Coverage) -> Text:
    """Fewer than two stages can be compared."""
    seen = coverage(cover)
    if cover.stages:
        return Text(f"只采集到一个流水段，无法比较；{seen.zh}", f"only one stage was captured, nothing to compare; {seen.en}")
    return Text(f"不知道各卡属于流水线的哪一段；{seen.zh}", f"the pipeline stage of the ranks is unknown; {seen.en}")


def coverage(cover: Coverage) -> Text:
    """What of the job was captured."""
    ranks = ", ".join(map(str, cover.ranks)) or "?"
    stages = ", ".join(map(str, cover.stages)) or "?"
    world, pipeline = cover.world_size or "?", cover.pipeline or "?"
    return Text(
        f"已采集的卡：{ranks}（共 {world} 张）；流水段：{stages}（共 {pipeline} 段）",
        f"captured ranks: {ranks} (of {world}); stages: {stages} (of {pipeline})",
    )


def replayed(stages: int, microbatches: int) -> Text:
    """How the bound was computed."""
    return Text(
        f"按 1F1B 调度回放：{stages} 段、{microbatches} 个微批（由第一段的点对点通信次数得出），每步计算按微批平分",
        f"replayed as one-forward-one-backward: {stages} stages, {microbatches} microbatches (counted from the first stage's "
        "exchanges), a step's compute divided evenly among them",
    )


def explained(extra: Sequence[tuple[str, int]]) -> Text:
    """Operator types with the time (ns) the heavy stage spends on them beyond the light one."""
    listed = ", ".join(f"{name} +{milliseconds(more)}" for name, more in extra)
    return Text(f"较重的一段多出的算子时间：{listed}", f"operators on which the heavy stage spends more: {listed}")
