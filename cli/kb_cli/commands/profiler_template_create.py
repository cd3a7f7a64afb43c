"""``profiler template-create``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.library.templates import template_record, write_template
from kb.workflow.casebook import open_casebook
from kb.workflow.named import diagnosed_session
from kb.workflow.publish import publish
from kb.workflow.template_making import template_of
from kb.workflow.workspace import workspace
from kb_cli.authorship import author
from kb_cli.command import Command, Common, Flag
from kb_cli.commands.publish import announce
from kb_cli.console import Console
from kb_cli.files import write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """What to make the template from, and its words."""

    source: Annotated[str, Flag("--from", "A capture, by path or the beginning of its name; default the last one.", "NAME")] = ""
    name: Annotated[str, Flag("--name", "Name of the template; its slug is made from it.", "NAME")]
    description: Annotated[str, Flag("--description", "What it is for.")] = ""
    output: Annotated[Path | None, Flag("--output", "The new file; default NAME.json.", "FILE.json", short="-o")] = None
    publish: Annotated[bool, Flag("--publish", "Also keep it as a versioned record.")] = False
    force: Annotated[bool, Flag("--force", "Overwrite the file.")] = False


def run(options: Options, console: Console) -> int:
    """Diagnose, turn what was judged into checks, write."""
    diagnosed, remark = diagnosed_session(options.source, workspace(), Path.cwd())
    if remark.en:
        console.remark(remark.zh, remark.en)
    template = template_of(diagnosed, options.name, options.description)
    target = options.output or Path(f"{options.name}.json")
    write_new(target, write_template(template), force=options.force)
    if options.publish:
        with open_casebook(workspace(), console.progress(), writable=True) as casebook:
            published = publish(casebook, template_record(template), author=author(None))
        return announce(published, console)
    if console.as_json:
        console.json({"file": str(target), "slug": template.slug, "checks_count": len(template.checks)})
    else:
        console.say(f"已写入 {target}：{len(template.checks)} 项检查", f"wrote {target}: {len(template.checks)} checks")
    return ExitCode.DONE


COMMAND = Command(
    "Make a template from what a session's diagnosis judged.",
    Options,
    run,
    (
        'profiler template-create --from sd3_full_capture --name "diffusion_model_bottleneck_template" '
        '--description "for SD, SDXL and SD3" --output diffusion_diagnosis_template.json',
    ),
)
