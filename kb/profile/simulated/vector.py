"""Time of a vector kernel: bytes through L2 and device memory, passes over the elements, start-up."""

from __future__ import annotations

import math

from kb.profile.simulated.chip import Chip
from kb.profile.simulated.constants import Constants
from kb.profile.simulated.graph import VectorOperator
from kb.profile.simulated.kernel import KernelTime
from kb.profile.simulated.residency import Traffic


def vector_time(operator: VectorOperator, traffic: Traffic, chip: Chip, constants: Constants) -> KernelTime:
    """The longer of moving and computing, part of the shorter, and a head that grows with the blocks."""
    kinetics = constants.operators[operator.op_type]
    moved = traffic.read + traffic.written
    blocks = min(chip.vector_cores, max(1, math.ceil(moved / constants["vector_block_bytes"])))
    share = blocks / chip.vector_cores
    cold = sum(traffic.cold)
    l2_rate = chip.vector_l2_rate * share * kinetics.move_share
    load = (traffic.read - cold) / l2_rate + cold / chip.hbm_rate
    store = (traffic.written - traffic.spilled) / l2_rate + traffic.spilled / chip.hbm_rate
    elements = max(tensor.elements for tensor in (*operator.inputs[:1], *operator.outputs))
    compute = elements * kinetics.passes / (chip.vector_pass_rate * share)
    longer, shorter = max(load + store, compute), min(load + store, compute)
    head = constants["vector_head_ns"] + constants["vector_block_ns"] * (blocks - 1)
    return KernelTime(
        core="AI_CORE" if chip.fused else "AI_VECTOR_CORE",
        total=longer + constants["vector_overlap_loss"] * shorter + head,
        vec=compute,
        vec_mte2=load,
        mte3=store,
        blocks=blocks,
        l2_hit=1.0 - traffic.hbm_bytes / moved if moved else 1.0,
        hbm_read=cold,
        hbm_write=traffic.spilled,
    )
