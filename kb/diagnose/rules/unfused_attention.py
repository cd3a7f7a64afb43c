"""Rule: attention runs as separate product, softmax and product kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kb.diagnose import attention_wording as wording
from kb.diagnose.attention import AttentionRun, cube_floors_ns, find_runs
from kb.diagnose.confidence import confidence
from kb.diagnose.exposure import compute_exposed_ns, idle_ns, launch_gaps_ns, launch_interval_ns
from kb.diagnose.judging import types_of
from kb.diagnose.thresholds import priority
from kb.diagnose.view import RankView
from kb.domain.finding import Evidence, Finding, Healthy, Judgement, NotJudged, Where
from kb.domain.thresholds import Thresholds
from kb.session.session import Array, Table

CAUSE: Final = "unfused_attention"


def unfused_attention(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge whether attention runs fused, from the representative step's compute kernels.

    Exposed time is what the step would lose if the matched kernels vanished: other streams that compute at the same
    time keep theirs, and the idle time their launches cause goes with them. The gain bound subtracts what a fused
    kernel must still do on the cube.
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


@dataclass(frozen=True, slots=True)
class _Loss:
    """Rows of all runs, what they expose (``launch_ns`` of it as idle time), and what of it fusing can save at most."""

    matched: Array
    exposed_ns: int
    launch_ns: int
    gain_ns: int
    unfloored: int


def _judged(view: RankView, kernels: Table, runs: Sequence[AttentionRun], thresholds: Thresholds) -> Finding | Healthy:
    loss = _loss(view, kernels, runs, thresholds)
    share = loss.exposed_ns / view.accounting.step_ns
    cited = _evidence(view, kernels, runs, int(thresholds["attention_evidence_runs"]))
    if share < thresholds["attention_minimum_share"]:
        return Healthy(cause=CAUSE, message=wording.negligible(share), metric="exposed_share", value=share, unit="ratio", evidence=cited)
    unshaped, backward = sum(not run.shaped for run in runs), sum(run.backward for run in runs)
    return Finding(
        cause=CAUSE,
        priority=priority(share, thresholds),
        exposed_ns=loss.exposed_ns,
        share=share,
        gain_bound_ns=loss.gain_ns,
        confidence=confidence(thresholds, CAUSE, major=bool(unshaped), minor=bool(loss.unfloored)),
        message=wording.found((len(runs) - backward, backward), loss.exposed_ns, loss.launch_ns, share, loss.gain_ns),
        where=Where(operators=types_of(view, loss.matched)),
        evidence=cited,
        observed={"unfused_attention_runs": float(len(runs)), "kernels_per_run": len(loss.matched) / len(runs), "exposed_share": share},
        healthy={"unfused_attention_runs": 0.0, "kernels_per_run": 1.0},
        notes=wording.gaps(unshaped, loss.unfloored, len(runs)),
    )


def _loss(view: RankView, kernels: Table, runs: Sequence[AttentionRun], thresholds: Thresholds) -> _Loss:
    matched = np.array([position for run in runs for position in run.members])
    least, most = (int(thresholds[f"launch_gap_{end}"] * 1e3) for end in ("least", "most"))
    gaps = launch_gaps_ns(view, kernels, [run.members for run in runs], most)
    compute = compute_exposed_ns(view, kernels, matched)
    # Where the host sets the pace, launches saved here shorten idle time anywhere later in the step.
    saved = round((len(matched) - len(runs)) * launch_interval_ns(view, kernels, least, most))
    exposed = max(compute + gaps, min(saved, compute + idle_ns(view)))
    floors = cube_floors_ns(view, runs)
    known = [floor for floor in floors if floor is not None]
    spent = int(kernels["duration_ns"][matched].sum()) + gaps
    gain = max(0, min(exposed, max(saved, round(spent - sum(known)))))
    return _Loss(matched, exposed, exposed - compute, gain, len(floors) - len(known))


def _evidence(view: RankView, kernels: Table, runs: Sequence[AttentionRun], limit: int) -> tuple[Evidence, ...]:
    """The products and softmax of the longest runs, each by its own row."""
    longest = sorted(runs, key=lambda run: -int(kernels["duration_ns"][list(run.members)].sum()))[:limit]
    rows = [position for run in longest for position in sorted((*run.products, run.softmax))]
    return tuple(_cited(view, kernels, position) for position in rows)


def _cited(view: RankView, kernels: Table, position: int) -> Evidence:
    operator = view.session.text(int(kernels["op_type"][position])) or view.session.text(int(kernels["name"][position])) or "?"
    return view.evidence(
        "kernels", int(view.books.kernel_rows[position]), f"Duration of {operator}", int(kernels["duration_ns"][position]) / 1e3, "us"
    )


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
