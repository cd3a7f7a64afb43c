"""docs/commands.md is made from the declarations, and nothing a user can meet is missing from the documents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kb.diagnose.ruleset import RULES
from kb_cli.command import Command, parameters
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


def _command_of(example: str) -> Command[Any]:
    """The command an example calls: the longest path it begins with."""
    words = example.split()
    calls = [(f"{program} {path}".split(), load) for program in PROGRAMS for path, load in commands(program).items()]
    fitting = [(path, load) for path, load in calls if words[: len(path)] == path]
    assert fitting, f"{example}: no such command"
    return max(fitting, key=lambda pair: len(pair[0]))[1]()


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_command_says_what_it_does_and_shows_examples_that_exist(program: str) -> None:
    for path, load in commands(program).items():
        command = load()
        assert command.help.endswith((".", "?")), (program, path)
        assert command.examples, (program, path)
        for example in command.examples:
            shown = _command_of(example)
            known = {name for parameter in parameters(shown.options) for name in getattr(parameter.declared, "spellings", ())}
            used = set(re.findall(r"(?<!\S)(--[a-z_-]+)", re.sub(r"\"[^\"]*\"", "", example).split(" -- ")[0]))
            assert used <= known, (example, used - known)
