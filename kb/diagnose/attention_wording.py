"""What the rule on unfused attention says, in both languages."""

from __future__ import annotations

from typing import Final

from kb.diagnose.figures import milliseconds, percent
from kb.domain.text import Text

NO_KERNELS: Final = Text(
    "没有采集到本步的算子明细，看不到注意力由哪些算子组成",
    "no kernel rows of this step were captured, so the kernels of the attention are not visible",
)
CAPTURE_KERNELS: Final = Text(
    "用 Level1 及以上级别重新采集，保留 kernel_details.csv 或 DB",
    "capture again at Level1 or higher and keep kernel_details.csv or the DB",
)
NO_TYPES: Final = Text("采集级别为 Level0，算子没有类型", "captured at Level0: kernels carry no operator type")
CAPTURE_TYPES: Final = Text(
    "把 profiler_level 设为 Level1，并打开 record_shapes，重新采集一步",
    "set profiler_level to Level1, switch record_shapes on, and capture one step again",
)
NO_ATTENTION: Final = Text(
    "这次采集里没有认出注意力算子",
    "no attention in this capture: neither a fused kernel nor product, softmax, product in sequence",
)
CAPTURE_ATTENTION: Final = Text(
    "若模型确有注意力，请采集包含它的那一步",
    "if the model has attention, capture a step that runs it",
)


def found(runs: tuple[int, int], exposed_ns: int, launch_ns: int, share: float, gain_ns: int) -> Text:
    """The finding: numbers of forward and backward runs, exposed time (``launch_ns`` of it idle while
    kernels are launched), its share (0..1) of the
    step, and the bound."""
    exposed, launch, part, gain = milliseconds(exposed_ns), milliseconds(launch_ns), percent(share), milliseconds(gain_ns)
    return Text(
        f"注意力没有融合：前向 {runs[0]} 处、反向 {runs[1]} 处拆成矩阵乘、Softmax、矩阵乘等多个算子，"
        f"共暴露 {exposed}（占本步 {part}，其中下发等待 {launch}）；融合最多可省 {gain}",
        f"attention is not fused: {runs[0]} forward and {runs[1]} backward runs of product, softmax, product as separate kernels "
        f"expose {exposed} ({part} of the step, {launch} of it waiting for launches); fusing saves at most {gain}",
    )


def negligible(share: float) -> Text:
    """Unfused attention exists but hardly costs anything."""
    return Text(f"未融合的注意力只占本步 {percent(share)}", f"unfused attention takes only {percent(share)} of the step")


def fused(kernels: int, spent_ns: int) -> Text:
    """Only fused attention was seen."""
    return Text(
        f"注意力已融合：{kernels} 个融合算子，共 {milliseconds(spent_ns)}，没有拆开的注意力",
        f"attention is fused: {kernels} fused kernels, {milliseconds(spent_ns)}, none run as separate kernels",
    )


def gaps(unshaped: int, unfloored: int, total: int) -> tuple[Text, ...]:
    """What is missing behind the finding: runs without shapes, runs whose products' own time is unknown."""
    notes = []
    if unshaped:
        notes.append(
            Text(
                f"{total} 处中有 {unshaped} 处没有形状信息，只按相邻关系判断",
                f"{unshaped} of {total} runs carry no shapes and were recognised by adjacency alone",
            )
        )
    if unfloored:
        notes.append(
            Text(
                f"{total} 处中有 {unfloored} 处无法得知矩阵乘本身的下限（缺计数器、形状或芯片信息），按 0 计，收益上限偏宽",
                f"for {unfloored} of {total} runs the time of the products themselves is unknown (no counters, shapes or chip); "
                "counted as zero, so the bound is wide",
            )
        )
    return tuple(notes)
