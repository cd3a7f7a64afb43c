"""Text and enumerations of a profiler database: ids mean nothing outside their own file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kb.profile.ascend.database import Database
from kb.session.builder import Strings
from kb.session.session import Array


@dataclass(frozen=True, slots=True)
class Names:
    """``ids`` (ascending) of STRING_IDS and the session's code of each. ``texts`` are the session's strings."""

    ids: Array
    codes: Array
    strings: Strings

    def of(self, ids: Array) -> Array:
        """Session codes (int32) of text ids; -1 for unknown ones."""
        if not len(self.ids):
            return np.full(len(ids), -1, np.int32)
        place = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[place] == ids, self.codes[place], -1).astype(np.int32)

    def text(self, ids: Array) -> list[str | None]:
        """The texts behind text ids."""
        known = self.strings.frozen()
        return [known[code] if code >= 0 else None for code in self.of(ids).tolist()]


def read_names(database: Database, strings: Strings) -> Names:
    """STRING_IDS with surrounding quotes of shapes removed. ``N/A`` is missing."""
    rows = database.rows("STRING_IDS", "id", "value")
    ids = rows.integers("id")
    order = np.argsort(ids, kind="stable")
    return Names(ids[order], strings.codes([_plain(text) for text in rows.texts("value")])[order], strings)


def enumeration(database: Database, table: str) -> Mapping[int, str]:
    """Names by id of an ENUM table of this very file; empty when it has none."""
    rows = database.rows(table, "id", "name")
    return {number: name for number, name in zip(rows.integers("id").tolist(), rows.texts("name"), strict=True) if name}


def _plain(text: str | None) -> str | None:
    if text is None:
        return None
    bare = text[1:-1] if len(text) >= 2 and text[0] == text[-1] == '"' else text
    return None if bare in ("", "N/A", "NA") else bare
