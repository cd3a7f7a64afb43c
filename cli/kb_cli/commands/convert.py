"""``kb convert``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.workflow.conversion import FORMATS, convert
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """What to read and where to write."""

    source: Annotated[Path, Argument("A profile folder, file or archive.", "IN")]
    folder: Annotated[
        Path, Argument("The folder to write into, a file or folder a rank; or the .prof or trace file of one session.", "OUT")
    ]
    form: Annotated[str, Flag("--to", "The format to write.", "FORMAT", choices=FORMATS)] = "prof"
    redact: Annotated[bool, Flag("--redact", "Mask paths, users, hosts, addresses, job names and secrets.")] = False
    export: Annotated[bool, Flag("--export", "Export raw captures first, with the profiler's own tool (writes into them).")] = False


def run(options: Options, console: Console) -> int:
    """Convert and name what was written."""
    written = convert(options.source, options.folder, options.form, redacted=options.redact, export=options.export)
    if console.as_json:
        console.json({"format": options.form, "written": [str(path) for path in written]})
    else:
        for path in written:
            console.say(f"已写入 {path}", f"wrote {path}")
    return ExitCode.DONE


COMMAND = Command(
    "Write a profile in another format: .prof, Ascend text or database, Chrome trace.",
    Options,
    run,
    (
        "kb convert rank_0_ascend_pt out",
        "kb convert rank_0_ascend_pt rank_0.prof --redact",
        "kb convert run.prof out --to chrome",
        "kb convert cluster out --to ascend-db --redact",
    ),
)
