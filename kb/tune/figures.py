"""What a simulated run achieves: the figures that limits are set on."""

from __future__ import annotations

import msgspec
import numpy as np

from kb.diagnose.operators import load_classes
from kb.diagnose.view import rank_view
from kb.profile.simulated.models.names import MODELS
from kb.profile.simulated.options import Options
from kb.session.session import Array, Session

_RESERVED = "PTA Total Reserved [B]"
_POWER = "Power [W]"


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """One rank's representative step: ``latency_ns``; ``memory_b`` held by the allocator at most on that rank; ``samples``
    of the whole job in a step; ``power_w`` the mean over the steps, None where the session does not sample it.

    ``precision_loss`` is the relative error of the emulated number formats (see ``kb.tune.precision``), a fraction.
    """

    latency_ns: int
    mean_ns: int = 0
    """Mean of the steps that are no warm-up: what throughput follows where steps differ (a loader, a collector)."""
    memory_b: int
    samples: int
    power_w: float | None = None
    precision_loss: float = 0.0

    @property
    def throughput(self) -> float:
        """Samples a second."""
        mean = self.mean_ns or self.latency_ns
        return self.samples / (mean / 1e9) if mean else 0.0

    @property
    def energy_j(self) -> float | None:
        """J of one sample on the profiled rank."""
        return None if self.power_w is None or not self.samples else self.power_w * (self.mean_ns or self.latency_ns) / 1e9 / self.samples


def figures_of(session: Session, options: Options, *, precision_loss: float = 0.0) -> Figures:
    """The figures of a simulated ``session`` that ran with ``options``."""
    power = _counter(session, _POWER)
    held = _counter(session, _RESERVED)
    return Figures(
        latency_ns=rank_view(session, load_classes()).accounting.step_ns,
        mean_ns=_mean_step(session),
        memory_b=int(held.max()) if len(held) else 0,
        samples=samples_of(session, options),
        power_w=float(power.mean()) if len(power) else None,
        precision_loss=precision_loss,
    )


def samples_of(session: Session, options: Options) -> int:
    """Samples of the whole job in one step: replicas have their own, and a model that is split into microbatches runs all
    of them in a training step."""
    entry = MODELS.get(str(session.meta.options.get("model")))
    pipelined = entry is not None and "pipeline" in entry.dimensions and session.meta.model.phase == "training"
    return options.batch * options.data_parallel * (options.microbatches if pipelined else 1)


def _mean_step(session: Session) -> int:
    steps = session.table("steps")
    if steps is None or "end_ns" not in steps:
        return 0
    spans = (steps["end_ns"] - steps["start_ns"])[steps["warmup"] == 0]
    return int(spans.mean()) if len(spans) else 0


def _counter(session: Session, name: str) -> Array:
    """Samples of one counter, float64, shape (n,); empty when it was not captured."""
    table = session.table("counters")
    if table is None or "name" not in table:
        return np.zeros(0)
    return np.asarray(table["value"][table["name"] == session.code(name)], np.float64)
