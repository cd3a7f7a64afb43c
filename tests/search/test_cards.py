"""What finds a card finds its recipe."""

from __future__ import annotations

import pytest

from kb.domain.case import Why
from kb.domain.record import Record
from kb.domain.text import Text
from kb.domain.version import Version
from kb.search.cards import with_cards

_T = Text("文", "text")


def _version(slug: str, kind: str, links: tuple[str, ...] = ()) -> Version:
    record = Record(kind=kind, slug=slug, title=_T, summary=_T, body=_T, links=links)  # type: ignore[arg-type]  # test factory
    return Version(record=record, origin="library", n=1, sha256="0" * 64, author="a", created_ns=0)


def _score(reasons: tuple[Why, ...]) -> float:
    return sum(why.contribution for why in reasons)


@pytest.mark.parametrize(("card", "recipe", "expected"), [(5.0, 2.0, 5.0), (2.0, 5.0, 5.0), (2.0, 2.0, 2.0)])
def test_a_recipe_scores_at_least_as_its_card(card: float, recipe: float, expected: float) -> None:
    versions = {1: _version("a-card", "card", ("a",)), 2: _version("a", "recipe"), 3: _version("b", "recipe")}
    reasons = {number: (Why(feature="text", text=_T, contribution=value),) for number, value in ((1, card), (2, recipe), (3, 1.0))}
    raised = with_cards(reasons, versions)
    assert _score(raised[2]) == pytest.approx(expected)
    assert _score(raised[1]) == card
    assert raised[3] == reasons[3]
    assert ("card" in [why.feature for why in raised[2]]) == (card > recipe)
