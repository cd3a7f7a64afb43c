"""How figures are written into messages, the same in both languages."""

from __future__ import annotations


def milliseconds(ns: float) -> str:
    """``42.3 ms``; three decimals below a tenth of a millisecond, so that nothing real prints as zero."""
    value = ns / 1e6
    return f"{value:.1f} ms" if abs(value) >= 0.1 or not value else f"{value:.3f} ms"


def percent(share: float) -> str:
    """A share (0..1) as ``15.7 %``."""
    return f"{share * 100:.1f} %"
