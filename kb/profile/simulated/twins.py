"""Which catalogue strategy is which option of the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kb.domain.catalogue import StrategyId
from kb.profile.simulated.options import OptionChange

TWINS: Final[Mapping[StrategyId, OptionChange]] = MappingProxyType(
    {
        "use_fused_attention": OptionChange(option="fused_attention", how="set", value=True),
        "fuse_operators": OptionChange(option="fused_elementwise", how="set", value=True),
        "increase_stream_depth": OptionChange(option="stream_depth", how="scale", value=2),
        "enable_graph_mode": OptionChange(option="graph_launch", how="set", value=True),
        "increase_batch": OptionChange(option="batch", how="scale", value=2),
    }
)
"""Keys are exactly the catalogue's strategies marked ``simulatable``; a test compares both sides."""
