"""The backend for text exports of torch_npu (and the cluster tables made from them)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kb.domain.protocols import Sniff
from kb.errors import UnusableCaptureError
from kb.profile.ascend.cluster import FORMAT as CLUSTER_FORMAT
from kb.profile.ascend.cluster import read_cluster
from kb.profile.ascend.columns import load_aliases
from kb.profile.ascend.layout import OUTPUT, Survey, Unread, survey
from kb.profile.ascend.rank import FORMAT, Reading, read_rank
from kb.profile.ascend.recipes import capture_commands, command, load_expected
from kb.session.meta import Missing
from kb.session.session import Session

ALLOWED: Final = f"a *_ascend_pt folder, the folder that holds one a rank, or {OUTPUT} itself, exported as text"
_UNREAD: Final = {
    "raw": "raw torch_npu capture, not analysed yet",
    "raw_mindspore": "raw MindSpore capture, not analysed yet",
    "raw_msprof": "raw msprof capture, not exported yet",
    "msprof": "msprof export; reading it comes later, torch_npu exports are read now",
    "database": "DB export; reading the DB export comes later; re-export as text",
}
_COMMANDS: Final = {"raw": "analyse", "raw_mindspore": "analyse_mindspore", "raw_msprof": "export", "database": "analyse_text"}


class AscendText:
    """Reads torch_npu text exports; recognises, but refuses with the command to run, what is not exported as text."""

    name: str = FORMAT

    def sniff(self, path: Path) -> Sniff | None:
        """What is at ``path`` by names only, or None. Raises UnusableCaptureError for a folder that cannot be listed."""
        found = survey(path)
        if not found:
            return None
        remarks = tuple(_remark(unread) for unread in found.unread)
        if found.ranks:
            return Sniff(format=FORMAT, roots=tuple(str(rank.root) for rank in found.ranks), remarks=remarks)
        if found.cluster:
            return Sniff(format=CLUSTER_FORMAT, roots=(str(found.cluster.parent),), remarks=remarks)
        return Sniff(format=f"ascend_{found.unread[0].kind}", roots=tuple(str(unread.path) for unread in found.unread), remarks=remarks)

    def load(self, path: Path) -> tuple[Session, ...]:
        """One session a rank, ordered by rank (unknown ranks last). Raises UnusableCaptureError or MalformedInputError."""
        found = survey(path)
        if not found.ranks and not found.cluster:
            raise _refusal(path, found)
        reading = Reading(path, load_aliases(), load_expected())
        if not found.ranks and found.cluster:
            return read_cluster(found.cluster, reading)
        notes = tuple(_notes(found))
        sessions = [read_rank(folder, reading, notes) for folder in found.ranks]
        return tuple(sorted(sessions, key=_order))


def _order(session: Session) -> tuple[bool, int, str]:
    rank = session.meta.rank
    return rank is None, rank or 0, session.meta.name


def _remark(unread: Unread) -> str:
    fix = _COMMANDS.get(unread.kind)
    return f"{unread.path}: {_UNREAD[unread.kind]}" + (f": {command(fix, unread.path)}" if fix else "")


def _notes(found: Survey) -> Iterator[Missing]:
    for unread in found.unread:
        fix = _COMMANDS.get(unread.kind)
        yield Missing(what=f"folder {unread.path.name}", why=_UNREAD[unread.kind], capture=command(fix, unread.path.name) if fix else "")


def _refusal(path: Path, found: Survey) -> UnusableCaptureError:
    if not found.unread:
        return UnusableCaptureError(f"{path}: no text export of torch_npu here", allowed=ALLOWED, do=capture_commands())
    steps = [command(_COMMANDS[unread.kind], unread.path) for unread in found.unread if unread.kind in _COMMANDS]
    do = "run\n    " + "\n    ".join(steps) if steps else capture_commands()
    if any(unread.kind == "database" for unread in found.unread):
        do += "\n  where the raw data was deleted after the export, capture again with export_type=[torch_npu.profiler.ExportType.Text]"
    return UnusableCaptureError("; ".join(f"{unread.path}: {_UNREAD[unread.kind]}" for unread in found.unread), allowed=ALLOWED, do=do)


ASCEND_TEXT: Final = AscendText()
