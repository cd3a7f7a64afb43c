"""``profiler knowledge-card``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.library.markdown import write_markdown
from kb.report.plain import PlainRenderer
from kb.report.records import draft_document
from kb.workflow.key_findings import split_names
from kb.workflow.knowledge import session_card
from kb.workflow.named import diagnosed_session
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which session, and the card's words."""

    session: Annotated[str, Flag("--session", "A capture, by path or the beginning of its name; default the last one.", "NAME")] = ""
    scenario: Annotated[str, Flag("--scenario", "Name of the card; its slug is made from it.", "WORDS")] = ""
    key_evidence: Annotated[str, Flag("--key_evidence", "Causes to put first, and statements of your own (marked as such).", "LIST")] = ""
    output: Annotated[Path | None, Flag("--output", "The new Markdown file; kb publish takes it.", "FILE.md", short="-o")] = None
    force: Annotated[bool, Flag("--force", "Overwrite the file.")] = False


def run(options: Options, console: Console) -> int:
    """Diagnose and write one screen."""
    diagnosed, remark = diagnosed_session(options.session, workspace(), Path.cwd())
    if remark.en:
        console.remark(remark.zh, remark.en)
    card = session_card(diagnosed, options.scenario, split_names(options.key_evidence))
    if options.output is not None:
        write_new(options.output, write_markdown(card), force=options.force)
    if console.as_json:
        console.json({"file": str(options.output) if options.output else None, "slug": card.slug, "provenance": card.provenance,
                      "causes": [case.cause for case in card.cases]})  # fmt: skip
    elif options.output is not None:
        console.say(f"已写入 {options.output}", f"wrote {options.output}")
    else:
        console.text(PlainRenderer().render(draft_document(card, diagnosed.sessions[0].meta.name, console.lang)))
    return ExitCode.DONE


COMMAND = Command(
    "Make a knowledge card, one screen, from a session.",
    Options,
    run,
    (
        'profiler knowledge-card --session sd3_full_capture --scenario "sd3_attention_bottleneck_diagnosis" '
        '--key_evidence "unfused_attention, l2_miss_63%, hbm_access_3x" --output sd3_diagnosis_knowledge_card.md',
    ),
)
