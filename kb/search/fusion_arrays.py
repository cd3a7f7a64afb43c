"""``kb.search.fusion.best`` where the scorers know every candidate: add everything up at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from kb.domain.text import LANGS
from kb.search.corpus import CODES
from kb.search.tally_arrays import column, top_places

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

    from kb.search.filters import Candidates
    from kb.search.fusion import Scores


POOL: Final = 1000
"""Places of each scorer and language that ``best_pooled`` adds up."""


def best_arrays(scorers: Sequence[Scores], candidates: Candidates, count: int, also: Iterable[int] = ()) -> list[int]:
    """Places of the ``count`` best by the sum of contributions, best first, ties by smaller id, then those of ``also``; all
    ``scorers`` have ``raw``."""
    every = np.flatnonzero(np.frombuffer(candidates.langs, np.uint8))
    return _best(scorers, [scores.raw[every] for scores in scorers], every, candidates, count, also)


def best_pooled(scorers: Sequence[Scores], candidates: Candidates, count: int, also: Iterable[int] = ()) -> list[int]:
    """The same among the first ``POOL`` of each scorer and language, for a collection so large that a scorer does not know every
    place; all ``scorers`` have ``many``."""
    members = np.array(sorted({place for scores in scorers for lang in LANGS for place in scores.top(lang, POOL)}), dtype=np.int64)
    return _best(scorers, [scores.many(members) for scores in scorers], members, candidates, count, also)


def totals_arrays(scorers: Sequence[Scores], places: Sequence[int], candidates: Candidates) -> list[float]:
    """``kb.search.fusion.total`` of each of ``places``, bit for bit; all ``scorers`` have ``many``."""
    chosen = np.array(places, dtype=np.int64)
    langs = np.frombuffer(candidates.langs, np.uint8)[chosen]
    found: list[float] = sum((_contributions(scores, scores.many(chosen), langs) for scores in scorers), np.zeros(len(chosen))).tolist()
    return found


def _best(scorers: Sequence[Scores], raws: Sequence[Floats], places: npt.NDArray[np.int64], candidates: Candidates, count: int,
          also: Iterable[int]) -> list[int]:  # fmt: skip
    langs = np.frombuffer(candidates.langs, np.uint8)[places]
    total, ranked = np.zeros(len(places)), np.zeros(len(places), dtype=bool)
    for scores, raw in zip(scorers, raws, strict=True):
        total += _contributions(scores, raw, langs)
        ranked |= raw > 0 if scores.absent is not None else ~np.isnan(raw)
    found = top_places(places[ranked], total[ranked], column(candidates.corpus, "ids", np.int64), count)
    return list(dict.fromkeys((*found, *also)))


def _contributions(scores: Scores, raw: Floats, langs: npt.NDArray[np.uint8]) -> Floats:
    """What the scorer adds for each raw score, as ``Scores.contribution`` would say."""
    mean, spread = np.zeros(256), np.ones(256)
    for lang, code in CODES.items():
        mean[code], spread[code] = scores.moments[lang].mean, scores.moments[lang].spread(scores.widest)
    added: Floats = np.nan_to_num(scores.weight * ((raw - mean[langs]) / spread[langs]))
    return added
