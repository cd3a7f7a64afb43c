"""``cluster_step_trace_time.csv`` and ``communication_group.json``: the steps of all ranks without their kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from kb.domain.text import Text
from kb.errors import MalformedInputError, UnusableCaptureError
from kb.profile.ascend.cells import whole_number
from kb.profile.ascend.csv_table import CsvTable
from kb.profile.ascend.document import read_json
from kb.profile.ascend.gaps import gaps
from kb.profile.ascend.oracles import violations
from kb.profile.ascend.part import schema_table
from kb.profile.ascend.reading import Reading
from kb.profile.ascend.step_trace_time import steps_of
from kb.profile.ascend.table import read_table
from kb.session.builder import Strings
from kb.session.builder import session as made_session
from kb.session.meta import Capture, Group, Missing, Parallel, SessionMeta
from kb.session.session import Array, Session

FORMAT = "ascend_cluster"
GROUPS = "communication_group.json"
_LARGEST_RANK: Final = 10**6
_ONLY_STEPS: Final = Missing(
    what="kernels",
    why=Text("集群表只有各卡的步，没有算子", "the cluster tables hold the steps of every rank, not their kernels"),
    capture=Text("改为给出包含各卡文件夹的目录", "give the folder of rank folders instead"),
)


class _Groups(msgspec.Struct, frozen=True):
    collective: list[list[int]] = []
    p2p: list[list[int]] = []


@dataclass(frozen=True, slots=True)
class _Cluster:
    read: CsvTable
    label: str
    ranks: Array
    stages: Mapping[int, int]
    groups: tuple[Group, ...]
    world_size: int | None
    files: tuple[str, ...]


def read_cluster(path: Path, reading: Reading) -> tuple[Session, ...]:
    """One session a ``rank`` row's index, with ``step_trace`` and ``steps`` only, ordered by rank.

    ``stage`` comes from the PP Index column, else from the rank tuples of the ``stage`` rows. Raises
    MalformedInputError naming file and row, UnusableCaptureError when there is no rank row.
    """
    strings = Strings()
    label = reading.label(path)
    read = read_table(path, label, reading.aliases["step_trace_time"], strings)
    if "type" not in read.columns or "index" not in read.columns:
        raise MalformedInputError(f"{label}:1: no columns Type and Index", allowed="the table the cluster analysis writes")
    known = strings.frozen()
    is_rank = read.columns["type"] == strings.code("rank")
    ranks = _ranks(read, is_rank, known, label)
    groups, world_size, files = _groups(path.parent / GROUPS, reading)
    table = read.where(is_rank)
    cluster = _Cluster(table, label, ranks, _stages(read, is_rank, ranks, known, strings), groups, world_size, (label, *files))
    if not len(ranks):
        raise UnusableCaptureError(f"{label}: no row of type rank", do="run the cluster analysis again, or give the rank folders")
    return tuple(_session(cluster, int(rank), known, reading) for rank in np.unique(ranks))


def _ranks(read: CsvTable, is_rank: Array, known: Sequence[str], label: str) -> Array:
    found = []
    for index in np.flatnonzero(is_rank):
        code = read.columns["index"][index]
        try:
            found.append(whole_number(known[code] if code >= 0 else "x", _LARGEST_RANK))
        except ValueError as error:
            raise MalformedInputError(f"{label}:{read.lines[index]}: Index is not a rank: {error}", allowed="a whole number") from error
    return np.array(found, dtype="<i4")


def _stages(read: CsvTable, is_rank: Array, ranks: Array, known: Sequence[str], strings: Strings) -> Mapping[int, int]:
    if "pipeline" in read.columns:
        return dict(zip(ranks.tolist(), read.columns["pipeline"][is_rank].tolist(), strict=True))
    codes = read.columns["index"][read.columns["type"] == strings.code("stage")]
    members = {tuple(sorted({int(text) for text in re.findall(r"\d{1,6}", known[code], re.ASCII)})) for code in codes if code >= 0}
    return {rank: stage for stage, group in enumerate(sorted(members)) for rank in group}


def _groups(path: Path, reading: Reading) -> tuple[tuple[Group, ...], int | None, tuple[str, ...]]:
    if not path.exists():
        return (), None, ()
    label = reading.label(path)
    document, _ = read_json(path, label, _Groups)
    named = [(f"{kind}_{index}", members) for kind in ("collective", "p2p") for index, members in enumerate(getattr(document, kind))]
    groups = tuple(Group(name=name, dimension="unknown", ranks=tuple(members)) for name, members in named if len(members) > 1)
    everyone = {rank for _, members in named for rank in members}
    return groups, len(everyone) or None, (label,)


def _session(cluster: _Cluster, rank: int, known: Sequence[str], reading: Reading) -> Session:
    strings = Strings()
    rows = cluster.read.where(cluster.ranks == rank)
    step_codes = (
        strings.codes([known[code] if code >= 0 else None for code in rows.columns["step_id"]]) if "step_id" in rows.columns else None
    )
    extra = {} if step_codes is None else {"step_id": step_codes}
    table = schema_table("step_trace", rows, cluster.label, strings, extra)
    steps = steps_of(table, None, strings)
    tables = {made.name: made for made in (table, steps) if made is not None}
    lacking = ["soc", *(["world_size"] if cluster.world_size is None else [])]
    stage = cluster.stages.get(rank, -1)
    meta = SessionMeta(
        name=f"rank{rank}",
        origin="measured",
        capture=Capture(format=FORMAT, files=cluster.files, dropped_rows=cluster.read.dropped),
        rank=rank,
        world_size=cluster.world_size,
        stage=stage if stage >= 0 else None,
        parallel=Parallel(groups=tuple(group for group in cluster.groups if rank in group.ranks)),
        missing=gaps(tables, lacking, (_ONLY_STEPS,), reading.expected),
        violations=violations(None, table, strings),
    )
    return made_session(meta, list(tables.values()), strings)
