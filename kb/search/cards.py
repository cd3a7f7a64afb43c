"""A card is one screen of a recipe: what finds the card finds the recipe."""

from __future__ import annotations

from collections.abc import Mapping

from kb.domain.case import Why
from kb.domain.text import Text
from kb.domain.version import Version


def raised_by_cards(scores: Mapping[int, float], versions: Mapping[int, Version]) -> dict[int, Why]:
    """For every recipe whose card scores higher, the difference as a reason of its own.

    The card's few words sit closer to a short question than the recipe's many, although both say the same.
    """
    recipes = {version.record.slug: place for place, version in versions.items() if version.record.kind == "recipe"}
    raised: dict[int, Why] = {}
    for place, version in versions.items():
        for slug in version.record.links if version.record.kind == "card" else ():
            recipe = recipes.get(slug)
            if recipe is not None and scores[place] > scores[recipe] + (raised[recipe].contribution if recipe in raised else 0.0):
                raised[recipe] = _by_card(version.record.slug, scores[place] - scores[recipe])
    return raised


def _by_card(slug: str, difference: float) -> Why:
    return Why(feature="card", text=Text(f"它的知识卡 {slug} 相符", f"its card {slug} matches"), contribution=difference)
