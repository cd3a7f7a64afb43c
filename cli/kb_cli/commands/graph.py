"""``kb graph``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args

from kb.domain.provenance import TIERS
from kb.errors import ExitCode, UsageError
from kb.report.numbers import signed_percent
from kb.workflow.casebook import open_casebook
from kb.workflow.graph import NodeKind, graph_json, graph_ml, knowledge_graph
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console
from kb_cli.files import write_new

_SUFFIXES = (".json", ".graphml")
_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """What of the graph, and where it goes."""

    output: Annotated[Path | None, Flag("--output", "The new file; its ending is the format: .json or .graphml.", "FILE", short="-o")] = (
        None
    )
    around: Annotated[str, Flag("--around", "Only what is next to this cause, strategy, model or chip.", "ID")] = ""
    min_provenance: Annotated[str, Flag("--min-provenance", "Leave out outcomes of weaker tiers.", choices=TIERS)] = "claimed"
    force: Annotated[bool, Flag("--force", "Overwrite the output file.")] = False


def run(options: Options, console: Console) -> int:
    """Build the graph; write it, or say what is in it."""
    if options.output is not None and options.output.suffix not in _SUFFIXES:
        raise UsageError(f"{options.output.name}: no graph format ends like this", allowed=", ".join(_SUFFIXES))
    tier = next(item for item in TIERS if item == options.min_provenance)
    with open_casebook(workspace(), console.progress()) as casebook:
        graph = knowledge_graph(casebook, around=options.around, min_provenance=tier)
    if options.output is not None:
        content = graph_json(graph) if options.output.suffix == ".json" else graph_ml(graph, console.lang)
        write_new(options.output, content, force=options.force)
        console.remark(f"已写入 {options.output}", f"wrote {options.output}")
    if console.as_json:
        console.line(graph_json(graph).decode())
        return ExitCode.DONE
    counts = ", ".join(f"{kind} {graph.count(kind)}" for kind in get_args(NodeKind))
    console.say(
        f"{len(graph.nodes)} 个节点（{counts}），{len(graph.edges)} 条边", f"{len(graph.nodes)} nodes ({counts}), {len(graph.edges)} edges"
    )
    outcomes = sorted((node for node in graph.nodes if node.kind == "outcome"), key=lambda node: -sum(node.counts))
    for node in outcomes[:_SHOWN]:
        gain = "" if node.gain_fraction is None else f", {signed_percent(node.gain_fraction)}"
        console.line(f"  {node.id.removeprefix('outcome:')}: {node.name.pick(console.lang)}{gain} ({node.provenance})")
    return ExitCode.DONE


COMMAND = Command(
    "The knowledge graph of the casebook: causes, strategies, models, chips and outcomes, as JSON or GraphML.",
    Options,
    run,
    ("kb graph", "kb graph --output casebook.graphml", "kb graph --around unfused_attention --min-provenance simulated --json"),
)
