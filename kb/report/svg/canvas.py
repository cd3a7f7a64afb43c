"""A drawing that grows mark by mark; all text is escaped here and nowhere else."""

from __future__ import annotations

import unicodedata
from html import escape

_FONT = "Noto Sans CJK SC, sans-serif"
_FORBIDDEN = "\x7f\ufffe\uffff"
_WIDE, _NARROW = 1.0, 0.56
"""Advance of a character in em: full-width, and the mean of Latin text."""


class Canvas:
    """``width`` and ``height`` in user units; the picture scales to the page. Text takes the page's colour (currentColor)."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []

    def rect(self, x: float, y: float, w: float, h: float, fill: str, *, opacity: float = 1.0, title: str = "", radius: float = 0.0,
             stroke: str = "") -> None:  # fmt: skip
        """A filled rectangle; ``title`` shows on hover."""
        extra = (f' rx="{_n(radius)}"' if radius else "") + (f' fill-opacity="{_n(opacity)}"' if opacity < 1 else "")
        extra += f' stroke="{stroke}"' if stroke else ""
        open_tag = f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(max(w, 0.2))}" height="{_n(h)}" fill="{fill}"{extra}'
        self._parts.append(f"{open_tag}><title>{clean(title)}</title></rect>" if title else f"{open_tag}/>")

    def text(self, x: float, y: float, text: str, *, size: float = 12, anchor: str = "start", bold: bool = False, faint: bool = False,
             room: float | None = None, fill: str = "currentColor") -> None:  # fmt: skip
        """A line of text, shortened to ``room`` user units when given; nothing when not even one character fits."""
        shown = text if room is None else fitted(text, room, size)
        if not shown:
            return
        extra = (' font-weight="600"' if bold else "") + (' fill-opacity="0.66"' if faint else "")
        extra += f' text-anchor="{anchor}"' if anchor != "start" else ""
        self._parts.append(f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}" fill="{fill}"{extra}>{clean(shown)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, *, stroke: str = "currentColor", opacity: float = 0.16, width: float = 1,
             dash: str = "") -> None:  # fmt: skip
        """A straight line."""
        extra = f' stroke-dasharray="{dash}"' if dash else ""
        self._parts.append(
            f'<line x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}" stroke="{stroke}" stroke-opacity="{_n(opacity)}" '
            f'stroke-width="{_n(width)}"{extra}/>'
        )

    def path(self, data: str, *, fill: str = "none", stroke: str = "", opacity: float = 1.0, width: float = 1.5) -> None:
        """A path in SVG path notation."""
        line = f' stroke="{stroke}" stroke-width="{_n(width)}"' if stroke else ""
        self._parts.append(f'<path d="{data}" fill="{fill}" opacity="{_n(opacity)}"{line}/>')

    def circle(self, x: float, y: float, radius: float, fill: str, *, opacity: float = 0.75, title: str = "") -> None:
        """A dot."""
        place = f'cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"'
        self._parts.append(f'<circle {place} fill="{fill}" fill-opacity="{_n(opacity)}"><title>{clean(title)}</title></circle>')

    def finished(self, label: str) -> str:
        """The SVG element; ``label`` names it for readers that do not see it."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(self.width)} {_n(self.height)}" role="img" '
            f'aria-label="{clean(label)}" font-family="{_FONT}">{"".join(self._parts)}</svg>'
        )


def clean(text: str) -> str:
    """``text`` escaped for elements and attributes; characters that XML forbids become a replacement mark."""
    return escape("".join(character if _allowed(character) else "�" for character in text))


def _allowed(character: str) -> bool:
    return character in "\t\n" or (character >= " " and character not in _FORBIDDEN and not "\ud800" <= character <= "\udfff")


def advance(text: str) -> float:
    """Estimated width in em."""
    return sum(_WIDE if unicodedata.east_asian_width(character) in "WF" else _NARROW for character in text)


def fitted(text: str, room: float, size: float) -> str:
    """``text`` cut with an ellipsis so that it fits into ``room`` user units at ``size``; "" when three characters do not fit."""
    budget = room / size
    head = text[: int(budget / _NARROW) + 2]
    if len(head) == len(text) and advance(head) <= budget:
        return text
    while head and advance(head) + _NARROW > budget:
        head = head[:-1]
    return f"{head}…" if len(head) >= 3 else ""


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
