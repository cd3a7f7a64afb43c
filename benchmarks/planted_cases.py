"""Random runs with known causes, written as Ascend text, read again and diagnosed: the cases of ``diagnosis_quality.py``.

Every case has its own random stream, so that one can be made again alone. The primary cause goes round all plantable ones,
those that often cost too little to count more often; up to two more come along, those that fit few models more often. The model is one
the primary cause fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import numpy as np

from kb.diagnose.diagnosis import diagnose
from kb.diagnose.ruleset import RULES
from kb.diagnose.thresholds import load_thresholds
from kb.domain.catalogue import Catalogue
from kb.domain.diagnosis import Diagnosis
from kb.domain.finding import Finding
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.profile.simulated.degrading import degraded
from kb.profile.simulated.memory import OutOfDeviceMemoryError
from kb.profile.simulated.options import Options, Setting
from kb.profile.simulated.planting import HEALTHY, PLANTS, Planted, Scale, as_captured, cost_ns, plant, plantable
from kb.profile.simulated.run import last_step_ns, simulate_ranks
from kb.session.session import Session, Table

JUDGED: Final = frozenset(cause for entry in RULES for cause in entry.causes)
MODELS: Final = (
    "bert-base", "bert-large", "resnet50", "resnet50-train", "yolov8s", "sd3", "sdxl-unet", "qwen3-0.6b-prefill", "qwen3-0.6b-decode",
    "qwen3-0.6b-train", "qwen3-14b-prefill", "llama3-8b-prefill", "qwen2.5-7b-prefill", "qwen2.5-7b-decode", "llama3-8b-decode",
    "qwen3-30b-a3b-prefill", "qwen3-30b-a3b-decode", "qwen3-30b-a3b-train",
)  # fmt: skip
TIMELESS: Final = frozenset({"memory_fragmentation"})
"""Planted causes that cost memory and no time in the simulator: no share of a step can say whether they are there."""
CHIPS: Final = ("910b1", "910b2", "910b3", "910b4", "910c-die")
LAYOUT: Final = ("data_parallel", "pipeline_parallel", "tensor_parallel", "expert_parallel", "microbatches", "batch", "context")
REAL, FAINT = 0.02, 0.005
CLEAN: Final = 0.15
BASE: Final = msgspec.structs.replace(HEALTHY, steps=3, denoise_steps=1, microbatches=2)
"""A healthy run, kept short: a warm-up step and two more, one denoising step, two microbatches."""
PLANTED: Final = tuple(sorted(cause for cause in JUDGED - TIMELESS if any(cause in plantable(model) for model in MODELS)))
TURNS: Final[Mapping[str, int]] = {
    "l2_pressure": 4,
    "moe_imbalance": 3,
    "synchronization_stall": 3,
    "kv_cache_bandwidth": 2,
    "thermal_throttling": 2,
}
"""More turns as the primary cause for those that often cost too little to count (development seeds)."""
SPLITTING: Final = frozenset(cause for cause in PLANTED if {*PLANTS[cause].changes(0.5, Scale(1.0, 1.0))} & {*LAYOUT[:4]})
"""Causes that bring a parallel layout along: one at most in a case, or the jobs grow to many ranks."""
BATCHES: Final[Mapping[str, int]] = {"decode": 128, "bert-base": 32, "bert-large": 32, "resnet50": 32, "resnet50-train": 32, "yolov8s": 16}
"""By the end of the model's name: enough work a call that a healthy run fills the device."""
LOSSES: Final[Mapping[str, float]] = {
    "whole": 0.6, "no_host": 0.08, "no_planes": 0.08, "no_pipes": 0.08, "level0": 0.08, "lost_kernels": 0.08,
}  # fmt: skip
"""How captures are degraded, with the chance of each."""


@dataclass(frozen=True, slots=True)
class Guess:
    """A finding: its confidence, its share of the step, and the share from which its rule speaks."""

    confidence: float
    share: float
    least: float


