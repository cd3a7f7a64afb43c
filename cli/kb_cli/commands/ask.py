"""``kb ask``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.domain.text import Text
from kb.errors import ExitCode, NotFoundError, UsageError
from kb.report.payload import plain
from kb.text.language import chinese_share
from kb.workflow.ask import Reply, ask
from kb.workflow.casebook import open_casebook
from kb.workflow.diagnose import Diagnosed
from kb.workflow.named import diagnosed_session
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console

LONGEST = 2000
"""Characters of a question; a longer text is a search, not a question."""


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """The question, and the session it is about."""

    question: Annotated[tuple[str, ...], Argument("The question, in Chinese or English.", "QUESTION...")]
    session: Annotated[str, Flag("--session", "A capture, by path or the beginning of its name; default the last one.", "NAME")] = ""


def run(options: Options, console: Console) -> int:
    """Answer, with citations; exit 1 when nothing known speaks to the question."""
    question = " ".join(options.question).strip()
    if not question or len(question) > LONGEST:
        raise UsageError("the question is empty or too long", allowed=f"1 to {LONGEST} characters", do="kb search takes long texts")
    diagnosed, remark = _session(options.session)
    console.remark(remark.zh, remark.en)
    with open_casebook(workspace(), console.progress()) as casebook:
        reply = ask(question, diagnosed, casebook)
    if console.as_json:
        console.json(plain(reply))
    else:
        _show(reply, question if not options.lang else "", console)
    return ExitCode.DONE if reply.answered else ExitCode.CANNOT


def _session(name: str) -> tuple[Diagnosed | None, Text]:
    """The session asked about; none named and none there is no error, the casebook can still answer."""
    try:
        diagnosed, remark = diagnosed_session(name, workspace(), Path.cwd())
    except NotFoundError:
        if name:
            raise
        return None, Text(zh="这里没有采集", en="there is no capture here")
    named = diagnosed.sessions[0].meta.name
    return diagnosed, remark if remark.en else Text(zh=f"采集：{named}", en=f"session: {named}")


def _show(reply: Reply, question: str, console: Console) -> None:
    """The answer in the language of the question, unless ``--lang`` says otherwise."""
    chinese = chinese_share(question) > 0.2 if question else console.lang == "zh"  # a few English names do not make a question English
    if reply.simulated:
        console.line("[仿真 / simulated]")
    for item in reply.said:
        marks = "".join(f"[{mark}]" for mark in item.cites)
        console.line(f"- {item.text.zh if chinese else item.text.en} {marks}".rstrip())
    if reply.note.en:
        console.line(reply.note.zh if chinese else reply.note.en)
    for place, cite in enumerate(reply.citations, start=1):
        console.line(f"  [{place}] {cite}")


COMMAND = Command(
    "Answer a question about a session from its findings and the casebook, with citations.",
    Options,
    run,
    ('kb ask "为什么 Attention 耗时高？"', 'kb ask "where does the idle time come from?" --session sd3_profiling'),
)
