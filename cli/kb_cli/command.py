"""What a command is: a typed set of options, a function, and words about both.

One declaration serves the quick parser, Typer's help and completion, and the command reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from kb.errors import UsageError

if TYPE_CHECKING:
    from kb_cli.console import Console

OptionsT = TypeVar("OptionsT", bound="Common")


@dataclass(frozen=True)
class Argument:
    """A positional value. A tuple-typed field takes any number of them."""

    help: str
    metavar: str


@dataclass(frozen=True)
class Flag:
    """An option. ``name`` is the spelling, ``short`` a one-letter one beside it; ``choices`` limits the values, ``least`` and
    ``most`` a number. A number that is not finite is never taken: a limit of nan holds nothing back."""

    name: str
    help: str
    metavar: str = "TEXT"
    choices: tuple[str, ...] = ()
    short: str = ""
    least: float | None = None
    most: float | None = None

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every way to write it."""
        return (self.name, self.short) if self.short else (self.name,)


@dataclass(frozen=True, kw_only=True)
class Common:
    """Options of every command."""

    as_json: Annotated[bool, Flag("--json", "Machine-readable output on standard output.")] = False
    lang: Annotated[str, Flag("--lang", "Language of the output; default from the locale.", choices=("zh", "en"))] = ""
    quiet: Annotated[bool, Flag("--quiet", "No remarks and no progress on standard error; errors are still said.")] = False
    store: Annotated[
        str,
        Flag("--store", "The casebook: a file or postgresql://USER@HOST/DATABASE; default KB_STORE, else KB_HOME's.", "URL"),
    ] = ""

    def new_files(self) -> tuple[Path, ...]:
        """The files this call was told to write: looked at before the work begins, so that nobody waits for nothing."""
        output = getattr(self, "output", None)
        return (output,) if isinstance(output, Path) and output != getattr(type(self), "output", None) else ()


@dataclass(frozen=True)
class Command(Generic[OptionsT]):
    """``run`` gets the parsed options and the console and returns the exit status."""

    help: str
    options: type[OptionsT]
    run: Callable[[OptionsT, Console], int]
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """A field of an options class, resolved: its declaration, scalar type, whether it repeats, and default."""

    field: str
    declared: Argument | Flag
    scalar: type
    repeats: bool
    required: bool
    default: Any


def parameters(options: type[Common]) -> tuple[Parameter, ...]:
    """The parameters of an options class, arguments first, in order of declaration."""
    hints = get_type_hints(options, include_extras=True)
    found = []
    for field in fields(options):
        kind, declared = get_args(hints[field.name])[:2]
        repeats = get_origin(kind) is tuple
        scalar = next(part for part in (get_args(kind) or (kind,)) if part not in (type(None), Ellipsis))
        required = field.default is MISSING
        found.append(Parameter(field.name, declared, scalar, repeats, required, None if required else field.default))
    return tuple(sorted(found, key=lambda parameter: isinstance(parameter.declared, Flag)))


def build(options: type[OptionsT], values: dict[str, Any]) -> OptionsT:
    """An options value from raw parsed values. Raises UsageError for a value outside its choices or bounds."""
    made: dict[str, Any] = {}
    for parameter in parameters(options):
        value = values.get(parameter.field)
        if value is None or (parameter.repeats and not value and not parameter.required):
            continue
        declared = parameter.declared
        if isinstance(declared, Flag) and declared.choices and value != parameter.default:
            _check(declared, value if parameter.repeats else [value])
        if isinstance(declared, Flag) and parameter.scalar in (int, float):
            _check_numbers(declared, value if parameter.repeats else [value])
        made[parameter.field] = tuple(value) if parameter.repeats else value
    return options(**made)


def _check(flag: Flag, values: list[str]) -> None:
    wrong = [value for value in values if value not in flag.choices]
    if wrong:
        raise UsageError(f"{flag.name} does not know {', '.join(map(repr, wrong))}", allowed=", ".join(flag.choices))


def _check_numbers(flag: Flag, values: list[float]) -> None:
    least, most = -inf if flag.least is None else flag.least, inf if flag.most is None else flag.most
    wrong = [value for value in values if not (isfinite(value) and least <= value <= most)]
    if wrong:
        raise UsageError(f"{flag.name} {wrong[0]:g}", allowed=_bounds(flag))


def _bounds(flag: Flag) -> str:
    if flag.least is None:
        return "a finite number"
    return f"{flag.least:g} to {flag.most:g}" if flag.most is not None else f"a finite number, {flag.least:g} or more"
