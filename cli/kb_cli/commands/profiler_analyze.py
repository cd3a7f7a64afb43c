"""``profiler analyze``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from kb.errors import ExitCode
from kb.report.diagnosis import diagnosis_document
from kb.report.payload import diagnosis_payload
from kb.report.plain import PlainRenderer
from kb.workflow.diagnose import diagnose_paths
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """What to analyse."""

    data: Annotated[Path, Flag("--data", "A profile folder or file.", "PATH")]
    output: Annotated[Path | None, Flag("--output", "Write the diagnosis to this new JSON file.", "FILE.json")] = None


def run(options: Options, console: Console) -> int:
    """Diagnose with every rule."""
    diagnosed = diagnose_paths((options.data,))
    payload = diagnosis_payload(diagnosed.diagnosis)
    if options.output is not None:
        write_new(options.output, msgspec.json.format(msgspec.json.encode(payload), indent=2))
        console.remark(f"已写入 {options.output}", f"wrote {options.output}")
    if console.as_json:
        console.json(payload)
    else:
        console.text(PlainRenderer().render(diagnosis_document(diagnosed.diagnosis, diagnosed.catalogue, console.lang)))
    return ExitCode.INTERNAL if diagnosed.diagnosis.has_fault() else ExitCode.DONE


COMMAND = Command(
    "Find the bottlenecks of a capture.", Options, run, ("profiler analyze --data sd3_profiling_data --output bottleneck_report.json",)
)
