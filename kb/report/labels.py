"""Fixed words of reports in both languages, from the data file beside this module."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from kb.domain.text import Lang, Text


class Labels(msgspec.Struct, frozen=True):
    """Words of one language, by key."""

    lang: Lang
    words: Mapping[str, Text]

    def __call__(self, key: str) -> str:
        """The word for ``key``; a missing key is a defect and raises KeyError."""
        return self.words[key].pick(self.lang)

    def either(self, zh: str, en: str) -> str:
        """A sentence written in both languages at the place of use."""
        return zh if self.lang == "zh" else en


def labels(lang: Lang) -> Labels:
    """The shipped words. A plain path, as ``importlib.resources`` costs a text search 10 ms."""
    data = Path(__file__).with_name("labels.json").read_bytes()
    return Labels(lang, msgspec.json.decode(data, type=dict[str, Text]))
