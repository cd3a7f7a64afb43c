"""Time of communication: a start-up and bytes over the links of a full mesh, and between boxes over the network."""

from __future__ import annotations

import math
from typing import Final

from kb.domain.quantity import Quantity
from kb.domain.soc import Soc
from kb.profile.simulated.constants import Constants
from kb.profile.simulated.graph import Collective

CARDS: Final = 8
"""Cards of one box, all linked with each other."""
SHARES: Final = {"allReduce": 2.0, "allGather": 1.0, "reduceScatter": 1.0, "alltoall": 1.0, "broadcast": 1.0, "send": 1.0, "receive": 1.0}
"""Times the payload crosses the links: out and back for a reduction that everybody gets."""


def link_rate(soc: Soc, constants: Constants) -> float:
    """B/ns of one link between two cards; boxes without a mesh share one bus."""
    if soc.link_bandwidth is None:
        return constants["bus_rate"] * constants["link_efficiency"] / (CARDS - 1)
    return Quantity(soc.link_bandwidth.value, soc.link_bandwidth.unit).to("GB/s") * constants["link_efficiency"] / (CARDS - 1)


def transfer_ns(call: Collective, members: int, soc: Soc, constants: Constants, *, link_share: float = 1.0) -> float:
    """ns from the last arrival to the end, for ``members`` ranks.

    In a mesh of n cards a payload of S B takes S x share / (n x link): every pair moves its n-th part at once. Beyond one
    box the n-th part of the payload crosses the network as well. ``link_share`` slows the worst link.
    """
    payload = float(sum(tensor.bytes for tensor in call.inputs))
    share = SHARES[call.action]
    start = constants["collective_start_ns"]
    rate = link_rate(soc, constants) * link_share
    if call.action in ("send", "receive"):
        return start + payload / rate
    if members == 1:
        return 0.0
    inside = min(members, CARDS)
    time = start + payload * share / (inside * rate)
    boxes = math.ceil(members / CARDS)
    if boxes > 1:
        time += payload * share * (boxes - 1) / boxes / inside / (constants["network_rate"] * constants["link_efficiency"] * link_share)
    return time
