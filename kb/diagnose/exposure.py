"""What some kernels cost the step: the compute time only they cover, and the launch gaps between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kb.diagnose.intervals import clipped, union_length
from kb.diagnose.view import RankView
from kb.domain.accounting import PARTS
from kb.session.session import Array, Table


def compute_exposed_ns(view: RankView, kernels: Table, rows: Array) -> int:
    """Compute time of the step that only the kernels at ``rows`` cover: what other streams compute at the same time
    would remain without them. Never above the step's compute."""
    compute = ~view.communication(kernels)
    others = compute.copy()
    others[rows] = False
    with_them, without = (union_length(*_spans(view, kernels, mask)) for mask in (compute, others))
    return min(with_them - without, view.accounting.parts["compute"])


def launch_gaps_ns(view: RankView, kernels: Table, chains: Sequence[Sequence[int]], limit_ns: int) -> int:
    """Idle time of the device between successive kernels of each chain (ascending rows), each gap up to ``limit_ns``.

    One kernel in place of a chain needs one launch, so this time goes too. Time covered by any kernel or copy is not
    idle. Never above the step's idle time.
    """
    firsts = np.array([row for chain in chains for row in chain[:-1]], np.int64)
    seconds = np.array([row for chain in chains for row in chain[1:]], np.int64)
    starts, durations = kernels["start_ns"], kernels["duration_ns"]
    begins = starts[firsts] + durations[firsts]
    ends = np.minimum(starts[seconds], begins + limit_ns)
    busy_starts, busy_ends = _busy(view, kernels)
    begins, ends = _inside(view, begins, ends)
    covered = union_length(busy_starts, busy_ends)
    together = union_length(np.concatenate((busy_starts, begins)), np.concatenate((busy_ends, ends)))
    return min(together - covered, idle_ns(view))


def launch_interval_ns(view: RankView, kernels: Table, least_ns: int, most_ns: int) -> float:
    """Time from one launch to the next where the host sets the pace: the median distance between the starts of successive
    kernels of one stream with a gap between ``least_ns`` and ``most_ns`` (a longer one is no launch), at most ``most_ns``;
    0 where there is no such pair."""
    own = kernels.where(~view.communication(kernels))
    order = np.lexsort((own["start_ns"], own["stream"])) if "stream" in own else np.arange(len(own))
    starts, ends = own["start_ns"][order], (own["start_ns"] + own["duration_ns"])[order]
    gaps = starts[1:] - ends[:-1]
    late = (gaps > least_ns) & (gaps <= most_ns)
    return min(float(np.median(np.diff(starts)[late])), float(most_ns)) if late.any() else 0.0


def idle_ns(view: RankView) -> int:
    """All idle parts of the step together."""
    return sum(view.accounting.parts[part] for part in PARTS if part.startswith("idle_"))


def _busy(view: RankView, kernels: Table) -> tuple[Array, Array]:
    starts, ends = _spans(view, kernels, np.ones(len(kernels), np.bool_))
    copies = view.session.table("copies")
    if copies is None:
        return starts, ends
    return (
        np.concatenate((starts, copies["start_ns"])),
        np.concatenate((ends, copies["start_ns"] + copies["duration_ns"])),
    )


def _spans(view: RankView, kernels: Table, mask: Array) -> tuple[Array, Array]:
    starts = kernels["start_ns"][mask]
    return _inside(view, starts, starts + kernels["duration_ns"][mask])


def _inside(view: RankView, starts: Array, ends: Array) -> tuple[Array, Array]:
    """Cut to the step where its window defines its length; exporter totals count whole kernels."""
    step = view.books.step
    if step is None or step.window is None or step.trace_row is not None:
        return starts, ends
    return clipped(starts, ends, step.window)
