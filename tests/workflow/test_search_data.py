"""Search data kept between the searches of one casebook."""

from __future__ import annotations

from pathlib import Path

from workflow.bench import casebook, record

from kb.domain.case import CaseQuery
from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Publication
from kb.domain.record import Record
from kb.domain.text import Text
from kb.search.prepare import prepare
from kb.workflow.casebook import Casebook
from kb.workflow.search import find
from kb.workflow.search_data import current_corpus, current_hints, current_vectors
from kb.workflow.vectors import keep_vectors


def _publish(book: Casebook, item: Record) -> None:
    prepared = prepare(item, book.embedder(), book.catalogue)
    book.store.publish_all([Publication(record=item, prepared=prepared, origin="workspace", author="me")])


def _titled(slug: str, words: str) -> Record:
    return record(slug, title=Text("", words), summary=Text("", words))


def test_the_same_data_serves_until_the_store_changes(tmp_path: Path, catalogue: Catalogue) -> None:
    with casebook(tmp_path, catalogue) as book:
        _publish(book, _titled("first", "the loader queue is empty"))
        keep_vectors(book.store, book.workspace.vectors, book.embedder().model_id)
        embedder = book.embedder()
        assert book.embedder() is embedder
        first = current_corpus(book), current_vectors(book, embedder), current_hints(book, embedder)
        assert first[0] is not None
        again = current_corpus(book), current_vectors(book, embedder), current_hints(book, embedder)
        assert all(one is other for one, other in zip(first, again, strict=True))
        _publish(book, _titled("second", "the checkpoint writer blocks"))
        later = current_corpus(book), current_vectors(book, embedder), current_hints(book, embedder)
        assert [one is other for one, other in zip(first, later, strict=True)] == [False, False, True]


def test_what_is_published_between_two_searches_is_found(tmp_path: Path, catalogue: Catalogue) -> None:
    with casebook(tmp_path, catalogue) as book:
        _publish(book, _titled("first", "the loader queue is empty"))
        keep_vectors(book.store, book.workspace.vectors, book.embedder().model_id)
        asked = CaseQuery(text="checkpoint writer blocks")
        for text_only in (False, True):
            assert [hit.slug for hit in find(book, asked, text_only=text_only).hits] == ["first"][: 0 if text_only else 1]
        _publish(book, _titled("second", "the checkpoint writer blocks"))
        for text_only in (False, True):
            assert find(book, asked, text_only=text_only).hits[0].slug == "second"
