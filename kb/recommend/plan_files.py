"""Commands of a plan as files, and which commands belong to the user's tools."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from kb.domain.catalogue import Catalogue, Command, StrategyId
from kb.domain.plan import PlanFile
from kb.errors import UsageError

_VARIABLE = re.compile(r"export ([A-Za-z_][A-Za-z0-9_]*)=")
_SETTING = re.compile(r"\s*(?:export|unset)\s")


class Forms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See ``plan_files.json``."""

    forms: Mapping[str, str]
    comments: Mapping[str, str]
    toolchains: Mapping[str, tuple[str, ...]]
    reasons: Mapping[str, str]


def load_forms() -> Forms:
    """The shipped table."""
    return msgspec.json.decode(Path(__file__).with_name("plan_files.json").read_bytes(), type=Forms)


def tools_of(names: Iterable[str], catalogue: Catalogue, forms: Forms) -> tuple[str, ...]:
    """Tools that come with the named software or are named themselves. Raises UsageError for a name no command of the catalogue knows."""
    known = {command.tool for strategy in catalogue.strategies.values() for command in strategy.commands}
    found: dict[str, None] = {}
    for name in names:
        tools = forms.toolchains.get(name, (name,) if name in known else ())
        if not tools:
            raise UsageError(f"no toolchain named {name!r}", allowed=", ".join(sorted({*known, *forms.toolchains})))
        found.update(dict.fromkeys(tools))
    return tuple(found)


def tools_in(software: Mapping[str, str], forms: Forms) -> tuple[str, ...]:
    """Tools of the software a capture names; none where it names nothing known."""
    named = (name.lower().replace("-", "_") for name in software)
    return tuple(dict.fromkeys(tool for name in named for tool in forms.toolchains.get(name, ())))


def chosen(commands: Sequence[Command], tools: Sequence[str], *, only: bool) -> tuple[Command, ...]:
    """The commands of ``tools`` first, in their order; with ``only`` the others are left out, unless nothing would be left."""
    own = tuple(sorted((command for command in commands if command.tool in tools), key=lambda command: tools.index(command.tool)))
    rest = tuple(command for command in commands if command.tool not in tools)
    return own if only and own else (*own, *rest)


def step_files(number: int, strategy: StrategyId, commands: Sequence[Command], forms: Forms) -> tuple[PlanFile, ...]:
    """One file a command, named by its place in the plan. Every file says what its command is documented for and whether it was tried."""
    files: list[PlanFile] = []
    for place, command in enumerate(commands, start=1):
        ending = "sh" if _SETTING.match(command.text) else forms.forms.get(command.tool, "txt")
        suffix = f"-{place}" if len(commands) > 1 else ""
        name = f"{number:02d}-{strategy}{suffix}.{command.tool}.{ending}"
        files.append(PlanFile(name=name, tool=command.tool, content=_content(command, ending, forms.comments.get(ending, "# "))))
    return tuple(files)


def _content(command: Command, ending: str, comment: str) -> str:
    state = "tried on a machine" if command.verified else "not tried on a machine by us"
    head = f"{command.tool}: documented for {command.documented_for or 'no stated version'}; {state}"
    if not comment:
        return f"{{{command.text}}}\n" if ending == "json" and not command.text.lstrip().startswith("{") else f"{command.text}\n"
    lines = [f"{comment}{head}", command.text]
    variables = _VARIABLE.findall(command.text)
    if variables:
        lines.append(f"{comment}roll back: unset {' '.join(variables)}")
    return "\n".join(lines) + "\n"
