"""What the categories and names of Chrome traces mean, from the data file ``categories.json``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

Kind = Literal["kernel", "copy", "operator", "runtime", "python", "annotation", "device_annotation", "overhead", "ignored"]


class Categories(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``kinds`` by category (lower case). The rest are name parts or patterns: see the readers that use them."""

    kinds: Mapping[str, Kind]
    device_labels: tuple[str, ...]
    communication: tuple[str, ...]
    point_to_point: tuple[str, ...]
    loader: tuple[str, ...]
    launches: tuple[str, ...]
    graph_launches: tuple[str, ...]
    step_marker: str
    iteration_markers: tuple[str, ...]
    phases: Mapping[str, str]


@cache
def load_categories() -> Categories:
    """The data file, read once."""
    return msgspec.json.decode(Path(__file__).with_name("categories.json").read_bytes(), type=Categories)
