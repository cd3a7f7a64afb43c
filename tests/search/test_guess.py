from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from kb.domain.case import CaseQuery
from kb.embed.hashing import HashingEmbedder
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.search.guess import guesses, named, turned
from kb.search.hints import Hints, load_hints, read_symptoms
from kb.search.question import read_question
from kb.search.weights import load_weights

if TYPE_CHECKING:
    from kb.domain.protocols import Vectors

CATALOGUE = load_catalogue(library_root())
WEIGHTS = load_weights()


class CountingEmbedder(HashingEmbedder):
    """Says how often it was asked for documents."""

    calls = 0

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        return super().encode_documents(texts)


def loaded(folder: Path | None = None, embedder: HashingEmbedder | None = None) -> Hints:
    hints = load_hints(CATALOGUE, embedder or HashingEmbedder(128), folder)
    assert hints is not None
    return hints


def test_every_cause_has_sentences_in_both_languages_and_each_names_a_cause() -> None:
    rows = read_symptoms()
    assert {row.cause for row in rows} == set(CATALOGUE.causes)
    assert all(row.zh and row.en for row in rows)
    sentences = [sentence for row in rows for sentence in (*row.zh, *row.en)]
    assert len(set(sentences)) == len(sentences)


def test_a_cache_gives_the_same_hints_without_embedding(tmp_path: Path) -> None:
    first = loaded(tmp_path)
    embedder = CountingEmbedder(128)
    again = loaded(tmp_path, embedder)
    assert embedder.calls == 0
    assert np.array_equal(first.sentences, again.sentences)
    assert np.array_equal(first.centres, again.centres)
    assert first.tokens == again.tokens


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-9], lambda data: data[:99] + b"\0" + data[100:]])
def test_a_damaged_cache_is_made_anew(tmp_path: Path, damage: object) -> None:
    first = loaded(tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))  # type: ignore[operator]  # one of the functions above
    assert np.array_equal(loaded(tmp_path).sentences, first.sentences)
    assert path.read_bytes() == whole


def test_another_model_does_not_share_the_cache(tmp_path: Path) -> None:
    loaded(tmp_path)
    assert loaded(tmp_path, HashingEmbedder(64)).sentences.shape[1] == 64


@pytest.mark.parametrize("number", range(0, 41, 4))
def test_what_people_say_about_a_cause_leads_to_it(number: int) -> None:
    """The hashing embedder knows words only, so the sentence itself is asked."""
    row, hints, embedder = read_symptoms()[number], loaded(), HashingEmbedder(128)
    question = read_question(CaseQuery(text=row.en[0]), CATALOGUE)
    found = guesses(question, embedder.encode_query(question.text), hints, WEIGHTS)
    assert row.cause in [guess.cause for guess in found]
    assert sum(guess.share for guess in found) == pytest.approx(1.0)
    assert [guess.share for guess in found] == sorted((guess.share for guess in found), reverse=True)


def test_a_turned_vector_has_length_one_and_is_nearer_to_its_causes() -> None:
    hints, embedder = loaded(), HashingEmbedder(128)
    question = read_question(CaseQuery(text="the loader cannot keep up"), CATALOGUE)
    vector = embedder.encode_query(question.text)
    found = guesses(question, vector, hints, WEIGHTS)
    moved = turned(vector, found, hints, WEIGHTS)
    assert float(np.linalg.norm(moved)) == pytest.approx(1.0, abs=1e-5)
    assert float(moved @ hints.centres[found[0].centre]) > float(vector @ hints.centres[found[0].centre])


def test_no_token_of_the_names_counts_twice() -> None:
    hints, embedder = loaded(), HashingEmbedder(128)
    question = read_question(CaseQuery(text="communication is not overlapped with compute"), CATALOGUE)
    names = named(guesses(question, embedder.encode_query(question.text), hints, WEIGHTS), CATALOGUE, hints)
    owners = [(at, token) for at, concept in enumerate(names.concepts) for token in {t for way in concept.ways for t in way}]
    assert len({token for _, token in owners}) == len(owners)
