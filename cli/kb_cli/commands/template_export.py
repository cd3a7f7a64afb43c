"""``kb template export``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.library.templates import write_template
from kb.workflow.casebook import open_casebook
from kb.workflow.template import is_file_name, template_in_file, template_named
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which template, and how to write it."""

    template: Annotated[str, Argument("A template record, or a template JSON file.", "TEMPLATE")]
    keys: Annotated[str, Flag("--keys", "Our keys and both languages (en), or the article's Chinese keys (zh).", choices=("zh", "en"))] = (
        "en"
    )
    out: Annotated[Path | None, Flag("--out", "Write to this file instead of standard output.", "FILE")] = None
    force: Annotated[bool, Flag("--force", "Replace the file.")] = False


def run(options: Options, console: Console) -> int:
    """Write the template as JSON."""
    path = Path(options.template)
    if is_file_name(path):
        template = template_in_file(path)
    else:
        with open_casebook(workspace(), console.progress()) as casebook:
            template = template_named(casebook, options.template)
    data = write_template(template, article=options.keys == "zh")
    if options.out is None:
        console.text(data.decode())
        return ExitCode.DONE
    write_new(options.out, data, force=options.force)
    if console.as_json:
        console.json({"file": str(options.out), "checks_count": len(template.checks)})
    else:
        console.say(f"已写入 {options.out}", f"Wrote {options.out}")
    return ExitCode.DONE


COMMAND = Command(
    "Write a template as JSON, also in the article's form with Chinese keys.",
    Options,
    run,
    ("kb template export diffusion-bottlenecks --keys zh", "kb template export auto --out my-checks.json"),
)
