"""``kb atc convert``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.domain.text import Text
from kb.errors import ExitCode, UsageError
from kb.profile.simulated.model_files import SUFFIXES
from kb.report.numbers import duration, signed_percent
from kb.report.payload import plain
from kb.session.codec import to_bytes
from kb.tune.rewriting import RULES, Applied
from kb.workflow.fusion_switches import Switches, read_switches
from kb.workflow.location import shipped_catalogue
from kb.workflow.recent import remember
from kb.workflow.simulate import DEFAULT_SOC, options_from
from kb.workflow.subject import named_or_last
from kb.workflow.toolchain import Converted, convert, texts
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import free_name, write_new


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """A model, its fusions, and where the converted model goes."""

    rest: Annotated[tuple[str, ...], Argument("Literally ..., as the articles abbreviate: the model used last.", "[...]")] = ()
    model: Annotated[str, Flag("--model", "A model file (.onnx, .om, .json) or a built-in name; default the one used last.", "MODEL")] = ""
    output: Annotated[Path | None, Flag("--output", "The new model file; default MODEL_converted.om here.", "FILE.om")] = None
    fusion_switch_file: Annotated[
        Path | None, Flag("--fusion_switch_file", "Fusions to switch on or off; without it none beyond the model's own.", "FILE")
    ] = None
    auto_profile: Annotated[
        str, Flag("--auto_profile", "true: profile the result at once, into <output>_baseline.prof.", choices=("true", "false"))
    ] = "false"
    soc: Annotated[str, Flag("--soc_version", "Chip: a name, CORESxMHZ, or a JSON file of your own.", "SOC")] = DEFAULT_SOC
    seed: Annotated[int, Flag("--seed", "Seed of the noise in the profile.", "N", least=0)] = 1
    batch: Annotated[int, Flag("--batch", "Batch size of a built-in model.", "N")] = 1
    set: Annotated[tuple[str, ...], Flag("--set", "Any other option of the simulator; may be given often.", "NAME=VALUE")] = ()
    force: Annotated[bool, Flag("--force", "Overwrite output files.")] = False


def run(options: Options, console: Console) -> int:
    """Rewrite, check, write the model, and its baseline when asked for."""
    named = named_or_last(options.model, options.rest, workspace())
    model = named.model
    if named.remark.en:
        console.remark(named.remark.zh, named.remark.en)
    if options.output is not None and options.output.suffix != ".om":
        raise UsageError(f"--output {options.output}", allowed="a file ending in .om", do=f"--output {options.output.stem}.om")
    output = options.output or free_name(Path(f"{_base(model)}.om"))
    switches = read_switches(options.fusion_switch_file) if options.fusion_switch_file is not None else Switches(on=())
    done = convert(
        model,
        shipped_catalogue(),
        soc=options.soc,
        seed=options.seed,
        options=options_from(options.set, {"batch": options.batch}),
        switches=switches,
        output=str(output),
        switch_file=options.fusion_switch_file,
    )
    files = [output]
    write_new(output, done.om, force=options.force, keep=(Path(model),))
    if options.auto_profile == "true":
        profile = output.with_name(f"{output.stem if options.output else _base(model)}_baseline.prof")
        files.append(profile if options.output else free_name(profile))
        write_new(files[-1], to_bytes(done.baseline), force=options.force)
    remember(workspace(), model=model)
    for remark in (texts().banner, *done.remarks):
        console.remark(f"[仿真] {remark.zh}", f"[simulated] {remark.en}")
    if console.as_json:
        console.json(_payload(done, files))
    else:
        _print(done, files, console)
    return ExitCode.DONE


def _base(model: str) -> str:
    """The usual name of a converted model, without an ending."""
    stem = Path(model).stem if Path(model).suffix in SUFFIXES else Path(model).name
    return f"{stem.removesuffix('_converted')}_converted"


def _print(done: Converted, files: list[Path], console: Console) -> None:
    for item in done.applied:
        console.line(f"  - {_said(item).pick(console.lang)}")
    gain = 1.0 - done.after_ns / done.before_ns if done.before_ns else 0.0
    figures = f"{duration(done.before_ns)} → {duration(done.after_ns)} ({signed_percent(gain)})"
    console.say(f"单步（仿真）：{figures}", f"a step (simulated): {figures}")
    listed = ", ".join(map(str, files))
    console.say(f"已写入 {listed}（仿真）", f"wrote {listed} (simulated)")
    console.say(f"真实工具：{done.command}", f"the real tool: {done.command}")


def _said(item: Applied) -> Text:
    name = RULES[item.rule].name
    why = "; ".join(problem.en for problem in item.problems)
    if item.problems:
        text = Text(f"{name.zh}：破坏图结构，已回退（{why}）", f"{name.en}: would break the graph, rolled back ({why})")
    elif not item.kept:
        text = Text(f"{name.zh}：没有可匹配之处", f"{name.en}: nothing to match")
    else:
        text = Text(f"{name.zh}：{item.removed} 个算子变为 {item.added} 个", f"{name.en}: {item.removed} operators became {item.added}")
    if item.against:
        text = Text(
            f"{text.zh}；与 {', '.join(item.against)} 冲突，先到者优先",
            f"{text.en}; overlaps with {', '.join(item.against)}, which came first",
        )
    return text


def _payload(done: Converted, files: list[Path]) -> dict[str, object]:
    return {
        "origin": "simulated",
        "label": plain(texts().banner),
        "files": [str(path) for path in files],
        "rules": [plain(item) for item in done.applied],
        "before_step_ns": done.before_ns,
        "after_step_ns": done.after_ns,
        "remarks": [plain(remark) for remark in done.remarks],
        "real_command": done.command,
    }


COMMAND = Command(
    "SIMULATED model conversion: fusions checked and rolled back when they break the graph; no device can run the result.",
    Options,
    run,
    (
        "kb atc convert --model sd3 --fusion_switch_file ./sd3_fusion.cfg --auto_profile true --output sd3_fused.om",
        "kb atc convert --model resnet50.onnx --soc_version 310p3",
        "kb atc convert ... --auto_profile true",
    ),
)
