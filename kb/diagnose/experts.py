"""Expert kernels of a mixture-of-experts model: how unevenly they load the ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kb.diagnose.view import RankView
from kb.session.session import Array


def expert_rows(rank: RankView) -> Array:
    """Positions of expert kernels in ``rank.kernels``."""
    return np.flatnonzero(rank.role(rank.kernels, "moe")) if rank.kernels is not None else np.empty(0, np.int64)


def expert_ns(rank: RankView) -> int:
    """Time of expert kernels, 0 where there are none."""
    rows = expert_rows(rank)
    return int(rank.kernels["duration_ns"][rows].sum()) if rank.kernels is not None and len(rows) else 0


def expert_lead(ranks: Sequence[RankView]) -> Mapping[int, int]:
    """Place of a rank -> ns of expert compute above the least loaded of ``ranks``: for so long that one waits for it."""
    spent = [expert_ns(rank) for rank in ranks]
    return {place: own - min(spent) for place, own in enumerate(spent)}


def beyond_experts(waited: int, lead: int) -> int:
    """What uneven experts leave of a wait, ns. Everything beside the experts that follows the routing (permutations, layout
    changes, casts) grows with them, so a wait that experts explain by half is theirs as a whole."""
    return 0 if 2 * lead >= waited else waited - lead
