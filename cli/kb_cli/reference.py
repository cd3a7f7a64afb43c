"""Every command, option and exit status as one page, for docs/commands.md: made from the declarations, so that none is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kb.errors import ExitCode
from kb_cli.command import Argument, Command, Common, Flag, Parameter, parameters
from kb_cli.programs import PROGRAMS, commands

_EXITS: Final = {
    ExitCode.DONE: "done",
    ExitCode.CANNOT: "cannot: the message says what happened, what is allowed and what to do",
    ExitCode.USAGE: "the command line is wrong",
    ExitCode.UNUSABLE_CAPTURE: "the capture cannot be used, or there is no profile",
    ExitCode.INTERNAL: "an internal error, or a rule that raised",
    ExitCode.INFEASIBLE: "the constraints cannot be met; the closest is said",
    ExitCode.REGRESSION: "a regression, with `--fail-on-regression`",
    ExitCode.INTERRUPTED: "interrupted; finished work is kept",
}


def reference() -> str:
    """The page, Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from ("# Commands", "", "Made from the programs' own declarations by `make golden`; do not edit.", "")
    yield from ("## Exit statuses", "", "| status | meaning |", "|---:|---|")
    yield from (f"| {int(code)} | {_EXITS[code]} |" for code in ExitCode)
    yield from ("", "## Options of every command", "", *_table(parameters(Common)))
    for program in PROGRAMS:
        yield from ("", f"## {program}")
        for path, load in commands(program).items():
            yield from _command(f"{program} {path}".strip(), load())


def _command(name: str, command: Command[Any]) -> Iterator[str]:
    shared = {parameter.field for parameter in parameters(Common)}
    own = [parameter for parameter in parameters(command.options) if parameter.field not in shared]
    yield from ("", f"### {name}", "", _cell(command.help))
    if own:
        yield from ("", *_table(own))
    if command.examples:
        yield from ("", "```", *command.examples, "```")


def _table(rows: tuple[Parameter, ...] | list[Parameter]) -> Iterator[str]:
    yield from ("| argument or option | default | meaning |", "|---|---|---|")
    yield from (f"| {_spelling(row)} | {_default(row)} | {_cell(row.declared.help)} |" for row in rows)


def _spelling(row: Parameter) -> str:
    declared = row.declared
    if isinstance(declared, Argument):
        return f"`{declared.metavar}`"
    names = ", ".join(f"`{name}`" for name in declared.spellings)
    return names if row.scalar is bool else f"{names} {_value(declared)}"


def _value(flag: Flag) -> str:
    return " \\| ".join(flag.choices) if flag.choices else flag.metavar


def _default(row: Parameter) -> str:
    if row.required:
        return "required"
    if row.repeats or row.default in (None, "", ()) or row.scalar is bool:
        return ""
    return f"`{row.default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
