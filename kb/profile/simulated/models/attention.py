"""Attention over several heads, unfused and fused, as a PyTorch model launches it."""

from __future__ import annotations

from kb.profile.simulated.graph import Tensor
from kb.profile.simulated.models.recording import Recording
from kb.profile.simulated.options import Options


def heads_first(r: Recording, x: Tensor, heads: int) -> Tensor:
    """(batch, tokens, hidden) to (batch, heads, tokens, width): a copy."""
    batch, tokens, hidden = x.shape
    return r.rearrange("Transpose", (batch, heads, tokens, hidden // heads), r.view(x, batch, tokens, heads, hidden // heads))


def heads_last(r: Recording, x: Tensor) -> Tensor:
    """(batch, heads, tokens, width) to (batch, tokens, hidden): a copy."""
    batch, heads, tokens, width = x.shape
    return r.view(r.rearrange("Transpose", (batch, tokens, heads, width), x), batch, tokens, heads * width)


def attend(r: Recording, q: Tensor, k: Tensor, v: Tensor, heads: int, options: Options, mask: Tensor | None = None) -> Tensor:
    """Attention of (batch, tokens, hidden) tensors; the result has the shape of ``q``.

    Unfused: the scale goes into q and k before the product (as PyTorch's own attention does) unless a mask
    makes the model scale the scores. Keys need no copy of their own: the product reads them transposed.
    """
    if options.fused_attention:
        return r.flash_attention(q, k, v, heads, *((mask,) if mask else ()))
    q, k, v = (heads_first(r, x, heads) for x in (q, k, v))
    if mask is None:
        q, k = r.elementwise("Muls", q), r.elementwise("Muls", k)
    batch, _, tokens, width = k.shape
    scores = r.batch_matmul(q, r.view(k, batch, heads, width, tokens))
    return heads_last(r, r.batch_matmul(_probabilities(r, scores, mask, options), v))


def _probabilities(r: Recording, scores: Tensor, mask: Tensor | None, options: Options) -> Tensor:
    if mask is None:
        return r.softmax(scores)
    if options.fused_elementwise:
        return r.softmax(scores, mask, op_type="ScaledMaskedSoftmax")
    return r.softmax(r.elementwise("Add", r.elementwise("RealDiv", scores), mask))
