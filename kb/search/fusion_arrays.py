"""``kb.search.fusion.best`` where the scorers know every candidate: add everything up at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kb.search.corpus import CODES
from kb.search.tally_arrays import column, top_places

if TYPE_CHECKING:
    import numpy.typing as npt

    from kb.search.filters import Candidates
    from kb.search.fusion import Scores


def best_arrays(scorers: Sequence[Scores], candidates: Candidates, count: int, also: Iterable[int] = ()) -> list[int]:
    """Places of the ``count`` best by the sum of contributions, best first, ties by smaller id, then those of ``also``; all
    ``scorers`` have ``raw``."""
    langs = np.frombuffer(candidates.langs, np.uint8)
    total, ranked = np.zeros(len(langs)), np.zeros(len(langs), dtype=bool)
    for scores in scorers:
        total += _contributions(scores, langs)
        ranked |= scores.raw > 0 if scores.absent is not None else ~np.isnan(scores.raw)
    places = np.flatnonzero(ranked & (langs > 0))
    found = top_places(places, total[places], column(candidates.corpus, "ids", np.int64), count)
    return list(dict.fromkeys((*found, *also)))


def _contributions(scores: Scores, langs: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """What the scorer adds to each place, as ``Scores.contribution`` would say."""
    mean, spread = np.zeros(256), np.ones(256)
    for lang, code in CODES.items():
        mean[code], spread[code] = scores.moments[lang].mean, scores.moments[lang].spread(scores.widest)
    added: npt.NDArray[np.float64] = np.nan_to_num(scores.weight * ((scores.raw - mean[langs]) / spread[langs]))
    return added
