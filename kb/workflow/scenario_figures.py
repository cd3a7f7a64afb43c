"""The simulated counterpart of a claimed figure, where the simulator knows one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from kb.diagnose.operators import load_classes
from kb.diagnose.view import RankView, rank_view
from kb.domain.quantity import Quantity
from kb.session.session import Session
from kb.tune.figures import Figures
from kb.workflow.scenario_data import Scenario

_ATTENTION: Final = ("BatchMatMul", "Softmax", "FlashAttention", "FusedInferAttention", "PagedAttention")
_CONVOLUTION: Final = ("Conv2D",)
_EMBEDDING: Final = ("Gather",)
_PRODUCTS: Final = ("MatMul",)


class Measured:
    """One simulated run, looked at the way the scenario counts."""

    def __init__(self, session: Session, figures: Figures, case: Scenario) -> None:
        """``figures`` belong to ``session``."""
        self.figures, self.case = figures, case
        self.view: RankView = rank_view(session, load_classes())
        self.session = session

    @property
    def step_ns(self) -> int:
        """The representative step."""
        return self.figures.latency_ns

    def busy_ns(self, words: tuple[str, ...], *, but: str = "") -> int:
        """Time of kernels of the step whose type holds one of ``words``."""
        kernels = self.view.kernels
        if kernels is None:
            return 0
        wanted = [
            code for code, text in enumerate(self.session.strings) if any(word in text for word in words) and not (but and but in text)
        ]
        return int(kernels["duration_ns"][np.isin(kernels["op_type"], wanted)].sum())

    def weighted(self, column: str, words: tuple[str, ...] = ()) -> float | None:
        """Mean of a counter over kernel time, of all kernels or those named; None where it was not captured."""
        kernels = self.view.kernels
        if kernels is None or column not in kernels:
            return None
        values, spent = kernels[column], kernels["duration_ns"].astype(np.float64)
        known = ~np.isnan(values)
        if words:
            known &= np.isin(
                kernels["op_type"], [code for code, text in enumerate(self.session.strings) if any(word in text for word in words)]
            )
        return float(np.average(values[known], weights=spent[known])) if known.any() else None

    def kernels(self) -> int:
        """Kernels of a step."""
        return 0 if self.view.kernels is None else len(self.view.kernels)


def simulated_figure(subject: str, metric: str, run: Measured) -> Quantity | None:
    """The figure of the run that a claim speaks about; None when the simulator has none."""
    found = _FIGURES.get((subject, metric))
    return None if found is None else found(run)


def _latency(run: Measured) -> Quantity:
    return Quantity(run.step_ns * run.case.steps_per_request / 1e6, "ms")


def _throughput(run: Measured) -> Quantity:
    return Quantity(run.figures.throughput * run.case.samples_share / run.case.steps_per_request, "/s")


def _jitter(run: Measured) -> Quantity | None:
    """Half the range of the steps that are no warm-up."""
    steps = run.session.table("steps")
    if steps is None:
        return None
    spans = (steps["end_ns"] - steps["start_ns"])[steps["warmup"] == 0]
    return Quantity(float(spans.max() - spans.min()) / 2e6, "ms") if len(spans) > 1 else None


def _share(words: tuple[str, ...]) -> Callable[[Measured], Quantity]:
    return lambda run: Quantity(run.busy_ns(words) / max(1, run.step_ns), "ratio")


def _time(words: tuple[str, ...]) -> Callable[[Measured], Quantity]:
    return lambda run: Quantity(run.busy_ns(words) * run.case.steps_per_request / 1e6, "ms")


def _bubbles(run: Measured) -> Quantity:
    return Quantity(run.view.accounting.share("idle_launch"), "ratio")


def _counter(column: str, unit: str, scale: float = 1.0, words: tuple[str, ...] = ()) -> Callable[[Measured], Quantity | None]:
    def read(run: Measured) -> Quantity | None:
        value = run.weighted(column, words)
        return None if value is None else Quantity(value * scale, unit)

    return read


def _bandwidth(run: Measured) -> Quantity | None:
    kernels = run.view.kernels
    if kernels is None or "hbm_read_bytes" not in kernels:
        return None
    moved = float(np.nansum(kernels["hbm_read_bytes"]) + np.nansum(kernels["hbm_write_bytes"]))
    return Quantity(moved / max(1, run.step_ns), "GB/s")


_FIGURES: Final[Mapping[tuple[str, str], Callable[[Measured], Quantity | None]]] = {
    ("", "latency"): _latency,
    ("", "throughput"): _throughput,
    ("", "memory"): lambda run: Quantity(run.figures.memory_b / 1e9, "GB"),
    ("", "jitter"): _jitter,
    ("attention", "share"): _share(_ATTENTION),
    ("attention", "time"): _time(_ATTENTION),
    ("embedding", "share"): _share(_EMBEDDING),
    ("conv_42", "share"): _share(_CONVOLUTION),
    ("matmul", "time"): _time(_PRODUCTS),
    ("bubbles", "share"): _bubbles,
    ("launch", "overhead"): lambda run: Quantity(float(run.kernels()), "count"),
    ("", "bandwidth"): _bandwidth,
    ("", "hit_rate"): _counter("l2_hit_ratio", "ratio"),
    ("conv_42", "utilization"): _counter("cube_utilization", "ratio", words=_CONVOLUTION),
}
"""``launch overhead`` counts launches; ``conv_42`` stands for all convolutions, since no such layer exists by that name."""
