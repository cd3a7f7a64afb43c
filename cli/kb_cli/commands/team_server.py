"""Commands of the articles that need a server: ``stream``, ``dashboard``, ``share`` and the cloud's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kb.errors import KbError
from kb_cli.command import Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """The articles' options; none has an effect before there is a server."""

    session: Annotated[str, Flag("--session", "A session.", "NAME")] = ""
    view: Annotated[str, Flag("--view", "A live view.")] = ""
    port: Annotated[int, Flag("--port", "Port of the page.", "N")] = 0
    members: Annotated[str, Flag("--members", "Who may see it.", "NAMES")] = ""
    data: Annotated[str, Flag("--data", "A capture to send.", "PATH")] = ""
    analysis_level: Annotated[str, Flag("--analysis_level", "How deep to analyse.", "LEVEL")] = ""
    output: Annotated[str, Flag("--output", "Where to put the answer.", "FILE")] = ""


def run(options: Options, console: Console) -> int:
    """Say where this will come from and what does the job today."""
    del options, console  # nothing is sent anywhere
    raise KbError(
        "this command comes with the team server, which does not exist yet",
        allowed="everything that works on this machine alone",
        do="profiler visualize and profiler report show a session; kb export and kb --store share records; nothing left this machine",
    )


COMMAND = Command(
    "Comes with the team server; answers with what does the job today.",
    Options,
    run,
    ("profiler dashboard --session sd3_profiling --port 8081", "profiler cloud-submit --data sd3_quick.prof --analysis_level deep"),
)
