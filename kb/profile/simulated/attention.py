"""Time of flash attention: FP32 scores leave the cube cores, the vector cores pass over them, tiles come in waves."""

from __future__ import annotations

import math

from kb.profile.simulated.chip import Chip
from kb.profile.simulated.constants import Constants
from kb.profile.simulated.cube import ACCUMULATOR_BYTES
from kb.profile.simulated.graph import ELEMENT_BYTES, FlashAttention, padded
from kb.profile.simulated.kernel import KernelTime
from kb.profile.simulated.residency import Traffic


def attention_time(operator: FlashAttention, traffic: Traffic, chip: Chip, constants: Constants) -> KernelTime:
    """Slowest of four streams that overlap: cube, scores out of the cube, vector passes, loads.

    Scores stay in L2, so device memory sees only queries, keys, values and the output. Every tile of
    queries sweeps the keys it may see. Gradients do the work ``attention_backward`` times over.
    """
    rows = min(int(constants["attention_query_tile"]), padded(operator.queries))
    tiles = operator.heads * math.ceil(operator.queries / rows)
    waves = math.ceil(tiles / chip.cube_cores)
    blocks = min(tiles, chip.cube_cores)
    seen = min(1.0, 0.5 * constants["attention_causal_waste"] * (1.0 + rows / max(rows, operator.keys))) if operator.causal else 1.0
    scores = waves * rows * float(padded(operator.keys)) * seen
    products = 2.5 if operator.backward else 1.0
    again = constants["attention_backward"] if operator.backward else 1.0
    mac = 4.0 * scores * padded(operator.width) / chip.mac_rate * constants["mac_overhead"] * products
    partial = ACCUMULATOR_BYTES * operator.width / constants["attention_key_tile"]
    drain = scores * (ACCUMULATOR_BYTES + partial) / chip.core_rate_attention_fixpipe * again
    passes = scores * constants["attention_passes"] * chip.cube_cores / chip.vector_pass_rate * again
    if operator.dropped:
        passes *= constants["attention_dropped"]
    width = ELEMENT_BYTES[operator.inputs[0].dtype]
    load = scores * width * (1.0 + 2.0 * operator.width / rows) / chip.core_rate_feed * again
    memory = traffic.hbm_bytes / chip.hbm_rate
    swept = traffic.read + traffic.written + operator.heads * operator.queries * float(operator.keys) * (ACCUMULATOR_BYTES + width)
    return KernelTime(
        core="AI_CORE" if chip.fused else "MIX_AIC",
        total=max(mac, drain, passes, load, memory) + constants["attention_head_ns"] * chip.head_scale,
        blocks=blocks,
        mix_blocks=0 if chip.fused else blocks * chip.vector_cores // chip.cube_cores,
        mac=operator.flop / (blocks * chip.mac_rate) * constants["mac_overhead"],
        mte1=mac * constants["mte1_per_mac"],
        mte2=load,
        fixpipe=drain,
        vec=passes,
        l2_hit=1.0 - traffic.hbm_bytes / swept,
        hbm_read=sum(traffic.cold),
        hbm_write=traffic.spilled,
    )
