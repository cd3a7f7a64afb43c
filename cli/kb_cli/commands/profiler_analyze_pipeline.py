"""``profiler analyze-pipeline``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from kb.errors import ExitCode, UsageError
from kb.report.document import Document
from kb.report.markdown import MarkdownRenderer
from kb.report.pipeline import pipeline_document, pipeline_payload
from kb.report.plain import PlainRenderer
from kb.workflow.pipeline import analysed_pipeline
from kb.workflow.recent import capture_named
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new

_ENDINGS = (".md", ".json", ".html")


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which capture, and where the report goes."""

    data: Annotated[str, Flag("--data", "A capture of profiler collect-pipeline; default the last one.", "PATH")] = ""
    output: Annotated[Path | None, Flag("--output", "Write the report to this new file: .md, .html or .json.", "FILE", short="-o")] = None
    force: Annotated[bool, Flag("--force", "Overwrite the output file.")] = False


def run(options: Options, console: Console) -> int:
    """Diagnose, print, and write where asked."""
    if options.output is not None and options.output.suffix not in _ENDINGS:
        raise UsageError(f"{options.output.name}: no report format ends like this", allowed=", ".join(_ENDINGS))
    taken = capture_named(options.data, workspace(), Path.cwd())
    if taken.remark.en:
        console.remark(taken.remark.zh, taken.remark.en)
    console.remark("分析中：每条建议都会仿真一遍 ..", "analysing: every recommendation is simulated ..")
    analysis = analysed_pipeline(taken.path)
    document = pipeline_document(analysis, console.lang)
    if options.output is not None:
        content = _content(options.output, document, msgspec.json.encode(pipeline_payload(analysis)))
        write_new(options.output, content, force=options.force, keep=(taken.path,))
        console.remark(f"已写入 {options.output}", f"wrote {options.output}")
    if console.as_json:
        console.json(pipeline_payload(analysis))
    else:
        console.text(PlainRenderer().render(document))
    return ExitCode.DONE


def _content(path: Path, document: Document, payload: bytes) -> str | bytes:
    if path.suffix == ".json":
        return msgspec.json.format(payload, indent=2)
    if path.suffix == ".html":
        from kb.report.html.renderer import HtmlRenderer

        return HtmlRenderer().render(document)
    return MarkdownRenderer().render(document)


COMMAND = Command(
    "Find what holds a pipeline up, and what its nodes should get; every recommendation is simulated.",
    Options,
    run,
    ("profiler analyze-pipeline --data pipeline_diagnosis.prof --output pipeline_bottleneck_report.md",),
)
