"""What the host was doing: classes of host events, by layer and name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec
import numpy as np

from kb.domain.accounting import Part
from kb.session.session import Array, Session

IdleCause = Literal["gc", "io", "input", "fallback", "compile", "alloc", "peer", "sync", "queue", "launch", "unknown"]
COMPILE_LEAST_NS: Final = 5_000_000
"""Compiling an operator takes ten milliseconds to minutes; a shorter call of such a name found the result in a cache."""
_FILE: Final = Path(__file__).with_name("host_classes.json")


class HostClasses(msgspec.Struct, frozen=True):
    """The data file: ``layers`` and ``patterns`` name a cause, ``order`` says which claims idle time first, ``parts``
    into which part of the books each cause goes."""

    about: str
    layers: Mapping[str, IdleCause]
    patterns: Mapping[IdleCause, tuple[str, ...]]
    order: tuple[IdleCause, ...]
    parts: Mapping[IdleCause, Part]


def load_host_classes() -> HostClasses:
    """The shipped classes."""
    return msgspec.json.decode(_FILE.read_bytes(), type=HostClasses)


def host_masks(session: Session, classes: HostClasses) -> Mapping[IdleCause, Array]:
    """For each named cause the boolean mask of the rows of ``host_ops`` that are of it; empty without the table.

    A layer decides before a name, an earlier cause of ``order`` before a later one. Linear in the distinct names.
    """
    table = session.table("host_ops")
    if table is None:
        return {}
    left = np.ones(len(table), np.bool_)
    by_layer = {cause: table["layer"] == session.code(layer) for layer, cause in classes.layers.items() if session.code(layer) >= 0}
    masks: dict[IdleCause, Array] = {}
    for cause in classes.order:
        own = named(session, table["name"], classes.patterns[cause]) | by_layer.get(cause, np.zeros(len(table), np.bool_))
        if cause == "compile":
            own &= table["duration_ns"] >= COMPILE_LEAST_NS
        masks[cause] = own & left
        left &= ~own
    return masks


def named(session: Session, codes: Array, patterns: tuple[str, ...]) -> Array:
    """Boolean mask of ``codes`` whose string holds one of ``patterns``, case ignored; False for missing (-1)."""
    search = re.compile("|".join(patterns), re.IGNORECASE).search
    chosen = np.zeros(len(session.strings) + 1, np.bool_)
    for code in np.flatnonzero(np.bincount(codes[codes >= 0], minlength=1)).tolist():
        chosen[code] = search(session.strings[code]) is not None
    return chosen[codes]
