"""``kb atc validate-precision``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.report.document import Bullets, Document, Heading, Note, TableBlock
from kb.report.labels import labels
from kb.report.payload import plain
from kb.report.plain import PlainRenderer
from kb.workflow.location import shipped_catalogue
from kb.workflow.simulate import DEFAULT_SOC, options_from
from kb.workflow.subject import named_or_last, subject
from kb.workflow.toolchain import METRICS, Validated, read_metrics, texts, validated
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """A model, the form to check against it, and the metrics."""

    metrics: Annotated[str, Flag("--metrics", f"Split by commas: {', '.join(METRICS)}; others need the real model's outputs.", "NAMES")]
    model: Annotated[str, Flag("--model", "The model; default the one used last.", "MODEL")] = ""
    converted: Annotated[str, Flag("--converted", "The converted model; default --model with the --set options.", "FILE")] = ""
    set: Annotated[tuple[str, ...], Flag("--set", "What conversion changes, as precision=int8; default fused attention.", "NAME=VALUE")] = (
        "fused_attention=true",
    )
    max_loss: Annotated[
        float | None, Flag("--max-loss", "Fraction by which the relative error may grow; else exit status 6.", "FRACTION", least=0, most=1)
    ] = None
    soc: Annotated[str, Flag("--soc_version", "Chip.", "SOC")] = DEFAULT_SOC


def run(options: Options, console: Console) -> int:
    """Emulate the number formats of both forms against float64."""
    metrics = read_metrics(options.metrics)
    named = named_or_last(options.model, (), workspace())
    model = named.model
    if named.remark.en:
        console.remark(named.remark.zh, named.remark.en)
    catalogue = shipped_catalogue()
    before = subject(model, catalogue, soc=options.soc, seed=1, options=options_from((), {})).setup
    changed = options_from(options.set, {}) if not options.converted else options_from((), {})
    after = subject(options.converted or model, catalogue, soc=options.soc, seed=1, options=changed).setup
    done = validated(before, after, metrics)
    console.remark(f"[仿真] {texts().banner.zh}", f"[simulated] {texts().banner.en}")
    if console.as_json:
        console.json(_payload(done, metrics))
    else:
        console.text(PlainRenderer().render(_document(done, metrics, model, console)))
    return ExitCode.REGRESSION if options.max_loss is not None and done.loss > options.max_loss else ExitCode.DONE


def _document(done: Validated, metrics: tuple[str, ...], model: str, console: Console) -> Document:
    words = labels(console.lang)
    known = [name for name in metrics if name in METRICS] or list(METRICS)
    rows = tuple((name, f"{getattr(done.before, name):.6g}", f"{getattr(done.after, name):.6g}") for name in known)
    formats = f"{done.before.format} → {done.after.format}, {words.either('得分', 'scores')} {done.before.scores} → {done.after.scores}"
    lines = [
        words.either(
            f"数值格式 {formats}；{done.after.layers} 层随机权重对照 float64",
            f"formats {formats}; {done.after.layers} layers of random weights against float64",
        ),
        words.either(f"相对误差增加 {100 * done.loss:.4f} %", f"the relative error grows by {100 * done.loss:.4f} %"),
    ]
    tool = texts().precision.format(golden="GOLDEN", output="OUTPUT")
    lines += [
        words.either(
            f"{name}：未判断，需要真实模型的输出；真实工具：{tool}", f"{name}: not judged, needs the real outputs; the real tool: {tool}"
        )
        for name in done.unknown
    ]
    return Document(
        (
            Heading(2, words.either(f"精度校验：{Path(model).name}", f"Precision of {Path(model).name}")),
            Note("simulated", words("simulated")),
            TableBlock((words.either("指标", "metric"), words("before"), words("after")), rows, right=(1, 2)),
            Bullets(tuple(lines)),
        ),
        lang=console.lang,
    )


def _payload(done: Validated, metrics: tuple[str, ...]) -> dict[str, object]:
    return {
        "origin": "simulated",
        "label": plain(texts().banner),
        "metrics": metrics,
        "not_judged": list(done.unknown),
        "before": plain(done.before),
        "after": plain(done.after),
        "loss_fraction": done.loss,
    }


COMMAND = Command(
    "SIMULATED precision check: number formats emulated on random weights; real metrics need the real model's outputs.",
    Options,
    run,
    (
        'kb atc validate-precision --model sd3 --metrics "clip_score"',
        'kb atc validate-precision --model bert-large --set precision=int8 --metrics "relative_error, cosine" --max-loss 0.01',
    ),
)
