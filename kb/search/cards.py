"""A card is one screen of a recipe: what finds the card finds the recipe."""

from __future__ import annotations

from collections.abc import Mapping

from kb.domain.case import Why
from kb.domain.text import Text
from kb.domain.version import Version


def with_cards(reasons: Mapping[int, tuple[Why, ...]], versions: Mapping[int, Version]) -> dict[int, tuple[Why, ...]]:
    """The reasons of every record, where a recipe whose card scores higher gets the difference as a reason of its own.

    The card's few words sit closer to a short question than the recipe's many, although both say the same.
    """
    scores = {record: sum(why.contribution for why in found) for record, found in reasons.items()}
    recipes = {version.record.slug: record for record, version in versions.items() if version.record.kind == "recipe"}
    raised = dict(reasons)
    for record, version in versions.items():
        for slug in version.record.links if version.record.kind == "card" else ():
            recipe = recipes.get(slug)
            if recipe is not None and scores[record] > scores[recipe]:
                raised[recipe] = (*reasons[recipe], _by_card(version.record.slug, scores[record] - scores[recipe]))
    return raised


def _by_card(slug: str, difference: float) -> Why:
    return Why(feature="card", text=Text(f"它的知识卡 {slug} 相符", f"its card {slug} matches"), contribution=difference)
