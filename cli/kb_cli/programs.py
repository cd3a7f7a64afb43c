"""The visible table of commands: name to module, imported only when called."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kb_cli.command import Command

_KB: Final[Mapping[str, str]] = {
    "demo": "demo",
    "diagnose": "diagnose",
    "drill-down": "drill_down",
    "health": "health",
    "convert": "convert",
    "search": "search",
    "ask": "ask",
    "recommend": "recommend",
    "grow": "grow",
    "plan": "plan",
    "potential": "potential",
    "fit": "fit",
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
    "gallery browse": "gallery_browse",
    "gallery build": "gallery_build",
    "tune": "tune",
    "graph": "graph",
    "atc convert": "atc_convert",
    "atc validate-precision": "atc_validate_precision",
    "aoe tune": "aoe_tune",
    "simulate article": "simulate_article",
    "simulate list": "simulate_list",
    "simulate load": "simulate_load",
    "simulate energy": "simulate_energy",
    "simulate model": "simulate_model",
    "simulate scenario": "simulate_scenario",
    "simulate memory": "simulate_memory",
    "simulate adaptive": "simulate_adaptive",
    "export": "export",
    "import": "import_records",
    "store init": "store_init",
    "store copy": "store_copy",
    "backup": "backup",
    "restore": "restore",
    "lint": "lint",
    "doctor": "doctor",
    "reembed": "reembed",
}
_PROFILER: Final[Mapping[str, str]] = {
    "collect": "profiler_collect",
    "collect-pipeline": "profiler_collect_pipeline",
    "analyze-pipeline": "profiler_analyze_pipeline",
    "validate": "profiler_validate",
    "analyze": "profiler_analyze",
    "drill-down": "drill_down",
    "path-map": "path_map",
    "generate-fix": "profiler_generate_fix",
    "compare": "profiler_compare",
    "fix": "profiler_fix",
    "validate-optimization": "profiler_validate_optimization",
    "report": "profiler_report",
    "visualize": "profiler_visualize",
    "alert": "profiler_alert",
    "publish": "profiler_publish",
    "knowledge-card": "profiler_knowledge_card",
    "template-create": "profiler_template_create",
    "template-apply": "profiler_template_apply",
    "stream": "team_server",
    "dashboard": "team_server",
    "share": "team_server",
    "cloud-submit": "team_server",
    "cloud-download": "team_server",
}
# A program with one command has no name for it.
_CANN_PROFILE: Final[Mapping[str, str]] = {"": "cann_profile"}
_CANN_TUNE: Final[Mapping[str, str]] = {"": "cann_tune"}

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


def asked(program: str, words: Sequence[str]) -> Mapping[str, Callable[[], Command[Any]]]:
    """The one command that ``words`` begin with, so that no other module is loaded; every command where they name none."""
    known = commands(program)
    named = [path for path in known if path and list(words[: len(path.split())]) == path.split()]
    longest = max(named, key=len, default=None)
    return known if longest is None else {longest: known[longest]}
