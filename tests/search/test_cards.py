"""What finds a card finds its recipe."""

from __future__ import annotations

import pytest

from kb.domain.record import Record
from kb.domain.text import Text
from kb.domain.version import Version
from kb.search.cards import raised_by_cards

_T = Text("文", "text")


def _version(slug: str, kind: str, links: tuple[str, ...] = ()) -> Version:
    record = Record(kind=kind, slug=slug, title=_T, summary=_T, body=_T, links=links)  # type: ignore[arg-type]  # test factory
    return Version(record=record, origin="library", n=1, sha256="0" * 64, author="a", created_ns=0)


@pytest.mark.parametrize(("card", "recipe", "expected"), [(5.0, 2.0, 5.0), (2.0, 5.0, 5.0), (2.0, 2.0, 2.0)])
def test_a_recipe_scores_at_least_as_its_card(card: float, recipe: float, expected: float) -> None:
    versions = {1: _version("a-card", "card", ("a",)), 2: _version("a", "recipe"), 3: _version("b", "recipe")}
    raised = raised_by_cards({1: card, 2: recipe, 3: 1.0}, versions)
    assert recipe + (raised[2].contribution if 2 in raised else 0.0) == pytest.approx(expected)
    assert set(raised) == ({2} if card > recipe else set())
    assert all(why.feature == "card" for why in raised.values())


def test_the_best_of_several_cards_counts_once() -> None:
    versions = {1: _version("c1", "card", ("a",)), 2: _version("a", "recipe"), 3: _version("c2", "card", ("a",))}
    assert raised_by_cards({1: 3.0, 2: 1.0, 3: 4.0}, versions)[2].contribution == pytest.approx(3.0)
    assert raised_by_cards({1: 4.0, 2: 1.0, 3: 3.0}, versions)[2].contribution == pytest.approx(3.0)
