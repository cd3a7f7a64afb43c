"""Device memory of a graph: weights and the largest set of live activations."""

from __future__ import annotations

from kb.errors import KbError
from kb.profile.simulated.graph import Graph, Tensor


class OutOfDeviceMemoryError(KbError):
    """The workload does not fit on the chip; ``need`` and ``capacity`` in B."""

    def __init__(self, need: int, capacity: int, soc: str) -> None:
        super().__init__(
            f"out of device memory: the workload needs {need / 1e9:.1f} GB, {soc} can allocate {capacity / 1e9:.1f} GB",
            allowed=f"up to {capacity / 1e9:.1f} GB on {soc}",
            do="lower the batch or the sequence, use fused attention, or pick a chip with more memory",
        )
        self.need = need
        self.capacity = capacity


def peak_bytes(graph: Graph) -> int:
    """B of weights plus the largest set of activations alive at once (each dies after its last reader)."""
    last_use: dict[int, int] = {}
    for place, operator in enumerate(graph.operators):
        for tensor in (*operator.inputs, *operator.outputs):
            last_use[tensor.id] = place
    live = peak = 0
    born: dict[int, Tensor] = {}
    for place, operator in enumerate(graph.operators):
        for tensor in (*operator.inputs, *operator.outputs):
            if not tensor.weight and tensor.id not in born:
                born[tensor.id] = tensor
                live += tensor.bytes
        peak = max(peak, live)
        for identity in {tensor.id for tensor in (*operator.inputs, *operator.outputs) if not tensor.weight}:
            if last_use[identity] == place:
                live -= born[identity].bytes
    return graph.weight_bytes() + peak
