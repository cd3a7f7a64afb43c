"""Two parsers of one declaration: argparse for the quick commands, Typer for everything else and all help.

The quick parser answers only a well-formed call; anything else (help, a typing slip) goes to Typer, so that users
meet one voice.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from kb_cli.command import Argument, Command, Common, Parameter, build, parameters

if TYPE_CHECKING:
    import typer


class _Unclear(Exception):  # noqa: N818  # a signal between two functions, not an error a user meets
    """The quick parser will not answer this call."""


class _Quiet(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise _Unclear(message)


def parse_quickly(command: Command[Any], argv: Sequence[str]) -> Common | None:
    """Options of a well-formed call, or None when Typer should look at it."""
    parser = _Quiet(add_help=False, allow_abbrev=False)
    for parameter in parameters(command.options):
        _add(parser, parameter)
    try:
        options: Common = build(command.options, vars(parser.parse_args(list(argv))))
    except _Unclear:
        return None
    return options


def _add(parser: argparse.ArgumentParser, parameter: Parameter) -> None:
    declared = parameter.declared
    settings: dict[str, Any] = {"default": None} if not parameter.repeats else {"default": []}
    if isinstance(declared, Argument):
        if parameter.repeats:
            settings["nargs"] = "+" if parameter.required else "*"
        elif not parameter.required:
            settings["nargs"] = "?"
        parser.add_argument(parameter.field, type=parameter.scalar, **settings)
        return
    if parameter.scalar is bool:
        parser.add_argument(*declared.spellings, dest=parameter.field, action="store_true", default=False)
        return
    action = "append" if parameter.repeats else "store"
    parser.add_argument(
        *declared.spellings, dest=parameter.field, type=parameter.scalar, action=action, required=parameter.required, **settings
    )


def typer_app(name: str, commands: Mapping[str, Callable[[], Command[Any]]], chosen: list[tuple[Command[Any], Common]]) -> typer.Typer:
    """A Typer application of the named commands (``"template apply"`` makes a group).

    A program whose only command has the name "" takes its options directly. Its callbacks only append (command, options) to
    ``chosen``: parsing and running stay apart.
    """
    import typer

    app = typer.Typer(name=name, no_args_is_help=True, pretty_exceptions_enable=False, help=_HELP[name], rich_markup_mode=None)
    if set(commands) == {""}:
        command = commands[""]()
        app.command(name, help=command.help, epilog=_epilog(command), no_args_is_help=_needs_arguments(command))(_callback(command, chosen))
        return app
    app.callback()(_keep_group)
    groups: dict[str, typer.Typer] = {}
    for path, load in commands.items():
        *group, leaf = path.split()
        target = app
        if group:
            target = groups.setdefault(group[0], typer.Typer(no_args_is_help=True, rich_markup_mode=None))
        command = load()
        target.command(leaf, help=command.help, epilog=_epilog(command), no_args_is_help=_needs_arguments(command))(
            _callback(command, chosen)
        )
    for group_name, group_app in groups.items():
        app.add_typer(group_app, name=group_name, help=_GROUPS.get(group_name, f"Commands about {group_name}."))
    return app


def _keep_group() -> None:
    """Keeps sub-commands even where a program has only one."""


def _needs_arguments(command: Command[Any]) -> bool:
    return any(parameter.required for parameter in parameters(command.options))


def _epilog(command: Command[Any]) -> str:
    return "Examples:\n\n" + "\n\n".join(command.examples) if command.examples else ""


def _callback(command: Command[Any], chosen: list[tuple[Command[Any], Common]]) -> Callable[..., None]:
    def record(**values: Any) -> None:
        chosen.append((command, build(command.options, values)))

    made = [_signature_parameter(parameter) for parameter in parameters(command.options)]
    record.__signature__ = inspect.Signature(made)  # type: ignore[attr-defined]  # the documented hook of inspect.signature
    record.__annotations__ = {parameter.name: parameter.annotation for parameter in made}
    return record


def _signature_parameter(parameter: Parameter) -> inspect.Parameter:
    import typer

    declared = parameter.declared
    kind: Any = list[parameter.scalar] if parameter.repeats else parameter.scalar  # type: ignore[name-defined]  # a run-time type
    if isinstance(declared, Argument):
        info: Any = typer.Argument(help=declared.help, metavar=declared.metavar)
    elif parameter.scalar is bool:
        info = typer.Option(*declared.spellings, help=declared.help)
    else:
        metavar = "|".join(declared.choices) if declared.choices else declared.metavar
        info = typer.Option(*declared.spellings, help=declared.help, metavar=metavar, show_default=parameter.default not in (None, "", ()))
    default: Any = inspect.Parameter.empty
    if not parameter.required:
        default = list(parameter.default) if parameter.repeats else parameter.default
        kind = kind | None if parameter.default is None else kind
    return inspect.Parameter(parameter.field, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info])


_GROUPS = {
    "aoe": "Simulated tuning, called as the CANN tool aoe is.",
    "atc": "Simulated model conversion, called as the CANN tool atc is.",
    "gallery": "Browse the records, or build a site of them.",
    "simulate": "Models, pipelines, load and case studies on the simulator; nothing here is measured.",
    "store": "Set up and copy casebooks.",
    "template": "Apply and export diagnosis templates.",
}
_HELP = {
    "kb": "The casebook of AI performance on Ascend NPUs: diagnose a profile, find similar cases, try a strategy, verify, publish. "
    "Before or after any command, --store URL names the casebook (also KB_STORE).",
    "profiler": "Profile-centred commands, spelled as in the CANN articles.",
    "cann-profile": "Profile a model in one command.",
    "cann-tune": "Tune a model from a profile report.",
}
