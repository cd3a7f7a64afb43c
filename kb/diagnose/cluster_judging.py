"""From what a cluster rule measured to its judgement."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kb.diagnose.judging import Measured, judged_step
from kb.diagnose.view import RankView
from kb.domain.finding import Judgement
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds


def judged_across(step_ns: int, thresholds: Thresholds, measured: Measured) -> tuple[Judgement, ...]:
    """A finding of scope "cluster" over a step of ``step_ns``, or Healthy as in ``judging.judged``."""
    return judged_step(step_ns, "cluster", thresholds, measured)


def label(rank: RankView) -> str:
    """``rank 3``, or the session's name where the rank is unknown."""
    return f"rank {rank.rank}" if rank.rank is not None else rank.session.meta.name


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
