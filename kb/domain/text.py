"""Two-language text. One record holds both; the reader's language picks at output."""

from __future__ import annotations

from typing import Literal

import msgspec

Lang = Literal["zh", "en"]
LANGS: tuple[Lang, ...] = ("zh", "en")


class Text(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The same statement in Chinese and English. Neither side may be empty in a published record."""

    zh: str = ""
    en: str = ""

    def pick(self, lang: Lang) -> str:
        """The text in ``lang``, or the other language where that side is empty."""
        first, second = (self.zh, self.en) if lang == "zh" else (self.en, self.zh)
        return first or second
