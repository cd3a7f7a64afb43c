"""``kb simulate article``"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from kb.errors import ExitCode
from kb.workflow.article import lay_down
from kb.workflow.location import shipped_catalogue
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """Where to put the inputs."""

    folder: Annotated[Path, Argument("Folder for the inputs; made when absent.", "DIR")]
    force: Annotated[bool, Flag("--force", "Overwrite files of the same names.")] = False


def run(options: Options, console: Console) -> int:
    """Write the models and profiles, all simulated."""
    written = lay_down(options.folder, shipped_catalogue(), console.progress(), force=options.force)
    if console.as_json:
        console.json({"folder": str(options.folder), "files": [path.name for path in written], "simulated": True})
        return ExitCode.DONE
    for path in written:
        console.line(str(path))
    console.remark("以上均由仿真后端生成，不是实测", "all of it is made by the simulated backend, none is measured")
    return ExitCode.DONE


COMMAND = Command(
    "Lay down every input the articles' commands assume: models, profiles, a fusion file.",
    Options,
    run,
    ("kb simulate article demo",),
)
