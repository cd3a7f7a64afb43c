"""``kb template apply``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.domain.template import Template
from kb.errors import ExitCode
from kb.report.diagnosis import diagnosis_document
from kb.report.payload import diagnosis_payload
from kb.report.plain import PlainRenderer
from kb.session.session import Session
from kb.workflow.casebook import open_casebook
from kb.workflow.diagnose import diagnose_paths
from kb.workflow.template import template_named
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """A template and what to judge with it."""

    template: Annotated[str, Argument("A template record, or a template JSON file.", "TEMPLATE")]
    paths: Annotated[tuple[Path, ...], Argument("Profile folders or files.", "PATH...")]


def run(options: Options, console: Console) -> int:
    """Diagnose with the template's checks and thresholds."""
    with open_casebook(workspace(), console.progress()) as casebook:
        template = template_named(casebook, options.template)
    diagnosed = diagnose_paths(options.paths, template=template)
    for session in diagnosed.sessions:
        _warn_if_foreign(session, template, console)
    if console.as_json:
        console.json(diagnosis_payload(diagnosed.diagnosis))
    else:
        console.text(PlainRenderer().render(diagnosis_document(diagnosed.diagnosis, diagnosed.catalogue, console.lang)))
    return ExitCode.INTERNAL if diagnosed.diagnosis.has_fault() else ExitCode.DONE


def _warn_if_foreign(session: Session, template: Template, console: Console) -> None:
    kind = session.meta.model.type
    if kind and template.model_types and kind not in template.model_types:
        made_for = ", ".join(template.model_types)
        console.remark(
            f"模板 {template.slug} 面向 {made_for}，{session.meta.name} 为 {kind}",
            f"template {template.slug} is made for {made_for}; {session.meta.name} is {kind}",
        )


COMMAND = Command(
    "Judge a profile with a template's checks and thresholds.", Options, run, ("kb template apply diffusion-bottlenecks run.prof",)
)
