"""A team's own glossary rows, kept beside its casebook."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from kb.domain.catalogue import Catalogue, GlossaryRow
from kb.errors import ContentError

FILE: Final = "glossary.json"
"""In the workspace: a list of rows like those of recipes/catalogue/glossary.json, to be edited by hand."""


def with_own_glossary(catalogue: Catalogue, home: Path) -> Catalogue:
    """``catalogue`` with the rows of the workspace ``home`` first; a row with the id of a shipped one replaces it, and one without
    terms switches it off. The same catalogue without such a file.

    Raises ContentError when the file cannot be read.
    """
    path = home / FILE
    try:
        own = msgspec.json.decode(path.read_bytes(), type=tuple[GlossaryRow, ...])
    except FileNotFoundError:
        return catalogue
    except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
        form = '[{"id": "hang", "zh": ["\u5361\u4f4f"], "en": ["hang", "freeze"]}]'
        raise ContentError(f"{path}: {error}", allowed=form, do="correct the file, or remove it") from error
    replaced = {row.id for row in own}
    shipped = (row for row in catalogue.glossary if row.id not in replaced)
    return msgspec.structs.replace(catalogue, glossary=(*(row for row in own if row.zh or row.en), *shipped))
