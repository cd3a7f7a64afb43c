"""One rank folder to one session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kb.profile.ascend import api_statistic, communication, kernel_details, memory_record, operator_memory, step_trace_time
from kb.profile.ascend.chip import chip
from kb.profile.ascend.columns import Specs
from kb.profile.ascend.gaps import gaps
from kb.profile.ascend.layout import RankFolder
from kb.profile.ascend.oracles import violations
from kb.profile.ascend.part import Part
from kb.profile.ascend.profiler_info import INFO_PATTERN, METADATA, Info, Metadata, rank_in_name, read_info, read_metadata
from kb.profile.ascend.recipes import Expected
from kb.session.builder import Strings
from kb.session.builder import session as made_session
from kb.session.meta import Capture, Missing, SessionMeta, Violation
from kb.session.session import Session, Table

FORMAT = "ascend_text"
_Reader = Callable[[Path, str, Specs, Strings], Part]


@dataclass(frozen=True, slots=True)
class Reading:
    """What stays the same for all ranks of one import: the user's root, the alias map, and what to expect."""

    base: Path
    aliases: Mapping[str, Specs]
    expected: Expected

    def label(self, path: Path) -> str:
        """``path`` as evidence names it: relative to the user's root, with forward slashes."""
        return Path(os.path.relpath(path, self.base)).as_posix()


@dataclass(frozen=True, slots=True)
class _Parts:
    kernels: kernel_details.KernelFile | None
    others: tuple[Part, ...]

    def all(self) -> tuple[Part, ...]:
        return (*((self.kernels.part,) if self.kernels else ()), *self.others)


def read_rank(folder: RankFolder, reading: Reading, notes: Sequence[Missing] = ()) -> Session:
    """The session of one rank. ``notes`` are gaps of the whole import. Raises MalformedInputError naming file and row."""
    strings = Strings()
    info, info_label = _info(folder, reading)
    metadata, metadata_label = _metadata(folder, reading)
    parts = _parts(folder, reading, strings)
    tables = {part.table.name: part.table for part in parts.all() if part.table is not None}
    steps = step_trace_time.steps_of(tables.get("step_trace"), tables.get("kernels"), strings)
    if steps is not None:
        tables["steps"] = steps
    files = (*info_label, *metadata_label, *(part.label for part in parts.all()))
    meta = _meta(folder, info, metadata, parts, tables, strings, reading, files, notes)
    return made_session(meta, list(tables.values()), strings)


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


def _parts(folder: RankFolder, reading: Reading, strings: Strings) -> _Parts:
    kernels = None
    path = folder.output / kernel_details.FILE
    if path.exists():
        kernels = kernel_details.read_kernels(path, reading.label(path), reading.aliases["kernel_details"], strings)
    return _Parts(kernels, tuple(_others(folder, reading, strings)))


def _others(folder: RankFolder, reading: Reading, strings: Strings) -> Iterator[Part]:
    readers: tuple[tuple[str, _Reader], ...] = (
        (step_trace_time.FILE, step_trace_time.read_step_trace),
        (api_statistic.FILE, api_statistic.read_api_totals),
        (memory_record.FILE, memory_record.read_memory),
        (operator_memory.FILE, operator_memory.read_allocations),
    )
    for name, read in readers:
        path = folder.output / name
        if path.exists():
            yield read(path, reading.label(path), reading.aliases[Path(name).stem], strings)
    path = folder.output / communication.FILE
    if path.exists():
        yield communication.read_communication(path, reading.label(path), strings)


def _meta(
    folder: RankFolder, info: Info, metadata: Metadata, parts: _Parts, tables: Mapping[str, Table], strings: Strings,
    reading: Reading, files: Sequence[str], notes: Sequence[Missing],
) -> SessionMeta:  # fmt: skip
    soc = chip(tables.get("kernels"), parts.kernels is not None and parts.kernels.split_cores, strings)
    rank = _rank(folder, info, metadata)
    facts = {"rank": rank, "world_size": metadata.world_size, "soc": soc.cores}
    stated = [*notes, *(missing for part in parts.all() for missing in part.missing)]
    broken = [violation for part in parts.all() for violation in part.violations]
    return SessionMeta(
        name=folder.name,
        origin="measured",
        capture=Capture(
            format=FORMAT,
            level=info.level,
            metrics=info.metrics,
            files=tuple(files),
            dropped_rows=sum(part.dropped for part in parts.all()),
        ),
        rank=rank,
        world_size=metadata.world_size,
        stage=metadata.stage,
        device=next((part.device for part in parts.all() if part.device is not None), None),
        parallel=metadata.parallel,
        soc=soc,
        software=info.software,
        environment=metadata.environment,
        missing=gaps(tables, [name for name, value in facts.items() if value is None], stated, reading.expected),
        violations=(
            *broken,
            *_rank_conflict(folder, info, metadata),
            *violations(tables.get("kernels"), tables.get("step_trace"), strings),
        ),
    )


def _rank(folder: RankFolder, info: Info, metadata: Metadata) -> int | None:
    stated = (info.rank, metadata.rank, rank_in_name(folder.name))
    return next((rank for rank in stated if rank is not None), None)


def _rank_conflict(folder: RankFolder, info: Info, metadata: Metadata) -> tuple[Violation, ...]:
    if info.rank is None or metadata.rank is None or info.rank == metadata.rank:
        return ()
    detail = f"{folder.name}: profiler_info says rank {info.rank}, profiler_metadata says rank {metadata.rank}"
    return (Violation(oracle="all files of a folder belong to one rank", detail=detail, difference_ns=0),)
