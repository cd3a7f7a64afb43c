"""Which files a lint covers, and the library they belong to."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kb.errors import NotFoundError
from kb.library.location import CATALOGUE, FOLDERS
from kb.library.records import RECIPE_FILE


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """``library`` gives the catalogue and the known records; ``root`` is what shown names are relative to.

    ``catalogue`` is the catalogue folder when the lint covers it, else None. ``shelved`` says whether the files stand in a library;
    else they are somebody's own records.
    """

    library: Path
    root: Path
    files: tuple[Path, ...]
    catalogue: Path | None
    shelved: bool


def coverage(path: Path, *, shipped: Path) -> Coverage:
    """What linting ``path`` covers. A path in no library is judged against the one at ``shipped``.

    Raises NotFoundError when there is no content at ``path``.
    """
    path = path.resolve()
    home = next((folder for folder in (path, *path.parents) if is_library(folder)), None)
    catalogue = home.joinpath(*CATALOGUE) if home is not None else None
    covered = catalogue if catalogue is not None and (path in (catalogue, *catalogue.parents) or catalogue in path.parents) else None
    files = content_files(path, home)
    if not path.exists() or not (files or covered):
        raise NotFoundError(
            f"{path}: no content file",
            allowed=f"a library, {RECIPE_FILE}, cards/*.md or templates/*.json",
            do="name a library, a folder of content or one of its files",
        )
    root = home or (path if path.is_dir() else path.parent)
    return Coverage(library=home or shipped, root=root, files=files, catalogue=covered, shelved=home is not None)


def is_library(folder: Path) -> bool:
    """Whether ``folder`` holds all content folders."""
    return all((folder / name).is_dir() for name in FOLDERS)


def content_files(path: Path, home: Path | None) -> tuple[Path, ...]:
    """Recipes, cards and templates at or below ``path``; ``home`` is the library around it."""
    if path.is_file():
        found = [path]
    else:
        starts = [path / name for name in FOLDERS] if path == home else [path]
        found = sorted(file for start in starts for kind in ("*.md", "*.json") for file in start.rglob(kind))
    return tuple(file for file in found if _is_content(file, home))


def _is_content(file: Path, home: Path | None) -> bool:
    if home is None:
        return file.suffix in (".md", ".json") and not file.name.startswith((".", "README"))
    parts = file.relative_to(home).parts
    if any(part.startswith(".") for part in parts) or parts[: len(CATALOGUE)] == CATALOGUE:
        return False
    return {"recipes": file.name == RECIPE_FILE, "cards": file.suffix == ".md", "templates": file.suffix == ".json"}.get(parts[0], False)


def slug_of(file: Path) -> str:
    """The slug a file's place gives it."""
    return file.parent.name if file.name == RECIPE_FILE else file.stem
