"""Catalogue strategies and simulator options name each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kb.profile.simulated.options import Options
from kb.profile.simulated.twins import TWINS


def test_simulatable_strategies_are_exactly_the_twins(checkout: Path) -> None:
    files = sorted((checkout / "recipes" / "catalogue" / "strategies").glob("*.json"))
    assert files
    entries = [json.loads(path.read_text(encoding="utf-8")) for path in files]
    assert {entry["id"] for entry in entries if entry.get("simulatable", False)} == set(TWINS)


@pytest.mark.parametrize("strategy", sorted(TWINS))
def test_a_twin_changes_one_option_of_a_default_run(strategy: str) -> None:
    before, after = Options(), TWINS[strategy].apply(Options())
    changed = [name for name in Options.__struct_fields__ if getattr(before, name) != getattr(after, name)]
    assert changed == [TWINS[strategy].option]


@pytest.mark.parametrize("strategy", sorted(name for name, change in TWINS.items() if change.how == "set"))
def test_setting_twice_changes_nothing(strategy: str) -> None:
    once = TWINS[strategy].apply(Options())
    assert TWINS[strategy].apply(once) == once
