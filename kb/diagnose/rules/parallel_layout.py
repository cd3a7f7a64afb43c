"""Rules on the parallel layout: microbatches of a pipeline, and load of experts."""

from __future__ import annotations

from statistics import mean
from typing import Final

from kb.diagnose.cluster_judging import judged_across, known_ranks, label
from kb.diagnose.experts import expert_ns, expert_rows
from kb.diagnose.figures import milliseconds, percent
from kb.diagnose.judging import Measured, longest, skipped
from kb.diagnose.schedule import replay
from kb.diagnose.stage_wording import CAPTURE_STAGES, no_pipeline, too_few
from kb.diagnose.stages import StageLoad, coverage, microbatches, stage_loads
from kb.diagnose.view import ClusterView
from kb.domain.finding import Evidence, Judgement, Where
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds

_NO_MOE: Final = Text("没有采集到混合专家算子，或只有一张卡", "no expert kernels were captured, or on one rank only")


def microbatch_count(view: ClusterView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge the fill and drain of the pipeline: the idle time that stays when all stages compute equally, by replay with
    the microbatches counted; where they cannot be counted, the exporter's Bubble of balanced stages."""
    loads = stage_loads(view)
    cover = coverage(view, loads)
    if len(loads) < 2:
        if cover.pipeline == 1:
            return skipped("microbatch_count", no_pipeline(cover))
        return skipped("microbatch_count", too_few(cover), CAPTURE_STAGES)
    compute = mean(load.compute_ns for load in loads)
    count = microbatches(view, len(loads)) if cover.all_stages else None
    light = max(loads, key=lambda load: load.waiting_ns)
    if count is not None and compute:
        share = [compute / count / 2] * len(loads)
        idle = max(replay(share, share, min(count, int(thresholds["microbatches_replayed"]))).idle)
        exposed, notes = min(round(idle), light.waiting_ns), (_counted(len(loads), count),)
    else:
        bubble = max(max(rank.accounting.parts["idle_bubble"] for rank in load.ranks) for load in loads)
        uneven = max(load.compute_ns for load in loads) - min(load.compute_ns for load in loads)
        exposed, notes = max(0, bubble - uneven), (_UNCOUNTED,)
    step = max(load.step_ns for load in loads)
    message = Text(
        f"流水线填充与排空：各级相等时仍空等 {milliseconds(exposed)}（占本步 "
        f"{percent(exposed / step)}）；微批数 {count or '?'}，级数 {len(loads)}",
        f"filling and draining the pipeline: {milliseconds(exposed)} of "
        f"waiting stay even with equal stages ({percent(exposed / step)} of the "
        f"step); {count or '?'} microbatches, {len(loads)} stages",
    )
    return judged_across(
        step,
        thresholds,
        Measured(
            cause="microbatch_count",
            exposed_ns=exposed,
            gain_ns=exposed,
            least=thresholds["microbatch_count_least_share"],
            message=message,
            evidence=_bubble_evidence(loads),
            where=Where(ranks=known_ranks([rank for load in loads for rank in load.ranks]), stages=(light.stage,)),
            observed={"stages": float(len(loads)), **({"microbatches": float(count)} if count else {})},
            notes=notes,
            major=0 if count else 1,
        ),
    )


_UNCOUNTED: Final = Text(
    "微批数得不出来，或者采用交错（虚拟流水）调度；等待取导出的 Bubble，再减去各级计算之差",
    "the microbatches cannot be counted, or the schedule is interleaved; the waiting is the exporter's Bubble less the difference of "
    "the stages' compute",
)


def _counted(stages: int, count: int) -> Text:
    ideal = (stages - 1) / (count + stages - 1)
    return Text(
        f"级数 {stages}、微批数 {count} 时空泡的理论占比为 {percent(ideal)}",
        f"with {stages} stages and {count} microbatches the bubble is {percent(ideal)} in theory",
    )


def _bubble_evidence(loads: tuple[StageLoad, ...]) -> tuple[Evidence, ...]:
    cited = []
    for load in loads:
        for rank in load.ranks:
            step = rank.books.step
            if step is not None and step.trace_row is not None:
                waiting = rank.accounting.parts["idle_bubble"] or rank.accounting.parts["comm_exposed"]
                metric = f"Bubble of {label(rank)}" if rank.accounting.parts["idle_bubble"] else f"exposed communication of {label(rank)}"
                cited.append(rank.evidence("step_trace", step.trace_row, metric, waiting / 1e3, "us"))
            elif len(rank.books.comm_rows):
                row = int(rank.books.comm_rows[0])
                cited.append(rank.evidence("comm_ops", row, f"exchange of {label(rank)}", load.waiting_ns / 1e3, "us"))
    return tuple(cited)


def moe_imbalance(view: ClusterView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge the spread of expert compute between ranks of one stage: the light ones wait for the loaded one."""
    spent = {place: expert_ns(rank) for place, rank in enumerate(view.ranks)}
    spent = {place: ns for place, ns in spent.items() if ns}
    groups = [tuple(place for place in spent if view.ranks[place] in ranks) for ranks in view.stages.values()] or [tuple(spent)]
    groups = [group for group in groups if len(group) >= 2]
    if not groups:
        return skipped("moe_imbalance", _NO_MOE)
    group = max(groups, key=lambda each: max(spent[place] for place in each) - mean(spent[place] for place in each))
    loads = [spent[place] for place in group]
    heavy = view.ranks[max(group, key=lambda place: spent[place])]
    ratio = max(loads) / mean(loads)
    cost = round(max(loads) - mean(loads)) if ratio >= thresholds["expert_ratio"] else 0
    step = heavy.accounting.step_ns
    message = Text(
        f"专家负载不均：{label(heavy)} 的专家计算 {milliseconds(max(loads))}，是平均的 "
        f"{ratio:.2f} 倍，其他卡多等 {milliseconds(cost)}（占本步 {percent(cost / step)}）",
        f"expert load is uneven: {label(heavy)} computes {milliseconds(max(loads))} of experts, {ratio:.2f} times the mean; others wait "
        f"{milliseconds(cost)} more ({percent(cost / step)} of the step)",
    )
    return judged_across(
        step,
        thresholds,
        Measured(
            cause="moe_imbalance",
            exposed_ns=cost,
            gain_ns=cost,
            least=thresholds["moe_imbalance_least_share"],
            message=message,
            evidence=longest(heavy, expert_rows(heavy)),
            where=Where(ranks=known_ranks((heavy,))),
            observed={"expert_max_over_mean": ratio},
            healthy={"expert_max_over_mean": 1.0},
        ),
    )
