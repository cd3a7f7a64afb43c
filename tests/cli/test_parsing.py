"""One declaration, two parsers: they must agree, and every command must explain itself."""

from __future__ import annotations

import pytest

from kb.errors import UsageError
from kb_cli.command import Common, Flag, parameters
from kb_cli.parsing import parse_quickly, typer_app
from kb_cli.programs import PROGRAMS, QUICK, commands

_CALLS = [
    ("search", ["attention", "没融合", "--kind", "card", "--kind", "recipe", "--limit", "3", "--json"]),
    ("search", ["--text-only", "x", "--soc", "A2", "--lang", "zh"]),
    ("show", ["sd3@1"]),
    ("show", ["--json", "library:sd3"]),
    ("diagnose", ["a", "b", "--output", "r.md", "--force"]),
    ("diagnose", []),
]


def _by_typer(path: str, words: list[str]) -> Common:
    chosen: list[tuple[object, Common]] = []
    app = typer_app("kb", commands("kb"), chosen)  # type: ignore[arg-type]  # the list only collects
    with pytest.raises(SystemExit) as stop:
        app([*path.split(), *words], prog_name="kb")
    assert not stop.value.code
    return chosen[0][1]


@pytest.mark.parametrize(("path", "words"), [call for call in _CALLS if call[1]])
def test_the_quick_parser_and_typer_give_the_same_options(path: str, words: list[str]) -> None:
    quick = parse_quickly(commands("kb")[path](), words)
    assert quick is not None
    assert quick == _by_typer(path, words)


@pytest.mark.parametrize("words", [["--help"], ["x", "--colour"], ["x", "--limit", "many"], ["x", "--limit"]])
def test_the_quick_parser_leaves_odd_calls_to_typer(words: list[str]) -> None:
    assert parse_quickly(commands("kb")["search"](), words) is None


def test_a_value_outside_its_choices_names_the_choices() -> None:
    with pytest.raises(UsageError, match="recipe, card, template, case"):
        parse_quickly(commands("kb")["search"](), ["x", "--kind", "novel"])


@pytest.mark.parametrize(("program", "path"), [(program, path) for program, table in PROGRAMS.items() for path in table])
def test_every_command_explains_itself(program: str, path: str) -> None:
    command = commands(program)[path]()
    assert command.help.endswith((".", "?"))
    assert command.examples
    assert all(example.split()[0] in PROGRAMS for example in command.examples)
    names = [parameter.declared.name for parameter in parameters(command.options) if isinstance(parameter.declared, Flag)]
    assert {"--json", "--lang"} <= set(names)
    assert all(parameter.declared.help for parameter in parameters(command.options))


@pytest.mark.parametrize(("program", "path"), [(program, path) for program, table in PROGRAMS.items() for path in table])
def test_every_command_has_help(program: str, path: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        typer_app(program, commands(program), [])([*path.split(), "--help"], prog_name=program)
    assert stop.value.code == 0
    assert "--json" in capsys.readouterr().out


def test_the_quick_commands_exist() -> None:
    assert set(PROGRAMS["kb"]) >= QUICK
