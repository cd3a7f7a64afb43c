"""Every strategy tried on one run: what each really changes, at the cost of its step lengths alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from kb.domain.catalogue import Catalogue, StrategyId
from kb.errors import UsageError
from kb.profile.simulated.lengths import Memo, step_lengths
from kb.profile.simulated.memory import OutOfDeviceMemoryError
from kb.profile.simulated.models.names import model
from kb.profile.simulated.options import Options
from kb.profile.simulated.setup import Setup
from kb.profile.simulated.twins import TWINS

_LAYOUTS: Final[Mapping[str, str]] = {
    "tensor_parallel": "tensor", "pipeline_parallel": "pipeline", "data_parallel": "data", "expert_parallel": "expert",
    "microbatches": "pipeline", "stage_shift": "pipeline",
}  # fmt: skip
"""Options that only models split in a dimension know."""
_INERT: Final[Mapping[str, Callable[[Options], bool]]] = {
    "gc_managed": lambda options: not options.gc_ms,
    "async_checkpoint": lambda options: not options.checkpoint_ms,
    "prefetch": lambda options: not options.loader_ms,
    "loader_workers": lambda options: not options.loader_ms,
    "shape_buckets": lambda options: not options.dynamic_shapes,
    "jit_compile": lambda options: not options.dynamic_shapes,
    "quantized_comm": lambda options: options.world_size == 1,
    "overlap_comm": lambda options: options.data_parallel == 1,
    "bucket_mb": lambda options: options.data_parallel == 1,
    "link_share": lambda options: options.world_size == 1,
    "expert_skew": lambda options: options.expert_parallel == 1,
    "stage_shift": lambda options: options.pipeline_parallel == 1,
    "expandable": lambda _options: True,
    "defragment": lambda _options: True,
    "planner": lambda _options: True,
    "inplace": lambda _options: True,
}
"""Where an option cannot change the length of a step; a test runs them all the same."""


class Trial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One strategy or pair on one run. ``after_ns`` is None where it does not fit the chip's memory.

    ``gain`` is the saved device time of a sample, as a fraction of the time before: 1 - (after step x devices / samples) /
    (before step x devices / samples). It equals the saved part of the step unless the strategy changes the batch or the devices.
    """

    strategies: tuple[StrategyId, ...]
    before_ns: int
    after_ns: int | None
    gain: float | None


def applicable(setup: Setup, catalogue: Catalogue) -> tuple[StrategyId, ...]:
    """The strategies with a twin that would change this run: meant for its phase and chip, possible for its model, not in place yet."""
    return tuple(name for name in meant(setup, catalogue) if not _without_effect(setup, name))


def idle(setup: Setup, catalogue: Catalogue) -> tuple[StrategyId, ...]:
    """The strategies meant for this phase and chip that are in place already, or split what this model cannot be split in."""
    return tuple(name for name in meant(setup, catalogue) if _without_effect(setup, name))


def meant(setup: Setup, catalogue: Catalogue) -> tuple[StrategyId, ...]:
    """The strategies with a twin that the catalogue offers for this phase and chip."""
    phase, family = phase_of(setup), setup.soc.family
    offered = [catalogue.strategies[name] for name in TWINS]
    return tuple(
        item.id for item in offered if (not item.phases or phase in item.phases) and (not item.families or family in item.families)
    )


def _without_effect(setup: Setup, name: StrategyId) -> bool:
    change = TWINS[name]
    dimension = _LAYOUTS.get(change.option)
    return (dimension is not None and dimension not in model(setup.model).dimensions) or change.apply(setup.options) == setup.options


def phase_of(setup: Setup) -> str:
    """The phase a session of this run states."""
    name = setup.model
    if name.endswith("-train"):
        return "training"
    return next((phase for phase in ("prefill", "decode") if name.endswith(f"-{phase}")), "inference")


def trials(setup: Setup, wanted: Iterable[tuple[StrategyId, ...]], memo: Memo) -> Iterator[Trial]:
    """Each of the wanted combinations, applied in order to ``setup``; those that are impossible here are left out."""
    before = step_lengths(setup, memo).step_ns
    for names in wanted:
        options = setup.options
        for name in names:
            options = TWINS[name].apply(options)
        if all(_INERT.get(TWINS[name].option, _never)(setup.options) for name in names):
            yield Trial(strategies=names, before_ns=before, after_ns=before, gain=0.0)
            continue
        try:
            after = step_lengths(msgspec.structs.replace(setup, options=options), memo).step_ns
        except OutOfDeviceMemoryError:
            yield Trial(strategies=names, before_ns=before, after_ns=None, gain=None)
        except UsageError:
            continue
        else:
            yield Trial(
                strategies=names,
                before_ns=before,
                after_ns=after,
                gain=1.0 - after * _cost(setup, options) / (before * _cost(setup, setup.options)),
            )


def _never(_options: Options) -> bool:
    return False


def _cost(setup: Setup, options: Options) -> float:
    """Devices a sample: what a step's length is multiplied by for the device time of one sample."""
    repeated = options.microbatches if "pipeline" in model(setup.model).dimensions else 1
    return options.world_size / (options.batch * options.data_parallel * repeated)
