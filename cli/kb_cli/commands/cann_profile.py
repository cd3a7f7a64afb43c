"""``cann-profile``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.domain.text import Text
from kb.errors import ExitCode, UsageError
from kb.report.diagnosis import diagnosis_document
from kb.report.formats import format_of, rendered
from kb.report.plain import PlainRenderer
from kb.session.codec import to_bytes
from kb.workflow.casebook import open_casebook
from kb.workflow.profiling import data_remark, profile_model
from kb.workflow.report import profile_report
from kb.workflow.simulate import DEFAULT_SOC, options_from
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """A model, its input, and where the report goes."""

    model: Annotated[str, Flag("--model", "A model file (.om, .onnx, .json) or a built-in name.", "MODEL")]
    data: Annotated[Path | None, Flag("--data", "Input data; the simulator needs its shapes only.", "FILE")] = None
    output: Annotated[Path, Flag("--output", "The new report; a .json and a .prof of the same name come beside it.", "FILE.html")] = Path(
        "report.html"
    )
    soc: Annotated[str, Flag("--soc", "Chip: a name, CORESxMHZ, or a JSON file of your own.", "SOC")] = DEFAULT_SOC
    seed: Annotated[int, Flag("--seed", "Seed of the noise.", "N", least=0)] = 1
    batch: Annotated[int, Flag("--batch", "Batch size.", "N")] = 1
    set: Annotated[tuple[str, ...], Flag("--set", "Any other option of the simulator; may be given often.", "NAME=VALUE")] = ()
    force: Annotated[bool, Flag("--force", "Overwrite the output files.")] = False


def run(options: Options, console: Console) -> int:
    """Simulate, diagnose, find cases, recommend, and write all of it."""
    suffix = format_of(options.output)
    if suffix == ".json":
        raise UsageError("--output names the JSON file", allowed=".html, .pdf or .md", do="the JSON comes beside it by itself")
    record, capture = options.output.with_suffix(".json"), options.output.with_suffix(".prof")
    with open_casebook(workspace(), console.progress()) as casebook:
        own = options_from(options.set, {"batch": options.batch})
        done = profile_model(options.model, casebook.catalogue, soc=options.soc, seed=options.seed, options=own)
        report = profile_report(done.diagnosed, casebook)
        write_new(capture, to_bytes(done.session), force=options.force)
        write_new(record, rendered(report, ".json", casebook.catalogue, console.lang), force=options.force)
        write_new(options.output, rendered(report, suffix, casebook.catalogue, console.lang), force=options.force)
        document = diagnosis_document(done.diagnosed.diagnosis, casebook.catalogue, console.lang)
    for remark in (done.remark, data_remark(options.data)):
        _remark(remark, console)
    if console.as_json:
        files = [str(path) for path in (options.output, record, capture)]
        console.json({"files": files, "origin": "simulated", "model": done.session.meta.model.name, "findings": len(report.findings)})
        return ExitCode.DONE
    console.text(PlainRenderer().render(document))
    console.say(
        f"已写入 {options.output}、{record}、{capture}（仿真）\n接下来：cann-tune --profile {record} --target latency --apply",
        f"wrote {options.output}, {record}, {capture} (simulated)\nnext: cann-tune --profile {record} --target latency --apply",
    )
    return ExitCode.DONE


def _remark(text: Text, console: Console) -> None:
    if text.en:
        console.remark(text.zh, text.en)


COMMAND = Command(
    "Profile a model in one command, on the simulated backend: report.html, report.json and the capture.",
    Options,
    run,
    (
        "cann-profile --model bert.om --data test.bin --output report.html",
        "cann-profile --model sd3 --soc 910b4 --output sd3.pdf",
    ),
)
