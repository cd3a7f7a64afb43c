"""What lies at a path: rank folders of every exporter, cluster tables, raw captures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from kb.errors import UnusableCaptureError
from kb.profile.ascend.products import KERNELS, databases, is_database, product

OUTPUT: Final = "ASCEND_PROFILER_OUTPUT"
CLUSTER_FILE: Final = "cluster_step_trace_time.csv"
MSPROF_OUTPUT: Final = "mindstudio_profiler_output"
_ANALYSIS: Final = "analysis.db"
_WORTH: Final = frozenset({KERNELS, "step_trace_time", "communication", "trace_view", "task_time", "op_statistic"})
_OPPROF: Final = "OpBasicInfo.csv"
_MINDSPORE: Final = ("aicore_intermediate_*_detail.csv", "step_trace_raw_*_detail_time.csv", "aicore_intermediate_*_type.csv")
DEEPEST: Final = 5
MOST_FOLDERS: Final = 20_000
Kind = Literal["torch_npu", "mindspore", "msprof", "opprof", "mindspore_old"]
_OUTPUTS: Final[tuple[tuple[str, Kind], ...]] = ((OUTPUT, "torch_npu"), (MSPROF_OUTPUT, "msprof"))
RawKind = Literal["raw", "raw_mindspore", "raw_msprof"]


@dataclass(frozen=True, slots=True)
class RankFolder:
    """``root`` holds the side files, ``files`` the product files; ``name`` is the session's name. ``database`` is the main
    database to read instead of text, ``analysis`` the exporter's own totals."""

    name: str
    root: Path
    files: tuple[Path, ...]
    kind: Kind = "torch_npu"
    database: Path | None = None
    analysis: Path | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """A capture that its tool has not exported yet."""

    kind: RawKind
    path: Path


@dataclass(frozen=True, slots=True)
class Survey:
    """Everything recognised at a path. ``cluster`` is the table of all ranks when it is there; ``remarks`` say what was
    chosen among several exports."""

    ranks: tuple[RankFolder, ...] = ()
    unread: tuple[Unread, ...] = ()
    cluster: Path | None = None
    remarks: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.ranks or self.unread or self.cluster)


def survey(path: Path) -> Survey:
    """Look at the names at and under ``path``: a file, a rank folder, its output folder, or any folder above.

    Raises UnusableCaptureError when a folder cannot be listed.
    """
    try:
        if path.is_file():
            return _of_file(path)
        return _of_folder(path) if path.is_dir() else Survey()
    except OSError as error:
        raise UnusableCaptureError(f"{path}: cannot be listed: {error.strerror}", do="check the permissions") from error


def _of_file(path: Path) -> Survey:
    name = path.resolve().parent.name if path.resolve().parent.name != OUTPUT else path.resolve().parent.parent.name
    if path.name == CLUSTER_FILE:
        return Survey(cluster=path)
    if is_database(path.name):
        return Survey(ranks=(RankFolder(path.stem, path.parent, (), database=path),))
    if path.name == _ANALYSIS:
        return Survey(ranks=(RankFolder(name, path.parent, (), analysis=path),))
    return Survey(ranks=(RankFolder(path.stem, path.parent, (path,)),)) if product(path.name) else Survey()


def _of_folder(path: Path) -> Survey:
    ranks: list[RankFolder] = []
    unread: list[Unread] = []
    clusters: list[Path] = []
    for folder in _folders(path):
        own = tuple(_own(folder))
        ranks += own
        if not own and (raw := _raw(folder)) is not None:
            unread.append(Unread(raw, folder))
        if (folder / CLUSTER_FILE).is_file():
            clusters.append(folder / CLUSTER_FILE)
    return Survey(tuple(_named(path, ranks)), tuple(unread), clusters[0] if clusters else None, tuple(_remarks(ranks)))


def _folders(path: Path) -> Iterator[Path]:
    """``path`` and the folders below it, breadth first, not looking inside one that is a capture itself."""
    level, seen = [path], 0
    for _ in range(DEEPEST):
        below: list[Path] = []
        for folder in level:
            seen += 1
            if seen > MOST_FOLDERS:
                raise UnusableCaptureError(f"{path}: more than {MOST_FOLDERS} folders", do="give the folder of the capture itself")
            yield folder
            if not (any(_own(folder)) or _raw(folder)):
                below += sorted(child for child in folder.iterdir() if child.is_dir() and not child.is_symlink())
        level = below


