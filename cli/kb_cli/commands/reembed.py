"""``kb reembed``"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated

from kb.embed.choice import NAMES, open_embedder
from kb.errors import ExitCode
from kb.report.payload import plain
from kb.workflow.casebook import DEFAULT_EMBEDDER, open_casebook
from kb.workflow.embedding import reembed
from kb.workflow.workspace import workspace
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Which model."""

    embedder: Annotated[str, Flag("--embedder", f"The model: {NAMES}. Default: KB_EMBEDDER, else use.", "NAME")] = ""


def run(options: Options, console: Console) -> int:
    """Embed what has no vectors of the model."""
    name = options.embedder or os.environ.get("KB_EMBEDDER", DEFAULT_EMBEDDER)
    place = workspace()
    with open_casebook(place, console.progress(), writable=True) as casebook:
        embedder = open_embedder(name, cache=place.cache)
        done = reembed(casebook, embedder, console.progress())
    if console.as_json:
        console.json(plain(done))
        return ExitCode.DONE
    console.say(
        f"{done.embedded} 条记录已用 {done.model_id} 编码（共 {done.records} 条，{done.held} 条原来就有）",
        f"{done.embedded} records embedded with {done.model_id} ({done.records} in all, {done.held} had its vectors already)",
    )
    for ref in done.passed_over:
        console.remark(f"{ref} 的最新版本已撤回，只按词语查找", f"{ref}: its newest version is withdrawn, so it is found by words only")
    if name != os.environ.get("KB_EMBEDDER", DEFAULT_EMBEDDER):
        console.remark(f"要用这个模型搜索，请设置 KB_EMBEDDER={name}", f"to search with this model, set KB_EMBEDDER={name}")
    return ExitCode.DONE


COMMAND = Command(
    "Give every record vectors of another model, for searching by meaning.",
    Options,
    run,
    ("kb reembed", "kb reembed --embedder st:./my-model", "kb reembed --embedder st:intfloat/multilingual-e5-small --json"),
)
