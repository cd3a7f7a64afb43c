"""Random realistic runs: a model, a chip, settings as people leave them, and up to three planted problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from kb.domain.soc import Soc
from kb.errors import UsageError
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.lengths import Memo, step_lengths
from kb.profile.simulated.memory import OutOfDeviceMemoryError
from kb.profile.simulated.models.names import model
from kb.profile.simulated.options import Options, Setting
from kb.profile.simulated.planting import PLANTS, Scale, plantable
from kb.profile.simulated.setup import Setup

_PHASES: Final = ("prefill", "decode", "train")
FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    "sd3": ("sd3",),
    "sdxl": ("sdxl-unet",),
    "flux": ("flux",),
    "bert": ("bert-base", "bert-large"),
    "resnet": ("resnet50", "resnet50-train"),
    "yolo": ("yolov8n", "yolov8s"),
    "qwen": tuple(f"{name}-{phase}" for name in ("qwen3-0.6b", "qwen2.5-7b", "qwen3-14b", "qwen3-30b-a3b") for phase in _PHASES),
    "llama": tuple(f"{name}-{phase}" for name in ("llama2-7b", "llama2-13b", "llama3-8b") for phase in _PHASES),
    "mixtral": tuple(f"mixtral-8x7b-{phase}" for phase in _PHASES),
}
"""Models that are drawn, by family: those of one family share their architecture. A list of its own, so that a new model of the
simulator leaves the runs of a seed as they are."""
CHIPS: Final[Mapping[str, float]] = {
    "910b1": 0.14, "910b2": 0.16, "910b3": 0.16, "910b4": 0.14, "a2-20c-1650": 0.06, "910c-die": 0.14, "910a": 0.06, "910proa": 0.04,
    "310p3": 0.10,
}  # fmt: skip
"""How often each chip is drawn."""
_HEAVY: Final = ("mixtral", "qwen3-14b", "llama2-13b")
_BATCHES: Final[Mapping[str, tuple[int, ...]]] = {
    "decode": (1, 4, 16, 64, 128), "prefill": (1, 2, 4), "train": (1, 2), "encoder": (1, 2, 8, 32), "cnn": (1, 8, 32, 64),
    "detection": (1, 4, 16), "diffusion": (1, 2),
}  # fmt: skip
_SEQUENCES: Final[Mapping[str, tuple[int, ...]]] = {
    "prefill": (256, 512, 1024, 2048),
    "train": (512, 1024, 2048),
    "encoder": (64, 128, 256, 384),
}
_LAYOUTS: Final[tuple[Mapping[str, int], ...]] = (
    {"tensor_parallel": 2}, {"tensor_parallel": 4}, {"data_parallel": 2}, {"data_parallel": 4}, {"pipeline_parallel": 2},
    {"tensor_parallel": 2, "data_parallel": 2}, {"data_parallel": 2, "expert_parallel": 2},
)  # fmt: skip
_HABITS: Final[Mapping[str, tuple[Setting, ...]]] = {
    "fused_attention": (True, True, False), "fused_elementwise": (True, False), "weight_format_nz": (True, False, False),
    "stream_depth": (2, 8, 64, 1024), "graph_launch": (False, False, False, False, True), "task_queue": (True, False),
    "affinity": (True, False), "overlap_comm": (True, False), "async_copy": (True, False), "pinned": (True, True, False),
    "kv_policy": ("paged", "padded"), "planner": ("first_fit", "best_fit", "pool"), "expandable": (True, False),
    "microbatches": (2, 4), "bucket_mb": (25.0, 100.0), "streams": (1, 1, 1, 2),
}  # fmt: skip
"""Settings as people leave them; equally likely."""
PROBLEMS: Final = (0.15, 0.35, 0.3, 0.2)
"""How likely a run has no, one, two, three planted problems."""
_ATTEMPTS: Final = 60


def family_of(name: str) -> str:
    """The family of a drawn model; any other model is a family of its own."""
    return next((family for family, names in FAMILIES.items() if name in names), name)


def drawn(seed: int, number: int, chips: Mapping[str, Soc]) -> Setup:
    """The random run ``number`` of ``seed``: equal arguments give equal runs. The first draw that fits its chip's memory.

    Raises UsageError when no draw fits.
    """
    for attempt in range(_ATTEMPTS):
        rng = np.random.default_rng([seed, number, attempt])
        memo: Memo = {}
        try:
            setup = _draw(rng, chips, memo)
            step_lengths(msgspec.structs.replace(setup, options=msgspec.structs.replace(setup.options, steps=1)), memo)
        except (OutOfDeviceMemoryError, UsageError):
            continue
        return msgspec.structs.replace(setup, name=f"{setup.model}-{setup.soc.id}-{seed}-{number}")
    raise UsageError(f"no run {number} of seed {seed} fits a chip", do="add a chip with more memory")


def _draw(rng: np.random.Generator, chips: Mapping[str, Soc], memo: Memo) -> Setup:
    name = _model(rng)
    known = [chip for chip in CHIPS if chip in chips]
    weight = np.array([CHIPS[chip] for chip in known])
    soc = chips[str(rng.choice(known, p=weight / weight.sum()))]
    options = _habits(rng, name)
    setup = Setup(model=name, soc=soc, options=options, seed=int(rng.integers(1 << 30)))
    count = int(rng.choice(len(PROBLEMS), p=PROBLEMS))
    if not count:
        return setup
    lengths = step_lengths(msgspec.structs.replace(setup, options=msgspec.structs.replace(options, noise=0.0, steps=1)), memo)
    launch = load_constants()["host_launch_ns"]
    scale = Scale(lengths.step_ns / 1e6, lengths.kernel_ns / max(1, lengths.kernels) / launch)
    pool = plantable(name)
    for cause in rng.choice(pool, size=min(count, len(pool)), replace=False).tolist():
        options = msgspec.structs.replace(options, **_bounded(PLANTS[cause].changes(float(rng.random()), scale)))
    return msgspec.structs.replace(setup, options=options)


def _bounded(changes: Mapping[str, Setting]) -> dict[str, Setting]:
    """Planted layouts of at most two stages and replicas: a job of many ranks costs as many simulations."""
    most = {"data_parallel": 2, "pipeline_parallel": 2, "microbatches": 4}
    return {name: min(value, most[name]) if name in most and isinstance(value, int) else value for name, value in changes.items()}


def _model(rng: np.random.Generator) -> str:
    """Every family equally often; heavy models less often than their lighter siblings."""
    names = FAMILIES[str(rng.choice(list(FAMILIES)))]
    weight = np.array([0.25 if name.startswith(_HEAVY) or name.endswith("-train") else 1.0 for name in names])
    return str(rng.choice(names, p=weight / weight.sum()))


def _habits(rng: np.random.Generator, name: str) -> Options:
    entry = model(name)
    phase = next((phase for phase in ("decode", "prefill", "train") if name.endswith(phase) and entry.type in ("llm", "moe")), entry.type)
    chosen: dict[str, Setting] = {option: _one(rng, values) for option, values in _HABITS.items()}
    chosen["batch"] = _one(rng, _BATCHES[phase])
    chosen["denoise_steps"] = 1
    chosen["steps"] = 4
    if phase in _SEQUENCES:
        chosen["sequence"] = _one(rng, _SEQUENCES[phase])
    if phase == "decode":
        chosen["context"] = _one(rng, (256, 1024, 2048, 4096, 8192))
    if rng.random() < 0.15:
        chosen["precision"] = _one(rng, ("fp32", "bf16", "fp16"))
    fitting = [layout for layout in _LAYOUTS if all(option.removesuffix("_parallel") in entry.dimensions for option in layout)]
    if fitting and rng.random() < 0.4:
        chosen |= fitting[int(rng.integers(len(fitting)))]
    return msgspec.structs.replace(Options(), **chosen)


def _one(rng: np.random.Generator, values: Sequence[Setting]) -> Setting:
    return values[int(rng.integers(len(values)))]
