"""Stable Diffusion 3 medium: the MMDiT denoiser, two streams of tokens joined in attention.

24 blocks, 24 heads of 64, patches of 2 x 2 on a 16-channel latent an eighth of the image's edge, so 1024 x 1024
pixels give 4,096 image tokens beside 154 text tokens (figures of the published configuration).
"""

from __future__ import annotations

import math

from kb.errors import UsageError
from kb.profile.simulated.graph import Tensor, Workload
from kb.profile.simulated.layout import Seat
from kb.profile.simulated.models.attention import attend
from kb.profile.simulated.models.precision import recording
from kb.profile.simulated.models.recording import Recording
from kb.profile.simulated.options import Options

LAYERS = 24
HEADS = 24
HIDDEN = 24 * 64
IMAGE_TOKENS = 4096
TEXT_TOKENS = 154
LATENT_CHANNELS = 16
PATCH = 2
TEXT_WIDTH = 4096
POOLED_WIDTH = 2048
TIME_WIDTH = 256
FORWARDS = 2
"""Classifier-free guidance: one forward with the prompt, one without."""


def sd3(options: Options, _seat: Seat) -> Workload:
    """``options.denoise_steps`` denoising steps of ``options.batch`` images of ``options.sequence`` image tokens."""
    tokens = options.sequence or IMAGE_TOKENS
    side = math.isqrt(tokens)
    if side * side != tokens:
        raise UsageError(f"{tokens} image tokens are not a square image", allowed="a square number, for example 1024, 4096, 9216")
    r = recording(options, "FLOAT16")
    latent = r.tensor(options.batch, LATENT_CHANNELS, side * PATCH, side * PATCH)
    predictions = [_forward(r, latent, options) for _ in range(FORWARDS)]
    _guided_step(r, latent, predictions[0], predictions[1])
    return Workload(r.graph(), repeats=options.denoise_steps, host_work=True, left_out=("text encoders", "VAE decoder"))


def _forward(r: Recording, latent: Tensor, options: Options) -> Tensor:
    r.reuse_weights()
    batch = options.batch
    image = _patches(r, latent)
    text = r.linear(r.tensor(batch, TEXT_TOKENS, TEXT_WIDTH), HIDDEN)
    condition = _condition(r, batch)
    for layer in range(LAYERS):
        image, text = _block(r, image, text, condition, options, last=layer == LAYERS - 1)
    shift, scale = _modulations(r, condition, 2)
    out = r.linear(_modulated_norm(r, image, shift, scale, options), PATCH * PATCH * LATENT_CHANNELS)
    return r.rearrange("Transpose", latent.shape, out)


def _patches(r: Recording, latent: Tensor) -> Tensor:
    patched = r.patch_convolution(latent, HIDDEN, PATCH)
    batch, _, height, width = patched.shape
    tokens = r.rearrange("Transpose", (batch, height * width, HIDDEN), r.view(patched, batch, HIDDEN, height * width))
    return r.elementwise("Add", tokens, r.tensor(1, height * width, HIDDEN, weight=True))


def _condition(r: Recording, batch: int) -> Tensor:
    time = r.linear(r.elementwise("Swish", r.linear(r.tensor(batch, TIME_WIDTH), HIDDEN)), HIDDEN)
    pooled = r.linear(r.elementwise("Swish", r.linear(r.tensor(batch, POOLED_WIDTH), HIDDEN)), HIDDEN)
    return r.elementwise("Swish", r.elementwise("Add", time, pooled))


def _modulations(r: Recording, condition: Tensor, count: int) -> tuple[Tensor, ...]:
    """``count`` vectors of one projection; slicing them off is a view."""
    whole = r.linear(condition, count * HIDDEN)
    return tuple(r.view(whole, condition.shape[0], 1, HIDDEN) for _ in range(count))


def _block(r: Recording, image: Tensor, text: Tensor, condition: Tensor, options: Options, *, last: bool) -> tuple[Tensor, Tensor]:
    image_mod = _modulations(r, condition, 6)
    text_mod = _modulations(r, condition, 2 if last else 6)
    image_in = _modulated_norm(r, image, image_mod[0], image_mod[1], options)
    text_in = _modulated_norm(r, text, text_mod[0], text_mod[1], options)
    joined = [_joined(r, image_in, text_in) for _ in range(3)]
    attended = attend(r, joined[0], joined[1], joined[2], HEADS, options)
    image = _gated(r, image, r.linear(r.rearrange("Slice", image.shape, attended), HIDDEN), image_mod[2], options)
    image = _feed_forward(r, image, image_mod, options)
    if last:
        return image, text
    text = _gated(r, text, r.linear(r.rearrange("Slice", text.shape, attended), HIDDEN), text_mod[2], options)
    return image, _feed_forward(r, text, text_mod, options)


def _joined(r: Recording, image: Tensor, text: Tensor) -> Tensor:
    """One of queries, keys or values of both streams in one sequence."""
    batch, tokens, _ = image.shape
    return r.rearrange("ConcatD", (batch, tokens + text.shape[1], HIDDEN), r.linear(image, HIDDEN), r.linear(text, HIDDEN))


def _modulated_norm(r: Recording, x: Tensor, shift: Tensor, scale: Tensor, options: Options) -> Tensor:
    if options.fused_elementwise:
        return r.layer_norm(x, scale, shift, op_type="AdaLayerNorm")
    scaled = r.elementwise("Mul", r.layer_norm(x), r.elementwise("Add", scale))
    return r.elementwise("Add", scaled, shift)


def _gated(r: Recording, x: Tensor, update: Tensor, gate: Tensor, options: Options) -> Tensor:
    if options.fused_elementwise:
        return r.elementwise("Addcmul", x, update, gate)
    return r.elementwise("Add", x, r.elementwise("Mul", update, gate))


def _feed_forward(r: Recording, x: Tensor, modulation: tuple[Tensor, ...], options: Options) -> Tensor:
    inner = r.linear(_modulated_norm(r, x, modulation[3], modulation[4], options), 4 * HIDDEN)
    return _gated(r, x, r.linear(r.elementwise("Gelu", inner), HIDDEN), modulation[5], options)


def _guided_step(r: Recording, latent: Tensor, conditional: Tensor, unconditional: Tensor) -> None:
    """unconditional + guidance x (conditional - unconditional), then the Euler step."""
    guided = r.elementwise("Add", unconditional, r.elementwise("Muls", r.elementwise("Sub", conditional, unconditional)))
    r.elementwise("Add", latent, r.elementwise("Muls", guided))
