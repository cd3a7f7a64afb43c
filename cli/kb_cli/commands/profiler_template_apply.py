"""``profiler template-apply``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.domain.catalogue import Catalogue
from kb.domain.template import Template
from kb.errors import ExitCode, UsageError
from kb.report.formats import SUFFIXES, format_of, rendered
from kb.report.numbers import percent
from kb.report.payload import plain
from kb.session.session import Session
from kb.workflow.casebook import open_casebook
from kb.workflow.collect import Wanted, collect_model
from kb.workflow.diagnose import Diagnosed, diagnose_sessions
from kb.workflow.location import shipped_catalogue
from kb.workflow.named import diagnosed_session
from kb.workflow.report import profile_report
from kb.workflow.simulate import DEFAULT_SOC, chip
from kb.workflow.template import TemplateCheck, is_file_name, template_checks, template_in_file, template_named
from kb.workflow.template_making import Compared, against_history
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new

_RESULTS = {"finding": ("有发现", "finding"), "pass": ("通过", "pass"), "not_judged": ("未判断", "not judged")}
_STANDINGS = {
    "new": ("新出现", "new here"),
    "gone": ("已消失", "gone"),
    "better": ("减轻", "better"),
    "worse": ("加重", "worse"),
    "same": ("相同", "the same"),
    "healthy": ("两边都正常", "healthy in both"),
    "not_judged": ("本次未判断", "not judged here"),
    "no_history": ("模板没有历史", "no history in the template"),
}


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which template, on what, into which report."""

    template: Annotated[str, Flag("--template", "A template JSON file or record.", "TEMPLATE")]
    model: Annotated[str, Flag("--model", "A model file or built-in model: it is simulated.", "FILE")] = ""
    session: Annotated[str, Flag("--session", "A capture instead of a model, by path or the beginning of its name.", "NAME")] = ""
    soc: Annotated[str, Flag("--soc", "The chip to simulate on.", "ID")] = DEFAULT_SOC
    output: Annotated[Path | None, Flag("--output", f"The new report: {', '.join(SUFFIXES)}.", "FILE", short="-o")] = None
    force: Annotated[bool, Flag("--force", "Overwrite the report.")] = False


def run(options: Options, console: Console) -> int:
    """Diagnose with the template and say how each check stands against the template's history."""
    if options.model and options.session:
        raise UsageError("--model and --session exclude each other", do="give the model to simulate it, or the session to judge it")
    suffix = format_of(options.output) if options.output is not None else ""
    with open_casebook(workspace(), console.progress()) as casebook:
        template = (
            template_in_file(Path(options.template)) if is_file_name(Path(options.template)) else template_named(casebook, options.template)
        )
        diagnosed = _diagnosed(options, template, console)
        report = profile_report(diagnosed, casebook)
    for session in diagnosed.sessions:
        _say_if_foreign(session, template, console)
    checks, standings = template_checks(diagnosed.diagnosis, template), against_history(diagnosed.diagnosis, template)
    if options.output is not None:
        write_new(options.output, rendered(report, suffix, diagnosed.catalogue, console.lang), force=options.force)
    if console.as_json:
        console.json({"file": str(options.output) if options.output else None, "template": template.slug, "simulated": report.simulated,
                      "checks": [plain(check) for check in checks], "history": [plain(item) for item in standings]})  # fmt: skip
        return ExitCode.DONE
    for check, item in zip(checks, standings, strict=True):
        console.line(_line(check, item, diagnosed.catalogue, console.lang))
    if options.output is not None:
        console.say(f"已写入 {options.output}", f"wrote {options.output}")
    return ExitCode.DONE


def _diagnosed(options: Options, template: Template, console: Console) -> Diagnosed:
    catalogue = shipped_catalogue()
    if not options.model:
        found, remark = diagnosed_session(options.session, workspace(), Path.cwd())
        if remark.en:
            console.remark(remark.zh, remark.en)
        return diagnose_sessions(found.sessions, catalogue, template=template)
    collected = collect_model(Wanted(model=options.model), chip(catalogue, options.soc))
    console.remark("模型由仿真后端运行，数字不是实测", "the model runs on the simulated backend: its figures are not measured")
    for remark in collected.remarks:
        console.remark(remark.zh, remark.en)
    return diagnose_sessions((collected.session,), catalogue, template=template)


def _say_if_foreign(session: Session, template: Template, console: Console) -> None:
    kind = session.meta.model.type
    if kind and template.model_types and kind not in template.model_types:
        made_for = ", ".join(template.model_types)
        console.remark(
            f"模板面向 {made_for}，{session.meta.name} 为 {kind}", f"the template is made for {made_for}; {session.meta.name} is {kind}"
        )


def _line(check: TemplateCheck, item: Compared, catalogue: Catalogue, lang: str) -> str:
    chinese = lang == "zh"
    name = catalogue.cause(check.cause).name
    figures = [("模板 ", "template "), ("本次 ", "here ")]
    shares = [
        (zh if chinese else en) + percent(value)
        for (zh, en), value in zip(figures, (item.before, item.now), strict=True)
        if value is not None
    ]
    limits = ", ".join(f"{key} = {value:g}" for key, value in check.thresholds.items())
    said = [
        _RESULTS[check.result][0 if chinese else 1],
        _STANDINGS[item.standing][0 if chinese else 1],
        *shares,
        *([limits] if limits else []),
    ]
    return f"{name.zh if chinese else name.en} ({check.cause}): {'; '.join(said)}"


COMMAND = Command(
    "Apply a template to a model (simulated) or a session, check by check against the template's history.",
    Options,
    run,
    (
        "profiler template-apply --template diffusion_diagnosis_template.json --model flux_converted.om --output flux_diagnosis_report.pdf",
        "profiler template-apply --template diffusion-bottlenecks --session sd3_profiling",
    ),
)
