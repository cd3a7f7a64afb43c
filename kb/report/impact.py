"""The Tuning Impact Score as a line that says how it came about."""

from __future__ import annotations

from kb.domain.impact import Impact, ImpactPart
from kb.domain.text import Lang
from kb.report.labels import Labels, labels
from kb.report.numbers import percent


def impact_line(impact: Impact, lang: Lang) -> str:
    """Score, parts with their weights, ease, where it comes from."""
    words = labels(lang)
    parts = ", ".join(f"{_part(part, value, words)} x {impact.weights[part]:.2f}" for part, value in impact.benefits.items())
    source = words("impact.sessions") if impact.from_sessions else words("impact.outcomes")
    tier = words(f"provenance.{impact.provenance}")
    return f"{words('impact')}: {impact.score:.0f} / 100 ({tier}; {source}; {parts}; {words('impact.ease')} {impact.ease:.1f})"


def _part(part: ImpactPart, value: float, words: Labels) -> str:
    """A benefit, positive is better. At the lower end of the scale the figure is a limit: the quality at least doubled its cost."""
    shown = f"{words(f'impact.{part}')} {percent(value)}"
    return (
        shown if value > -1.0 else f"{shown}{words.either('（计分下限：恶化一倍或更多）', ' (lowest that counts: at least twice as bad)')}"
    )
