"""``kb verify``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.domain.version import parse_ref
from kb.errors import ExitCode, UsageError
from kb.report.numbers import percent, signed_percent
from kb.report.payload import comparison_payload, plain
from kb.workflow.casebook import open_casebook
from kb.workflow.verify import Verification, reproduce, verify
from kb.workflow.workspace import workspace
from kb_cli.authorship import author
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which record, and against what."""

    ref: Annotated[str, Argument("SLUG (newest), SLUG@N, or ORIGIN:SLUG@N.", "RECORD")]
    before: Annotated[Path | None, Flag("--before", "A capture of your own before the change: reproduces the record.", "PATH")] = None
    after: Annotated[Path | None, Flag("--after", "A capture of your own after the change.", "PATH")] = None
    software: Annotated[
        tuple[str, ...], Flag("--software", "Software as it is now; a record verified on another version becomes stale.", "NAME=VERSION")
    ] = ()
    author: Annotated[str | None, Flag("--author", "Who verifies; default KB_AUTHOR, else anonymous.", "NAME")] = None


def run(options: Options, console: Console) -> int:
    """Recompute the gain and say what it carries; status 1 when it carries nothing."""
    if (options.before is None) != (options.after is None):
        raise UsageError("--before and --after go together", do="give both, or neither")
    software = dict(_pair(text) for text in options.software)
    ref = parse_ref(options.ref)
    with open_casebook(workspace(), console.progress(), writable=True) as casebook:
        if options.before is not None and options.after is not None:
            found = reproduce(casebook, ref, options.before, options.after, author=author(options.author))
        else:
            found = verify(casebook, ref, author=author(options.author), software=software)
    if console.as_json:
        console.json(_payload(found))
    else:
        _print(found, console)
    return ExitCode.DONE if found.verified else ExitCode.CANNOT


def _pair(text: str) -> tuple[str, str]:
    name, separator, version = text.partition("=")
    if not name or not separator or not version:
        raise UsageError(f"--software {text}", allowed="NAME=VERSION, for example cann=8.1.RC1")
    return name, version


def _payload(found: Verification) -> dict[str, object]:
    return {
        "ref": str(found.version.ref),
        "asked": str(found.asked.ref),
        "verified": found.verified,
        "provenance": found.version.record.provenance,
        "tier_changed": found.version.sha256 != found.asked.sha256,
        "comparison": None if found.comparison is None else comparison_payload(found.comparison),
        "event": None if found.event is None else plain(found.event),
        "reasons": [plain(reason) for reason in found.reasons],
    }


def _print(found: Verification, console: Console) -> None:
    tier, seen = found.version.record.provenance, found.comparison
    if seen is not None:
        low, high = seen.interval
        figures = f"{signed_percent(seen.gain_fraction)} [{percent(low)}, {percent(high)}]"
        console.say(
            f"重算收益 {figures}，噪声 {percent(seen.noise_fraction)}，步数 n = {seen.n[0]} / {seen.n[1]}，判定 {seen.verdict}",
            f"recomputed gain {figures}, noise {percent(seen.noise_fraction)}, steps n = {seen.n[0]} / {seen.n[1]}, verdict {seen.verdict}",
        )
    if found.version.sha256 != found.asked.sha256:
        console.say(f"来源等级改为 {tier}：{found.version.ref}", f"tier set to {tier}: {found.version.ref}")
    if found.verified and found.event is not None:
        console.say(f"{found.version.ref}：{found.event.kind}（{tier}）", f"{found.version.ref}: {found.event.kind} ({tier})")
    elif not found.verified:
        console.say(f"{found.asked.ref} 未通过验证", f"{found.asked.ref} is not verified")
        for reason in found.reasons:
            console.say(f"  {reason.zh}", f"  {reason.en}")


COMMAND = Command(
    "Recompute a record's gain from its attached sessions, or reproduce it with captures of your own.",
    Options,
    run,
    (
        "kb verify my-model-attention",
        "kb verify my-model-attention@2 --software cann=8.1.RC1",
        "kb verify x --before a.prof --after b.prof",
    ),
)
