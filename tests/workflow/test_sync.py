"""The shipped library in the store: only what changed is embedded, what left is hidden in its origin only, what returns is back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from workflow.bench import make_library, quiet, record

from kb.domain.catalogue import Catalogue
from kb.domain.version import Ref
from kb.embed.hashing import HashingEmbedder
from kb.errors import NotFoundError
from kb.workflow.audit import notes_in
from kb.workflow.casebook import Casebook
from kb.workflow.events import yank
from kb.workflow.publish import publish
from kb.workflow.sync import Synced, is_current, sync

if TYPE_CHECKING:
    from kb.domain.protocols import Vectors


class CountingEmbedder(HashingEmbedder):
    """Counts the texts it encodes."""

    texts = 0

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        self.texts += len(texts)
        return super().encode_documents(texts)


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder(32)


def synced(book: Casebook, embedder: HashingEmbedder, root: Path, catalogue: Catalogue) -> Synced:
    return sync(book.store, embedder, root, quiet, catalogue)


def visible(book: Casebook) -> list[str]:
    return sorted(str(item.ref) for item in book.store.summaries())


def test_only_changed_records_are_embedded_and_equal_texts_once(
    book: Casebook, embedder: CountingEmbedder, tmp_path: Path, catalogue: Catalogue
) -> None:
    root = make_library(tmp_path / "lib", record("a"), record("b"))
    assert not is_current(book.store, root)
    assert synced(book, embedder, root, catalogue) == Synced(published=2, unchanged=0, withdrawn=0)
    assert embedder.texts == 2
    assert is_current(book.store, root)
    make_library(root, record("a"), record("b", "changed"))
    assert synced(book, embedder, root, catalogue) == Synced(published=1, unchanged=1, withdrawn=0)
    assert visible(book) == ["library:a@1", "library:b@2"]


def test_every_version_of_a_record_that_left_is_hidden(
    book: Casebook, embedder: CountingEmbedder, tmp_path: Path, catalogue: Catalogue
) -> None:
    for text in ("1", "2"):
        root = make_library(tmp_path / "lib", record("a", text), record("b"))
        synced(book, embedder, root, catalogue)
    assert synced(book, embedder, make_library(root, record("b")), catalogue).withdrawn == 1
    assert visible(book) == ["library:b@1"]
    with pytest.raises(NotFoundError, match="withdrawn"):
        book.store.get(Ref("a"))
    assert book.store.get(Ref("a", 2)).record.body.en == "2"


def test_an_equal_copy_of_ones_own_stays(book: Casebook, embedder: CountingEmbedder, tmp_path: Path, catalogue: Catalogue) -> None:
    root = make_library(tmp_path / "lib", record("a"), record("b"))
    synced(book, embedder, root, catalogue)
    publish(book, record("a"), author="ann", overlay=True)
    synced(book, embedder, make_library(root, record("b")), catalogue)
    assert visible(book) == ["library:b@1", "workspace:a@1"]


@pytest.mark.parametrize("text", ["1", "2", "3"])
def test_a_record_that_returns_is_visible_again(
    book: Casebook, embedder: CountingEmbedder, tmp_path: Path, catalogue: Catalogue, text: str
) -> None:
    for first in ("1", "2"):
        root = make_library(tmp_path / "lib", record("a", first))
        synced(book, embedder, root, catalogue)
    synced(book, embedder, make_library(root), catalogue)
    assert visible(book) == []
    synced(book, embedder, make_library(root, record("a", text)), catalogue)
    assert book.store.get(Ref("a")).record.body.en == text
    assert len(visible(book)) == 1


def test_what_a_user_withdrew_stays_withdrawn(book: Casebook, embedder: CountingEmbedder, tmp_path: Path, catalogue: Catalogue) -> None:
    root = make_library(tmp_path / "lib", record("a"), record("b"))
    synced(book, embedder, root, catalogue)
    yank(book.store, Ref("a", 1, "library"), author="ann", reason="wrong")
    synced(book, embedder, root, catalogue)
    assert visible(book) == ["library:b@1"]


def test_library_records_are_audited(book: Casebook, embedder: CountingEmbedder, tmp_path: Path, catalogue: Catalogue) -> None:
    root = make_library(tmp_path / "lib", record("a", "Captured 217 of 218 operators (99.8 %)."))
    synced(book, embedder, root, catalogue)
    assert [note.rule for note in notes_in(book.store.events(book.store.get(Ref("a")).sha256))] == ["percentage"]
