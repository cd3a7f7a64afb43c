"""``kb template apply``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.domain.template import Template
from kb.errors import ExitCode
from kb.report.diagnosis import diagnosis_document
from kb.report.payload import diagnosis_payload, plain
from kb.report.plain import PlainRenderer
from kb.session.session import Session
from kb.workflow.casebook import open_casebook
from kb.workflow.diagnose import diagnose_sessions, load_paths
from kb.workflow.location import shipped_catalogue
from kb.workflow.template import AUTO, TemplateCheck, template_checks, template_for, template_named
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """A template and what to judge with it."""

    template: Annotated[str, Argument("A template record, a template JSON file, or auto (by the type of model).", "TEMPLATE")]
    paths: Annotated[tuple[Path, ...], Argument("Profile folders or files.", "PATH...")]


def run(options: Options, console: Console) -> int:
    """Diagnose with the template's checks and thresholds."""
    sessions = load_paths(options.paths)
    with open_casebook(workspace(), console.progress()) as casebook:
        automatic = options.template == AUTO
        template = template_for(casebook, sessions) if automatic else template_named(casebook, options.template)
    diagnosed = diagnose_sessions(sessions, shipped_catalogue(), template=template)
    if template is None:
        console.remark("没有面向这类模型的模板：使用全部规则", "no template is made for this type of model: every rule is used")
    else:
        for session in sessions:
            _warn_if_foreign(session, template, console)
    checks = template_checks(diagnosed.diagnosis, template)
    if console.as_json:
        console.json({**diagnosis_payload(diagnosed.diagnosis), "checks": [plain(check) for check in checks]})
    else:
        console.text(PlainRenderer().render(diagnosis_document(diagnosed.diagnosis, diagnosed.catalogue, console.lang)))
        for check in checks:
            console.text(_line(check, console.lang))
    return ExitCode.INTERNAL if diagnosed.diagnosis.has_fault() else ExitCode.DONE


def _line(check: TemplateCheck, lang: str) -> str:
    words = {"finding": ("有发现", "finding"), "pass": ("通过", "pass"), "not_judged": ("未判断", "not judged")}[check.result]
    limits = ", ".join(f"{name} = {value:g}" for name, value in check.thresholds.items())
    return f"  {check.cause}: {words[0] if lang == 'zh' else words[1]}" + (f" ({limits})" if limits else "")


def _warn_if_foreign(session: Session, template: Template, console: Console) -> None:
    kind = session.meta.model.type
    if kind and template.model_types and kind not in template.model_types:
        made_for = ", ".join(template.model_types)
        console.remark(
            f"模板 {template.slug} 面向 {made_for}，{session.meta.name} 为 {kind}",
            f"template {template.slug} is made for {made_for}; {session.meta.name} is {kind}",
        )


COMMAND = Command(
    "Judge a profile with a template's checks and thresholds.",
    Options,
    run,
    ("kb template apply diffusion-bottlenecks run.prof", "kb template apply auto run.prof --json"),
)
