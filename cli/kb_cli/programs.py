"""The visible table of commands: name to module, imported only when called."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from kb_cli.command import Command

_KB: Final[Mapping[str, str]] = {
    "demo": "demo",
    "diagnose": "diagnose",
    "health": "health",
    "convert": "convert",
    "search": "search",
    "recommend": "recommend",
    "apply": "apply",
    "compare": "compare",
    "report": "report",
    "publish": "publish",
    "show": "show",
    "log": "log",
    "history": "history",
    "diff": "diff",
    "verify": "verify",
    "used": "used",
    "alias": "alias",
    "deprecate": "deprecate",
    "yank": "yank",
    "list": "listing",
    "template apply": "template_apply",
    "template export": "template_export",
    "card": "card",
    "simulate model": "simulate_model",
    "export": "export",
    "import": "import_records",
    "backup": "backup",
    "restore": "restore",
    "lint": "lint",
    "doctor": "doctor",
}
_PROFILER: Final[Mapping[str, str]] = {
    "validate": "profiler_validate",
    "analyze": "profiler_analyze",
    "compare": "profiler_compare",
    "report": "profiler_report",
    "visualize": "profiler_visualize",
    "alert": "profiler_alert",
    "publish": "profiler_publish",
    "knowledge-card": "profiler_knowledge_card",
    "template-create": "profiler_template_create",
    "stream": "team_server",
    "dashboard": "team_server",
    "share": "team_server",
    "cloud-submit": "team_server",
    "cloud-download": "team_server",
}
_CANN_PROFILE: Final[Mapping[str, str]] = {}
_CANN_TUNE: Final[Mapping[str, str]] = {}

PROGRAMS: Final[Mapping[str, Mapping[str, str]]] = {
    "kb": _KB,
    "profiler": _PROFILER,
    "cann-profile": _CANN_PROFILE,
    "cann-tune": _CANN_TUNE,
}
# These parse without Typer: they are what people run all day (design rule 9).
QUICK: Final = frozenset({"search", "show", "diagnose", "report"})


def loader(module: str) -> Callable[[], Command[Any]]:
    """A function that imports a command's module and returns its ``COMMAND``."""

    def load() -> Command[Any]:
        found: Command[Any] = importlib.import_module(f"kb_cli.commands.{module}").COMMAND
        return found

    return load


def commands(program: str) -> Mapping[str, Callable[[], Command[Any]]]:
    """Loaders by command path, in the order help lists them."""
    return {path: loader(module) for path, module in PROGRAMS[program].items()}
