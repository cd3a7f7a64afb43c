"""The scripts of a page: our own, and the chart library's where the extra ``charts`` is installed.

The library is found without importing its Python side: the page needs its JavaScript only.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_LIBRARY: Final = "bokeh"
_FILES: Final = ("bokeh.min.js", "bokeh-api.min.js")


@cache
def asset(name: str) -> str:
    """A text file beside this module."""
    return resources.files("kb.report.html").joinpath(name).read_text(encoding="utf-8")


def chart_library() -> tuple[str, ...]:
    """Scripts of the chart library, in loading order; empty when the extra is absent."""
    spec = find_spec(_LIBRARY)
    if spec is None or not spec.submodule_search_locations:
        return ()
    folder = Path(spec.submodule_search_locations[0]) / "server" / "static" / "js"
    files = [folder / name for name in _FILES]
    if not all(file.is_file() for file in files):
        return ()
    # A closing tag inside a string literal would end our script element.
    return tuple(file.read_text(encoding="utf-8").replace("</script", "<\\/script") for file in files)


def policy(scripts: tuple[str, ...]) -> str:
    """A content security policy under which only ``scripts`` run and nothing is loaded from anywhere."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts)
    loading = "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
    return f"{loading}; script-src {hashes}; base-uri 'none'; form-action 'none'"
