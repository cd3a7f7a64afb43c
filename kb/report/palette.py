"""One colour for each role, read from the data file beside this module; every renderer uses these."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

import msgspec

from kb.report.figures import Role


@cache
def palette() -> Mapping[Role, str]:
    """Colours as ``#rrggbb``; mid-tones that keep 3:1 contrast on white and on near-black."""
    data = resources.files("kb.report").joinpath("palette.json").read_bytes()
    return msgspec.json.decode(data, type=dict[Role, str])
