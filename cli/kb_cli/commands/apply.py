"""``kb apply``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode, UsageError
from kb.profile.sources import load
from kb.report.comparison import comparison_document
from kb.report.payload import comparison_payload
from kb.report.plain import PlainRenderer
from kb.session.codec import to_bytes
from kb.tune.application import apply
from kb.workflow.location import shipped_catalogue
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """A session and a strategy."""

    session: Annotated[Path, Argument("A simulated session (.prof).", "SESSION")]
    strategy: Annotated[str, Argument("Strategy id from the catalogue.", "STRATEGY")]
    output: Annotated[Path | None, Flag("--output", "Keep the new session in this new .prof file.", "FILE.prof")] = None
    force: Annotated[bool, Flag("--force", "Overwrite the output file.")] = False


def run(options: Options, console: Console) -> int:
    """Apply on the simulated backend, profile again, compare."""
    sessions = load(options.session)
    if len(sessions) != 1:
        raise UsageError(f"{options.session} holds {len(sessions)} sessions", allowed="one", do="name one rank")
    application = apply(sessions[0], options.strategy, shipped_catalogue())
    if options.output is not None:
        write_new(options.output, to_bytes(application.after), force=options.force, keep=(options.session,))
        console.remark(f"已写入 {options.output}", f"wrote {options.output}")
    if console.as_json:
        console.json({"strategy": options.strategy, "comparison": comparison_payload(application.comparison)})
    else:
        console.text(PlainRenderer().render(comparison_document(application.comparison, console.lang)))
    return ExitCode.REGRESSION if application.comparison.verdict == "regressed" else ExitCode.DONE


COMMAND = Command(
    "Try a strategy on the simulated backend and compare; for a real machine, print its commands.",
    Options,
    run,
    ("kb apply sd3.prof use_fused_attention --output sd3_fused.prof",),
)
