"""Where the fonts of a PDF come from."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

_PACKAGE: Final = "noto_cjk_sans_otc"
FAMILY: Final = "Noto Sans CJK SC"
FALLBACKS: Final = ("Libertinus Serif", "DejaVu Sans Mono")
"""Fonts that typst brings along: for signs the first one lacks."""


def font_folder() -> Path | None:
    """The folder of the packaged font, without importing the package; None when it is not installed."""
    spec = find_spec(_PACKAGE)
    places = spec.submodule_search_locations if spec is not None else None
    return Path(places[0]) if places else None
