"""How many ranks a session's own tasks name, where nothing states the size of the job."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.session.session import Session

_LARGEST: Final = 1 << 20
"""Above it a rank is a marker for "none" of the exporter, not a rank."""


def group_size(session: Session) -> int | None:
    """Ranks of the largest group that the tasks of the communication planes name: a lower bound of the world size; None
    where no task names a peer."""
    tasks = session.table("comm_tasks")
    if tasks is None:
        return None
    named = [tasks[name] for name in ("src_rank", "dst_rank") if name in tasks]
    ranks = np.concatenate(named) if named else np.empty(0, np.int64)
    ranks = ranks[(ranks >= 0) & (ranks < _LARGEST)]
    return int(ranks.max()) + 1 if len(ranks) else None
