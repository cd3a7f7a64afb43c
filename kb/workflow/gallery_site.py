"""Job: the gallery as a static site: two front pages, and a page for every record in both languages."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from kb.domain.gallery import GalleryEntry
from kb.domain.protocols import Progress
from kb.domain.record import SIMULATED_TAG
from kb.domain.text import LANGS, Lang
from kb.domain.version import Ref, Visibility
from kb.errors import KbError
from kb.files import write_whole
from kb.report.document import Document, Note, Prose
from kb.report.html.gallery import gallery_page
from kb.report.html.renderer import HtmlRenderer
from kb.report.labels import labels
from kb.report.records import history_document, version_document
from kb.workflow.casebook import Casebook
from kb.workflow.gallery import VISIBLE, Wanted, gallery, ladder, scored
from kb.workflow.records import history

MARK: Final = "diagnosis-recipes.json"
"""Stands in a folder that a site was built into: only such a folder, or an empty one, is written to again."""
_START: Final = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>diagnosis-recipes</title>'
    '<meta name="viewport" content="width=device-width, initial-scale=1"></head>'
    '<body><p><a href="zh/index.html" lang="zh">诊断方案库（中文）</a></p>'
    '<p><a href="en/index.html">Gallery (English)</a></p></body></html>\n'
)


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """What was written."""

    records: int
    pages: int
    size_bytes: int


def build_site(casebook: Casebook, folder: Path, wanted: Wanted, progress: Progress) -> Built:
    """Write the site of the records that fit ``wanted`` below ``folder``; pages of records no longer shown are removed.

    Raises KbError for a folder that holds something else, OSError for one that cannot be written.
    """
    _check(folder)
    found = gallery(casebook.store, wanted, scored(casebook))
    names = {entry.slug for entry in found.entries}
    size = 0
    write_whole(folder / MARK, [b'{"format": "diagnosis-recipes gallery", "schema": 1}\n'])
    for lang in LANGS:
        front = gallery_page(found.entries, ladder(found.entries), casebook.catalogue, lang)
        size += _put(folder / lang / "index.html", front)
        for done, entry in enumerate(found.entries):
            size += _put(folder / lang / f"{entry.slug}.html", _record_page(casebook, entry, wanted.audience, lang))
            progress(f"gallery {lang}", done + 1, found.total)
        for stale in (folder / lang).glob("*.html"):
            if stale.stem != "index" and stale.stem not in names:
                stale.unlink()
    size += _put(folder / "index.html", _START)
    return Built(records=found.total, pages=len(LANGS) * (found.total + 1) + 1, size_bytes=size)


def _check(folder: Path) -> None:
    if not folder.exists() or (folder / MARK).is_file() or (folder.is_dir() and not any(folder.iterdir())):
        return
    raise KbError(f"{folder} holds something else", allowed="a new or empty folder, or one a gallery was built into", do="choose another")


def _put(path: Path, page: str) -> int:
    data = page.encode()
    write_whole(path, [data])
    return len(data)


def _record_page(casebook: Casebook, entry: GalleryEntry, audience: Visibility, lang: Lang) -> str:
    """The newest version in full, and the versions of its line that the audience may see with what was said about them."""
    words, other = labels(lang), "en" if lang == "zh" else "zh"
    version = casebook.store.get(Ref(slug=entry.slug, n=entry.n, origin=entry.origin))
    shown = version_document(version, casebook.catalogue, lang)
    links = Prose(f"[{words('gallery.back')}](index.html) · [{words('gallery.other')}](../{other}/{entry.slug}.html)")
    versions, events = history(casebook.store, entry.slug)
    seen = [item for item in versions if item.origin == "library" or item.visibility in VISIBLE[audience]]
    line = history_document(seen, [event for event in events if event.subject in {item.sha256 for item in seen}], lang)
    badge = Note("simulated" if entry.provenance == "simulated" or SIMULATED_TAG in entry.tags else "caution", _badge(entry, lang))
    blocks = (shown.blocks[0], links, badge, *shown.blocks[1:], *line.blocks)
    title = version.record.title.pick(lang)
    return HtmlRenderer(interactive=False).render(Document(blocks, lang=lang, title=title))


def _badge(entry: GalleryEntry, lang: Lang) -> str:
    words = labels(lang)
    parts = [words(f"provenance.{entry.provenance}")]
    parts += [words("gallery.verified")] if entry.verified else []
    parts += [f"{words('gallery.uses')} {entry.uses}, {words('gallery.worked')} {entry.worked}"]
    parts += [f"{words('gallery.reproduced')} {entry.reproductions}"]
    parts += [f"{words('gallery.impact')} {entry.impact:.0f}/100"] if entry.impact is not None else []
    return " · ".join(parts)
