"""docs/commands.md is made from the declarations, and nothing a user can meet is missing from the documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kb.diagnose.ruleset import RULES
from kb_cli.command import parameters
from kb_cli.programs import PROGRAMS, commands
from kb_cli.reference import reference


def test_the_reference_is_up_to_date(checkout: Path, pytestconfig: pytest.Config) -> None:
    path, page = checkout / "docs" / "commands.md", reference()
    if pytestconfig.getoption("--remake-golden"):
        path.write_text(page, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == page, "run make golden"


def test_every_rule_is_documented(checkout: Path) -> None:
    page = (checkout / "docs" / "rules.md").read_text(encoding="utf-8")
    missing = [cause for entry in RULES for cause in entry.causes if f"`{cause}`" not in page]
    assert not missing


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_command_says_what_it_does_and_shows_an_example_it_understands(program: str) -> None:
    for path, load in commands(program).items():
        command = load()
        assert command.help.endswith("."), (program, path)
        assert command.examples, (program, path)
        known = {name for parameter in parameters(command.options) for name in getattr(parameter.declared, "spellings", ())}
        for example in command.examples:
            assert example.startswith(f"{program} {path}".strip()), example
            used = set(re.findall(r"(?<!\S)(--[a-z_-]+)", example.split(" -- ")[0]))
            assert used <= known, (example, used - known)
