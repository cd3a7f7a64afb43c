"""``kb lint``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.workflow.lint import lint_content
from kb_cli.command import Argument, Command, Common
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """What to lint."""

    path: Annotated[Path | None, Argument("A library, folder, recipe.md, card or template; default the shipped library.", "PATH")] = None


def run(options: Options, console: Console) -> int:
    """Print every problem as file, line, rule and message; exit 1 when there is one."""
    linted = lint_content(options.path)
    if console.as_json:
        problems = [
            {"file": item.file, "line": item.line, "rule": item.rule, "message": {"zh": item.message.zh, "en": item.message.en}}
            for item in linted.problems
        ]
        console.json({"files_count": linted.files, "problems_count": len(problems), "problems": problems})
    else:
        for item in linted.problems:
            console.line(f"{item.file}:{item.line}: {item.rule}: {item.message.pick(console.lang)}")
        console.say(
            f"检查了 {linted.files} 个文件，{len(linted.problems)} 处问题", f"{linted.files} files, {len(linted.problems)} problems"
        )
    return ExitCode.CANNOT if linted.problems else ExitCode.DONE


COMMAND = Command(
    "Check recipes, cards, templates and the catalogue, with file and line; your own records only for what kb publish needs.",
    Options,
    run,
    ("kb lint", "kb lint recipes/field", "kb lint my-recipe/recipe.md --json"),
)
