"""Linting of a library, a folder or a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Final

import msgspec

from kb.domain.catalogue import Catalogue
from kb.errors import ContentError
from kb.library.catalogue import read_catalogue
from kb.library.lint.document import Document, from_error, read_document
from kb.library.lint.entries import check_catalogue_entries
from kb.library.lint.evidence import check_card_size, check_claims, check_field_record
from kb.library.lint.figures import check_percentages, check_units
from kb.library.lint.files import content_files, coverage, slug_of
from kb.library.lint.problem import Problem, problem
from kb.library.lint.prose import check_languages, check_open_ends, check_symptoms, check_title
from kb.library.lint.references import FIELD_TAG, check_code_names, check_ids, check_links, check_template
from kb.library.location import CATALOGUE

EDITORIAL: Final = frozenset({"source", "slug", "title", "tier", "card", "symptoms", "language", "link", "context"})
"""Rules of the shipped library: how its content is written and where it stands. Somebody's own record is judged by the others,
so that what ``kb publish`` takes is no problem here: publishing finds the tier itself and knows the workspace's records, and a
diagnosis puts figures of its own into a context."""


class Linted(msgspec.Struct, frozen=True, kw_only=True):
    """``files`` is how many were read, ``problems`` in order of file and line."""

    files: int
    problems: tuple[Problem, ...]


def lint(path: Path, *, shipped: Path, thresholds: Set[str]) -> Linted:
    """Lint the library, folder or file at ``path``, against its own library or else the one at ``shipped``.

    Files outside a library are somebody's own records: the ``EDITORIAL`` rules are not for them. ``thresholds`` are the names that
    rules read. Raises NotFoundError when there is nothing to lint.
    """
    covered = coverage(path, shipped=shipped)
    try:
        catalogue = read_catalogue(covered.library)
    except ContentError as error:
        return Linted(files=len(covered.files), problems=(from_error(error, _named(error, covered.root)),))
    problems: list[Problem] = []
    if covered.catalogue is not None:
        problems += check_catalogue_entries(catalogue, covered.catalogue, "/".join(CATALOGUE))
    read = [(file, read_document(file, file.relative_to(covered.root).as_posix())) for file in covered.files]
    documents = [(file, item) for file, item in read if isinstance(item, Document)]
    problems += [item for _, item in read if isinstance(item, Problem)]
    slugs = {slug_of(file) for file in (*covered.files, *content_files(covered.library, covered.library))}
    for file, document in documents:
        problems += _checked(document, catalogue, slugs, thresholds)
        problems += _misplaced(document, slug_of(file))
    problems += _repeated([document for _, document in documents])
    problems = [item for item in problems if covered.shelved or item.rule not in EDITORIAL]
    entries = len(list(covered.catalogue.rglob("*.json"))) if covered.catalogue is not None else 0
    return Linted(files=len(covered.files) + entries, problems=tuple(sorted(problems, key=lambda item: (item.file, item.line, item.rule))))


def _checked(document: Document, catalogue: Catalogue, slugs: Set[str], thresholds: Set[str]) -> Iterator[Problem]:
    yield from check_languages(document)
    yield from check_open_ends(document)
    yield from check_title(document)
    yield from check_symptoms(document)
    yield from check_units(document, catalogue)
    yield from check_percentages(document)
    yield from check_ids(document, catalogue)
    yield from check_template(document, catalogue, thresholds)
    yield from check_code_names(document, catalogue, thresholds)
    yield from check_links(document, slugs)
    yield from check_claims(document)
    yield from check_field_record(document)
    yield from check_card_size(document)


def _misplaced(document: Document, wanted: str) -> Iterator[Problem]:
    if document.record.slug != wanted:
        line = document.line_of(("slug",))
        yield problem(document.file, line, "slug", zh=f"slug 应为 {wanted}", en=f"slug {document.record.slug!r} is not {wanted!r}")


def _repeated(documents: Sequence[Document]) -> Iterator[Problem]:
    """Slugs, titles and source cases that two files share."""
    seen: dict[tuple[str, str], str] = {}
    for document in documents:
        record = document.record
        cases = [tag for tag in record.tags if tag.startswith(FIELD_TAG) and record.kind == "recipe"]
        keys = [("slug", record.slug), ("title", record.title.en), ("title", record.title.zh), *(("tags", tag) for tag in cases)]
        for field, value in keys:
            other = seen.setdefault((field, value), document.file)
            if other != document.file:
                line = document.line_of((field,))
                yield problem(document.file, line, "duplicate", zh=f"{value} 与 {other} 重复", en=f"{value!r} is also in {other}")


def _named(error: ContentError, root: Path) -> str:
    """The file a loader's error is about, as it starts its message."""
    return error.what.split(": ", 1)[0].removeprefix(f"{root.as_posix()}/").split(":", 1)[0]
