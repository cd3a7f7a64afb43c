"""An open casebook: the store in step with the shipped library, its catalogue, and the embedder when needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Artefacts, Embedder, Progress, Store
from kb.domain.provenance import StoreOrigin
from kb.domain.text import Text
from kb.domain.version import Visibility
from kb.embed.choice import open_embedder
from kb.errors import StoreError, install
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.store.artefacts import FolderArtefacts
from kb.store.sqlite import SqliteStore, open_store
from kb.workflow.glossary import with_own_glossary
from kb.workflow.sync import is_current, sync
from kb.workflow.vectors import keep_vectors
from kb.workflow.workspace import Workspace

if TYPE_CHECKING:
    from kb.store.postgres.store import PostgresStore

DEFAULT_EMBEDDER = "use"


@dataclass(frozen=True)
class Casebook:
    """Everything a job needs. ``notes`` say what is not as it should be, for example a library that could not be synced."""

    workspace: Workspace
    store: Store
    catalogue: Catalogue
    embedder_name: str = DEFAULT_EMBEDDER
    notes: tuple[Text, ...] = ()
    memo: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What jobs read of the store or of files once; see ``kb.workflow.search_data``."""

    def embedder(self) -> Embedder:
        """The configured embedder, loaded the first time (0.3 to 0.5 s for the default one)."""
        if "embedder" not in self.memo:
            self.memo["embedder"] = open_embedder(self.embedder_name, cache=self.workspace.cache)
        known: Embedder = self.memo["embedder"]
        return known

    @property
    def artefacts(self) -> Artefacts:
        """The attached sessions: a folder beside the store's file, or in the team store itself."""
        return artefacts_of(self.store, self.workspace)

    def filed(self, visibility: Visibility) -> StoreOrigin:
        """Where a new version of one's own belongs: in a team store what others shall see is the team's."""
        return "team" if self.workspace.team_url and visibility != "private" else "workspace"


@contextmanager
def open_casebook(place: Workspace, progress: Progress, *, writable: bool = False) -> Iterator[Casebook]:
    """Open the workspace's casebook, syncing the library first when its files changed.

    A workspace that cannot be written is used as it is when it holds a store, with a note; without one it is an error.
    """
    root = library_root()
    name = os.environ.get("KB_EMBEDDER", DEFAULT_EMBEDDER)
    notes = () if place.team_url else _brought_up_to_date(place, root, name, progress)
    store = open_place(place, writable=writable)
    try:
        if place.team_url and not is_current(store, root):
            notes = (_OTHER_LIBRARY,)
        yield Casebook(place, store, with_own_glossary(load_catalogue(root), place.home), name, notes)
    finally:
        store.close()


def open_place(place: Workspace, *, writable: bool) -> SqliteStore | PostgresStore:
    """The workspace's store as it is: its file, or the team store. Raises StoreError."""
    if not place.team_url:
        return open_store(place.database, writable=writable)
    require_postgres()
    from kb.store.postgres.store import open_store as open_team  # the driver is an extra, and takes 0.3 s

    return open_team(place.team_url, writable=writable)


def require_postgres() -> None:
    """Raise StoreError where the extra is not installed."""
    if find_spec("psycopg") is None or find_spec("pgvector") is None:
        raise StoreError("team stores need the PostgreSQL driver", allowed="psycopg and pgvector", do=install("postgres"))


def artefacts_of(store: Store, place: Workspace) -> Artefacts:
    """Where the sessions attached to ``store``, the store of ``place``, are kept."""
    if not place.team_url:
        return FolderArtefacts(place.artefacts)
    from kb.store.postgres.store import PostgresStore

    assert isinstance(store, PostgresStore)  # the address says so
    return store.artefacts


_OTHER_LIBRARY = Text(
    zh="团队库中的内置案例库来自本程序的另一个版本；管理员可运行 kb store init 更新",
    en="the team store holds the library of another version of this program; an administrator updates it with `kb store init`",
)


def _brought_up_to_date(place: Workspace, root: Path, embedder_name: str, progress: Progress) -> tuple[Text, ...]:
    if place.database.is_file() and _holds(place, root):
        return ()
    try:
        store = open_store(place.prepared().database, writable=True)
        try:
            # Opening may have been all it took: a store of an older schema that holds this library is upgraded by now.
            if not is_current(store, root):
                embedder = open_embedder(embedder_name, cache=place.cache)
                sync(store, embedder, root, progress, load_catalogue(root))
                keep_vectors(store, place.vectors, embedder.model_id)
        finally:
            store.close()
    except StoreError as error:
        if not place.database.is_file() or not _readable(place):
            raise
        return (
            Text(
                zh=f"内置案例库有更新，但工作区不可写：{error.what}",
                en=f"the shipped library is newer, but the workspace cannot be written: {error.what}",
            ),
        )
    return ()


def _holds(place: Workspace, root: Path) -> bool:
    """Whether the store can be read and holds this library; one that cannot be read is left to the writer to upgrade or to name."""
    try:
        store = open_store(place.database, writable=False)
    except StoreError:
        return False
    try:
        return is_current(store, root)
    finally:
        store.close()


def _readable(place: Workspace) -> bool:
    try:
        open_store(place.database, writable=False).close()
    except StoreError:
        return False
    return True
