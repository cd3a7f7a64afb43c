"""More image generators: the UNet of Stable Diffusion XL and FLUX.1, by their published configurations."""

from __future__ import annotations

import math
from typing import Final

from kb.errors import UsageError
from kb.profile.simulated.graph import Tensor, Workload
from kb.profile.simulated.layout import Seat
from kb.profile.simulated.models.attention import attend
from kb.profile.simulated.models.precision import recording
from kb.profile.simulated.models.recording import Recording
from kb.profile.simulated.options import Options

SDXL_WIDTHS: Final = (320, 640, 1280)
SDXL_DEPTHS: Final = (0, 2, 10)
"""Transformer blocks beside each residual block of a level."""
SDXL_TEXT: Final = (77, 2048)
SDXL_HEAD: Final = 64
SDXL_LATENT: Final = 128
FLUX_WIDTH: Final = 3072
FLUX_HEADS: Final = 24
FLUX_BLOCKS: Final = (19, 38)
"""Blocks of two streams, then blocks of one."""
FLUX_TEXT: Final = 512
FLUX_IMAGE: Final = 4096


def sdxl(options: Options, _seat: Seat) -> Workload:
    """``options.denoise_steps`` of the base UNet at 1024 x 1024 pixels, with and without the prompt in one batch."""
    r = recording(options, "FLOAT16")
    side = math.isqrt(options.sequence) if options.sequence else SDXL_LATENT
    latent = r.tensor(2 * options.batch, 4, side, side)
    text = r.tensor(2 * options.batch, *SDXL_TEXT)
    _Unet(r, options, text).run(latent)
    r.elementwise("Add", latent, r.elementwise("Muls", r.elementwise("Sub", latent, latent)))
    return Workload(r.graph(), options.denoise_steps, host_work=True, left_out=("text encoders", "VAE decoder"))


def flux(options: Options, _seat: Seat) -> Workload:
    """``options.denoise_steps`` of FLUX.1-dev with ``options.sequence`` image tokens."""
    r = recording(options, "DT_BF16")
    tokens = options.sequence or FLUX_IMAGE
    image = r.linear(r.tensor(options.batch, tokens, 64), FLUX_WIDTH)
    text = r.linear(r.tensor(options.batch, FLUX_TEXT, 4096), FLUX_WIDTH)
    condition = r.elementwise("Swish", r.linear(r.tensor(options.batch, 256), FLUX_WIDTH))
    for _ in range(FLUX_BLOCKS[0]):
        image, text = _double(r, image, text, condition, options)
    joined = r.rearrange("ConcatD", (options.batch, tokens + FLUX_TEXT, FLUX_WIDTH), text, image)
    for _ in range(FLUX_BLOCKS[1]):
        joined = _single(r, joined, condition, options)
    r.linear(r.rearrange("Slice", (options.batch, tokens, FLUX_WIDTH), joined), 64)
    return Workload(r.graph(), options.denoise_steps, host_work=True, left_out=("text encoders", "VAE decoder"))


def _double(r: Recording, image: Tensor, text: Tensor, condition: Tensor, options: Options) -> tuple[Tensor, Tensor]:
    for _ in range(2):
        r.linear(condition, 6 * FLUX_WIDTH)
    streams = [_modulated(r, stream, options) for stream in (image, text)]
    batch, tokens, _ = image.shape
    whole = (batch, tokens + text.shape[1], FLUX_WIDTH)
    q, k, v = (r.rearrange("ConcatD", whole, *(r.linear(stream, FLUX_WIDTH) for stream in streams)) for _ in range(3))
    mixed = attend(r, _headed_norm(r, q), _headed_norm(r, k), v, FLUX_HEADS, options)
    results = []
    for stream in (image, text):
        update = r.linear(r.rearrange("Slice", stream.shape, mixed), FLUX_WIDTH)
        stream = _gated(r, stream, update, condition, options)
        inner = r.elementwise("Gelu", r.linear(_modulated(r, stream, options), 4 * FLUX_WIDTH))
        results.append(_gated(r, stream, r.linear(inner, FLUX_WIDTH), condition, options))
    return results[0], results[1]


def _single(r: Recording, x: Tensor, condition: Tensor, options: Options) -> Tensor:
    r.linear(condition, 3 * FLUX_WIDTH)
    normed = _modulated(r, x, options)
    whole = r.linear(normed, 7 * FLUX_WIDTH)
    q, k, v = (r.rearrange("Slice", x.shape, whole) for _ in range(3))
    mixed = attend(r, _headed_norm(r, q), _headed_norm(r, k), v, FLUX_HEADS, options)
    inner = r.elementwise("Gelu", r.rearrange("Slice", (*x.shape[:-1], 4 * FLUX_WIDTH), whole))
    joined = r.rearrange("ConcatD", (*x.shape[:-1], 5 * FLUX_WIDTH), mixed, inner)
    return _gated(r, x, r.linear(joined, FLUX_WIDTH), condition, options)


