"""The unit of retrieval: context + finding + strategy + outcome, and queries and hits over it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from kb.domain.catalogue import CauseId, StrategyId
from kb.domain.provenance import Provenance, StoreOrigin
from kb.domain.quantity import Quantity, dimension
from kb.domain.soc import SocFamily
from kb.domain.text import Lang, Text

Result = Literal["improved", "no_gain", "worse", "unknown"]
RecordKind = Literal["recipe", "card", "template", "case"]


class CaseContext(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a case is about; one encoding for stored and for queried cases. None or empty = unknown."""

    model: str | None = None
    model_type: str | None = None
    phase: str | None = None
    soc: str | None = None
    soc_family: SocFamily = "unknown"
    devices: int | None = None
    software: Mapping[str, str] = {}
    causes: tuple[CauseId, ...] = ()
    metrics: Mapping[str, Quantity] = {}


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What one strategy did to ``metric``. ``better`` is the metric's direction: lower for times and bytes, higher for
    throughput. ``share`` is the part of the step (0..1) that the metric covers when it is not the whole step."""

    strategy: StrategyId
    result: Result
    metric: str
    before: Quantity | None = None
    after: Quantity | None = None
    better: Literal["lower", "higher"] = "lower"
    share: float | None = None
    provenance: Provenance = "claimed"
    reported_to_work: bool = True
    """False when the source only suggests the strategy; such an outcome is never shown as worked."""
    note: Text = Text()

    @property
    def gain_fraction(self) -> float | None:
        """Saved cost as a signed fraction of the cost before, recomputed and never typed: 1 - after / before, and for a
        metric where higher is better 1 - before / after (time per unit).

        None where a side is missing, not positive, or in another dimension.
        """
        if self.before is None or self.after is None or dimension(self.before.unit)[0] != dimension(self.after.unit)[0]:
            return None
        before, after = self.before.value, self.after.to(self.before.unit)
        if before <= 0 or after <= 0:
            return None
        return 1.0 - (after / before if self.better == "lower" else before / after)


class Case(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One cause in one context, what was tried, and how it went."""

    cause: CauseId
    context: CaseContext
    outcomes: tuple[Outcome, ...] = ()
    finding: Text = Text()
    symptoms: tuple[Text, ...] = ()
    constraints: tuple[Text, ...] = ()
    cautions: tuple[Text, ...] = ()


class CaseQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A search: free text, a context, or both. Filters are exact; empty means no filter.

    ``include_simulated`` shows simulated cases among the others (they are marked either way).
    """

    text: str = ""
    context: CaseContext | None = None
    kinds: tuple[RecordKind, ...] = ("recipe", "card", "template")
    soc_families: tuple[SocFamily, ...] = ()
    model_types: tuple[str, ...] = ()
    causes: tuple[CauseId, ...] = ()
    min_provenance: Provenance = "claimed"
    lang: Lang | None = None
    since_ns: int | None = None
    """Only versions published at this time (ns since 1970, UTC) or later."""
    verified: bool = False
    """Only versions whose evidence was recomputed and still holds."""
    limit: int = 10
    include_simulated: bool = False
    composed: bool = False
    """The program made ``text`` from findings whose causes ``context`` names: no slips to repair in it, and no cause to guess."""


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """One reason of a hit: the feature, both values, and what it added to the score."""

    feature: str
    text: Text
    contribution: float


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One record found. ``score`` ranks within this answer; ``similarity`` (raw cosine, -1..1, None for a
    text-only answer) is comparable between answers and decides abstention."""

    slug: str
    version: int
    origin: StoreOrigin
    kind: RecordKind
    title: Text
    score: float
    similarity: float | None
    why: tuple[Why, ...]
    provenance: Provenance
    snippet: Text = Text()
    status: str = "published"
    contrasts: tuple[Text, ...] = ()
    """Other cases in which a lever of this one did not help, one sentence each."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """All hits of a query. ``abstained`` when nothing stored is similar enough; the hits are then leads only."""

    hits: tuple[Hit, ...]
    abstained: bool
    notes: tuple[Text, ...] = ()
