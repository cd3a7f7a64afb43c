"""The shipped catalogue, for jobs that need no store."""

from __future__ import annotations

from kb.domain.catalogue import Catalogue
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root


def shipped_catalogue() -> Catalogue:
    """The catalogue of the installed library. Raises LibraryNotFoundError for a broken installation."""
    return load_catalogue(library_root())