def _own(folder: Path) -> Iterator[RankFolder]:
    """The rank or ranks whose capture this folder is."""
    name = folder.resolve().name
    if (folder / _OPPROF).is_file():
        yield RankFolder(name, folder, _files(folder), "opprof")
    elif (rank := _exported(name, folder)) is not None:
        yield rank
    elif name.startswith("PROF_"):
        yield from _cann7(name, folder)
    elif any(next(folder.glob(pattern), None) for pattern in _MINDSPORE):
        yield RankFolder(name, folder, _files(folder), "mindspore_old")
    elif not any((child / OUTPUT).is_dir() for child in folder.iterdir()) and (rank := _rank(*_output_itself(folder, name))) is not None:
        yield rank


def _exported(name: str, folder: Path) -> RankFolder | None:
    for output, kind in _OUTPUTS:
        if (folder / output).is_dir() and (rank := _rank(name, folder, folder / output, kind)) is not None:
            return rank
    return None


def _output_itself(folder: Path, name: str) -> tuple[str, Path, Path]:
    if name in (OUTPUT, MSPROF_OUTPUT):
        return folder.resolve().parent.name, folder / "..", folder
    return name, folder, folder


def _rank(name: str, root: Path, output: Path, kind: Kind = "torch_npu") -> RankFolder | None:
    files = _files(output)
    mains = (*databases(output), *(databases(root) if root != output and root.name != ".." else ()))
    worth = any(product(path.name) in _WORTH for path in files)
    analysis = output / _ANALYSIS if (output / _ANALYSIS).is_file() else None
    if not (worth or mains or analysis):
        return None
    kernels = [path for path in files if product(path.name) == KERNELS]
    newest = max((path.stat().st_mtime_ns for path in kernels), default=-1)
    database = mains[0] if mains and mains[0].stat().st_mtime_ns > newest else None
    if root.name.endswith("_ascend_ms"):
        kind = "mindspore"
    return RankFolder(name, root, () if database else files, kind, database, analysis)


def _cann7(name: str, folder: Path) -> Iterator[RankFolder]:
    """``device_N/summary`` and ``device_N/timeline``: one rank a device."""
    for device in sorted(child for child in folder.glob("device_*") if child.is_dir()):
        files = (*_files(device / "summary"), *_files(device / "timeline"))
        if any(product(path.name) in _WORTH for path in files):
            yield RankFolder(f"{name}/{device.name}", folder, files, "msprof")
    mains = databases(folder)
    if mains and not any(folder.glob("device_*/summary")):
        yield RankFolder(name, folder, (), "msprof", mains[0])


def _files(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for path in folder.iterdir() if not path.name.startswith("."))) if folder.is_dir() else ()


def _raw(folder: Path) -> RawKind | None:
    if folder.name.endswith("_ascend_ms"):
        return "raw_mindspore"
    if folder.name.endswith("_ascend_pt") or (folder / "FRAMEWORK").is_dir():
        return "raw"
    return "raw_msprof" if folder.name.startswith("PROF_") else None


def _named(path: Path, ranks: Sequence[RankFolder]) -> Iterator[RankFolder]:
    """Names made unique by the folders above them."""
    names = [rank.name for rank in ranks]
    for rank in ranks:
        if names.count(rank.name) == 1:
            yield rank
        else:
            above = (
                rank.root.resolve().relative_to(path.resolve()).as_posix()
                if rank.root.resolve().is_relative_to(path.resolve())
                else rank.name
            )
            yield RankFolder(above if above != "." else rank.name, rank.root, rank.files, rank.kind, rank.database, rank.analysis)


def _remarks(ranks: Sequence[RankFolder]) -> Iterator[str]:
    for rank in ranks:
        if rank.database is not None:
            folder = rank.database.parent
            if any(product(path.name) == KERNELS for path in _files(folder)):
                yield f"{folder}: text and database exports; {rank.database.name} is newer and was taken"
