"""A rule set for a family of models: ordered checks with thresholds."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kb.domain.catalogue import CauseId
from kb.domain.provenance import Origin
from kb.domain.text import Text


class Seen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How a check came out where the template was made: ``share`` (0..1) of the step that was exposed, 0 for a healthy part."""

    session: str
    origin: Origin
    share: float = 0.0


class Check(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Judge one cause; ``thresholds`` override the rule's named defaults; ``reason`` says why this value;
    ``history`` is what the sessions the template was made from showed."""

    cause: CauseId
    thresholds: Mapping[str, float] = {}
    reason: Text = Text()
    history: tuple[Seen, ...] = ()


class Template(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """``model_types`` empty = any model. ``schema`` is the version of this structure."""

    slug: str
    name: Text
    description: Text
    checks: tuple[Check, ...]
    models: tuple[str, ...] = ()
    model_types: tuple[str, ...] = ()
    pitfalls: tuple[Text, ...] = ()
    schema: int = 1
