"""Rule: chains of element-wise, normalisation or reduction kernels that one kernel could replace."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.diagnose import wording
from kb.diagnose.attention import find_runs
from kb.diagnose.chains import Chain, chained, find_chains
from kb.diagnose.exposure import compute_exposed_ns, launch_gaps_ns
from kb.diagnose.figures import milliseconds, percent
from kb.diagnose.judging import Measured, judged, longest, skipped, types_of
from kb.diagnose.view import RankView
from kb.domain.finding import Judgement, Where
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds
from kb.session.session import Array, Table

CAUSE: Final = "unfused_elementwise"
_NAMES_ONLY: Final = Text(
    "GPU 核函数名看不出各自处理哪个张量，无法判断相邻的能否融合",
    "names of GPU kernels do not tell which tensors they touch, so neighbours cannot be called fusible",
)


def unfused_elementwise(view: RankView, thresholds: Thresholds) -> tuple[Judgement, ...]:
    """Judge chains of small vector kernels. Kernels of an unfused attention are counted there, not here.

    A fused kernel still takes as long as the longest member, so the gain is the rest of each chain and its launches.
    """
    kernels = view.kernels
    if kernels is None:
        return skipped(CAUSE, wording.NO_KERNELS, wording.CAPTURE_KERNELS)
    if not view.typed():
        return skipped(CAUSE, wording.NO_TYPES, wording.CAPTURE_KERNELS)
    if view.session.meta.soc.family == "gpu" and "output_shapes" not in kernels:
        return skipped(CAUSE, _NAMES_ONLY)
    chains = chains_of(view, kernels, thresholds)
    members = chained(chains)
    gaps = launch_gaps_ns(view, kernels, [chain.members for chain in chains], int(thresholds["launch_gap_most"] * 1e3)) if chains else 0
    exposed = compute_exposed_ns(view, kernels, members) + gaps if chains else 0
    durations = kernels["duration_ns"]
    kept = sum(int(durations[list(chain.members)].max()) for chain in chains)
    share = percent(exposed / view.accounting.step_ns)
    loose = sum(not chain.linked for chain in chains)
    message = Text(
        f"可融合的小算子链：{len(chains)} 条、{len(members)} 个算子，暴露 "
        f"{milliseconds(exposed)}（占本步 {share}，其中下发空隙 {milliseconds(gaps)}）",
        f"chains of fusible kernels: {len(chains)} chains, {len(members)} kernels expose {milliseconds(exposed)} ({share} of the step, "
        f"{milliseconds(gaps)} of it launch gaps)",
    )
    return judged(
        view,
        thresholds,
        Measured(
            cause=CAUSE,
            exposed_ns=exposed,
            gain_ns=exposed - kept,
            least=thresholds["unfused_elementwise_least_share"],
            message=message,
            evidence=longest(view, members),
            where=Where(operators=types_of(view, members)),
            observed={"chains": float(len(chains)), "kernels": float(len(members))},
            healthy={"chains": 0.0},
            notes=_notes(loose, len(chains)),
            major=1 if loose > len(chains) // 2 else 0,
        ),
    )


def attention_rows(view: RankView, thresholds: Thresholds) -> Array:
    """Positions of the kernels of every unfused attention."""
    runs = find_runs(view, bridge_length=int(thresholds["attention_bridge_length"]))
    return np.array([member for run in runs for member in run.members], np.int64)


def chain_rows(view: RankView, kernels: Table, thresholds: Thresholds) -> Array:
    """Positions of the kernels of every fusible chain, attention left out."""
    return chained(chains_of(view, kernels, thresholds))


def chains_of(view: RankView, kernels: Table, thresholds: Thresholds) -> tuple[Chain, ...]:
    """Every fusible chain of the step, attention left out."""
    least, bridge = int(thresholds["elementwise_chain_length"]), int(thresholds["attention_bridge_length"])
    return view.memo.once(("chains", least, bridge), lambda: find_chains(view, kernels, attention_rows(view, thresholds), least))


def _notes(loose: int, total: int) -> tuple[Text, ...]:
    if not loose:
        return ()
    return (
        Text(f"{total} 条中 {loose} 条没有形状，仅按相邻关系判断", f"{loose} of {total} chains carry no shapes: adjacency alone decided"),
    )
