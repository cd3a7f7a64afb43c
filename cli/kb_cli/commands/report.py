"""``kb report``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.domain.catalogue import Catalogue
from kb.errors import ContentError, ExitCode, StoreError, UsageError
from kb.profile.sources import load
from kb.report.formats import SUFFIXES, format_of, lacking, rendered
from kb.report.report import Report
from kb.workflow.casebook import open_casebook
from kb.workflow.diagnose import Diagnosed, diagnose_paths
from kb.workflow.location import shipped_catalogue
from kb.workflow.report import profile_report, record_report, saved_report, with_comparison
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """What to report on, and the file to write."""

    sources: Annotated[tuple[str, ...], Argument("Profiles, a report file or saved diagnosis (.json), or one record's SLUG.", "SOURCE...")]
    output: Annotated[
        Path | None, Flag("--output", f"The new file; its ending is the format: {', '.join(SUFFIXES)}.", "FILE", short="-o")
    ] = None
    after: Annotated[Path | None, Flag("--after", "The profile after a change: the report compares.", "PATH")] = None
    force: Annotated[bool, Flag("--force", "Overwrite the output file.")] = False
    no_cases: Annotated[bool, Flag("--no-cases", "Leave out similar cases and strategies (faster; no casebook is opened).")] = False
    static: Annotated[bool, Flag("--static", "HTML without the chart library: a small file of still pictures.")] = False


def run(options: Options, console: Console) -> int:
    """Gather, render, write."""
    if options.output is None:
        raise UsageError(
            "no file to write", allowed=f"--output FILE with one of {', '.join(SUFFIXES)}", do="kb report SOURCE --output report.html"
        )
    suffix = format_of(options.output)
    missing = lacking(suffix)
    if missing is not None:
        raise missing
    report, catalogue = _gathered(options, console)
    content = rendered(report, suffix, catalogue, console.lang, interactive=not options.static)
    write_new(options.output, content, force=options.force)
    size = len(content.encode() if isinstance(content, str) else content)
    if console.as_json:
        console.json(
            {
                "file": str(options.output),
                "format": suffix.lstrip("."),
                "size_bytes": size,
                "findings": len(report.findings),
                "simulated": report.simulated,
            }
        )
    else:
        console.say(f"已写入 {options.output}（{size:,} 字节）", f"wrote {options.output} ({size:,} bytes)")
    return ExitCode.INTERNAL if report.diagnosis is not None and report.diagnosis.has_fault() else ExitCode.DONE


def _gathered(options: Options, console: Console) -> tuple[Report, Catalogue]:
    paths = tuple(map(Path, options.sources))
    if len(paths) == 1:
        saved = saved_report(paths[0])
        if saved is not None:
            return saved, shipped_catalogue()
    missing = [path for path in paths if not path.exists()]
    if missing and len(paths) > 1:
        raise UsageError(f"{missing[0]} does not exist", allowed="paths, or one record", do="check the spelling")
    if missing:
        with open_casebook(workspace(), console.progress()) as casebook:
            return record_report(casebook, options.sources[0]), casebook.catalogue
    diagnosed = diagnose_paths(paths)
    report = _diagnosed(diagnosed, options, console)
    if options.after is not None:
        report = with_comparison(report, diagnosed.sessions, load(options.after), diagnosed.catalogue)
    return report, diagnosed.catalogue


def _diagnosed(diagnosed: Diagnosed, options: Options, console: Console) -> Report:
    if options.no_cases:
        return profile_report(diagnosed, None)
    try:
        with open_casebook(workspace(), console.progress()) as casebook:
            return profile_report(diagnosed, casebook)
    except (ContentError, StoreError) as error:
        # The diagnosis does not depend on the casebook: a damaged one costs its chapter, not the report.
        console.remark(f"报告不含案例：{error}", f"the report has no cases: {error}")
        return profile_report(diagnosed, None)


COMMAND = Command(
    "Write a report that people read, print and forward: HTML, PDF, Markdown or JSON.",
    Options,
    run,
    (
        "kb report run.prof --output report.html",
        "kb report path/to/cluster --output report.pdf --lang zh",
        "kb report before.prof --after after.prof -o change.html",
        "kb report report.html --output report.md",
        "kb report sd3-attention-unfused --output recipe.html",
    ),
)
