"""An author's Markdown as safe HTML: no raw HTML, no scripts in links, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

_TOP = 3
"""Level that an author's first heading gets: the page owns levels 1 and 2."""


def prose_html(markdown: str) -> str:
    """Elements of CommonMark and tables. An image becomes its description with its address in brackets: a report loads nothing."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(markdown)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + _TOP - 1, 6)}"
    renderer = _Quiet()
    return str(renderer.render(tokens, parser.options, {}))


class _Quiet(RendererHTML):
    """The stock renderer, but images stay words and links open apart without telling where from."""

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        """The description of an image, and where it lies."""
        token = tokens[idx]
        return f"[{escape(self.renderInlineAsText(token.children or [], options, env))}: {escape(str(token.attrs.get('src', '')))}]"

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: MutableMapping[str, Any]) -> str:
        """A link's start tag; addresses were checked by the parser."""
        tokens[idx].attrSet("rel", "noopener noreferrer nofollow")
        return str(self.renderToken(tokens, idx, options, env))
