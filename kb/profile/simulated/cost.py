"""Time of every kernel of a graph, computed once for each shape and residency."""

from __future__ import annotations

from collections.abc import Callable

from kb.profile.simulated.attention import attention_time
from kb.profile.simulated.chip import Chip
from kb.profile.simulated.constants import Constants
from kb.profile.simulated.cube import cube_time
from kb.profile.simulated.graph import Collective, CubeOperator, FlashAttention, Graph, Operator, VectorOperator
from kb.profile.simulated.kernel import KernelTime
from kb.profile.simulated.residency import Traffic, traffic
from kb.profile.simulated.tiling import DEFAULT, Tiling
from kb.profile.simulated.vector import vector_time

Key = tuple[object, ...]
Transfer = Callable[[Collective], float]


def kernel_times(
    graph: Graph,
    chip: Chip,
    constants: Constants,
    *,
    tiling: Tiling = DEFAULT,
    aicpu: frozenset[str] = frozenset(),
    transfer: Transfer | None = None,
) -> tuple[KernelTime, ...]:
    """One timing an operator, in launch order. Equal shapes with equal cache state are computed once.

    Types in ``aicpu`` run on the AI CPU; ``transfer`` gives the ns of a collective (0 without it).
    """
    known: dict[Key, KernelTime] = {}
    times = []
    for operator, moved in zip(graph.operators, traffic(graph.operators, chip.l2_bytes), strict=True):
        key = signature(operator, moved.cold)
        time = known.get(key)
        if time is None and isinstance(operator, Collective):
            time = communication(transfer(operator) if transfer else 0.0)
        elif time is None and operator.op_type in aicpu:
            time = known[key] = on_aicpu(moved, chip, constants)
        elif time is None:
            time = known[key] = kernel_time(operator, moved, chip, constants, tiling=tiling)
        times.append(time)
    return tuple(times)


def communication(ns: float) -> KernelTime:
    """A call that takes so long from the last arrival on."""
    return KernelTime(core="COMMUNICATION", total=ns, blocks=0, l2_hit=1.0, hbm_read=0.0, hbm_write=0.0)


def on_aicpu(moved: Traffic, chip: Chip, constants: Constants) -> KernelTime:
    """A kernel of the AI CPU: a long start and a few bytes a ns, all through device memory."""
    size = moved.read + moved.written
    total = constants["aicpu_head_ns"] + size / min(constants["aicpu_rate"], chip.hbm_rate)
    return KernelTime(core="AI_CPU", total=total, blocks=1, l2_hit=0.0, hbm_read=float(moved.read), hbm_write=float(moved.written))


def kernel_time(
    operator: Operator, moved: Traffic, chip: Chip, constants: Constants, *, blocks: int = 0, tiling: Tiling = DEFAULT
) -> KernelTime:
    """The timing of one kernel; ``blocks`` as measured, 0 = the model's own choice."""
    match operator:
        case CubeOperator():
            return cube_time(operator, moved, chip, constants, blocks=blocks, tiling=tiling)
        case FlashAttention():
            return attention_time(operator, moved, chip, constants)
        case VectorOperator():
            return vector_time(operator, moved, chip, constants, blocks=blocks, double_buffer=tiling.double_buffer)
    raise TypeError(f"no cost for {type(operator).__name__}")


def signature(operator: Operator, *extra: object) -> Key:
    """What two kernels of equal cost have in common: type, shapes, dtypes, and ``extra``."""
    shapes = tuple((tensor.shape, tensor.dtype) for tensor in (*operator.inputs, *operator.outputs))
    own: Key = ()
    if isinstance(operator, Collective):
        own = (operator.action, operator.dimension, operator.tag)
    elif isinstance(operator, FlashAttention):
        own = (operator.heads, operator.causal, operator.backward, operator.dropped)
    elif isinstance(operator, CubeOperator):
        own = (operator.m, operator.k, operator.n, operator.batch, operator.transposed, operator.fractal)
    return (operator.op_type, own, shapes, *extra)
