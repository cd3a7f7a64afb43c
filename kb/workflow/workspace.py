"""Where a user's own records, caches and reports live."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kb.errors import StoreError


@dataclass(frozen=True)
class Workspace:
    """Paths under one home folder. Nothing is created until something is written."""

    home: Path
    cache_home: Path | None = None

    @property
    def database(self) -> Path:
        """The store."""
        return self.home / "casebook.db"

    @property
    def artefacts(self) -> Path:
        """Content-addressed attached sessions."""
        return self.home / "artefacts"

    @property
    def cache(self) -> Path:
        """Rebuilt at will: converted embedder, index files."""
        return (self.cache_home or self.home) / "cache"

    @property
    def vectors(self) -> Path:
        """Index files of the store's vectors: a cache."""
        return self.home / "cache" / "vectors"

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
    """The workspace named by ``KB_HOME``, else the platform's data folder of this user."""
    home = environment.get("KB_HOME")
    if home:
        return Workspace(Path(home).expanduser())
    import platformdirs

    return Workspace(Path(platformdirs.user_data_dir("diagnosis-recipes", appauthor=False)))
