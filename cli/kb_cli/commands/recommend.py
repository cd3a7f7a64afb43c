"""``kb recommend``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.domain.field import FieldQuestion
from kb.domain.quantity import noted
from kb.errors import ExitCode, UsageError
from kb.report.answers import recommendation_document
from kb.report.field import field_document
from kb.report.payload import field_payload, recommendation_payload
from kb.report.plain import PlainRenderer
from kb.workflow.casebook import open_casebook
from kb.workflow.diagnose import diagnose_paths
from kb.workflow.field import ask_field
from kb.workflow.recommend import recommend_for
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Flag
from kb_cli.console import Console
from kb_cli.limits import LimitOptions, check_family, constraints_of


@dataclass(frozen=True, kw_only=True)
class Options(LimitOptions):
    """A profile, or a problem in words, and the constraints to respect."""

    paths: Annotated[tuple[Path, ...], Argument("Profile folders or files; none with --symptom.", "PATH...")] = ()
    symptom: Annotated[str, Flag("--symptom", "What you see, in Chinese or English, where there is no profile.")] = ""
    metric: Annotated[tuple[str, ...], Flag("--metric", "A figure you noted; may be repeated.", "NAME=VALUE")] = ()
    model: Annotated[str, Flag("--model", "With --symptom: the model that runs.")] = ""
    workload: Annotated[str, Flag("--workload", "With --symptom: training or inference, batch, devices ...")] = ""
    hardware: Annotated[str, Flag("--hardware", "With --symptom: the machine as you would name it.")] = ""


def run(options: Options, console: Console) -> int:
    """Diagnose, find cases, rank; or read the symptom and say what it may be."""
    if options.symptom:
        return _told(options, console)
    if not options.paths:
        raise UsageError("no profile and no symptom", allowed="PATH..., or --symptom TEXT", do="kb recommend run.prof")
    if any((options.metric, options.model, options.workload, options.hardware)):
        raise UsageError("--metric, --model, --workload and --hardware go with --symptom", do="leave them out: a profile says so itself")
    diagnosed = diagnose_paths(options.paths)
    with open_casebook(workspace(), console.progress()) as casebook:
        constraints = constraints_of(options, casebook.catalogue)
        check_family(constraints.soc_family, diagnosed)
        recommendation = recommend_for(casebook, diagnosed, constraints, samples=options.samples)
        document = recommendation_document(recommendation, casebook.catalogue, console.lang)
    if console.as_json:
        console.json(recommendation_payload(recommendation))
    else:
        console.text(PlainRenderer().render(document))
    return ExitCode.DONE if recommendation.feasible else ExitCode.INFEASIBLE


def _told(options: Options, console: Console) -> int:
    if options.paths:
        raise UsageError("a profile and --symptom", allowed="one of the two", do="a profile says more: leave --symptom out")
    if options.target != "latency" or any((options.max_latency, options.max_memory, options.min_throughput, options.samples)):
        raise UsageError("targets and limits on latency, memory and throughput need a profile", do="leave them out, or give a PATH")
    with open_casebook(workspace(), console.progress()) as casebook:
        constraints = constraints_of(options, casebook.catalogue)
        answer = ask_field(casebook, _question(options), constraints)
        document = field_document(answer, casebook.catalogue, console.lang)
    if console.as_json:
        console.json(field_payload(answer))
    else:
        console.text(PlainRenderer().render(document))
    return ExitCode.DONE if answer.strategies else ExitCode.INFEASIBLE


def _question(options: Options) -> FieldQuestion:
    metrics = dict(_metric(text) for text in options.metric)
    return FieldQuestion(
        symptom=options.symptom, metrics=metrics, hardware=options.hardware, model=options.model, workload=options.workload
    )


def _metric(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise UsageError(f"--metric {text}", allowed="NAME=VALUE, as step_time=90ms")
    return name.strip(), noted(value)


COMMAND = Command(
    "Rank strategies for a profile, with an honest expected gain; or say what a symptom may be.",
    Options,
    run,
    (
        "kb recommend rank_0_ascend_pt",
        "kb recommend run.prof --max-latency 100ms --no-model-change --json",
        "kb recommend run.prof --target memory --max-memory 2.5GB --max-precision-loss 0.1%",
        "kb recommend --symptom 'idle between steps, loader queue empty' --metric step_time=90ms --workload 'training, 1 card'",
    ),
)