@dataclass(frozen=True, slots=True)
class Row:
    """One case. ``effects`` are the planted causes with the share of the step each costs; ``masked`` those that cost nothing
    here but would alone; ``ambient`` the causes the same model and layout shows with nothing planted. Both are looked up where
    a finding depends on them."""

    number: int
    model: str
    soc: str
    loss: str
    effects: Mapping[str, float]
    found: Mapping[str, Guess]
    urgent: tuple[str, ...]
    ambient: tuple[str, ...]
    masked: tuple[str, ...]
    declined: tuple[str, ...]

    def truth(self, cause: str) -> bool | None:
        """Planted and felt; None where it is left out."""
        effect = self.effects.get(cause)
        if cause in self.declined and cause not in self.found:
            return None
        if effect is not None and effect >= FAINT:
            return True if effect >= felt(cause) else None
        return None if cause in self.ambient or cause in self.masked else False


def felt(cause: str) -> float:
    """From which share of the step a planted cause counts: 2 %, or from where the rule calls it a loss at all."""
    return max(REAL, load_thresholds().values.get(f"{cause}_least_share", 0.0))


@dataclass
class Bench:
    """The catalogue, and what each layout shows by itself: found once, asked for often."""

    catalogue: Catalogue
    own: dict[tuple[Any, ...], tuple[str, ...]] = field(default_factory=dict)

    def ambient(self, planted: Planted, base: Options) -> tuple[str, ...]:
        """Causes found with nothing planted but the layout the planted causes brought along."""
        changes = {name: value for change in planted.changes.values() for name, value in change.items() if name in LAYOUT}
        key = (planted.setup.model, planted.setup.soc.id, *sorted(changes.items()))
        if key not in self.own:
            bare = msgspec.structs.replace(planted.setup, options=changed(base, changes))
            sessions = [session for session, _ in simulate_ranks(bare)]
            self.own[key] = tuple(sorted(findings(diagnosed(sessions, self.catalogue))))
        return self.own[key]


@cache
def bench() -> Bench:
    """One a process."""
    return Bench(load_catalogue(library_root()))


def rows(count: int, seed: int, workers: int) -> Iterator[Row]:
    """Every case in order, made by ``workers`` processes."""
    if workers < 2:
        yield from (fitting_case(number, seed) for number in range(count))
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(partial(fitting_case, seed=seed), range(count), chunksize=4)


def fitting_case(number: int, seed: int) -> Row:
    """The first draw whose workload fits the chip's memory."""
    for attempt in range(200):
        try:
            return case(number, np.random.default_rng([seed, number, attempt]))
        except OutOfDeviceMemoryError:
            continue
    raise SystemExit(f"case {number}: no draw fits")


def case(number: int, rng: np.random.Generator) -> Row:
    """Plant, write, read, diagnose."""
    own = bench()
    causes, name = drawn(number, rng)
    chip = str(rng.choice(CHIPS))
    loss = str(rng.choice(list(LOSSES), p=list(LOSSES.values()))) if causes else "whole"
    base = base_of(name)
    planted = plant(name, own.catalogue.soc(chip), int(rng.integers(1 << 30)), causes, base=base)
    effects = {cause: felt_share(planted, planted.setup.options, cause, base) for cause in causes}
    effects = {cause: min(effect, most_share(planted, cause)) for cause, effect in effects.items()}
    judged = diagnosed([poorer(session, loss, number) for session in planted.sessions], own.catalogue)
    found = findings(judged)
    faint = [cause for cause in causes if cause in found and effects[cause] < FAINT]
    ambient = own.ambient(planted, base) if causes and (faint or set(found) - set(causes)) else ()
    masked = tuple(cause for cause in faint if alone(planted, cause, base) >= REAL)
    return Row(number, name, chip, loss, effects, found, urgent(judged), ambient, masked, declined(judged))


def felt_share(planted: Planted, options: Options, cause: str, base: Options) -> float:
    """Share of a step with ``options`` that a planted cause costs. Without noise on both sides: one kernel of a tenth of the
    step would otherwise move the difference more than a small cause does."""
    quiet = msgspec.structs.replace(planted, setup=msgspec.structs.replace(planted.setup, options=changed(options, {"noise": 0.0})))
    step = last_step_ns(quiet.setup)
    return cost_ns(quiet, cause, base=base, step_ns=step) / step


