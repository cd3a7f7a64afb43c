"""Job: make, upgrade and look after a team store, as its administrator."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from kb.domain.case import CaseQuery
from kb.domain.protocols import Progress
from kb.embed.choice import open_embedder
from kb.errors import UsageError
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.store.reading import filters_of
from kb.workflow.casebook import DEFAULT_EMBEDDER, require_postgres
from kb.workflow.sync import is_current, sync
from kb.workflow.workspace import Workspace, team_address

if TYPE_CHECKING:
    from kb.store.postgres.administration import Initialised
    from kb.store.postgres.nearest import Considered
    from kb.store.postgres.roles import RoleKind

FILTERS = (
    CaseQuery(kinds=()),
    CaseQuery(kinds=("card",)),
    CaseQuery(kinds=(), soc_families=("A2",)),
    CaseQuery(kinds=(), model_types=("llm",)),
    CaseQuery(kinds=(), min_provenance="simulated"),
)
"""The filters under which an approximate index must find what reading everything finds."""


class TeamReady(msgspec.Struct, frozen=True, kw_only=True):
    """What was done: the database's side, the number of library records published, and for each model whether an index was kept."""

    initialised: Initialised
    library: int
    indexes: tuple[Considered, ...]


def logins_of(guests: Sequence[str], members: Sequence[str], maintainers: Sequence[str]) -> dict[str, RoleKind]:
    """Each login with its role; the strongest one where a name is given twice."""
    kinds: tuple[tuple[Sequence[str], RoleKind], ...] = ((guests, "guest"), (members, "member"), (maintainers, "maintainer"))
    return {name: kind for names, kind in kinds for name in names}


def initialise_team(
    admin_url: str, logins: Mapping[str, RoleKind], place: Workspace, progress: Progress, *, library: bool = True
) -> TeamReady:
    """Make or upgrade the team store at ``admin_url``, bring the shipped library into it (unless told not to), and keep an
    approximate index only where it is worth having. Safe to repeat."""
    if not team_address(admin_url):
        raise UsageError("--admin-url names no server", allowed="postgresql://[USER@]HOST/DATABASE", do="give an administrator's address")
    require_postgres()
    from kb.store.postgres.administration import initialise
    from kb.store.postgres.store import open_store

    made = initialise(admin_url, logins)
    published = 0
    store = open_store(admin_url, writable=True)
    try:
        root = library_root()
        if library and not is_current(store, root):
            embedder = open_embedder(os.environ.get("KB_EMBEDDER", DEFAULT_EMBEDDER), cache=place.cache)
            published = sync(store, embedder, root, progress, load_catalogue(root)).published
        indexes = store.consider_indexes([filters_of(query) for query in FILTERS])
    finally:
        store.close()
    return TeamReady(initialised=made, library=published, indexes=indexes)
