"""``profiler visualize``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.report.html.renderer import HtmlRenderer
from kb.report.story.views import VIEWS, view_document
from kb.workflow.named import report_in, session_report
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """What to draw, and how."""

    report: Annotated[Path | None, Flag("--report", "A report file of ours, or a saved diagnosis.", "FILE")] = None
    session: Annotated[str, Flag("--session", "A capture, by path or the beginning of its name; default the last one.", "NAME")] = ""
    view: Annotated[str, Flag("--view", "The picture.", choices=tuple(VIEWS))] = "heatmap"
    output: Annotated[Path | None, Flag("--output", "The new HTML file; default SOURCE_VIEW.html here.", "FILE.html", short="-o")] = None
    force: Annotated[bool, Flag("--force", "Overwrite the output file.")] = False


def run(options: Options, console: Console) -> int:
    """Draw one picture into a page of its own."""
    named = report_in(options.report) if options.report is not None else session_report(options.session, workspace(), Path.cwd())
    if named.remark.en:
        console.remark(named.remark.zh, named.remark.en)
    document = view_document(named.report, options.view, named.catalogue, console.lang)
    stem = options.report.stem if options.report is not None else Path(options.session or "session").stem
    target = options.output or Path(f"{stem}_{options.view}.html")
    page = HtmlRenderer(interactive=True).render(document)
    write_new(target, page, force=options.force)
    if console.as_json:
        console.json({"file": str(target), "view": options.view, "size_bytes": len(page.encode()), "simulated": named.report.simulated})
    else:
        console.say(f"已写入 {target}", f"wrote {target}")
    return ExitCode.DONE


COMMAND = Command(
    "Draw one view of a report: heat map, breakdown, root causes, timeline, flame graph, roofline, curves or path.",
    Options,
    run,
    (
        'profiler visualize --report bottleneck_report.json --view "heatmap"',
        "profiler visualize --session sd3_profiling --view timeline -o timeline.html",
    ),
)
