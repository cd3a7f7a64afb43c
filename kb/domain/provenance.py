"""How far a number can be trusted, and where a session came from."""

from __future__ import annotations

from typing import Final, Literal

Origin = Literal["measured", "simulated"]
StoreOrigin = Literal["library", "workspace", "team"]
"""Which collection a record version was published in."""
Provenance = Literal["claimed", "simulated", "measured", "reproduced"]

# Weakest first. A record's tier may never exceed the ceiling of the sessions that back it.
TIERS: Final[tuple[Provenance, ...]] = ("claimed", "simulated", "measured", "reproduced")
CEILING: Final[dict[Origin, Provenance]] = {"simulated": "simulated", "measured": "reproduced"}


def rank_of(provenance: Provenance) -> int:
    """Position in ``TIERS``: a larger number is stronger evidence."""
    return TIERS.index(provenance)


def capped(provenance: Provenance, origin: Origin) -> Provenance:
    """``provenance`` lowered to what sessions of ``origin`` can support."""
    ceiling = CEILING[origin]
    return provenance if rank_of(provenance) <= rank_of(ceiling) else ceiling


def weakest(*values: Provenance) -> Provenance:
    """The weakest of the given tiers; ``claimed`` for none."""
    return min(values, key=rank_of, default="claimed")
