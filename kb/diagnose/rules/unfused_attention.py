"""Rule: attention runs as separate product, softmax and product kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from kb.diagnose import attention_wording as wording
from kb.diagnose.accounting import Books
from kb.diagnose.attention import AttentionRun, cube_floors_ns, find_runs
from kb.diagnose.intervals import clipped, union_length
from kb.diagnose.thresholds import confidence, priority
from kb.diagnose.view import RankView
from kb.domain.finding import Evidence, Finding, Healthy, Judgement, NotJudged, Where
from kb.domain.thresholds import Thresholds
from kb.session.session import Array, Table

CAUSE: Final = "unfused_attention"


def unfused_attention(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge whether attention runs fused, from the representative step's compute kernels.

    Exposed time is what the step would lose if the matched kernels vanished: other streams that compute at the
    same time keep theirs. The gain bound subtracts what a fused kernel must still do on the cube.
    """
    kernels = view.kernels
    if kernels is None:
        return (NotJudged(cause=CAUSE, reason=wording.NO_KERNELS, capture=wording.CAPTURE_KERNELS),)
    if not view.typed():
        return (NotJudged(cause=CAUSE, reason=wording.NO_TYPES, capture=wording.CAPTURE_TYPES),)
    runs = find_runs(view, bridge_length=int(thresholds["attention_bridge_length"]))
    if runs:
        return (_judged(view, kernels, runs, thresholds),)
    fused = np.flatnonzero(view.role(kernels, "fused_attention"))
    if len(fused):
        return (_fused(view, kernels, fused),)
    return (NotJudged(cause=CAUSE, reason=wording.NO_ATTENTION, capture=wording.CAPTURE_ATTENTION),)


def _judged(view: RankView, kernels: Table, runs: Sequence[AttentionRun], thresholds: Thresholds) -> Finding | Healthy:
    matched = np.array([position for run in runs for position in run.members])
    exposed = _exposed_ns(view, kernels, matched)
    share = exposed / view.accounting.step_ns
    cited = _evidence(view, kernels, runs, int(thresholds["attention_evidence_runs"]))
    if share < thresholds["attention_minimum_share"]:
        return Healthy(cause=CAUSE, message=wording.negligible(share), metric="exposed_share", value=share, unit="ratio", evidence=cited)
    return _finding(view, kernels, runs, matched, exposed, cited, thresholds)


def _finding(
    view: RankView,
    kernels: Table,
    runs: Sequence[AttentionRun],
    matched: Array,
    exposed: int,
    cited: tuple[Evidence, ...],
    thresholds: Thresholds,
) -> Finding:
    share = exposed / view.accounting.step_ns
    spent = int(kernels["duration_ns"][matched].sum())
    floors = cube_floors_ns(view, runs)
    known = [floor for floor in floors if floor is not None]
    unshaped = sum(not run.shaped for run in runs)
    backward = sum(run.backward for run in runs)
    gain = max(0, min(exposed, round(spent - sum(known))))
    return Finding(
        cause=CAUSE,
        priority=priority(share, thresholds),
        exposed_ns=exposed,
        share=share,
        gain_bound_ns=gain,
        confidence=confidence(thresholds, major=bool(unshaped), minor=len(known) < len(floors)),
        message=wording.found(len(runs) - backward, backward, exposed, share, gain),
        where=Where(operators=_types(view, kernels, matched)),
        evidence=cited,
        observed={"unfused_attention_runs": float(len(runs)), "kernels_per_run": len(matched) / len(runs), "exposed_share": share},
        healthy={"unfused_attention_runs": 0.0, "kernels_per_run": 1.0},
        notes=wording.gaps(unshaped, len(floors) - len(known), len(runs)),
    )


def _exposed_ns(view: RankView, kernels: Table, matched: Array) -> int:
    """Compute time that only the matched kernels cover, within the step."""
    compute = ~view.communication(kernels)
    others = compute.copy()
    others[matched] = False
    with_them, without = (_covered(view.books, kernels, mask) for mask in (compute, others))
    return min(with_them - without, view.accounting.parts["compute"])


def _covered(books: Books, kernels: Table, mask: Array) -> int:
    starts = kernels["start_ns"][mask]
    ends = starts + kernels["duration_ns"][mask]
    if books.step is not None and books.step.window is not None and books.step.trace_row is None:
        starts, ends = clipped(starts, ends, books.step.window)
    return union_length(starts, ends)


def _evidence(view: RankView, kernels: Table, runs: Sequence[AttentionRun], limit: int) -> tuple[Evidence, ...]:
    """The products and softmax of the longest runs, each by its own row."""
    longest = sorted(runs, key=lambda run: -int(kernels["duration_ns"][list(run.members)].sum()))[:limit]
    rows = [position for run in longest for position in sorted((*run.products, run.softmax))]
    return tuple(_cited(view, kernels, position) for position in rows)


def _cited(view: RankView, kernels: Table, position: int) -> Evidence:
    operator = view.session.text(int(kernels["op_type"][position]))
    return view.evidence(
        "kernels", int(view.books.kernel_rows[position]), f"Duration of {operator}", int(kernels["duration_ns"][position]) / 1e3, "us"
    )


def _types(view: RankView, kernels: Table, matched: Array) -> tuple[str, ...]:
    return tuple(sorted({view.session.strings[code] for code in np.unique(kernels["op_type"][matched]).tolist()}))


def _fused(view: RankView, kernels: Table, fused: Array) -> Healthy:
    longest = int(fused[np.argmax(kernels["duration_ns"][fused])])
    spent = int(kernels["duration_ns"][fused].sum())
    return Healthy(
        cause=CAUSE,
        message=wording.fused(len(fused), spent),
        metric="fused_attention_kernels",
        value=float(len(fused)),
        unit="count",
        evidence=(_cited(view, kernels, longest),),
    )
