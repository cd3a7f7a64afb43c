"""Rule: the allocator wastes device memory, or its calls stop the launches."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.diagnose.confidence import confidence
from kb.diagnose.rules.host_stalls import allocator_calls
from kb.diagnose.view import RankView
from kb.domain.finding import Finding, Judgement, Where
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds

CAUSE: Final = "memory_fragmentation"


def memory_fragmentation(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge allocator calls by the time they cost; where they cost none, memory reserved far above what was ever in use
    at once is still a finding of priority P3 with no time to gain."""
    judgements = allocator_calls(view, thresholds)
    if any(isinstance(judgement, Finding) for judgement in judgements):
        return judgements
    return _waste(view, thresholds) or judgements


def _waste(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    reserved, allocated = (_peak(view, word) for word in ("reserved", "allocated"))
    if reserved is None or allocated is None or allocated[0] <= 0:
        return ()
    ratio, excess = reserved[0] / allocated[0], reserved[0] - allocated[0]
    if ratio < thresholds["reserved_over_allocated"] or excess < thresholds["reserved_excess_least"]:
        return ()
    message = Text(
        f"分配器保留 {reserved[0] / 1e9:.1f} GB，同时使用最多 {allocated[0] / 1e9:.1f} "
        f"GB（{ratio:.2f} 倍）：浪费显存，但本步没有因此损失时间",
        f"the allocator reserves {reserved[0] / 1e9:.1f} GB while at most "
        f"{allocated[0] / 1e9:.1f} GB were in use at once ({ratio:.2f} times): "
        "memory is wasted, though no time of this step",
    )
    return (
        Finding(
            cause=CAUSE,
            priority="P3",
            exposed_ns=0,
            share=0.0,
            gain_bound_ns=0,
            confidence=confidence(thresholds, CAUSE, minor=1),
            message=message,
            where=Where(),
            evidence=(
                view.evidence("counters", reserved[1], "peak of reserved memory", reserved[0], "B"),
                view.evidence("counters", allocated[1], "peak of allocated memory", allocated[0], "B"),
            ),
            observed={"reserved_over_allocated": ratio},
            healthy={"reserved_over_allocated": thresholds["reserved_over_allocated"]},
        ),
    )


def _peak(view: RankView, word: str) -> tuple[float, int] | None:
    """The highest sample of the framework's total whose name holds ``word``, in bytes, with its row."""
    counters = view.session.table("counters")
    if counters is None:
        return None
    names = np.array([_is_total(text, word) for text in (*view.session.strings, "")])
    rows = np.flatnonzero(names[counters["name"]])
    if not len(rows):
        return None
    row = int(rows[np.argmax(counters["value"][rows])])
    return float(counters["value"][row]), row


def _is_total(text: str, word: str) -> bool:
    lowered = text.lower()
    return word in lowered and lowered.endswith("[b]") and "app" not in lowered and ("total" in lowered or "pta" in lowered)
