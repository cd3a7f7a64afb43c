"""Whether the output stayed as good: metrics before and after, and the loss that is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from kb.domain.text import Text
from kb.errors import UsageError

_LOWER_IS_BETTER: Final = ("loss", "error", "perplexity", "ppl", "wer", "cer", "fid", "mse", "mae", "rmse")


def judge_quality(
    before: Mapping[str, float], after: Mapping[str, float], max_loss: float
) -> tuple[Literal["kept", "lost"], tuple[Text, ...]]:
    """Compare every metric both sides give; a metric may get worse by ``max_loss`` of its value before (a fraction).

    Names that say loss, error or perplexity are better when lower, all others when higher. Raises UsageError when the
    sides share no metric.
    """
    shared = [name for name in before if name in after]
    if not shared:
        raise UsageError(
            f"no quality metric is on both sides: {', '.join(before) or 'none'} and {', '.join(after) or 'none'}",
            do="give the same metric before and after the change",
        )
    losses = {name: _loss(name, before[name], after[name]) for name in shared}
    worse = {name: loss for name, loss in losses.items() if loss > max_loss}
    texts = tuple(_text(name, before[name], after[name], losses[name], max_loss) for name in shared)
    return ("lost" if worse else "kept"), texts


def _loss(name: str, before: float, after: float) -> float:
    """How much worse, as a fraction of the value before; negative when better."""
    words = name.lower().replace("-", "_").split("_")
    change = after - before if any(word in words for word in _LOWER_IS_BETTER) else before - after
    return change / abs(before) if before else (0.0 if change <= 0 else float("inf"))


def _text(name: str, before: float, after: float, loss: float, max_loss: float) -> Text:
    verdict = ("超过", "above") if loss > max_loss else ("未超过", "within")
    return Text(
        f"质量 {name}：{before:g} → {after:g}，变差 {loss:+.2%}，{verdict[0]}允许的 {max_loss:.2%}",
        f"quality {name}: {before:g} to {after:g}, {loss:+.2%} worse, {verdict[1]} the allowed {max_loss:.2%}",
    )
