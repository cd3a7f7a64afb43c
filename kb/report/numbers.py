"""Numbers with their unit, short enough to read."""

from __future__ import annotations


def duration(nanoseconds: float) -> str:
    """``231.3 ms``, ``48.7 us`` or ``1.52 s``: three to four significant digits, the unit always there."""
    size = abs(nanoseconds)
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if size >= factor:
            return f"{_digits(nanoseconds / factor)} {unit}"
    return f"{nanoseconds:.0f} ns"


def amount(size: float) -> str:
    """``1.29 GB`` of a number of bytes; decimal prefixes, as in profiler files."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(size) >= factor:
            return f"{_digits(size / factor)} {unit}"
    return f"{size:.0f} B"


def rate(value: float) -> str:
    """A number a second with three to four significant digits, without its unit."""
    return f"{value:.4g}" if value < 1000 else f"{value:,.0f}"


def percent(fraction: float) -> str:
    """``41.4 %`` of a 0..1 fraction."""
    return f"{100 * fraction:.1f} %"


def signed_percent(fraction: float) -> str:
    """``+12.3 %`` or ``-4.0 %``."""
    return f"{100 * fraction:+.1f} %"


def _digits(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
