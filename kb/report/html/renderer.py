"""The page: one file that opens from disk, on paper and on a phone, and loads nothing."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kb import __version__
from kb.report.archive import SCRIPT_ID, script_safe
from kb.report.bounds import bounded
from kb.report.document import Block, Document, Figure, Heading, Note
from kb.report.html.blocks import INTERACTIVE, block_html, said
from kb.report.html.scripts import asset, chart_library, policy
from kb.report.labels import Labels, labels
from kb.report.palette import palette

_WORDS = (
    "search",
    "search.hint",
    "reset",
    "zoom_hint",
    "enter_hint",
    "shown_of",
    "matches",
    "tasks",
    "count",
    "time",
    "share",
    "why",
    "role.bubble",
    "total",
)


class HtmlRenderer:
    """``Renderer`` for Document. ``interactive`` False leaves the chart library out, also when it is installed."""

    extension = "html"
    binary = False

    def __init__(self, *, interactive: bool = True) -> None:
        self._interactive = interactive

    def render(self, document: Document) -> str:
        """The page, with the document's record inside when it carries one."""
        document = bounded(document)
        words = labels(document.lang)
        wanted = self._interactive and any(isinstance(block, Figure) and isinstance(block.chart, INTERACTIVE) for block in document.blocks)
        library = chart_library() if wanted else ()
        scripts = (asset("page.js"), *library, *((asset("charts.js"),) if library else ()))
        body = "".join(_sections(document.blocks, words, static=wanted and not library))
        lang = "zh-CN" if document.lang == "zh" else "en"
        title = said(document.title or words("report"))
        return (
            f'<!doctype html>\n<html lang="{lang}"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{policy(scripts)}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
            f"<title>{title}</title><style>{colours()}{asset('style.css')}</style></head><body>"
            f'<header class="bar"><a href="#top">diagnosis-recipes</a><span dir="auto">{title}</span>'
            f'<button type="button" id="theme" title="{said(words("theme"))}" aria-label="{said(words("theme"))}">◐</button></header>'
            f'<div class="page">{_contents(document.blocks, words)}<main id="top">{body}'
            f"<footer><p>{said(words('footer').format(version=__version__))}</p></footer></main></div>"
            + data_script(SCRIPT_ID, document.record)
            + data_script("kb-words", msgspec.json.encode({key: words(key) for key in _WORDS}))
            + data_script("kb-palette", msgspec.json.encode(palette()))
            + "".join(f"<script>{script}</script>" for script in scripts)
            + "</body></html>\n"
        )


def colours() -> str:
    """The palette as style variables."""
    return ":root{" + "".join(f"--{role.replace('_', '-')}:{colour};" for role, colour in palette().items()) + "}"


def data_script(name: str, content: bytes) -> str:
    """JSON that a script of the page reads; nothing for no content."""
    return f'<script type="application/json" id="{name}">{script_safe(content).decode()}</script>' if content else ""


def _sections(blocks: tuple[Block, ...], words: Labels, *, static: bool) -> Iterator[str]:
    """Chapters as sections: each heading of level 2 opens one."""
    opened, told = False, not static
    for place, block in enumerate(blocks):
        if isinstance(block, Heading) and block.level == 2:
            yield "</section>" if opened else ""
            yield f'<section id="part-{place}">'
            opened = True
        if not told and isinstance(block, Figure) and isinstance(block.chart, INTERACTIVE):
            yield block_html(Note("capture", words("static_only")), words)
            told = True
        yield block_html(block, words)
    yield "</section>" if opened else ""


def _contents(blocks: tuple[Block, ...], words: Labels) -> str:
    chapters = [(place, block.text) for place, block in enumerate(blocks) if isinstance(block, Heading) and block.level == 2]
    links = "".join(f'<li><a href="#part-{place}" dir="auto">{said(text)}</a></li>' for place, text in chapters)
    return f'<nav aria-label="{said(words("contents"))}"><ol>{links}</ol></nav>'
