"""``profiler report``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec.structs import replace

from kb.errors import ExitCode, UsageError
from kb.report.formats import SUFFIXES, format_of, lacking, rendered
from kb.report.report import Report
from kb.text.slug import slug_of
from kb.workflow.casebook import open_casebook
from kb.workflow.key_findings import doubts, key_findings, split_names, with_doubts
from kb.workflow.knowledge import scenario_title
from kb.workflow.named import diagnosed_session
from kb.workflow.report import profile_report
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which session, and the files to write."""

    session: Annotated[str, Flag("--session", "A capture, by path or the beginning of its name; default the last one.", "NAME")] = ""
    formats: Annotated[str, Flag("--format", "Endings to write, separated by commas: pdf, html, md, json.", "LIST")] = ""
    scenario: Annotated[str, Flag("--scenario", "Name of the record the report carries.", "WORDS")] = ""
    key_findings: Annotated[str, Flag("--key_findings", "Causes you expect, by id or alias; those not found are said.", "LIST")] = ""
    output: Annotated[
        Path | None, Flag("--output", "The new file; with --format its name without ending. Default SESSION_report.", "FILE", short="-o")
    ] = None
    force: Annotated[bool, Flag("--force", "Overwrite existing files.")] = False

    def new_files(self) -> tuple[Path, ...]:
        """One a format; without any the one named, or a page."""
        return _targets(self)


def run(options: Options, console: Console) -> int:
    """Diagnose, find similar cases, render, write."""
    asked = options.new_files()
    reasons = {file: lacking(format_of(file)) for file in asked}
    files = tuple(file for file in asked if reasons[file] is None)
    absent = next((reason for reason in reasons.values() if reason is not None), None)
    if absent is not None and not files:
        raise absent
    place = workspace()
    diagnosed, remark = diagnosed_session(options.session, place, Path.cwd())
    if remark.en:
        console.remark(remark.zh, remark.en)
    with open_casebook(place, console.progress()) as casebook:
        report = profile_report(diagnosed, casebook)
    keys = key_findings(split_names(options.key_findings), diagnosed.diagnosis, diagnosed.catalogue)
    for doubt in doubts(keys, diagnosed.catalogue):
        console.remark(doubt.zh, doubt.en)
    report = _named(with_doubts(report, keys, diagnosed.catalogue), options.scenario)
    for file in files:
        write_new(file, rendered(report, format_of(file), diagnosed.catalogue, console.lang), force=options.force)
    if console.as_json:
        console.json({"files": [str(file) for file in files], "findings": len(report.findings), "simulated": report.simulated,
                      "found": keys.found, "not_found": keys.missing, "unknown": keys.unknown})  # fmt: skip
    else:
        for file in files:
            console.say(f"已写入 {file}", f"wrote {file}")
    if absent is not None:
        raise absent
    return ExitCode.INTERNAL if diagnosed.diagnosis.has_fault() else ExitCode.DONE


def _targets(options: Options) -> tuple[Path, ...]:
    stem = options.output or Path(f"{Path(options.session or 'session').stem}_report")
    endings = [f".{name.lstrip('.')}" for name in split_names(options.formats)]
    unknown = [ending for ending in endings if ending not in SUFFIXES]
    if unknown:
        raise UsageError(f"--format does not know {', '.join(unknown)}", allowed=", ".join(SUFFIXES))
    if not endings:
        return (stem if stem.suffix else stem.with_name(f"{stem.name}.html"),)
    bare = stem.with_suffix("") if stem.suffix in SUFFIXES else stem
    return tuple(bare.with_name(f"{bare.name}{ending}") for ending in dict.fromkeys(endings))


def _named(report: Report, scenario: str) -> Report:
    """The report whose record bears the scenario's name; a report without a record has nothing to name."""
    slug = slug_of(scenario, "diagnosis")
    if report.record is None or not slug:
        return report
    return replace(report, record=replace(report.record, slug=slug, title=scenario_title(scenario, report.record.title)))


COMMAND = Command(
    "Write the diagnosis report of a session.",
    Options,
    run,
    (
        'profiler report --session sd3_profiling --format "pdf,html"',
        'profiler report --session sd3_profiling --scenario "stable_diffusion_3_performance_diagnosis" '
        '--key_findings "attention_unfused, tile_size_suboptimal, stream_bubbles" --output sd3_diagnosis_report.pdf',
    ),
)
