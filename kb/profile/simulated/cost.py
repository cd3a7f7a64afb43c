"""Time of every kernel of a graph, computed once for each shape and residency."""

from __future__ import annotations

from kb.profile.simulated.attention import attention_time
from kb.profile.simulated.chip import Chip
from kb.profile.simulated.constants import Constants
from kb.profile.simulated.cube import cube_time
from kb.profile.simulated.graph import CubeOperator, FlashAttention, Graph, Operator, VectorOperator
from kb.profile.simulated.kernel import KernelTime
from kb.profile.simulated.residency import Traffic, traffic
from kb.profile.simulated.vector import vector_time

Key = tuple[object, ...]


def kernel_times(graph: Graph, chip: Chip, constants: Constants) -> tuple[KernelTime, ...]:
    """One timing a kernel, in launch order. Equal shapes with equal cache state are computed once."""
    known: dict[Key, KernelTime] = {}
    times = []
    for operator, moved in zip(graph.operators, traffic(graph.operators, chip.l2_bytes), strict=True):
        key = signature(operator, moved.cold)
        time = known.get(key)
        if time is None:
            time = known[key] = kernel_time(operator, moved, chip, constants)
        times.append(time)
    return tuple(times)


def kernel_time(operator: Operator, moved: Traffic, chip: Chip, constants: Constants) -> KernelTime:
    """The timing of one kernel."""
    match operator:
        case CubeOperator():
            return cube_time(operator, moved, chip, constants)
        case FlashAttention():
            return attention_time(operator, moved, chip, constants)
        case VectorOperator():
            return vector_time(operator, moved, chip, constants)
    raise TypeError(f"no cost for {type(operator).__name__}")


def signature(operator: Operator, *extra: object) -> Key:
    """What two kernels of equal cost have in common: type, shapes, dtypes, and ``extra``."""
    shapes = tuple((tensor.shape, tensor.dtype) for tensor in (*operator.inputs, *operator.outputs))
    heads = operator.heads if isinstance(operator, FlashAttention) else 0
    return (operator.op_type, heads, shapes, *extra)
