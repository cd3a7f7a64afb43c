"""The gallery's front page: every record as a card, found and sorted in the page itself, without a network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kb import __version__
from kb.domain.catalogue import Catalogue
from kb.domain.gallery import Contributor, GalleryEntry
from kb.domain.text import Lang
from kb.report.html.blocks import block_html, said
from kb.report.html.renderer import colours, data_script
from kb.report.html.scripts import asset, policy
from kb.report.labels import Labels, labels
from kb.report.records import contributor_table

SORTS: Final = ("use", "verification", "impact", "newest", "name")
_TIERS: Final = ("claimed", "simulated", "measured", "reproduced")


class _Row(msgspec.Struct, frozen=True):
    """What the script of the page knows about a card; ``text`` is folded words of both languages."""

    text: str
    kind: str
    tier: str
    families: tuple[str, ...]
    types: tuple[str, ...]
    keys: tuple[float, ...]
    """Ascending sort keys in the order of ``SORTS``; by name the script uses the order of the page."""


def gallery_page(entries: Sequence[GalleryEntry], contributors: Sequence[Contributor], catalogue: Catalogue, lang: Lang) -> str:
    """The front page in ``lang``; cards link to ``SLUG.html`` beside it and to the other language's page."""
    words = labels(lang)
    scripts = (asset("page.js"), asset("gallery.js"))
    rows = [_row(entry, place, catalogue) for place, entry in enumerate(entries)]
    cards = "".join(_card(place, entry, catalogue, words) for place, entry in enumerate(entries))
    other = "en" if lang == "zh" else "zh"
    html_lang = "zh-CN" if lang == "zh" else "en"
    title = said(words("gallery"))
    return (
        f'<!doctype html>\n<html lang="{html_lang}"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(scripts)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f"<title>{title}</title><style>{colours()}{asset('style.css')}{asset('gallery.css')}</style></head><body>"
        f'<header class="bar"><a href="#top">diagnosis-recipes</a><span>{title}</span><a href="../{other}/index.html" hreflang="{other}">'
        f"{said(words('gallery.other'))}</a>"
        f'<button type="button" id="theme" title="{said(words("theme"))}" aria-label="{said(words("theme"))}">◐</button></header>'
        f'<main id="top" class="gallery"><h1>{title}</h1><p>{said(words("gallery.lead"))}</p>{_controls(entries, words)}'
        f'<p id="count" role="status">{len(entries)} {said(words("gallery.count"))}</p><div id="cards">{cards}</div>'
        f"{_contributors(contributors, words)}<footer><p>{said(words('footer').format(version=__version__))}</p></footer></main>"
        + data_script("kb-gallery", msgspec.json.encode(rows))
        + data_script("kb-words", msgspec.json.encode({"count": words("gallery.count")}))
        + "".join(f"<script>{script}</script>" for script in scripts)
        + "</body></html>\n"
    )


def _row(entry: GalleryEntry, place: int, catalogue: Catalogue) -> _Row:
    names = [name for cause in entry.causes if cause in catalogue.causes for name in _names(catalogue.causes[cause].name)]
    names += [name for item in entry.strategies if item in catalogue.strategies for name in _names(catalogue.strategies[item].name)]
    parts = (
        entry.slug,
        *_names(entry.title),
        *_names(entry.summary),
        *entry.tags,
        *entry.causes,
        *entry.strategies,
        *names,
        *entry.families,
    )
    tier = _TIERS.index(entry.provenance)
    keys = (
        -(entry.worked * 1000.0 + entry.uses),
        -(tier * 1000.0 + entry.verified * 500.0 + entry.reproductions),
        -(entry.impact if entry.impact is not None else -1.0),
        -entry.created_ns / 1e9,
        float(place),
    )
    return _Row(" ".join(parts).casefold(), entry.kind, entry.provenance, entry.families, entry.model_types, keys)


def _names(text: object) -> tuple[str, ...]:
    return tuple(side for side in (getattr(text, "zh", ""), getattr(text, "en", "")) if side)


def _card(place: int, entry: GalleryEntry, catalogue: Catalogue, words: Labels) -> str:
    lang = words.lang
    causes = " · ".join(catalogue.causes[cause].name.pick(lang) for cause in entry.causes if cause in catalogue.causes)
    figures = [f"{words('gallery.uses')} {entry.uses}", f"{words('gallery.worked')} {entry.worked}"]
    figures += [f"{words('gallery.reproduced')} {entry.reproductions}"] if entry.reproductions else []
    figures += [words("gallery.verified")] if entry.verified else []
    figures += [f"{words('gallery.impact')} {entry.impact:.0f}/100"] if entry.impact is not None else []
    badge = f'<span class="tier tier-{entry.provenance}">{said(words(f"provenance.{entry.provenance}"))}</span>'
    chips = "".join(f"<span>{said(text)}</span>" for text in (entry.kind, *entry.families, *entry.model_types))
    return (
        f'<article class="card" data-at="{place}"><h2><a href="{said(entry.slug)}.html" dir="auto">{said(entry.title.pick(lang))}</a></h2>'
        f'<p class="chips">{badge}{chips}</p><p dir="auto">{said(entry.summary.pick(lang))}</p>'
        f'<p class="causes" dir="auto">{said(causes)}</p>'
        f'<p class="figures">{said(f"{entry.slug}@{entry.n}")} · {said(" · ".join(figures))}</p></article>'
    )


def _controls(entries: Sequence[GalleryEntry], words: Labels) -> str:
    families = sorted({family for entry in entries for family in entry.families})
    types = sorted({kind for entry in entries for kind in entry.model_types})
    kinds = sorted({entry.kind for entry in entries})
    tiers = [(tier, words(f"provenance.{tier}")) for tier in _TIERS if any(entry.provenance == tier for entry in entries)]
    chosen = (
        ("kind", words("kind"), [(kind, kind) for kind in kinds]),
        ("tier", words("provenance"), tiers),
        ("families", words("family"), [(item, item) for item in families]),
        ("types", words("model_type"), [(item, item) for item in types]),
    )
    sorts = "".join(f'<option value="{at}">{said(words(f"gallery.sort.{name}"))}</option>' for at, name in enumerate(SORTS))
    selects = "".join(_select(name, title, options, words) for name, title, options in chosen)
    return (
        f'<form class="controls" role="search"><input id="words" type="search" aria-label="{said(words("gallery.search"))}" '
        f'placeholder="{said(words("gallery.search"))}">{selects}'
        f'<label>{said(words("gallery.sort"))} <select id="sort">{sorts}</select></label></form>'
    )


def _select(name: str, title: str, options: Sequence[tuple[str, str]], words: Labels) -> str:
    rows = "".join(f'<option value="{said(value)}">{said(text)}</option>' for value, text in options)
    everything = f'<option value="">{said(words("gallery.all"))}</option>'
    return f'<label>{said(title)} <select data-filter="{name}">{everything}{rows}</select></label>'


def _contributors(contributors: Sequence[Contributor], words: Labels) -> str:
    return "".join(_ladder(contributors, words)) if contributors else ""


def _ladder(contributors: Sequence[Contributor], words: Labels) -> Iterator[str]:
    yield f"<section><h2>{said(words('gallery.contributors'))}</h2><p>{said(words('gallery.contributors.why'))}</p>"
    yield block_html(contributor_table(contributors, words), words)
    yield "</section>"
