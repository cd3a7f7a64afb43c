"""Rule: pipeline stages compute for unequal times, so the light ones wait for the heavy one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kb.diagnose import stage_wording as wording
from kb.diagnose.confidence import confidence
from kb.diagnose.stages import Balance, Coverage, StageLoad, balance, coverage, extra_operators, microbatches, stage_loads
from kb.diagnose.thresholds import priority
from kb.diagnose.view import ClusterView, RankView
from kb.domain.finding import Evidence, Finding, Healthy, Judgement, NotJudged, Where
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds

CAUSE: Final = "pipeline_imbalance"
Extra = tuple[str, int, RankView]


def pipeline_imbalance(view: ClusterView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge the balance of compute between the captured pipeline stages.

    The bound is what a replay of the schedule saves with equal stages, never above the exposed waiting of the
    lightest stage; the exposed time is the part of that waiting which the replay blames on the imbalance.
    """
    loads = stage_loads(view)
    cover = coverage(view, loads)
    if len(loads) < 2:
        return (_not_judged(cover),)
    compute = [load.compute_ns for load in loads]
    ratio = max(compute) * len(compute) / sum(compute) if sum(compute) else 1.0
    if ratio < thresholds["stage_imbalance_ratio"]:
        return (_healthy(wording.even(ratio, cover), loads, ratio),)
    loss = _loss(view, cover, loads, thresholds)
    if not loss.gain_ns:
        return (_healthy(wording.harmless(ratio, cover), loads, ratio),)
    return (_finding(cover, loads, loss, ratio, thresholds),)


@dataclass(frozen=True, slots=True)
class _Loss:
    heavy: StageLoad
    light: StageLoad
    microbatches: int | None
    change: Balance
    exposed_ns: int
    gain_ns: int


def _loss(view: ClusterView, cover: Coverage, loads: Sequence[StageLoad], thresholds: Thresholds) -> _Loss:
    heavy, light = max(loads, key=lambda load: load.compute_ns), min(loads, key=lambda load: load.compute_ns)
    count = microbatches(view, len(loads)) if cover.all_stages else None
    change = balance(loads, count, thresholds, training=_training(view))
    exposed = min(change.idle_ns, light.waiting_ns)
    return _Loss(heavy, light, count, change, exposed, min(change.saved_ns, exposed))


def _not_judged(cover: Coverage) -> NotJudged:
    if cover.pipeline == 1:
        return NotJudged(cause=CAUSE, reason=wording.no_pipeline(cover))
    return NotJudged(cause=CAUSE, reason=wording.too_few(cover), capture=wording.CAPTURE_STAGES)


def _healthy(message: Text, loads: Sequence[StageLoad], ratio: float) -> Healthy:
    return Healthy(
        cause=CAUSE,
        message=message,
        metric="stage_compute_max_over_mean",
        value=ratio,
        unit="ratio",
        evidence=_compute_evidence(loads),
    )


def _finding(cover: Coverage, loads: Sequence[StageLoad], loss: _Loss, ratio: float, thresholds: Thresholds) -> Finding:
    share = loss.exposed_ns / loss.light.step_ns
    extra = _explaining(loss, thresholds)
    alone = any(len(load.ranks) == 1 for load in loads)
    missing = sum((not loss.change.by_replay, not loss.light.waiting_known, not extra, alone))
    return Finding(
        cause=CAUSE,
        priority=priority(share, thresholds),
        exposed_ns=loss.exposed_ns,
        share=share,
        gain_bound_ns=loss.gain_ns,
        confidence=confidence(thresholds, CAUSE, major=not cover.all_stages, minor=missing),
        message=wording.found(loss.heavy, loss.light, loss.exposed_ns, share, loss.gain_ns),
        where=Where(
            operators=tuple(row[0] for row in extra),
            ranks=tuple(sorted(rank.rank for load in loads for rank in load.ranks if rank.rank is not None)),
            stages=(loss.heavy.stage,),
        ),
        evidence=(*_compute_evidence(loads), *(_operator_evidence(*row) for row in extra)),
        scope="cluster",
        observed=_observed(loads, loss, ratio),
        healthy={"stage_compute_ratio": 1.0, "stage_compute_max_over_mean": thresholds["stage_imbalance_ratio"]},
        notes=_notes(cover, loads, loss, extra),
    )


def _observed(loads: Sequence[StageLoad], loss: _Loss, ratio: float) -> dict[str, float]:
    seen = {
        "stage_compute_ratio": loss.heavy.times(loss.light),
        "stage_compute_max_over_mean": ratio,
        "exchange_waiting_ns": float(loss.light.waiting_ns),
    }
    seen |= {f"stage_{load.stage}_compute_ns": float(load.compute_ns) for load in loads}
    return seen if loss.microbatches is None else {**seen, "microbatches": float(loss.microbatches)}


def _notes(cover: Coverage, loads: Sequence[StageLoad], loss: _Loss, extra: Sequence[Extra]) -> tuple[Text, ...]:
    replayed = loss.change.by_replay and loss.microbatches is not None
    notes = [wording.replayed(len(loads), loss.microbatches or 0) if replayed else wording.UNREPLAYED]
    if loss.change.split_matters:
        notes.append(wording.SPLIT_MATTERS)
    if not loss.light.waiting_known:
        notes.append(wording.WAITING_UNKNOWN)
    if extra:
        notes.append(wording.explained([(name, more) for name, more, _ in extra]))
    if not cover.whole:
        notes.append(wording.coverage(cover))
    return tuple(notes)


def _training(view: ClusterView) -> bool:
    return all(rank.session.meta.model.phase in (None, "training") for rank in view.ranks)


def _explaining(loss: _Loss, thresholds: Thresholds) -> tuple[Extra, ...]:
    least = (loss.heavy.compute_ns - loss.light.compute_ns) * thresholds["stage_evidence_share"]
    rows = [row for row in extra_operators(loss.heavy, loss.light) if row[1] >= least]
    return tuple(rows[: int(thresholds["stage_evidence_operators"])])


def _compute_evidence(loads: Sequence[StageLoad]) -> tuple[Evidence, ...]:
    return tuple(_rank_evidence(rank, load.stage) for load in loads for rank in load.ranks)


def _rank_evidence(rank: RankView, stage: int) -> Evidence:
    step, compute = rank.books.step, rank.accounting.parts["compute"]
    place = f"rank {rank.rank}, stage {stage}"
    if step is not None and step.trace_row is not None:
        return rank.evidence("step_trace", step.trace_row, f"Computing of {place}", compute / 1e3, "us")
    kernels = rank.session.tables["kernels"]
    rows = rank.books.kernel_rows
    longest = int(rows[np.argmax(kernels["duration_ns"][rows])])
    metric = f"compute of {place}: union of the {len(rows)} kernels of the step, of which this is the longest"
    return rank.evidence("kernels", longest, metric, compute / 1e3, "us")


def _operator_evidence(name: str, more: int, rank: RankView) -> Evidence:
    kernels, rows = rank.session.tables["kernels"], rank.books.kernel_rows
    own = rows[kernels["op_type"][rows] == rank.session.code(name)]
    longest = int(own[np.argmax(kernels["duration_ns"][own])])
    metric = f"Duration of {name}, longest of {len(own)} on rank {rank.rank}; together {more / 1e3:.1f} us more than on the lightest stage"
    return rank.evidence("kernels", longest, metric, int(kernels["duration_ns"][longest]) / 1e3, "us")
