"""``kb show``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kb.domain.event import Event
from kb.domain.impact import Impact
from kb.domain.version import Version, parse_ref
from kb.errors import ExitCode
from kb.recommend.impact import load_impact_weights, reported_impact
from kb.report.impact import impact_line
from kb.report.payload import plain, version_payload
from kb.report.plain import PlainRenderer
from kb.report.records import version_document
from kb.workflow.casebook import Casebook, open_casebook
from kb.workflow.events import warning_of
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which record."""

    ref: Annotated[str, Argument("SLUG (newest), SLUG@N, SLUG@ALIAS, or ORIGIN:SLUG@N.", "RECORD")]
    markdown: Annotated[bool, Flag("--markdown", "As a recipe file: edit it and publish it again.")] = False


def run(options: Options, console: Console) -> int:
    """Print one version."""
    with open_casebook(workspace(), console.progress()) as casebook:
        version = casebook.store.get(parse_ref(options.ref))
        document = version_document(version, casebook.catalogue, console.lang)
        warning = warning_of(casebook.store, version)
        impact = _impact(casebook, version)
    if warning is not None:
        _warn(version, warning, console)
    if options.markdown:
        from kb.library.markdown import write_markdown  # yaml: not on the way to plain output

        console.text(write_markdown(version.record))
    elif console.as_json:
        console.json({**version_payload(version), "impact": None if impact is None else plain(impact)})
    else:
        console.text(PlainRenderer().render(document))
        if impact is not None:
            # Beside the record, which depends on its version only and reads the same for ever.
            console.remark(impact_line(impact, "zh"), impact_line(impact, "en"))
    return ExitCode.DONE


def _impact(casebook: Casebook, version: Version) -> Impact | None:
    if not version.record.sessions:
        return reported_impact(version.record, casebook.catalogue, load_impact_weights())
    from kb.workflow.impact import record_impact  # reads sessions: numpy is not on the way to a record without any

    return record_impact(version.record, casebook.artefacts, casebook.catalogue)


def _warn(version: Version, event: Event, console: Console) -> None:
    """On standard error, so that the record itself reads the same for ever."""
    detail = event.detail
    why = ", ".join(str(detail[key]) for key in ("reason", "note", "software") if key in detail)
    instead = detail.get("replacement")
    use = (f"；请改用 {instead}", f"; use {instead}") if instead else ("", "")
    console.remark(f"警告：{version.ref} {event.kind}（{why}）{use[0]}", f"warning: {version.ref} is {event.kind} ({why}){use[1]}")


COMMAND = Command(
    "Show one record, a pinned version stays the same for ever.",
    Options,
    run,
    ("kb show sd3-attention-unfused", "kb show sd3-attention-unfused@1", "kb show my-model-attention --markdown"),
)
