"""The same collective on several ranks: who arrives last, and how long the others wait for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import numpy as np

from kb.diagnose.view import RankView

_CLOSE_NS: Final = 1_000_000
_CLOSE_SHARE: Final = 0.25
"""A collective ends on all members together; ends further apart than this (or this share of it) are not one operation."""


@dataclass(frozen=True, slots=True)
class Member:
    """One rank in one meeting: place of its view in the cluster, begin and end on the common clock, row in ``comm_ops``."""

    place: int
    start: int
    end: int
    row: int


@dataclass(frozen=True, slots=True)
class Meeting:
    """One collective as several captured ranks saw it. ``late`` is the place of the last to arrive."""

    name: str
    members: tuple[Member, ...]

    @property
    def late(self) -> Member:
        """The member that begins last."""
        return max(self.members, key=lambda member: member.start)

    def wait_ns(self, member: Member) -> int:
        """What ``member`` spends waiting for the last one."""
        return max(0, min(self.late.start, member.end) - member.start)


def meetings(ranks: Sequence[RankView]) -> tuple[Meeting, ...]:
    """Collectives of the representative steps matched by name and group, in time order.

    Clocks of ranks are aligned first by the median difference of ends, because a collective ends everywhere at once.
    Pairs whose ends then still differ are dropped.
    """
    found = _matched(ranks)
    shift = _shifts(found, len(ranks))
    aligned = (Meeting(meeting.name, tuple(_moved(member, shift) for member in meeting.members)) for meeting in found)
    return tuple(sorted((meeting for meeting in aligned if _together(meeting)), key=lambda meeting: meeting.late.start))


def waits_by_rank(found: Sequence[Meeting]) -> Mapping[int, int]:
    """Place of a rank -> ns it waits for others in all meetings."""
    waits: dict[int, int] = defaultdict(int)
    for meeting in found:
        for member in meeting.members:
            waits[member.place] += meeting.wait_ns(member)
    return waits


def blame(found: Sequence[Meeting]) -> Mapping[int, int]:
    """Place of a rank -> the longest ns that another rank waits for it, summed over meetings."""
    caused: dict[int, int] = defaultdict(int)
    for meeting in found:
        caused[meeting.late.place] += max((meeting.wait_ns(member) for member in meeting.members), default=0)
    return caused


def _matched(ranks: Sequence[RankView]) -> list[Meeting]:
    members: dict[tuple[str, str, int], list[Member]] = defaultdict(list)
    for place, view in enumerate(ranks):
        ops = view.comm_ops
        if ops is None:
            continue
        seen: dict[tuple[str, str], int] = defaultdict(int)
        collective = view.session.code("collective")
        for row in np.flatnonzero((ops["kind"] == collective) & (ops["start_ns"] >= 0)).tolist():
            group = view.session.text(int(ops["group"][row])) if "group" in ops else None
            key = view.session.text(int(ops["name"][row])) or "", group or ""
            start = int(ops["start_ns"][row])
            members[(*key, seen[key])].append(Member(place, start, start + int(ops["duration_ns"][row]), row))
            seen[key] += 1
    return [Meeting(key[0], tuple(met)) for key, met in members.items() if len(met) >= 2]


def _shifts(found: Sequence[Meeting], ranks: int) -> list[int]:
    differences: list[list[float]] = [[] for _ in range(ranks)]
    for meeting in found:
        middle = median(member.end for member in meeting.members)
        for member in meeting.members:
            differences[member.place].append(member.end - middle)
    return [round(median(own)) if own else 0 for own in differences]


def _moved(member: Member, shift: Sequence[int]) -> Member:
    by = shift[member.place]
    return Member(member.place, member.start - by, member.end - by, member.row)


def _together(meeting: Meeting) -> bool:
    ends = [member.end for member in meeting.members]
    longest = max(member.end - member.start for member in meeting.members)
    return max(ends) - min(ends) <= max(_CLOSE_NS, _CLOSE_SHARE * longest)
