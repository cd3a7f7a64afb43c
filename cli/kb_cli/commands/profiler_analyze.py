"""``profiler analyze``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from kb.domain.template import Template
from kb.errors import ExitCode
from kb.report.diagnosis import diagnosis_document
from kb.report.document import Document
from kb.report.payload import diagnosis_payload, plain
from kb.report.plain import PlainRenderer
from kb.workflow.casebook import open_casebook
from kb.workflow.diagnose import diagnose_paths, load_paths
from kb.workflow.recent import capture_named, remember
from kb.workflow.template import AUTO, template_checks, template_named
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """What to analyse, and by which rules."""

    data: Annotated[str, Flag("--data", "A profile folder or file, or the beginning of its name; default the last capture.", "PATH")] = ""
    bottleneck_rules: Annotated[
        str, Flag("--bottleneck_rules", "auto (every rule), or a template with its checks and thresholds.", "NAME")
    ] = AUTO
    output: Annotated[Path | None, Flag("--output", "Write the diagnosis to this new JSON file.", "FILE.json")] = None
    force: Annotated[bool, Flag("--force", "Overwrite the output file.")] = False
    soc: Annotated[str, Flag("--soc", "The chip it ran on, where the capture does not say.", "ID")] = ""
    export: Annotated[bool, Flag("--export", "Export raw captures first, with the profiler's own tool (writes into them).")] = False


def run(options: Options, console: Console) -> int:
    """Diagnose with every rule or with a template's; a pipeline capture is analysed as one."""
    taken = capture_named(options.data, workspace(), Path.cwd())
    if taken.remark.en:
        console.remark(taken.remark.zh, taken.remark.en)
    template = None if options.bottleneck_rules == AUTO else _template(options.bottleneck_rules, console)
    document, payload, code = _pipeline(taken.path, options, console) or _profile(taken.path, options, template, console)
    remember(workspace(), capture=taken.path)
    if options.output is not None:
        write_new(options.output, msgspec.json.format(msgspec.json.encode(payload), indent=2), force=options.force, keep=(taken.path,))
        console.remark(f"已写入 {options.output}", f"wrote {options.output}")
    if console.as_json:
        console.json(payload)
    else:
        console.text(PlainRenderer().render(document))
    return code


def _template(name: str, console: Console) -> Template:
    with open_casebook(workspace(), console.progress()) as casebook:
        return template_named(casebook, name)


def _profile(path: Path, options: Options, template: Template | None, console: Console) -> tuple[Document, dict[str, Any], int]:
    diagnosed = diagnose_paths((path,), template=template, soc=options.soc, export=options.export)
    payload = diagnosis_payload(diagnosed.diagnosis)
    if template is not None:
        payload["checks"] = [plain(check) for check in template_checks(diagnosed.diagnosis, template)]
    code = ExitCode.INTERNAL if diagnosed.diagnosis.has_fault() else ExitCode.DONE
    return diagnosis_document(diagnosed.diagnosis, diagnosed.catalogue, console.lang), payload, code


def _pipeline(path: Path, options: Options, console: Console) -> tuple[Document, dict[str, Any], int] | None:
    """A capture of ``profiler collect-pipeline``, None for any other."""
    if options.export or path.suffix != ".prof":
        return None
    from kb.report.pipeline import pipeline_document, pipeline_payload
    from kb.workflow.pipeline import analysed_session, is_pipeline

    session = load_paths((path,))[0]
    if not is_pipeline(session):
        return None
    analysis = analysed_session(session)
    return pipeline_document(analysis, console.lang), pipeline_payload(analysis), ExitCode.DONE


COMMAND = Command(
    "Find the bottlenecks of a capture.",
    Options,
    run,
    (
        'profiler analyze --data sd3_profiling_data --bottleneck_rules "auto" --output bottleneck_report.json',
        "profiler analyze --bottleneck_rules llm_kv_cache_rules",
    ),
)
