"""Roles of operators: which types are products, softmaxes, fused attention, and which cores compute."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from kb.session.session import Array, Session

_FILE: Final = Path(__file__).with_name("operator_classes.json")


class OperatorClasses(msgspec.Struct, frozen=True):
    """The data file: ``types`` holds patterns of whole operator types by role, ``cores`` the core names by
    engine, ``names`` patterns searched (case ignored) in the name of kernels that carry no type of their own, as on GPUs,
    ``communication_prefixes`` the beginnings of communication kernels where the core is unknown,
    ``point_to_point`` the beginnings of operator names by how a pipeline stage exchanges activations."""

    about: str
    cores: Mapping[str, tuple[str, ...]]
    communication_prefixes: tuple[str, ...]
    types: Mapping[str, tuple[str, ...]]
    point_to_point: Mapping[str, tuple[str, ...]]
    names: Mapping[str, tuple[str, ...]] = {}


def load_classes() -> OperatorClasses:
    """The shipped roles."""
    return msgspec.json.decode(_FILE.read_bytes(), type=OperatorClasses)


def matching(session: Session, codes: Array, patterns: Sequence[str]) -> Array:
    """Boolean mask of ``codes`` whose string matches one of ``patterns`` as a whole; False for missing (-1).

    Only the distinct strings are looked at, so the cost does not grow with the rows.
    """
    whole = re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
    return _mask(session, codes, lambda text: whole.fullmatch(text) is not None)


def starting(session: Session, codes: Array, prefixes: tuple[str, ...]) -> Array:
    """Boolean mask of ``codes`` whose string starts with one of ``prefixes``; False for missing (-1)."""
    return _mask(session, codes, lambda text: text.startswith(prefixes))


def searching(session: Session, codes: Array, patterns: Sequence[str]) -> Array:
    """Boolean mask of ``codes`` whose string holds one of ``patterns``, case ignored; False for missing (-1)."""
    anywhere = re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)
    return _mask(session, codes, lambda text: anywhere.search(text) is not None)


def _mask(session: Session, codes: Array, test: Callable[[str], bool]) -> Array:
    # One place more than there are strings, never set: -1 (missing) picks it.
    chosen = np.zeros(len(session.strings) + 1, np.bool_)
    for code in np.flatnonzero(np.bincount(codes[codes >= 0], minlength=1)).tolist():
        chosen[code] = test(session.strings[code])
    return chosen[codes]
