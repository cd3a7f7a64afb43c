"""Names of cited cells and observed figures in the reader's language. Rules cite in English; the table says it in Chinese."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Final

import msgspec

from kb.domain.text import Lang

_UNITS: Final = ("_ns", "_us", "_ms", "_bytes")
"""Endings that name a unit: the figure beside the name is printed with a unit of its own."""

_LONGEST: Final = 2000


class _Table(msgspec.Struct, frozen=True):
    """Pairs of an English form and its Chinese one; ``{}`` stands for a name that both keep."""

    evidence: tuple[tuple[str, str], ...]
    observed: tuple[tuple[str, str], ...]


@lru_cache(maxsize=1)
def _table() -> _Table:
    return msgspec.json.decode(resources.files("kb.report").joinpath("evidence_names.json").read_bytes(), type=_Table)


def evidence_name(metric: str, lang: Lang) -> str:
    """What a cited cell shows; in English, and where the table has no such form, as the rule says it."""
    return metric if lang == "en" else _translated(metric, _table().evidence) or metric


def observed_name(metric: str, lang: Lang) -> str:
    """The id of an observed figure in words, without the unit its id ends in."""
    ending = next((unit for unit in _UNITS if metric.endswith(unit)), "")
    words = metric.removesuffix(ending).replace("_", " ")
    return words if lang == "en" else _translated(metric, _table().observed) or words


def _translated(metric: str, pairs: Sequence[tuple[str, str]]) -> str:
    """The first form that fits, filled in; "" when none does, and for what is longer than any name of ours."""
    if len(metric) > _LONGEST:
        return ""
    for english, chinese in pairs:
        found = re.fullmatch(re.escape(english).replace(r"\{\}", "(.+)"), metric)
        if found is not None:
            return chinese.format(*found.groups())
    return ""
