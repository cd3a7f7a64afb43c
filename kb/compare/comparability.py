"""Whether a timing verdict over two sessions would mean anything."""

from __future__ import annotations

from collections.abc import Mapping

from kb.domain.soc import SocRef
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds
from kb.session.meta import SessionMeta

Totals = Mapping[str, tuple[int, int]]
"""Operator type -> (ns, count) of one step."""


def refusals(before: SessionMeta, after: SessionMeta, totals: tuple[Totals, Totals], limits: Thresholds) -> tuple[Text, ...]:
    """Why the two cannot be compared; empty when they can. What one side does not state is no reason."""
    pairs = (
        _chips(before.soc, after.soc),
        ("总卡数", "world size", before.world_size, after.world_size),
        ("模型", "model", _folded(before.model.name), _folded(after.model.name)),
        ("阶段", "phase", before.model.phase, after.model.phase),
        ("来源", "origin", before.origin, after.origin),
    )
    found = [
        Text(f"{zh}不同：{first} 与 {second}", f"different {en}: {first} and {second}")
        for zh, en, first, second in pairs
        if first is not None and second is not None and first != second
    ]
    common = common_work(*totals)
    if common is not None and common < limits["common_work_share"]:
        found.append(
            Text(
                f"按算子类型，两次运行相同的工作只占较短一方算子时间的 {common:.0%}，不像同一个任务",
                f"by operator type the two runs share only {common:.0%} of the shorter one's kernel time: not the same work",
            )
        )
    return tuple(found)


def common_work(before: Totals, after: Totals) -> float | None:
    """Time spent on the same operator types by both, as a share (0..1) of the smaller total; None where a side names
    no types. Removing or replacing operators by a shorter one therefore does not lower it much, another model does."""
    smaller = min(sum(ns for ns, _ in side.values()) for side in (before, after))
    if not smaller:
        return None
    return sum(min(before[name][0], after[name][0]) for name in before.keys() & after.keys()) / smaller


def doubts(before: SessionMeta, after: SessionMeta) -> tuple[Text, ...]:
    """Differences that leave an operator diff useful but forbid a verdict on the step."""
    first, second = before.model.batch, after.model.batch
    if first is None or second is None or first == second:
        return ()
    return (
        Text(
            f"批大小不同（{first} 与 {second}），一步的工作量不同",
            f"different batch sizes ({first} and {second}): a step is not the same work",
        ),
    )


def _chips(before: SocRef, after: SocRef) -> tuple[str, str, str | int | None, str | int | None]:
    """The most exact description of the chip that both sides have, behind what it describes in both languages."""
    if before.id is not None and after.id is not None:
        return "芯片", "chip", _folded(before.id), _folded(after.id)
    if "unknown" not in (before.family, after.family) and before.family != after.family:
        return "芯片", "chip", before.family, after.family
    return "芯片核数", "number of cores", before.cores, after.cores


def _folded(name: str | None) -> str | None:
    return name.strip().casefold() if name and name.strip() else None
