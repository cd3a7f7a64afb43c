"""Where a user's own records, caches and reports live."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kb.errors import StoreError, UsageError

SQLITE: Final = "sqlite:///"
TEAM: Final = ("postgresql", "postgres")


@dataclass(frozen=True)
class Workspace:
    """Paths under one home folder. Nothing is created until something is written."""

    home: Path
    cache_home: Path | None = None
    store: str = ""
    """Where the store is when it is not in ``home``: a file, ``sqlite:///PATH`` or ``postgresql://…`` (``--store``, KB_STORE)."""

    @property
    def team_url(self) -> str | None:
        """The address of the team store, None for a file. Raises UsageError for the address of anything else."""
        return self.store if team_address(self.store) else None

    @property
    def database(self) -> Path:
        """The store's file. A workspace with a team store has none: raises StoreError."""
        if self.team_url:
            raise StoreError(
                "a team store is no file", allowed="a store on this machine", do="use the server's own tools: see docs/team-store.md"
            )
        return Path(self.store.removeprefix(SQLITE)) if self.store else self.home / "casebook.db"

    @property
    def shown(self) -> str:
        """The store's place for people: no password."""
        if not self.team_url:
            return str(self.database)
        from kb.store.postgres.address import parse_address

        return parse_address(self.team_url).shown

    @property
    def artefacts(self) -> Path:
        """Content-addressed attached sessions of a store in a file."""
        return self.database.parent / "artefacts"

    @property
    def cache(self) -> Path:
        """Rebuilt at will: converted embedder, index files."""
        return (self.cache_home or self.home) / "cache"

    @property
    def vectors(self) -> Path:
        """Index files of the store's vectors: a cache, one folder a store."""
        folder = self.home / "cache" / "vectors"
        return folder / hashlib.sha256(self.store.encode()).hexdigest()[:16] if self.store else folder

    def separate(self, name: str) -> Workspace:
        """A workspace of its own inside this one that shares its cache, for things that must not mix with the user's records."""
        return Workspace(self.home / name, self.cache_home or self.home)

    @property
    def reports(self) -> Path:
        """Reports that commands leave behind."""
        return self.home / "reports"

    def prepared(self) -> Workspace:
        """This workspace with its home folder in place. Raises StoreError when it cannot be made."""
        try:
            self.home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            allowed = "a folder you may write"
            raise StoreError(
                f"cannot use {self.home} as workspace: {error.strerror}", allowed=allowed, do="set KB_HOME to another folder"
            ) from error
        return self


def workspace(environment: Mapping[str, str] = os.environ) -> Workspace:
    """The workspace named by ``KB_HOME``, else the platform's data folder of this user, with the store named by ``KB_STORE``.

    Raises UsageError when ``KB_STORE`` names no store.
    """
    store = environment.get("KB_STORE", "")
    team_address(store)
    home = environment.get("KB_HOME")
    if home:
        return Workspace(Path(home).expanduser(), store=store)
    import platformdirs

    return Workspace(Path(platformdirs.user_data_dir("diagnosis-recipes", appauthor=False)), store=store)


def team_address(store: str) -> bool:
    """Whether ``store`` is the address of a server; a file's path or ``sqlite:///PATH`` is not. Raises UsageError for others."""
    scheme, found, _ = store.partition("://")
    if not found or (store.startswith(SQLITE) and len(store) > len(SQLITE)):
        return False
    if scheme in TEAM:
        return True
    raise UsageError(
        f"there is no store of the kind {scheme}://", allowed="a file, sqlite:///PATH or postgresql://[USER@]HOST/DATABASE",
        do="correct --store or KB_STORE",
    )  # fmt: skip
