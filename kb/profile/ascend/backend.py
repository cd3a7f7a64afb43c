"""The backend for Ascend profiler output: torch_npu, MindSpore, msprof, text and database, and cluster tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kb.domain.sniff import Sniff
from kb.domain.text import Text
from kb.errors import UnusableCaptureError
from kb.profile.ascend.cluster import FORMAT as CLUSTER_FORMAT
from kb.profile.ascend.cluster import read_cluster
from kb.profile.ascend.layout import OUTPUT, RankFolder, RawKind, Survey, Unread, survey
from kb.profile.ascend.rank import DATABASE, TEXT, read_rank
from kb.profile.ascend.reading import reading_of
from kb.profile.ascend.recipes import capture_commands, command
from kb.profile.parallel import in_parallel
from kb.session.meta import Missing
from kb.session.session import Session

ALLOWED: Final = (
    f"a *_ascend_pt or *_ascend_ms folder, PROF_* or OPPROF_* with its export, any folder above, {OUTPUT} itself, or one of their files"
)
_RAW: Final = {
    "raw": Text("原始 torch_npu 采集，尚未解析", "raw torch_npu capture, not analysed yet"),
    "raw_mindspore": Text("原始 MindSpore 采集，尚未解析", "raw MindSpore capture, not analysed yet"),
    "raw_msprof": Text("原始 msprof 采集，尚未导出", "raw msprof capture, not exported yet"),
}
COMMANDS: Final[dict[RawKind, str]] = {"raw": "analyse", "raw_mindspore": "analyse_mindspore", "raw_msprof": "export"}


class Ascend:
    """Reads every export of the Ascend profilers; recognises raw captures and refuses them with the command to run."""

    name: str = "ascend"

    def sniff(self, path: Path) -> Sniff | None:
        """What is at ``path`` by names only, or None. Raises UnusableCaptureError for a folder that cannot be listed."""
        found = survey(path)
        if not found:
            return None
        remarks = (*found.remarks, *(_remark(unread) for unread in found.unread))
        if found.ranks:
            formats = {DATABASE if rank.database else TEXT if rank.kind == "torch_npu" else rank.kind for rank in found.ranks}
            kind = formats.pop() if len(formats) == 1 else "ascend"
            return Sniff(format=kind, roots=tuple(str(rank.root) for rank in found.ranks), remarks=remarks)
        if found.cluster:
            return Sniff(format=CLUSTER_FORMAT, roots=(str(found.cluster.parent),), remarks=remarks)
        return Sniff(format=f"ascend_{found.unread[0].kind}", roots=tuple(str(unread.path) for unread in found.unread), remarks=remarks)

    def load(self, path: Path) -> tuple[Session, ...]:
        """One session a rank, ordered by rank (unknown ranks last). Raises UnusableCaptureError or MalformedInputError."""
        found = survey(path)
        if not found.ranks and not found.cluster:
            raise _refusal(path, found)
        base = path if path.is_dir() else path.parent
        if not found.ranks and found.cluster:
            return read_cluster(found.cluster, reading_of(base))
        notes = tuple(_notes(found))
        jobs = [(folder, base, notes) for folder in found.ranks]
        return tuple(sorted(in_parallel(_read, jobs, sum(map(_size, found.ranks))), key=_order))


def _read(job: tuple[RankFolder, Path, tuple[Missing, ...]]) -> Session:
    folder, base, notes = job
    return read_rank(folder, reading_of(base), notes)


def _size(folder: RankFolder) -> int:
    files = (*folder.files, *(path for path in (folder.database, folder.analysis) if path is not None))
    return sum(path.stat().st_size for path in files)


def _order(session: Session) -> tuple[bool, int, str]:
    rank = session.meta.rank
    return rank is None, rank or 0, session.meta.name


def raw_captures(path: Path) -> tuple[Unread, ...]:
    """Captures at ``path`` that their tool has not exported yet. Raises UnusableCaptureError."""
    return survey(path).unread


def _remark(unread: Unread) -> str:
    return f"{unread.path}: {_RAW[unread.kind].en}: {command(COMMANDS[unread.kind], unread.path)}"


def _notes(found: Survey) -> Iterator[Missing]:
    for unread in found.unread:
        fix = command(COMMANDS[unread.kind], unread.path.name)
        yield Missing(what=f"folder {unread.path.name}", why=_RAW[unread.kind], capture=Text(fix, fix))


def _refusal(path: Path, found: Survey) -> UnusableCaptureError:
    if not found.unread:
        return UnusableCaptureError(f"{path}: no export of an Ascend profiler here", allowed=ALLOWED, do=capture_commands())
    steps = [command(COMMANDS[unread.kind], unread.path) for unread in found.unread]
    what = "; ".join(f"{unread.path}: {_RAW[unread.kind].en}" for unread in found.unread)
    return UnusableCaptureError(what, allowed=ALLOWED, do="run (or let `--export` run)\n    " + "\n    ".join(steps))


ASCEND: Final = Ascend()
