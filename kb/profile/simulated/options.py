"""What a simulated run can vary, as typed values, and a change to it."""

from __future__ import annotations

from typing import Literal

import msgspec

from kb.errors import UsageError

Setting = int | float | bool | None


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a run; each one moves the physics.

    ``fused_attention``: scores stay on chip (one FlashAttentionScore for MatMul, Softmax, MatMul).
    ``fused_elementwise``: chains of elementwise kernels, and those beside a normalisation, become one kernel.
    ``stream_depth``: how many launched kernels may be unfinished before the host blocks.
    ``graph_launch``: one host launch submits a whole segment. ``sequence``: tokens (BERT) or image tokens (SD3);
    None = the model's own. ``denoise_steps``: denoising steps of one image (diffusion only).
    ``steps``: steps in the profile, the first a warm-up. ``noise``: 1 = the spread measured on hardware, 0 = none.
    """

    fused_attention: bool = False
    fused_elementwise: bool = False
    stream_depth: int = 2
    graph_launch: bool = False
    batch: int = 1
    sequence: int | None = None
    denoise_steps: int = 4
    steps: int = 5
    noise: float = 1.0


def checked(options: Options) -> Options:
    """``options`` itself. Raises UsageError for a count below one or negative noise."""
    counts = {name: getattr(options, name) for name in ("stream_depth", "batch", "denoise_steps", "steps")}
    if options.sequence is not None:
        counts["sequence"] = options.sequence
    wrong = [f"{name} = {value}" for name, value in counts.items() if value < 1]
    if wrong or not options.noise >= 0:
        raise UsageError(
            f"impossible options: {', '.join(wrong) or f'noise = {options.noise}'}",
            allowed="whole numbers from 1 for counts, noise from 0 up",
        )
    return options


class OptionChange(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy's twin: one option ``set`` to ``value`` or multiplied by it (``scale``)."""

    option: str
    how: Literal["set", "scale"]
    value: int | bool

    def apply(self, options: Options) -> Options:
        """The changed options; equal to ``options`` when the change is already in place."""
        before = getattr(options, self.option)
        return msgspec.structs.replace(options, **{self.option: before * self.value if self.how == "scale" else self.value})
