"""``kb potential``"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kb.errors import ExitCode
from kb.recommend.limits import read_family
from kb.recommend.potential import Wanted
from kb.report.payload import plain
from kb.report.plain import PlainRenderer
from kb.report.potential import potential_document
from kb.workflow.casebook import open_casebook
from kb.workflow.potential import potential_of
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which strategy, and which cases count."""

    strategy: Annotated[str, Argument("A strategy id or alias.", "STRATEGY")]
    cause: Annotated[str, Flag("--cause", "Only cases of this cause.", "CAUSE")] = ""
    model_type: Annotated[str, Flag("--model-type", "Cases of this model type, where there are enough.", "TYPE")] = ""
    soc: Annotated[str, Flag("--soc", "Cases of this chip or family, or of unknown chips.", "SOC")] = ""


def run(options: Options, console: Console) -> int:
    """Read the outcomes and say what they promise."""
    with open_casebook(workspace(), console.progress()) as casebook:
        wanted = Wanted(
            cause=casebook.catalogue.cause(options.cause).id if options.cause else None,
            model_type=options.model_type or None,
            family=read_family(options.soc, casebook.catalogue),
        )
        found = potential_of(casebook, options.strategy, wanted)
        document = potential_document(found, casebook.catalogue, console.lang)
    if console.as_json:
        console.json(plain(found))
    else:
        console.text(PlainRenderer().render(document))
    return ExitCode.DONE


COMMAND = Command(
    "What a strategy did in past cases, before you try it.",
    Options,
    run,
    ("kb potential use_fused_attention", "kb potential enable_graph_mode --soc A2 --model-type llm --json"),
)
