"""What lies at a path: rank folders with a text export, cluster tables, raw captures, exports of another kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from kb.errors import UnusableCaptureError
from kb.profile.ascend import communication, kernel_details, step_trace_time

OUTPUT: Final = "ASCEND_PROFILER_OUTPUT"
CLUSTER_FILE: Final = "cluster_step_trace_time.csv"
CLUSTER_FOLDER: Final = "cluster_analysis_output"
_PRODUCTS: Final = (kernel_details.FILE, step_trace_time.FILE, communication.FILE)
_DATABASES: Final = ("ascend_pytorch_profiler*.db", "ascend_mindspore_profiler*.db", "msprof_*.db")
_MSPROF_OUTPUT: Final = "mindstudio_profiler_output"


@dataclass(frozen=True, slots=True)
class RankFolder:
    """``root`` holds the side files, ``output`` the product files; ``name`` is the session's name."""

    name: str
    root: Path
    output: Path


@dataclass(frozen=True, slots=True)
class Unread:
    """A folder that is a profile but not one this reader can take."""

    kind: Literal["raw", "raw_mindspore", "raw_msprof", "msprof", "database"]
    path: Path


@dataclass(frozen=True, slots=True)
class Survey:
    """Everything recognised at a path. ``cluster`` is the table of all ranks when it is there."""

    ranks: tuple[RankFolder, ...] = ()
    unread: tuple[Unread, ...] = ()
    cluster: Path | None = None

    def __bool__(self) -> bool:
        return bool(self.ranks or self.unread or self.cluster)


def survey(path: Path) -> Survey:
    """Look at the names under ``path`` (two levels): a rank folder, a folder of them, or the output folder itself.

    Raises UnusableCaptureError when a folder cannot be listed.
    """
    if not path.is_dir():
        return Survey()
    try:
        return _of_folder(path)
    except OSError as error:
        raise UnusableCaptureError(f"{path}: cannot be listed: {error.strerror}", do="check the permissions") from error


def _of_folder(path: Path) -> Survey:
    own = _own(path)
    if own is not None:
        return Survey(ranks=(own,))
    ranks: list[RankFolder] = []
    unread = [*_unread(path)]
    for child in () if unread else sorted(child for child in path.iterdir() if child.is_dir()):
        rank = _own(child)
        if rank is not None:
            ranks.append(rank)
        else:
            unread += _unread(child)
    return Survey(tuple(ranks), tuple(unread), _cluster(path))


def _own(path: Path) -> RankFolder | None:
    name = path.resolve().name
    if _has_products(path / OUTPUT):
        return RankFolder(name, path, path / OUTPUT)
    if not _has_products(path):
        return None
    if name == OUTPUT:
        return RankFolder(path.resolve().parent.name, path / "..", path)
    return RankFolder(name, path, path)


def _has_products(path: Path) -> bool:
    return path.is_dir() and any((path / name).exists() for name in _PRODUCTS)


def _cluster(path: Path) -> Path | None:
    for candidate in (path / CLUSTER_FILE, path / CLUSTER_FOLDER / CLUSTER_FILE):
        if candidate.exists():
            return candidate
    return None


def _unread(path: Path) -> Iterator[Unread]:
    if path.name.startswith("PROF_"):
        yield Unread("msprof" if (path / _MSPROF_OUTPUT).is_dir() else "raw_msprof", path)
    elif any(next(folder.glob(pattern), None) for folder in (path, path / OUTPUT) for pattern in _DATABASES if folder.is_dir()):
        yield Unread("database", path)
    elif path.name.endswith("_ascend_ms"):
        yield Unread("raw_mindspore", path)
    elif path.name.endswith("_ascend_pt") or (path / "FRAMEWORK").is_dir():
        yield Unread("raw", path)
