"""Times of serving a model under a setting, from the simulator: batches, pipeline stages, tensor ranks."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kb.domain.text import Text
from kb.profile.simulated.collectives import link_rate
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.graph import CubeOperator
from kb.profile.simulated.run import last_step_ns
from kb.profile.simulated.setup import Setup
from kb.tune.adaptive import Setting, Space, Timing
from kb.tune.entries import entry_for, graph_of
from kb.tune.space import Cut, impossible

COPY_B_NS = 20.0
"""B a ns that weights are loaded with when a layout changes: a host link of 20 GB/s (assumption)."""


def times_of(setup: Setup, devices: int) -> Callable[[Setting], Timing | None]:
    """A function from settings to times, each simulated once; None for what cannot run on ``devices``.

    Stages are not built as a graph for inference: a batch passes ``stages`` equal parts of the step and one hand-over of its
    activations between them, which is what a balanced split does.
    """
    known: dict[tuple[int, int], tuple[int, int] | None] = {}

    def times(setting: Setting) -> Timing | None:
        if setting.devices > devices:
            return None
        key = setting.batch, setting.tensor
        if key not in known:
            known[key] = _timed(setup, setting, devices)
        found = known[key]
        if found is None:
            return None
        step, hand_over = found
        if setting.stages == 1:
            return Timing(latency_ns=step, interval_ns=step)
        return Timing(
            latency_ns=step + (setting.stages - 1) * hand_over,
            interval_ns=-(-step // setting.stages) + hand_over,
        )

    return times


def _timed(setup: Setup, setting: Setting, devices: int) -> tuple[int, int] | None:
    """Step and hand-over, ns; None when it cannot run."""
    own = msgspec.structs.replace(
        setup, options=msgspec.structs.replace(setup.options, batch=setting.batch, tensor_parallel=setting.tensor)
    )
    if impossible(own, devices) is not None:
        return None
    return last_step_ns(own), _hand_over_ns(own)


def _hand_over_ns(setup: Setup) -> int:
    """ns that the activations of one batch take to the next stage: those of the middle product, over one link."""
    constants = load_constants()
    products = [operator for operator in graph_of(setup).operators if isinstance(operator, CubeOperator)]
    size = products[len(products) // 2].outputs[0].bytes if products else 0
    return round(constants["collective_start_ns"] + size / link_rate(setup.soc, constants))


def change_ns(setup: Setup) -> int:
    """Pause that a new layout costs: the weights are loaded again."""
    return round(graph_of(setup).weight_bytes() / COPY_B_NS)


def possible(space: Space, setup: Setup) -> tuple[Space, tuple[Cut, ...]]:
    """The space without what model, memory or devices rule out, and what was cut with the reason."""
    cuts: list[Cut] = []

    def left(name: str, option: str, values: tuple[int, ...]) -> tuple[int, ...]:
        kept = []
        for value in values:
            options = msgspec.structs.replace(setup.options, **{option: value})
            reason = impossible(msgspec.structs.replace(setup, options=options), space.devices)
            if reason is None:
                kept.append(value)
            else:
                cuts.append(Cut(knob=name, value=value, reason=reason))
        return tuple(kept)

    batches = left("batch", "batch", space.batches)
    tensors = left("tensor", "tensor_parallel", space.tensors)
    stages = tuple(value for value in space.stages if value <= space.devices)
    cuts += [
        Cut(knob="stages", value=value, reason=Text(f"只有 {space.devices} 个设备", f"only {space.devices} devices are there"))
        for value in space.stages
        if value > space.devices
    ]
    if entry_for(setup).type == "moe":
        cuts += [Cut(knob="stages", value=value, reason=_UNSPLIT) for value in stages if value > 1]
        stages = stages[:1]
    return Space(batches=batches, stages=stages, tensors=tensors, devices=space.devices), tuple(cuts)


_UNSPLIT = Text("专家并行的模型不按级切分", "a model of experts is not cut into stages here")
