"""``kb export``"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, get_args

from kb.domain.version import Visibility
from kb.errors import ConflictError, ExitCode
from kb.report.payload import plain
from kb.workflow.archive import write_zip
from kb.workflow.casebook import Casebook, open_casebook
from kb.workflow.transfer import Exported, export
from kb.workflow.workspace import workspace
from kb_cli.command import Argument, Command, Common, Flag
from kb_cli.console import Console

_VISIBILITIES: tuple[Visibility, ...] = get_args(Visibility)


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """What, and where to."""

    target: Annotated[Path, Argument("A folder (made or brought up to date), or a new .zip file.", "TARGET")]
    slug: Annotated[tuple[str, ...], Flag("--slug", "Only this record; may be repeated.", "SLUG")] = ()
    visibility: Annotated[
        tuple[str, ...], Flag("--visibility", "Only records of this visibility; may be repeated.", choices=_VISIBILITIES)
    ] = ()


def run(options: Options, console: Console) -> int:
    """Write the records of this workspace as files."""
    with open_casebook(workspace(), console.progress()) as casebook:
        done = _zipped(options, casebook) if options.target.suffix == ".zip" else _written(options, casebook, options.target)
    if console.as_json:
        console.json({"target": str(options.target), **plain(done)})
    else:
        counts = f"{done.records} / {done.versions} / {done.sessions}"
        console.say(
            f"已导出到 {options.target}：记录 / 版本 / 采集 {counts}",
            f"exported to {options.target}: records / versions / sessions {counts}",
        )
    return ExitCode.DONE


def _written(options: Options, casebook: Casebook, folder: Path) -> Exported:
    visibilities = tuple(known for known in _VISIBILITIES if known in options.visibility)
    return export(casebook, folder, slugs=options.slug, visibilities=visibilities)


def _zipped(options: Options, casebook: Casebook) -> Exported:
    if options.target.exists():
        raise ConflictError(f"{options.target} exists", allowed="a new file", do="choose another name")
    with tempfile.TemporaryDirectory(dir=options.target.absolute().parent) as folder:
        done = _written(options, casebook, Path(folder) / "export")
        packed = Path(folder) / "packed.zip"
        write_zip(Path(folder) / "export", packed)
        packed.rename(options.target)
    return done


COMMAND = Command(
    "Write your records as files that git can merge.",
    Options,
    run,
    ("kb export ./casebook", "kb export team.zip --visibility team --visibility public"),
)
