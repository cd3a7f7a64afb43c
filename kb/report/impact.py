"""The Tuning Impact Score as a line that says how it came about."""

from __future__ import annotations

from kb.domain.impact import Impact
from kb.domain.text import Lang
from kb.report.labels import labels
from kb.report.numbers import percent


def impact_line(impact: Impact, lang: Lang) -> str:
    """Score, parts with their weights, ease, where it comes from."""
    words = labels(lang)
    parts = ", ".join(f"{words(f'impact.{part}')} {percent(value)} x {impact.weights[part]:.2f}" for part, value in impact.benefits.items())
    source = words("impact.sessions") if impact.from_sessions else words("impact.outcomes")
    tier = words(f"provenance.{impact.provenance}")
    return f"{words('impact')}: {impact.score:.0f} / 100 ({tier}; {source}; {parts}; {words('impact.ease')} {impact.ease:.1f})"
