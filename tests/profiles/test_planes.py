"""Waiting inside collectives: the planes of text and database exports give the documented figures."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from kb.profile.sources import load
from kb.session.session import Session

# Longest Notify_Wait of one plane by operator, ms; rows are (sample, rank).
DOCUMENTED = {
    ("cnn-ddp-2rank-text", 0): (78.77, 0.89, 0.19, 21.99),
    ("cnn-ddp-2rank-text", 1): (73.17, 0.89, 0.10, 22.01),
    ("cnn-ddp-2rank-db", 0): (88.42, 0.76, 0.12, 8.40),
    ("cnn-ddp-2rank-db", 1): (84.91, 0.77, 0.10, 8.41),
}
LATE_PEER = {("cnn-ddp-2rank-text", 0): 5, ("cnn-ddp-2rank-text", 1): 5, ("cnn-ddp-2rank-db", 0): 6, ("cnn-ddp-2rank-db", 1): 6}


def longest_waits(session: Session) -> list[float]:
    tasks = session.tables["comm_tasks"]
    waits: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for op, kind, plane, span in zip(*(tasks[name].tolist() for name in ("op", "kind", "plane", "duration_ns")), strict=True):
        waits[session.strings[op]][plane] += span if session.strings[kind] == "Notify_Wait" else 0
    return [max(planes.values()) / 1e6 for _, planes in sorted(waits.items())]


@pytest.mark.parametrize(("sample", "rank"), list(DOCUMENTED))
def test_the_longest_plane_of_each_operator_waits_as_documented(shared: Path, sample: str, rank: int) -> None:
    session = load(shared / "data" / "profiles" / "ascend" / sample)[rank]
    waits = longest_waits(session)
    assert waits == pytest.approx(DOCUMENTED[sample, rank], abs=0.006)
    tasks = session.tables["comm_tasks"]
    late = int(np.argmax(tasks["duration_ns"] * (tasks["kind"] == session.code("Notify_Wait"))))
    assert int(tasks["dst_rank"][late]) == LATE_PEER[sample, rank]


def test_the_timeline_links_kernels_to_their_launches(shared: Path) -> None:
    session = load(shared / "data" / "profiles" / "ascend" / "cnn-ddp-2rank-text")[0]
    kernels, host = session.tables["kernels"], session.tables["host_ops"]
    assert np.all(kernels["connection_id"] >= 0)
    launches = dict(zip(host["connection_id"].tolist(), host["start_ns"].tolist(), strict=True))
    behind = [start - launches[link] for start, link in zip(kernels["start_ns"].tolist(), kernels["connection_id"].tolist(), strict=True)]
    assert min(behind) > -100_000
    steps = session.tables["steps"]
    assert int(steps["end_ns"][0] - steps["start_ns"][0]) == 155_985_800
