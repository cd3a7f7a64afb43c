"""Sentences that many rules share, in both languages."""

from __future__ import annotations

from typing import Final

from kb.domain.text import Text
from kb.session.session import Table

NO_KERNELS: Final = Text("没有采集到本步的算子明细", "no kernel rows of this step were captured")
CAPTURE_KERNELS: Final = Text(
    "用 Level1 及以上级别重新采集，保留 kernel_details.csv 或 DB",
    "capture again at Level1 or higher and keep kernel_details.csv or the DB",
)
NO_TYPES: Final = Text("算子没有类型（Level0）", "kernels carry no operator type (Level0)")
NO_SHAPES: Final = Text("算子没有形状", "kernels carry no shapes")
NO_HOST: Final = Text(
    "没有采集到主机侧事件，看不到设备空闲时主机在做什么",
    "no host events were captured: what the host did while the device idled is unknown",
)
CAPTURE_HOST: Final = Text(
    "activities 中加入 ProfilerActivity.CPU，并保留 trace_view.json 或用 DB 导出",
    "ProfilerActivity.CPU in activities, and keep trace_view.json or export the DB",
)
NO_PIPES: Final = Text("没有采集流水计数器", "pipe counters were not captured")
CAPTURE_PIPES: Final = Text("采集时设 AiCMetrics.PipeUtilization", "capture with AiCMetrics.PipeUtilization")
NO_CHIP: Final = Text("芯片未知，不知道核数", "the chip is unknown, and with it the number of cores")
CAPTURE_CHIP: Final = Text("用 --soc 指明芯片，或用 DB 导出", "name the chip with --soc, or export the DB")
NO_COMM: Final = Text("没有采集到通信", "no communication was captured")
CAPTURE_COMM: Final = Text(
    "多卡采集，Level1 及以上，保留 communication.json", "capture more than one rank at Level1 or higher and keep communication.json"
)
CAPTURE_PLANES: Final = Text("保留 trace_view.json 或用 DB 导出", "keep trace_view.json or export the DB")


def untyped(kernels: Table | None) -> Text:
    """Why kernels cannot be told apart: there are none, or they carry no type."""
    return NO_KERNELS if kernels is None else NO_TYPES
