"""``kb fit``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from kb.errors import ExitCode, UsageError
from kb.workflow.casebook import open_casebook
from kb.workflow.fit import fit_field_calibration, keep_calibration
from kb.workflow.gains import fit_gain
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Where to put it."""

    output: Annotated[Path | None, Flag("--output", "Write the calibration to this file instead of the workspace.", "FILE", short="-o")] = (
        None
    )
    force: Annotated[bool, Flag("--force", "Overwrite the file.")] = False
    grown: Annotated[bool, Flag("--grown", "Fit the gains learnt from grown runs again too (a minute or two).")] = False


def run(options: Options, console: Console) -> int:
    """Fit, keep, and say how right it is."""
    if options.output is not None and options.output.exists() and not options.force:
        raise UsageError(f"{options.output} exists", do="choose another name, or --force")
    with open_casebook(workspace(), console.progress()) as casebook:
        calibration = fit_field_calibration(casebook, console.progress())
        path = keep_calibration(casebook, calibration, options.output)
    gains = fit_gain(workspace(), console.progress()) if options.grown else None
    if console.as_json:
        payload = {"file": str(path), "field_causes": msgspec.to_builtins(calibration)}
        console.json(payload | ({"gains": gains} if gains is not None else {}))
    else:
        console.say(
            f"已写入 {path}：{calibration.cases} 个案例、{calibration.groups} 个来源逐一留出；校准误差 {calibration.error:.3f}"
            f"（未校准 {calibration.raw_error:.3f}）",
            f"wrote {path}: {calibration.cases} cases, {calibration.groups} sources left out in turn; "
            f"calibration error {calibration.error:.3f} ({calibration.raw_error:.3f} without)",
        )
        if gains is not None:
            console.say(
                f"已写入 {gains['file']}：{gains['cases']} 个试验结果，校准误差 {gains['calibration_error']:.3f}",
                f"wrote {gains['file']}: {gains['cases']} tried outcomes, calibration error {gains['calibration_error']:.3f}",
            )
    return ExitCode.DONE


COMMAND = Command(
    "Fit again, on your casebook, how far the recommender's probabilities can be trusted.",
    Options,
    run,
    ("kb fit", "kb fit --grown --json"),
)
