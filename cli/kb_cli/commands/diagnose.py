"""``kb diagnose``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.report.diagnosis import diagnosis_document
from kb.report.markdown import MarkdownRenderer
from kb.report.payload import diagnosis_payload
from kb.report.plain import PlainRenderer
from kb.workflow.diagnose import diagnose_paths
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Paths to read, and where to leave a report."""

    paths: Annotated[
        tuple[Path, ...], Argument("Profile folders or files: a rank, a folder of ranks, ASCEND_PROFILER_OUTPUT, or a .prof.", "PATH...")
    ] = ()
    output: Annotated[Path | None, Flag("--output", "Also write the report to this new Markdown file.", "FILE.md")] = None
    force: Annotated[bool, Flag("--force", "Overwrite the output file.")] = False
    soc: Annotated[str, Flag("--soc", "The chip it ran on, where the capture does not say.", "ID")] = ""
    export: Annotated[bool, Flag("--export", "Export raw captures first, with the profiler's own tool (writes into them).")] = False


def run(options: Options, console: Console) -> int:
    """Load, diagnose, print."""
    diagnosed = diagnose_paths(options.paths or (Path(),), soc=options.soc, export=options.export)
    document = diagnosis_document(diagnosed.diagnosis, diagnosed.catalogue, console.lang)
    if options.output is not None:
        write_new(options.output, MarkdownRenderer().render(document), force=options.force, keep=options.paths)
        console.remark(f"已写入 {options.output}", f"wrote {options.output}")
    if console.as_json:
        console.json(diagnosis_payload(diagnosed.diagnosis))
    else:
        console.text(PlainRenderer().render(document))
    if not diagnosed.diagnosis.has_books():
        console.remark(
            "没有一份采集的账目成立：不能据此下结论（kb health 说明原因）",
            "no session's books hold: nothing can be concluded (kb health says why)",
        )
        return ExitCode.UNUSABLE_CAPTURE
    return ExitCode.INTERNAL if diagnosed.diagnosis.has_fault() else ExitCode.DONE


COMMAND = Command(
    "Say where the step went and why, with evidence.",
    Options,
    run,
    ("kb diagnose path/to/rank_0_ascend_pt", "kb diagnose path/to/cluster --json", "kb diagnose run.prof --output report.md"),
)
