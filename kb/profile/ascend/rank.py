"""One rank folder to one session, from whatever export it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace as changed
from typing import Final

import numpy as np
from msgspec.structs import replace

from kb.domain.soc import SocRef
from kb.errors import MalformedInputError, UnusableCaptureError
from kb.profile.ascend.analysis import read_analysis
from kb.profile.ascend.chip import chip
from kb.profile.ascend.db_rank import read_database
from kb.profile.ascend.gaps import gaps
from kb.profile.ascend.gathered import Gathered
from kb.profile.ascend.layout import RankFolder
from kb.profile.ascend.mark import restored
from kb.profile.ascend.mindspore import read_old
from kb.profile.ascend.opprof import read_opprof
from kb.profile.ascend.oracles import violations
from kb.profile.ascend.part import lost
from kb.profile.ascend.products import products
from kb.profile.ascend.profiler_info import INFO_PATTERN, METADATA, Info, Metadata, rank_in_name, read_info, read_metadata
from kb.profile.ascend.reading import Reading
from kb.profile.ascend.step_trace_time import steps_of
from kb.profile.ascend.text_rank import read_text
from kb.session.builder import Strings
from kb.session.builder import session as made_session
from kb.session.builder import table as made_table
from kb.session.meta import Capture, Missing, SessionMeta, Violation
from kb.session.session import Session, Table

TEXT: Final = "ascend_text"
DATABASE: Final = "ascend_db"
_FORMATS: Final[Mapping[str, str]] = {
    "torch_npu": TEXT, "mindspore": "mindspore_text", "msprof": "msprof_text", "opprof": "msprof_op", "mindspore_old": "mindspore_2.2",
}  # fmt: skip


def read_rank(folder: RankFolder, reading: Reading, notes: Sequence[Missing] = ()) -> Session:
    """The session of one rank. ``notes`` are gaps of the whole import. Raises MalformedInputError naming file and row."""
    strings = Strings()
    info, info_label = _info(folder, reading)
    metadata, metadata_label = _metadata(folder, reading)
    found = _with_analysis(_gathered(folder, reading, strings), folder, reading, strings)
    if "comm_ops" in found.tables and "kernels" in found.tables:
        found.tables["comm_ops"] = _with_exact_starts(found.tables["comm_ops"], found.tables["kernels"], strings)
    if "steps" not in found.tables:
        steps = steps_of(found.tables.get("step_trace"), found.tables.get("kernels"), strings, found.markers)
        if steps is not None:
            found.tables["steps"] = steps
    if not found.tables:
        read = ", ".join(part.label for part in found.parts) or reading.label(folder.root)
        raise UnusableCaptureError(f"{read}: no usable row in {folder.name}", do="export or capture again")
    files = (*info_label, *metadata_label, *(part.label for part in found.parts), *found.files)
    meta = _meta(folder, info, metadata if metadata_label else found.metadata, found, strings, reading, files, notes)
    return restored(made_session(meta, list(found.tables.values()), strings), folder)


def _gathered(folder: RankFolder, reading: Reading, strings: Strings) -> Gathered:
    if folder.kind == "opprof":
        return read_opprof(folder.files, reading, strings)
    if folder.kind == "mindspore_old":
        return read_old(folder.files, reading, strings)
    if folder.database is not None:
        return read_database(folder.database, reading, strings)
    return read_text(products(folder.files), reading, strings)


def _with_analysis(found: Gathered, folder: RankFolder, reading: Reading, strings: Strings) -> Gathered:
    """What ``analysis.db`` adds: everything a text export of this rank lacks; splits of operators beside a main database.

    Beside a text export that has it all, the file is not opened.
    """
    wanted = {"step_trace", "comm_ops", "comm_links"} - (found.tables.keys() - ({"comm_ops"} if folder.database else set()))
    if folder.analysis is None or not wanted:
        return found
    label = reading.label(folder.analysis)
    try:
        part, tables = read_analysis(folder.analysis, label, strings)
    except MalformedInputError as error:
        if not found.tables:
            raise
        return changed(
            found,
            parts=(
                *found.parts,
                changed(found.parts[0], label=label, table=None, dropped=0, violations=(), missing=(lost("step_trace", error),)),
            ),
        )
    taken = {table.name: table for table in tables if table.name in wanted}
    if not taken:
        return found
    known = strings.frozen()
    sources = {known[code] for table in taken.values() for code in np.unique(table["file"]).tolist()}
    return changed(found, tables={**found.tables, **taken}, parts=(*found.parts, part), files=(*found.files, *sorted(sources)))


def _with_exact_starts(comm_ops: Table, kernels: Table, strings: Strings) -> Table:
    """Operators that are also device tasks begin when the task does: the communication files round their starts."""
    talking = kernels.where(kernels["core"] == strings.code("COMMUNICATION"))
    names, first, counts = np.unique(talking["name"], return_index=True, return_counts=True)
    single = dict(zip(names[counts == 1].tolist(), talking["start_ns"][first[counts == 1]].tolist(), strict=True))
    starts = [single.get(name, start) for name, start in zip(comm_ops["name"].tolist(), comm_ops["start_ns"].tolist(), strict=True)]
    return made_table("comm_ops", {**comm_ops.columns, "start_ns": np.array(starts, "<i8")}, strings)


def _info(folder: RankFolder, reading: Reading) -> tuple[Info, tuple[str, ...]]:
    path = min(folder.root.glob(INFO_PATTERN), default=None)
    if path is None:
        return Info(), ()
    label = reading.label(path)
    return read_info(path, label), (label,)


def _metadata(folder: RankFolder, reading: Reading) -> tuple[Metadata, tuple[str, ...]]:
    path = folder.root / METADATA
    if not path.exists():
        return Metadata(), ()
    label = reading.label(path)
    return read_metadata(path, label), (label,)


def _meta(
    folder: RankFolder, info: Info, metadata: Metadata, found: Gathered, strings: Strings, reading: Reading,
    files: Sequence[str], notes: Sequence[Missing],
) -> SessionMeta:  # fmt: skip
    soc = _soc(found, strings)
    rank = next((rank for rank in (info.rank, metadata.rank, found.rank, rank_in_name(folder.name)) if rank is not None), None)
    facts = {"rank": rank, "world_size": metadata.world_size, "soc": soc.cores or soc.reported_name}
    stated = [*notes, *(missing for part in found.parts for missing in part.missing)]
    return SessionMeta(
        name=folder.name,
        origin="measured",
        capture=Capture(
            format=DATABASE if folder.database else _FORMATS[folder.kind],
            level=info.level,
            metrics=info.metrics,
            files=tuple(dict.fromkeys(files)),
            dropped_rows=sum(part.dropped for part in found.parts),
        ),
        rank=rank,
        world_size=metadata.world_size,
        stage=metadata.stage,
        device=next((part.device for part in found.parts if part.device is not None), None),
        parallel=metadata.parallel,
        soc=soc,
        software=info.software,
        environment=metadata.environment,
        missing=gaps(found.tables, [name for name, value in facts.items() if value is None], stated, reading.expected),
        violations=(
            *(violation for part in found.parts for violation in part.violations),
            *_rank_conflict(folder, info, metadata),
            *violations(found.tables.get("kernels"), found.tables.get("step_trace"), strings),
        ),
    )


def _soc(found: Gathered, strings: Strings) -> SocRef:
    counted = chip(found.tables.get("kernels"), found.split_cores, strings)
    if found.soc is None:
        return counted
    return replace(found.soc, cores=counted.cores, clock_mhz=found.soc.clock_mhz or counted.clock_mhz) if counted.cores else found.soc


def _rank_conflict(folder: RankFolder, info: Info, metadata: Metadata) -> tuple[Violation, ...]:
    if info.rank is None or metadata.rank is None or info.rank == metadata.rank:
        return ()
    detail = f"{folder.name}: profiler_info says rank {info.rank}, profiler_metadata says rank {metadata.rank}"
    return (Violation(oracle="all files of a folder belong to one rank", detail=detail, difference_ns=0),)
