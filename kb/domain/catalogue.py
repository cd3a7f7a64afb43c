"""Catalogue entries: the fixed vocabulary of causes, strategies, metrics and glossary rows."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final, Literal, TypeVar

import msgspec

from kb.domain.soc import Soc, SocFamily
from kb.domain.text import Text
from kb.errors import NotFoundError

CauseId = str
StrategyId = str
Effort = Literal["flag", "environment", "launch_script", "model_code", "kernel"]
EFFORTS: Final[tuple[Effort, ...]] = ("flag", "environment", "launch_script", "model_code", "kernel")
PrecisionRisk = Literal["none", "low", "medium", "high", "unknown"]
Layer = Literal["input", "host", "storage", "operator", "graph", "layout", "precision", "memory", "compile", "communication",
                "parallel", "cluster", "hardware", "serving", "pipeline", "method"]  # fmt: skip


class Cause(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why time is lost. ``strategies`` are the ids of the usual answers, most direct first. ``evidence`` says what to
    look for, ``healthy`` what a run without the cause shows, with numbers."""

    id: CauseId
    layer: Layer
    name: Text
    definition: Text
    evidence: Text
    healthy: Text = Text()
    aliases: tuple[str, ...] = ()
    strategies: tuple[StrategyId, ...] = ()
    observable: bool = True
    """Whether a profile can show it (else only a source or an experiment can)."""


class Command(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command or setting for a real toolchain; ``verified`` is False until somebody ran it there."""

    tool: str
    text: str
    documented_for: str = ""
    verified: bool = False


class Strategy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change that removes a cause. ``evidence`` says when it fits, ``healthy`` what is right afterwards, with numbers.

    Empty ``families`` / ``phases`` / ``model_types`` / ``frameworks`` mean no restriction. ``simulatable`` is true exactly for the ids that
    the simulator's ``TWINS`` holds (a test compares both sides).
    """

    id: StrategyId
    name: Text
    definition: Text
    evidence: Text = Text()
    healthy: Text = Text()
    aliases: tuple[str, ...] = ()
    addresses: tuple[CauseId, ...] = ()
    families: tuple[SocFamily, ...] = ()
    phases: tuple[str, ...] = ()
    model_types: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()
    prerequisites: tuple[Text, ...] = ()
    conflicts: tuple[StrategyId, ...] = ()
    effort: Effort = "model_code"
    precision_risk: PrecisionRisk = "unknown"
    changes_model: bool = False
    may_need_retraining: bool = False
    """Whether accuracy may only hold after training or calibrating again."""
    commands: tuple[Command, ...] = ()
    verify: Text = Text()
    roll_back: Text = Text()
    simulatable: bool = False


class Metric(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A measurable: its unit, which direction is better, and the range considered healthy."""

    id: str
    name: Text
    unit: str
    better: Literal["lower", "higher", "neither"]
    healthy: tuple[float | None, float | None] | None = None
    definition: Text = Text()


class GlossaryRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Terms of both languages that mean one thing; if one side occurs in a query the other is added."""

    id: str
    zh: tuple[str, ...]
    en: tuple[str, ...]


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """Everything under ``recipes/catalogue``, by id. Loaded once, passed as an argument."""

    causes: Mapping[CauseId, Cause]
    strategies: Mapping[StrategyId, Strategy]
    metrics: Mapping[str, Metric]
    socs: Mapping[str, Soc]
    glossary: tuple[GlossaryRow, ...]

    def cause(self, name: str) -> Cause:
        """A cause by id, alias or name in either language. Raises NotFoundError naming the nearest ids."""
        return _resolve(name, self.causes, "cause")

    def strategy(self, name: str) -> Strategy:
        """A strategy by id, alias or name in either language. Raises NotFoundError naming the nearest ids."""
        return _resolve(name, self.strategies, "strategy")

    def known_soc(self, name: str) -> Soc | None:
        """A chip by id or alias, ignoring case; None for an unknown one. Cheaper than catching what ``soc`` raises."""
        return _found(name, self.socs)

    def soc(self, name: str) -> Soc:
        """A chip by id, name or alias, ignoring case. Raises NotFoundError naming the nearest ids."""
        return _resolve(name, self.socs, "SoC")


_Entry = TypeVar("_Entry", Cause, Strategy, Soc)


def _found(name: str, entries: Mapping[str, _Entry]) -> _Entry | None:
    exact = entries.get(name)
    if exact is not None:
        return exact
    wanted = _spelled(name)
    return next((entry for entry in entries.values() if any(wanted == _spelled(own) for own in _names(entry))), None)


def _names(entry: Cause | Strategy | Soc) -> tuple[str, ...]:
    """Everything an entry is called: its id, its aliases, its name in both languages."""
    names = (entry.name.zh, entry.name.en) if isinstance(entry.name, Text) else (entry.name,)
    return (entry.id, *entry.aliases, *filter(None, names))


def _spelled(name: str) -> str:
    return "_".join(name.casefold().replace("-", " ").replace("_", " ").split())


def _resolve(name: str, entries: Mapping[str, _Entry], kind: str) -> _Entry:
    found = _found(name, entries)
    if found is not None:
        return found
    called = {_spelled(own): entry.id for entry in reversed(list(entries.values())) for own in reversed(_names(entry))}
    near = difflib.get_close_matches(_spelled(name), called, n=3, cutoff=0.4)
    ids = list(dict.fromkeys(called[match] for match in near)) or sorted(entries)[:5]
    raise NotFoundError(f"no {kind} named {name!r}", allowed=f"for example {', '.join(ids)}", do="pick one of the catalogue's ids")
