from __future__ import annotations

from pathlib import Path

import pytest
from search.samples import CATALOGUE, filled, record

from kb.domain.case import CaseQuery
from kb.domain.event import Event
from kb.search.prepare import prepare
from kb.search.query import search
from kb.store.sqlite import open_store

RECORDS = [record("old", en="attention"), record("new", en="attention")]


def test_since_keeps_what_was_published_then_or_later() -> None:
    store = filled(RECORDS, None)
    found = search(CaseQuery(text="attention", since_ns=2), store=store, embedder=None, catalogue=CATALOGUE)
    assert [hit.slug for hit in found.hits] == ["new"]


def test_a_filter_that_empties_the_set_is_named() -> None:
    answer = search(CaseQuery(text="attention", verified=True), store=filled(RECORDS, None), embedder=None, catalogue=CATALOGUE)
    assert answer.abstained
    assert any("--verified" in note.en for note in answer.notes)


def test_verified_keeps_versions_whose_evidence_holds() -> None:
    store = filled(RECORDS, None)
    store.append(Event(kind="verified", subject=store.rows[0][0].sha256, author="test", at_ns=1))
    found = search(CaseQuery(text="attention", verified=True), store=store, embedder=None, catalogue=CATALOGUE)
    assert [hit.slug for hit in found.hits] == ["old"]


@pytest.mark.parametrize("query", [CaseQuery(), CaseQuery(kinds=("card",)), CaseQuery(min_provenance="measured"), CaseQuery(causes=("x",))])
def test_the_listing_names_the_candidates(tmp_path: Path, query: CaseQuery) -> None:
    store = open_store(tmp_path / "store.db", writable=True)
    for item in RECORDS:
        store.publish(item, prepare(item, None), origin="workspace", author="test")
    lengths = {entry.id: entry.length for entry in store.collection().entries}
    expected = [(row.id, row.language_share, row.provenance, row.created_ns, lengths[row.id]) for row in store.candidates(query)]
    assert list(store.listing(query)) == expected
    store.close()