def _headed_norm(r: Recording, x: Tensor) -> Tensor:
    batch, tokens, hidden = x.shape
    heads = r.view(x, batch, tokens, FLUX_HEADS, hidden // FLUX_HEADS)
    return r.view(r.layer_norm(heads, op_type="RmsNorm"), batch, tokens, hidden)


def _modulated(r: Recording, x: Tensor, options: Options) -> Tensor:
    if options.fused_elementwise:
        return r.layer_norm(x, op_type="AdaLayerNorm")
    return r.elementwise("Add", r.elementwise("Mul", r.layer_norm(x)))


def _gated(r: Recording, x: Tensor, update: Tensor, gate: Tensor, options: Options) -> Tensor:
    if options.fused_elementwise:
        return r.elementwise("Addcmul", x, update, gate)
    return r.elementwise("Add", x, r.elementwise("Mul", update, gate))


class _Unet:
    """Levels of residual and transformer blocks, down and up again with skips."""

    def __init__(self, r: Recording, options: Options, text: Tensor) -> None:
        self._r, self._options, self._text = r, options, text

    def run(self, latent: Tensor) -> Tensor:
        """The noise a latent holds."""
        r = self._r
        if latent.shape[2] % 4:
            raise UsageError(
                f"a latent of {latent.shape[2]} cannot be halved twice", allowed="a multiple of 4 as the edge, for example 128"
            )
        x = r.convolution(latent, SDXL_WIDTHS[0], 3)
        skips = [x]
        for level, width in enumerate(SDXL_WIDTHS):
            for _ in range(2):
                x = self._transformed(self._residual(x, width), SDXL_DEPTHS[level])
                skips.append(x)
            if level < 2:
                x = r.convolution(x, width, 3, 2)
                skips.append(x)
        x = self._residual(self._transformed(self._residual(x, SDXL_WIDTHS[2]), SDXL_DEPTHS[2]), SDXL_WIDTHS[2])
        for level in (2, 1, 0):
            for _ in range(3):
                skip = skips.pop()
                batch, _, height, columns = x.shape
                joined = r.rearrange("ConcatD", (batch, x.shape[1] + skip.shape[1], height, columns), x, skip)
                x = self._transformed(self._residual(joined, SDXL_WIDTHS[level]), SDXL_DEPTHS[level])
            if level:
                batch, channels, height, columns = x.shape
                x = r.convolution(r.rearrange("ResizeNearestNeighborV2", (batch, channels, 2 * height, 2 * columns), x), channels, 3)
        return r.convolution(self._normed(x), 4, 3)

    def _normed(self, x: Tensor) -> Tensor:
        return self._r.elementwise("Swish", self._r.layer_norm(x, op_type="GroupNorm"))

    def _residual(self, x: Tensor, width: int) -> Tensor:
        r = self._r
        y = r.convolution(self._normed(x), width, 3)
        y = r.elementwise("Add", y, r.linear(r.tensor(y.shape[0], 1280), width))
        y = r.convolution(self._normed(y), width, 3)
        return r.elementwise("Add", y, x if x.shape == y.shape else r.convolution(x, width, 1))

    def _transformed(self, x: Tensor, depth: int) -> Tensor:
        if not depth:
            return x
        r, (batch, width, height, columns) = self._r, x.shape
        tokens = (batch, height * columns, width)
        y = r.linear(r.rearrange("Transpose", tokens, r.layer_norm(x, op_type="GroupNorm")), width)
        for _ in range(depth):
            y = self._block(y, width)
        return r.elementwise("Add", x, r.rearrange("Transpose", x.shape, r.linear(y, width)))

    def _block(self, x: Tensor, width: int) -> Tensor:
        r, options = self._r, self._options
        for source in (None, self._text):
            normed = r.layer_norm(x)
            other = source or normed
            q, k, v = r.linear(normed, width, bias=False), r.linear(other, width, bias=False), r.linear(other, width, bias=False)
            x = r.elementwise("Add", x, r.linear(attend(r, q, k, v, width // SDXL_HEAD, options), width))
        inner = r.linear(r.layer_norm(x), 8 * width)
        half = (*x.shape[:-1], 4 * width)
        if options.fused_elementwise:
            gated = r.vector("GeGluV2", r.tensor(*half), inner)
        else:
            gate, up = (r.rearrange("Slice", half, inner) for _ in range(2))
            gated = r.elementwise("Mul", r.elementwise("Gelu", gate), up)
        return r.elementwise("Add", x, r.linear(gated, width))
