"""Job: find the template to apply to profiles, by name, file, or type of model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from kb.diagnose.ruleset import RULES
from kb.diagnose.thresholds import load_thresholds
from kb.domain.catalogue import CauseId
from kb.domain.diagnosis import ClusterDiagnosis, Diagnosis, SessionDiagnosis
from kb.domain.template import Check, Template
from kb.domain.version import parse_ref
from kb.errors import UsageError
from kb.library.decoding import read_content
from kb.library.templates import parse_template
from kb.session.session import Session
from kb.workflow.casebook import Casebook

AUTO: Final = "auto"
"""Instead of a template's name: the one made for the type of model."""


class TemplateCheck(msgspec.Struct, frozen=True):
    """How one check of a template came out, over all ranks, with the thresholds it ran with: those the template sets,
    else the defaults that bear the cause's name."""

    cause: CauseId
    result: Literal["pass", "finding", "not_judged"]
    thresholds: Mapping[str, float]


def template_checks(diagnosis: Diagnosis, template: Template | None) -> tuple[TemplateCheck, ...]:
    """Each check in order: a finding on any rank is a finding, else one healthy rank is a pass, else nothing was judged."""
    parts: tuple[ClusterDiagnosis | SessionDiagnosis, ...] = (diagnosis.cluster, *diagnosis.sessions)
    found = {finding.cause for finding in diagnosis.all_findings()}
    passed = {item.cause for part in parts for item in part.healthy}
    defaults = load_thresholds().values
    wanted = template.checks if template is not None else tuple(Check(cause=cause) for entry in RULES for cause in entry.causes)
    checks = []
    for check in wanted:
        limits = {name: value for name, value in defaults.items() if name.startswith(check.cause)} | dict(check.thresholds)
        result: Literal["pass", "finding", "not_judged"] = "finding" if check.cause in found else "not_judged"
        if result == "not_judged" and check.cause in passed:
            result = "pass"
        checks.append(TemplateCheck(check.cause, result, limits))
    return tuple(checks)


def template_for(casebook: Casebook, sessions: Sequence[Session]) -> Template | None:
    """The template made for the type of model the sessions state; None where none is, or no type is stated.

    Of several the one that names the model itself, then the one for the fewest types, then by slug.
    """
    types = {session.meta.model.type for session in sessions if session.meta.model.type}
    names = {session.meta.model.name.casefold() for session in sessions if session.meta.model.name}
    if len(types) != 1:
        return None
    kind = types.pop()
    records = (casebook.store.get(summary.ref).record for summary in casebook.store.summaries(kinds=("template",)))
    fitting = [record.template for record in records if record.template is not None and kind in record.template.model_types]
    return min(fitting, key=lambda template: _fit(template, names), default=None)


def _fit(template: Template, names: set[str]) -> tuple[bool, int, str]:
    named = any(model.casefold() in name or name in model.casefold() for model in template.models for name in names)
    return not named, len(template.model_types), template.slug


def template_named(casebook: Casebook, name: str) -> Template:
    """A template by file (``*.json``, also with the article's Chinese keys) or by record reference, ``_`` and ``-`` alike."""
    path = Path(name)
    if is_file_name(path):
        return template_in_file(path)
    record = casebook.store.get(parse_ref(name.replace("_", "-"))).record
    if record.template is None:
        raise UsageError(f"{name} is a {record.kind}, not a template", allowed="a record of kind template", do="kb list --kind template")
    return record.template


def is_file_name(path: Path) -> bool:
    """Whether a template's name means a file and not a record."""
    return path.suffix == ".json"


def template_in_file(path: Path) -> Template:
    """The template in a JSON file; no workspace is needed. Raises ContentError for a file that is none."""
    return parse_template(read_content(path), source=path.name)
