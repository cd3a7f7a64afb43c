"""Runs with known causes, for tests of the diagnosis: a healthy setting, and what each cause changes in it.

``plant(model, soc, seed, causes)`` returns the sessions of all ranks and what really happened. How strong a cause is
follows from the seed, within a range that is visible but not absurd; ``cost_ns`` says what each really costs.
``as_captured`` writes sessions as Ascend files and reads those, so that a diagnosis sees only what a profiler would show;
``degrading.degraded`` makes poorer captures of them first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec
import numpy as np

from kb.domain.catalogue import CauseId
from kb.domain.soc import Soc
from kb.errors import UsageError
from kb.profile.ascend.writing import write_rank
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.models.names import model as model_entry
from kb.profile.simulated.options import Options, Setting
from kb.profile.simulated.run import last_step_ns, simulate, simulate_ranks
from kb.profile.simulated.setup import Setup
from kb.profile.simulated.truth import Truth
from kb.profile.sources import load
from kb.session.session import Session

HEALTHY: Final = Options(
    fused_attention=True, fused_elementwise=True, stream_depth=1024, task_queue=True, affinity=True, overlap_comm=True, async_copy=True,
    kv_policy="paged", planner="best_fit", expandable=True, steps=4,
)  # fmt: skip
"""A run without any cause worth naming: everything fused, launched ahead, overlapped."""


class Scale(msgspec.Struct, frozen=True):
    """The healthy run a cause is measured against: ms of its step, and its mean kernel over one host launch."""

    step_ms: float
    kernel_over_launch: float


Strength = Callable[[float, Scale], Mapping[str, Setting]]


class Plant(msgspec.Struct, frozen=True):
    """What a cause changes at a strength between 0 and 1. ``needs`` are dimensions the model must be split in, ``models``
    the ends of the model names it fits (none = all)."""

    changes: Strength
    needs: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


class Planted(msgspec.Struct, frozen=True):
    """``sessions`` and ``truths`` by rank; ``causes`` as asked for, ``changes`` the options each of them moved."""

    setup: Setup
    sessions: tuple[Session, ...]
    truths: tuple[Truth, ...]
    causes: tuple[CauseId, ...]
    changes: Mapping[CauseId, Mapping[str, Setting]]

    @property
    def step_ns(self) -> int:
        """The longest last step of all ranks."""
        return max(truth.steps[-1].step_ns for truth in self.truths)


def _between(low: float, high: float, strength: float) -> float:
    return low + (high - low) * strength


def _whole(low: int, high: int, strength: float) -> int:
    return round(_between(low, high, strength))


def _fixed(**settings: Setting) -> Strength:
    return lambda _strength, _scale: settings


def _host(low: float, high: float, **settings: Setting) -> Strength:
    """Launches that take ``low`` to ``high`` times as long as the mean kernel, but never less than before."""
    return lambda strength, scale: {"host_scale": max(1.5, _between(low, high, strength) * scale.kernel_over_launch), **settings}


def _pause(option: str, low: float, high: float, **settings: Setting) -> Strength:
    """A pause of ``low`` to ``high`` healthy steps."""
    return lambda strength, scale: {option: max(0.5, _between(low, high, strength) * scale.step_ms), **settings}


def _graded(option: str, low: float, high: float, **settings: Setting) -> Strength:
    return lambda strength, _scale: {option: _between(low, high, strength), **settings}


def _counted(option: str, low: int, high: int, **settings: Setting) -> Strength:
    return lambda strength, _scale: {option: _whole(low, high, strength), **settings}


_DECODER_TRAINING: Final = ("b-train",)
_ATTENTIVE: Final = ("sd3", "flux", "sdxl-unet", "bert-base", "bert-large", "prefill", *_DECODER_TRAINING)
_MOE: Final = ("a3b-train", "a3b-prefill", "a3b-decode", "8x7b-train", "8x7b-prefill", "8x7b-decode")
_ROW_OPS: Final = "RmsNorm,LayerNormV3,AddLayerNorm,AdaLayerNorm,MaxPoolV3"

_DIVISION: Final = (
    "tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel", "microbatches", "batch", "context",
)  # fmt: skip
_OWN_DIVISION: Final[Mapping[CauseId, tuple[str, ...]]] = MappingProxyType(
    {"comm_volume_excess": ("tensor_parallel",), "low_batch_occupancy": ("batch",)}
)
"""Causes that are a division of the work themselves."""

PLANTS: Final[Mapping[CauseId, Plant]] = MappingProxyType(
    {
        "unfused_attention": Plant(_fixed(fused_attention=False), models=_ATTENTIVE),
        "unfused_elementwise": Plant(_fixed(fused_elementwise=False), models=(*_ATTENTIVE, "yolov8n", "yolov8s")),
        "host_bound_launch": Plant(_host(1.3, 4.0, task_queue=False, affinity=False)),
        "stream_bubbles": Plant(_counted("stream_depth", 1, 1)),
        "aicpu_operator": Plant(_fixed(aicpu_ops=_ROW_OPS)),
        "dataloader_bound": Plant(_pause("loader_ms", 1.3, 2.5, loader_workers=1)),
        "h2d_copy": Plant(_fixed(pinned=False, async_copy=False), models=("resnet50", "resnet50-train", "yolov8n", "yolov8s")),
        "gc_pause": Plant(_pause("gc_ms", 0.1, 0.5)),
        "io_checkpoint": Plant(_pause("checkpoint_ms", 0.2, 1.0)),
        "synchronization_stall": Plant(_counted("host_syncs", 12, 60)),
        "dynamic_shape_recompile": Plant(_counted("dynamic_shapes", 1, 4, jit_compile=True)),
        "excess_cast": Plant(_counted("extra_casts", 2, 1)),
        "format_conversion": Plant(_counted("layout_conversions", 2, 1)),
        "redundant_compute": Plant(_counted("duplicates", 4, 2)),
        "suboptimal_tiling": Plant(_fixed(tile_m=32, tile_n=32)),
        "intra_kernel_stall": Plant(_fixed(double_buffer=False)),
        "l2_pressure": Plant(_fixed(swizzle=1), models=("prefill", "-train")),
        "thermal_throttling": Plant(_graded("cooling", 0.4, 0.28)),
        "memory_fragmentation": Plant(_fixed(planner="pool", expandable=False)),
        "recompute_overhead": Plant(_fixed(recompute="full"), needs=("pipeline",), models=("-train",)),
        "measurement_artifact": Plant(_fixed(capture="level2", with_stack=True)),
        "cpu_affinity": Plant(_host(1.1, 1.8, affinity=False)),
        "cpu_oversubscription": Plant(_host(1.5, 5.0)),
        "kv_cache_bandwidth": Plant(_counted("context", 4096, 8192, kv_policy="padded", batch=4), models=("decode",)),
        "low_batch_occupancy": Plant(_fixed(batch=1, context=128), models=("decode",)),
        "comm_not_overlapped": Plant(
            _graded("bucket_mb", 50.0, 400.0, data_parallel=2, overlap_comm=False), needs=("data",), models=("-train",)
        ),
        "comm_volume_excess": Plant(_counted("tensor_parallel", 2, 2), needs=("tensor",)),
        "slow_link_or_rank": Plant(_graded("slow_rank_share", 0.8, 0.5, data_parallel=4), needs=("data",), models=("-train",)),
        "node_rate_mismatch": Plant(_graded("slow_rank_share", 0.85, 0.65, data_parallel=2), needs=("data",), models=("-train",)),
        "pipeline_imbalance": Plant(
            _counted("stage_shift", 4, 8, pipeline_parallel=2, microbatches=8), needs=("pipeline",), models=("-train",)
        ),
        "microbatch_count": Plant(_counted("microbatches", 2, 4, pipeline_parallel=4), needs=("pipeline",), models=("-train",)),
        "moe_imbalance": Plant(_graded("expert_skew", 0.6, 1.5, data_parallel=2, expert_parallel=2), needs=("expert",), models=_MOE),
    }
)
"""Catalogue causes that can be planted."""


def plantable(model: str) -> tuple[CauseId, ...]:
    """The causes that can be planted in a model."""
    return tuple(cause for cause, entry in PLANTS.items() if _fits(model, entry))


def plant(model: str, soc: Soc, seed: int, causes: Sequence[CauseId], *, base: Options = HEALTHY) -> Planted:
    """A run of ``model`` on ``soc`` that has ``causes`` and, apart from ``base``, no others.

    Later causes win where two move the same option. Equal arguments give equal runs. Raises UsageError for a cause that
    cannot be planted in this model, naming those that can, and what ``simulate_ranks`` raises.
    """
    allowed = plantable(model)
    wrong = [cause for cause in causes if cause not in allowed]
    if wrong:
        raise UsageError(f"{', '.join(wrong)} cannot be planted in {model}", allowed=", ".join(allowed))
    scale = _scale(model, soc, base)
    rng = np.random.default_rng([seed, *model.encode()])
    changes = {cause: PLANTS[cause].changes(float(rng.random()), scale) for cause in causes}
    options = base
    for change in changes.values():
        options = msgspec.structs.replace(options, **change)
    setup = Setup(model=model, soc=soc, options=options, seed=seed, name=f"{model}-{soc.id}-{seed}")
    runs = simulate_ranks(setup)
    truths = tuple(replace(truth, planted=tuple(causes)) for _, truth in runs)
    return Planted(setup, tuple(session for session, _ in runs), truths, tuple(causes), changes)


def as_captured(sessions: Sequence[Session], folder: Path) -> tuple[Session, ...]:
    """The sessions written below ``folder`` as Ascend text exports and read again, without the simulator's options: what
    a profiler would show, and no more. Raises what the writer and the importer raise."""
    for session in sessions:
        bare = msgspec.structs.replace(session.meta, options={})
        write_rank(Session(bare, session.tables, session.strings), folder)
    return load(folder)


def cost_ns(planted: Planted, cause: CauseId, *, base: Options = HEALTHY, step_ns: int | None = None) -> int:
    """What a cause really costs a step: ns less when the same run is made without it and with all the others. ``step_ns``
    is the planted run's own step, where ``planted`` holds no truths.

    Zero or less means that it does not show: others hide it, or it does not matter to this model. A degree of parallelism
    a cause brought along stays, so that only the cause itself is taken away. Where the cause is how the work was divided,
    the same amount of work is compared: as many microbatches, samples or replicas on as many ranks.
    """
    options = planted.setup.options
    undone = {name: getattr(base, name) for name in planted.changes[cause] if name not in _DIVISION}
    undone |= {name: getattr(base, name) for name in _OWN_DIVISION.get(cause, ()) if name in planted.changes[cause]}
    if cause == "microbatch_count":
        undone["microbatches"] = 4 * options.microbatches
    less = msgspec.structs.replace(options, **undone)
    best = last_step_ns(msgspec.structs.replace(planted.setup, options=less))
    return (step_ns or planted.step_ns) - round(best * _work(options) / _work(less))


def _work(options: Options) -> float:
    """Work of a step a rank, in units that only mean something in a ratio."""
    return options.batch * options.microbatches / options.tensor_parallel


def _scale(model: str, soc: Soc, base: Options) -> Scale:
    """Sizes of a run of the base without noise."""
    _, truth = simulate(Setup(model=model, soc=soc, options=msgspec.structs.replace(base, noise=0.0, steps=1)))
    step = truth.steps[0]
    return Scale(step.step_ns / 1e6, step.computing_ns / truth.kernels / load_constants()["host_launch_ns"])


def _fits(model: str, entry: Plant) -> bool:
    dimensions = model_entry(model).dimensions
    return all(need in dimensions for need in entry.needs) and (not entry.models or model.endswith(entry.models))
