"""From what a cluster rule measured to its judgement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kb.diagnose import wording
from kb.diagnose.judging import Measured, judged_step
from kb.diagnose.view import ClusterView, RankView
from kb.domain.finding import Judgement
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds

NO_COLLECTIVES: Final = Text(
    "采集到了通信，但这一步没有逐个的集合通信（只有总量或点对点）",
    "communication was captured, but no single collectives of this step (totals or point-to-point only)",
)


def judged_across(step_ns: int, thresholds: Thresholds, measured: Measured) -> tuple[Judgement, ...]:
    """A finding of scope "cluster" over a step of ``step_ns``, or Healthy as in ``judging.judged``."""
    return judged_step(step_ns, "cluster", thresholds, measured)


def label(rank: RankView) -> str:
    """``rank 3``, or the session's name where the rank is unknown."""
    return f"rank {rank.rank}" if rank.rank is not None else rank.session.meta.name


def communicates(rank: RankView) -> bool:
    """Whether any communication of the rank was captured: in its books, its table of operators or its kernels."""
    if rank.accounting.parts.get("comm_exposed", 0) > 0 or rank.comm_ops is not None:
        return True
    return rank.kernels is not None and bool(rank.communication(rank.kernels).any())


def no_collectives(view: ClusterView) -> Text:
    """Why no collective can be judged: nothing communicates, or what was captured names none."""
    return NO_COLLECTIVES if any(communicates(rank) for rank in view.ranks) else wording.NO_COMM


def known_ranks(ranks: Sequence[RankView]) -> tuple[int, ...]:
    """Global ranks that are stated, ascending."""
    return tuple(sorted({rank.rank for rank in ranks if rank.rank is not None}))


def presence(captured: int, world: int | None) -> Text:
    """What of the job was captured."""
    total = str(world) if world is not None else "?"
    return Text(f"共 {total} 张卡，采集到 {captured} 张", f"{captured} of {total} ranks captured")


class Place(msgspec.Struct, frozen=True):
    """A rank by its place in the cluster and a number of ns."""

    place: int
    ns: int
