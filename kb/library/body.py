"""The prose of a record: one Markdown file with a section for each language, without raw HTML."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kb.domain.text import Lang, Text
from kb.errors import ContentError

if TYPE_CHECKING:
    from markdown_it.token import Token

HEADINGS: Final[dict[str, Lang]] = {"English": "en", "中文": "zh"}
ALLOWED_HEADINGS: Final = "exactly two level-1 headings, '# English' and '# 中文'"
ALLOWED_LINKS: Final = "http(s), mailto and relative links"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_SCHEMES: Final = frozenset({"http", "https", "mailto"})


def read_body(text: str, *, source: str, first_line: int = 1) -> Text:
    """Split ``text`` into its two sections. ``first_line`` is its line in the file.

    Raises ContentError naming ``source`` and the line: for other level-1 headings, text before the first of them,
    raw HTML, or a link that is neither http(s), mailto nor relative.
    """
    tokens = _parsed(text)
    _check_tokens(tokens, source, first_line)
    lines = text.split("\n")
    headings = _headings(tokens, source, first_line)
    if any(line.strip() for line in lines[: headings[0][1]]):
        raise ContentError(f"{source}:{first_line}: text before the first heading", allowed=ALLOWED_HEADINGS, do="move it below a heading")
    ends = [headings[1][1], len(lines)]
    sections = {lang: _trimmed(lines[after:end]) for (lang, _, after), end in zip(headings, ends, strict=True)}
    return Text(zh=sections["zh"], en=sections["en"])


def write_body(body: Text) -> str:
    """The canonical form, English first; ``read_body`` gives ``body`` back."""
    return f"# English\n\n{body.en}\n\n# 中文\n\n{body.zh}\n"


def checked_link(url: str) -> bool:
    """Whether a link may stand in content: http(s), mailto, or relative (no scheme, no host, not from the root)."""
    scheme = _SCHEME.match(url)
    if scheme is not None:
        return scheme[1].lower() in _SCHEMES
    return not url.startswith(("/", "\\"))


def _parsed(text: str) -> list[Token]:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    # Its own filter would turn a javascript: link into plain text and hide it from the check.
    parser.validateLink = _any_link  # type: ignore[method-assign]
    return parser.parse(text)


def _any_link(url: str) -> bool:
    return bool(url)


def _check_tokens(tokens: list[Token], source: str, first_line: int) -> None:
    for token in tokens:
        line = first_line + (token.map[0] if token.map else 0)
        if token.type == "html_block":
            raise _raw_html(token.content, source, line)
        for inline in token.children or ():
            if inline.type == "html_inline":
                raise _raw_html(inline.content, source, line)
            url = inline.attrGet("href") or inline.attrGet("src")
            if url is not None and not checked_link(str(url)):
                raise ContentError(f"{source}:{line}: link to {url}", allowed=ALLOWED_LINKS, do="change or remove the link")


def _raw_html(html: str, source: str, line: int) -> ContentError:
    shown = html.strip().split("\n", 1)[0][:60]
    return ContentError(f"{source}:{line}: raw HTML: {shown}", allowed="Markdown", do="write it as Markdown or as `code`")


def _headings(tokens: list[Token], source: str, first_line: int) -> list[tuple[Lang, int, int]]:
    """Language, first line and line after, for both headings in their order; lines count from 0 in the body."""
    found: list[tuple[Lang, int, int]] = []
    for at, token in enumerate(tokens):
        if token.type != "heading_open" or token.tag != "h1" or token.map is None:
            continue
        lang = HEADINGS.get(tokens[at + 1].content) if token.level == 0 else None
        if lang is None or lang in (each[0] for each in found):
            line = first_line + token.map[0]
            raise ContentError(
                f"{source}:{line}: level-1 heading {tokens[at + 1].content!r}", allowed=ALLOWED_HEADINGS, do="use ## inside a section"
            )
        found.append((lang, token.map[0], token.map[1]))
    if len(found) != len(HEADINGS):
        raise ContentError(f"{source}: {len(found)} language sections in the body", allowed=ALLOWED_HEADINGS, do="add the missing section")
    return found


def _trimmed(lines: list[str]) -> str:
    """A section without the one blank line before it and the one after it, which belong to the layout."""
    inner = lines[1:] if lines and not lines[0].strip() else lines
    return "\n".join(inner[:-1] if inner and not inner[-1].strip() else inner)
