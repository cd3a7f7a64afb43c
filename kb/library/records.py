"""All records of a library: recipes/**/recipe.md, cards/*.md and templates/*.json."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Final

from kb.domain.case import RecordKind
from kb.domain.record import Record
from kb.domain.text import LANGS, Text
from kb.domain.version import parse_ref
from kb.errors import ContentError, UsageError
from kb.library.decoding import read_content
from kb.library.location import CATALOGUE, FOLDERS, checked_library
from kb.library.markdown import parse_markdown
from kb.library.templates import parse_template, template_record

RECIPE_FILE: Final = "recipe.md"
READER: Final = "1"
"""Goes into the fingerprint: raise it when the same files would be read into other records."""


def read_records(root: Path) -> tuple[Record, ...]:
    """Every record under ``root``, ordered by slug.

    Raises LibraryNotFoundError when a content folder is absent, and ContentError naming the file: for content that does not
    parse, a slug that is not the file's or folder's name or is taken, a kind that does not belong to the folder, a
    title, summary or body without one of its languages, a link to no record, or a folder without a recipe.
    """
    checked_library(root)
    found: dict[str, tuple[Path, Record]] = {}
    try:
        for path, record in _records(root):
            if record.slug in found:
                raise ContentError(f"{path}: slug {record.slug!r} is taken by {found[record.slug][0]}", do="rename one of them")
            found[record.slug] = (path, record)
    except OSError as error:
        raise _unreadable(error, root) from error
    for path, record in found.values():
        _check_links(record, found.keys(), path)
    return tuple(found[slug][1] for slug in sorted(found))


def fingerprint(root: Path) -> str:
    """64 hex digits over paths, sizes and modification times of all content files; reads no file.

    Raises LibraryNotFoundError when a content folder is absent and ContentError when one cannot be read.
    """
    checked_library(root)
    state = hashlib.sha256(READER.encode())
    try:
        for folder in FOLDERS:
            for line in sorted(_states(root / folder, folder)):
                state.update(line.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise _unreadable(error, root) from error
    return state.hexdigest()


def _unreadable(error: OSError, root: Path) -> ContentError:
    return ContentError(f"{error.filename or root}: {error.strerror}", do="check that the content folders may be read")


def _states(folder: Path | str, shown: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = f"{shown}/{entry.name}"
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _states(entry.path, name)
            else:
                status = entry.stat()
                yield f"{name}\0{status.st_size}\0{status.st_mtime_ns}\n"


def _records(root: Path) -> Iterator[tuple[Path, Record]]:
    for path in _recipe_files(root / "recipes", skipped=root.joinpath(*CATALOGUE)):
        yield path, _checked(_read_markdown(path), "recipe", path.parent.name, path)
    for path in sorted((root / "cards").glob("*.md")):
        yield path, _checked(_read_markdown(path), "card", path.stem, path)
    for path in sorted((root / "templates").glob("*.json")):
        yield path, _checked(template_record(parse_template(read_content(path), source=str(path))), "template", path.stem, path)


def _recipe_files(folder: Path, *, skipped: Path) -> Iterator[Path]:
    """recipe.md of every recipe folder; a folder without one is a shelf of further folders."""
    for inner in sorted(path for path in folder.iterdir() if path.is_dir() and path != skipped and not path.name.startswith(".")):
        recipe = inner / RECIPE_FILE
        if recipe.is_file():
            yield recipe
        elif any(path.is_dir() for path in inner.iterdir()):
            yield from _recipe_files(inner, skipped=skipped)
        else:
            raise ContentError(f"{inner}: no {RECIPE_FILE}", do=f"add {RECIPE_FILE} or remove the folder")


def _read_markdown(path: Path) -> Record:
    try:
        text = read_content(path).decode()
    except UnicodeDecodeError as error:
        raise ContentError(f"{path}: not UTF-8 at byte {error.start}", allowed="UTF-8 text", do="save the file as UTF-8") from error
    return parse_markdown(text, source=str(path))


def _checked(record: Record, kind: RecordKind, slug: str, path: Path) -> Record:
    if record.kind != kind:
        raise ContentError(f"{path}: kind {record.kind}", allowed=f"kind {kind} in this folder", do="move the file or change the kind")
    if record.slug != slug:
        raise ContentError(
            f"{path}: slug {record.slug!r} is not its name", allowed=f"slug {slug}", do="make slug and file or folder name equal"
        )
    for name, text in (("title", record.title), ("summary", record.summary), ("body", record.body)):
        _check_languages(text, name, path)
    return record


def _check_languages(text: Text, name: str, path: Path) -> None:
    for lang in LANGS:
        if not getattr(text, lang).strip():
            raise ContentError(f"{path}: {name} has no text in {lang}", allowed="both languages", do="add the translation")


def _check_links(record: Record, known: Set[str], path: Path) -> None:
    for link in record.links:
        try:
            slug = parse_ref(link).slug
        except UsageError as error:
            raise ContentError(f"{path}: links: {error.what}", allowed=error.allowed, do="put web addresses under sources") from error
        if slug not in known:
            raise ContentError(f"{path}: links: no record {link!r}", do="correct the slug or remove the link")