def most_share(planted: Planted, cause: str) -> float:
    """What a division of the work can cost by itself at most. A larger batch also spreads what the host takes, and splitting
    tensors also costs in the kernels: of those a finding about computing, or about collectives, says nothing."""
    steps = [truth.steps[-1] for truth in planted.truths]
    if cause == "low_batch_occupancy":
        return max(step.computing_ns / step.step_ns for step in steps)
    if cause == "comm_volume_excess":
        return max((step.comm_exposed_ns - step.comm_wait_ns) / step.step_ns for step in steps)
    return 1.0


def alone(planted: Planted, cause: str, base: Options) -> float:
    """Share of the step a planted cause would cost without the others, in the layout all of them brought along."""
    layout = {name: value for change in planted.changes.values() for name, value in change.items() if name in LAYOUT}
    return felt_share(planted, changed(base, {**layout, **planted.changes[cause]}), cause, base)


def drawn(number: int, rng: np.random.Generator) -> tuple[list[str], str]:
    """The causes to plant, none for a clean control, and the model."""
    if rng.random() < CLEAN:
        return [], str(rng.choice(MODELS))
    turns = [cause for cause in PLANTED for _ in range(TURNS.get(cause, 1))]
    primary = turns[number % len(turns)]
    name = str(rng.choice([model for model in MODELS if primary in plantable(model)]))
    causes = [primary]
    for _ in range(int(rng.integers(0, 3))):
        others = [cause for cause in plantable(name) if cause in PLANTED and _fits(cause, causes)]
        rare = np.array([1.0 / sum(cause in plantable(model) for model in MODELS) for cause in others])
        causes.append(str(rng.choice(others, p=rare / rare.sum())))
    return causes, name


def _fits(cause: str, chosen: Sequence[str]) -> bool:
    return cause not in chosen and not (cause in SPLITTING and SPLITTING & {*chosen})


def base_of(model: str) -> Options:
    """The healthy setting of a model."""
    return changed(BASE, {"batch": next((batch for end, batch in BATCHES.items() if model.endswith(end)), 1)})


def changed(options: Options, changes: Mapping[str, Setting]) -> Options:
    return msgspec.structs.replace(options, **changes)


def poorer(session: Session, loss: str, seed: int) -> Session:
    """The session as a poorer capture would show it."""
    if loss == "no_pipes":
        kernels = session.tables["kernels"]
        kept = {name: values for name, values in kernels.columns.items() if not name.startswith(("aic_", "aiv_", "cube_"))}
        return replace(session, tables={**session.tables, "kernels": Table("kernels", kept)})
    if loss == "level0":
        return degraded(session, level0=True)
    if loss == "lost_kernels":
        return degraded(session, seed=seed, lost_share=0.01)
    return degraded(session, without={"no_host": ("host_ops", "copies"), "no_planes": ("comm_tasks",)}.get(loss, ()))


def diagnosed(sessions: Sequence[Session], catalogue: Catalogue) -> Diagnosis:
    """Write every rank as an Ascend export, read the folder, diagnose what was read."""
    named = [replace(one, meta=msgspec.structs.replace(one.meta, name=f"rank_{place}_ascend_pt")) for place, one in enumerate(sessions)]
    with TemporaryDirectory() as folder:
        return diagnose(as_captured(named, Path(folder)), catalogue)


def findings(diagnosis: Diagnosis) -> dict[str, Guess]:
    """Cause -> its most confident finding."""
    found: dict[str, Finding] = {}
    for finding in diagnosis.all_findings():
        if finding.cause not in found or finding.confidence > found[finding.cause].confidence:
            found[finding.cause] = finding
    return {cause: Guess(one.confidence, one.share, one.healthy.get("exposed_share", 0.0)) for cause, one in found.items()}


def urgent(diagnosis: Diagnosis) -> tuple[str, ...]:
    return tuple(sorted({finding.cause for finding in diagnosis.all_findings() if finding.priority in ("P0", "P1")}))


def declined(diagnosis: Diagnosis) -> tuple[str, ...]:
    parts = (diagnosis.cluster.not_judged, *(session.not_judged for session in diagnosis.sessions))
    return tuple(sorted({note.cause for notes in parts for note in notes}))
