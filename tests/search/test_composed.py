"""A question that the program itself put together from a context."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from search.samples import CATALOGUE, filled, record

from kb.domain.case import CaseContext, CaseQuery
from kb.embed.hashing import HashingEmbedder
from kb.search.filters import find_candidates
from kb.search.fusion import total, totals
from kb.search.hints import load_hints
from kb.search.lexical import score_lexical
from kb.search.query import search
from kb.search.question import read_question
from kb.search.weights import load_weights

EMBEDDER = HashingEmbedder(128)
WEIGHTS = load_weights()
CONTEXT = CaseContext(causes=("io_checkpoint",))
RECORDS = [record(f"r{number}", en=text, cause=cause) for number, (text, cause) in enumerate([
    ("training stalls while a checkpoint is written", "io_checkpoint"), ("attention is not fused", "unfused_attention"),
    ("pipeline stages are uneven", "pipeline_imbalance"), ("the disk is slow when checkpoints are saved", "io_checkpoint"),
])]  # fmt: skip


@pytest.mark.parametrize("embedder", [EMBEDDER, None], ids=["hybrid", "words"])
def test_slips_are_repaired_in_a_persons_words_only(embedder: HashingEmbedder | None) -> None:
    store = filled(RECORDS, embedder)
    asked = CaseQuery(text="training stalls checkpont", context=CONTEXT)
    own, made = (
        search(query, store=store, embedder=embedder, catalogue=CATALOGUE, hints=None) for query in (asked, replace(asked, composed=True))
    )
    assert any("checkpont -> checkpoint" in note.en for note in own.notes)
    assert not made.notes
    assert made.hits[0].slug == own.hits[0].slug == "r0"


def test_no_cause_is_guessed_where_the_context_names_them() -> None:
    store, hints = filled(RECORDS, EMBEDDER), load_hints(CATALOGUE, EMBEDDER)
    asked = CaseQuery(text="io_checkpoint training stalls", context=CONTEXT, composed=True)
    guided, plain = (search(asked, store=store, embedder=EMBEDDER, catalogue=CATALOGUE, hints=given) for given in (hints, None))
    assert guided == plain
    own = search(replace(asked, composed=False), store=store, embedder=EMBEDDER, catalogue=CATALOGUE, hints=hints)
    assert any(why.feature == "cause_guess" for why in own.hits[0].why)
    assert not any(why.feature == "cause_guess" for hit in guided.hits for why in hit.why)


def test_of_those_that_share_the_cause_the_nearest_by_text_are_compared() -> None:
    """The right record stands last among many of the same cause, behind more others that are nearer by text."""
    same = [record(f"same{number}", en="disk quota of the tape robot", cause="io_checkpoint") for number in range(8)]
    near = [record(f"near{number}", en="loader queue stays empty and empty queue", cause="unfused_attention") for number in range(8)]
    right = record("right", en="queue of the writer stays full", cause="io_checkpoint")
    store = filled([*same, *near, right], EMBEDDER)
    asked = CaseQuery(text="loader queue stays empty", context=CONTEXT, limit=1, composed=True)
    few = replace(WEIGHTS, rerank=2, structure=replace(WEIGHTS.structure, causes=50.0))
    assert search(asked, store=store, embedder=EMBEDDER, catalogue=CATALOGUE, weights=few).hits[0].slug == "right"


@pytest.mark.parametrize("arrays", [True, False])
def test_several_totals_are_those_of_each_place(arrays: bool) -> None:
    draw = np.random.default_rng(3)
    words = ["disk", "queue", "fused", "stage", "writer"]
    store = filled([record(f"t{number}", en=" ".join(draw.choice(words, 6))) for number in range(40)], EMBEDDER)
    candidates = find_candidates(CaseQuery(), store, CATALOGUE)
    scorers = [score_lexical(read_question(CaseQuery(text=text), CATALOGUE), candidates, WEIGHTS, arrays=arrays).scores
               for text in ("disk queue", "fused stage writer", "nothing of this")]  # fmt: skip
    places = [int(place) for place in draw.permutation(40)[:25]]
    assert totals(scorers, places, candidates) == [total(scorers, place, candidates.language(place)) for place in places]
