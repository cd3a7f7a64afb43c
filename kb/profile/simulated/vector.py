"""Time of a vector kernel: bytes through L2 and device memory, passes over the elements, start-up."""

from __future__ import annotations

import math
from typing import Final

from kb.profile.simulated.chip import Chip
from kb.profile.simulated.constants import Constants, Kinetics
from kb.profile.simulated.graph import Operator
from kb.profile.simulated.kernel import KernelTime
from kb.profile.simulated.residency import Traffic

WIDE: Final = {"INT64": 4.0, "UINT64": 4.0, "DOUBLE": 16.0, "COMPLEX64": 4.0, "COMPLEX128": 32.0}
"""Passes a 64-bit element costs over a 32-bit one: the vector unit has no 64-bit lanes (assumption)."""

OPERANDS_COUNTED: Final = 8
FILTER_AREAS: Final = (9, 25, 49, 121)
"""Areas of the usual convolution kernels but 1 x 1."""


def vector_time(
    operator: Operator, traffic: Traffic, chip: Chip, constants: Constants, *, blocks: int = 0, double_buffer: bool = True
) -> KernelTime:
    """The longer of moving and computing, part of the shorter, and a head that grows with the blocks.

    ``blocks`` is what a measured kernel used (0 = as many as the data is worth). Without double buffering moving and
    computing add up.
    """
    kinetics = constants.kinetics(operator.op_type)
    moved = traffic.read + traffic.written
    blocks = blocks or min(chip.vector_cores, max(1, math.ceil(moved / constants["vector_block_bytes"])))
    share = blocks / math.ceil(blocks / chip.vector_cores) / chip.vector_cores
    cold = sum(traffic.cold)
    l2_rate = chip.vector_l2_rate * share * kinetics.move_share * (constants["short_run_share"] if _short_runs(operator, kinetics) else 1.0)
    far_rate = min(chip.hbm_rate * (constants["write_only_share"] if kinetics.writes_only else 1.0), l2_rate)
    load = (traffic.read - cold) / l2_rate + cold / far_rate
    store = (traffic.written - traffic.spilled) / l2_rate + traffic.spilled / far_rate
    compute = kinetics.passes * _passed_over(operator, gathers=kinetics.gathers) / (chip.vector_pass_rate * share)
    longer, shorter = max(load + store, compute), min(load + store, compute)
    started = min(blocks, chip.vector_cores)
    head = constants["vector_head_ns"] + constants["vector_block_ns"] * (started - 1) + _operand_heads(operator, kinetics, constants)
    meet = kinetics.sync_ns if started > 1 else 0.0
    return KernelTime(
        core="AI_CORE" if chip.fused else "AI_VECTOR_CORE",
        total=longer + (constants["vector_overlap_loss"] if double_buffer else 1.0) * shorter + head + kinetics.head_ns + meet,
        vec=compute,
        vec_mte2=load,
        mte3=store,
        blocks=blocks,
        l2_hit=1.0 - traffic.hbm_bytes / moved if moved else 1.0,
        hbm_read=cold,
        hbm_write=traffic.spilled,
    )


def _operand_heads(operator: Operator, kinetics: Kinetics, constants: Constants) -> float:
    """ns of start-up for the operands (at most ``OPERANDS_COUNTED``), and for 64-bit arithmetic."""
    counted = operator.inputs[:OPERANDS_COUNTED] or operator.outputs[:1]
    plain = sum(1.0 if tensor.elements > 1 else 0.5 for tensor in counted)
    wide = kinetics.kind == "elementwise" and bool(operator.inputs) and operator.inputs[0].dtype in WIDE
    return constants["vector_operand_ns"] * plain + (constants["wide_integer_ns"] if wide else 0.0)


def _short_runs(operator: Operator, kinetics: Kinetics) -> bool:
    """Whether a change of layout moves single filters of a few elements: their area divides the first axis of the block form."""
    if kinetics.kind != "format" or not operator.inputs or len(operator.inputs[0].shape) != 4:
        return False
    first, _, third, last = operator.inputs[0].shape
    blocks = third == 16 and last in (8, 16)
    return any(first % area == 0 for area in FILTER_AREAS) if blocks else 1 < third * last <= max(FILTER_AREAS)


def _passed_over(operator: Operator, *, gathers: bool) -> float:
    """Elements of the largest operand, a wide one counting for several; of a look-up what comes out."""
    looked_at = operator.outputs if gathers else (*operator.inputs[:1], *operator.outputs)
    return max((tensor.elements * WIDE.get(tensor.dtype, 1.0) for tensor in looked_at), default=0.0)
