"""Where a rank sits in a parallel job: tensor ranks next to each other, then data, then pipeline stages."""

from __future__ import annotations

from typing import Final

import msgspec

from kb.errors import UsageError
from kb.profile.simulated.options import Options
from kb.session.meta import Group, Parallel

MOST_RANKS: Final = 64
"""Ranks simulated event by event at most."""


class Seat(msgspec.Struct, frozen=True):
    """One rank: its number in each dimension. ``expert`` is the place inside its expert group."""

    rank: int
    tensor: int
    data: int
    stage: int
    expert: int


class Layout(msgspec.Struct, frozen=True):
    """The job: degrees of each dimension."""

    tensor: int
    pipeline: int
    data: int
    expert: int

    @property
    def world(self) -> int:
        """Number of ranks."""
        return self.tensor * self.pipeline * self.data

    def seat(self, rank: int) -> Seat:
        """Where a global rank sits."""
        data = rank // self.tensor % self.data
        return Seat(rank, rank % self.tensor, data, rank // (self.tensor * self.data), data % self.expert)

    def rank(self, tensor: int, data: int, stage: int) -> int:
        """The global rank of a seat."""
        return (stage * self.data + data) * self.tensor + tensor

    def members(self, seat: Seat, dimension: str) -> tuple[int, ...]:
        """Global ranks that share everything but ``dimension`` with a seat, in order."""
        if dimension == "tp":
            return tuple(self.rank(number, seat.data, seat.stage) for number in range(self.tensor))
        if dimension == "dp":
            return tuple(self.rank(seat.tensor, number, seat.stage) for number in range(self.data))
        if dimension == "ep":
            first = seat.data - seat.expert
            return tuple(self.rank(seat.tensor, first + number, seat.stage) for number in range(self.expert))
        return tuple(self.rank(seat.tensor, seat.data, number) for number in range(self.pipeline))

    def parallel(self, seat: Seat) -> Parallel:
        """The layout as a session states it."""
        groups = [
            Group(name=f"{dimension}_{'_'.join(map(str, members))}", dimension=dimension, ranks=members)
            for dimension in ("tp", "pp", "dp", "ep")
            if len(members := self.members(seat, dimension)) > 1
        ]
        return Parallel(tensor=self.tensor, pipeline=self.pipeline, data=self.data, expert=self.expert, groups=tuple(groups))


def layout_of(options: Options) -> Layout:
    """The layout options ask for. Raises UsageError beyond ``MOST_RANKS``."""
    layout = Layout(options.tensor_parallel, options.pipeline_parallel, options.data_parallel, options.expert_parallel)
    if layout.world > MOST_RANKS:
        raise UsageError(
            f"{layout.world} ranks are too many to simulate event by event",
            allowed=f"up to {MOST_RANKS} ranks",
            do="lower data_parallel: replicas behave alike",
        )
    return layout
