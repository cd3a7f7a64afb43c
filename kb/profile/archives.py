"""Profiles inside zip and tar archives: unpacked to a folder of their own, nothing trusted.

Only plain files are taken; names that leave the folder, links and devices are refused; sizes and counts are bounded.
"""

from __future__ import annotations

import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, Final

from kb.errors import MalformedInputError

MOST_MEMBERS: Final = 50_000
LARGEST_TOTAL: Final = 64 << 30
FREE_TOTAL: Final = 256 << 20
LARGEST_RATIO: Final = 200
_PIECE: Final = 1 << 20
_DO: Final = "unpack it yourself and give the folder, if you trust it"


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """A temporary folder with the content of ``path``, gone afterwards. Raises MalformedInputError for a broken or hostile one."""
    with TemporaryDirectory(prefix="kb-profile-") as folder:
        target = Path(folder) / path.name
        target.mkdir()
        limit = min(LARGEST_TOTAL, max(FREE_TOTAL, LARGEST_RATIO * path.stat().st_size))
        try:
            if path.name.lower().endswith(".zip"):
                _unzip(path, target, limit)
            else:
                _untar(path, target, limit)
        except (
            zipfile.BadZipFile,
            tarfile.TarError,
            zlib.error,
            EOFError,
            ValueError,
            NotImplementedError,
            RuntimeError,
            OverflowError,
        ) as error:
            raise MalformedInputError(f"{path.name}:1: not a sound archive: {error}", do=_DO) from error
        except OSError as error:
            raise MalformedInputError(f"{path.name}:1: cannot be unpacked: {error.strerror or error}", do=_DO) from error
        yield target


def _unzip(path: Path, target: Path, limit: int) -> None:
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        _refuse_many(len(members), path)
        left = limit
        for member in members:
            mode = member.external_attr >> 16
            if member.is_dir():
                continue
            if stat.S_ISLNK(mode):
                raise MalformedInputError(f"{path.name}:1: {member.filename[:80]!r} is a link", do=_DO)
            with archive.open(member) as source:
                left -= _copy(source, _place(target, member.filename, path), left, path)


def _untar(path: Path, target: Path, limit: int) -> None:
    with tarfile.open(path, "r:*") as archive:
        left, count = limit, 0
        for member in archive:
            count += 1
            _refuse_many(count, path)
            if member.isdir():
                continue
            if not member.isfile():
                raise MalformedInputError(f"{path.name}:1: {member.name[:80]!r} is no plain file", do=_DO)
            source = archive.extractfile(member)
            if source is not None:
                with source:
                    left -= _copy(source, _place(target, member.name, path), left, path)


def _refuse_many(count: int, path: Path) -> None:
    if count > MOST_MEMBERS:
        raise MalformedInputError(f"{path.name}:1: more than {MOST_MEMBERS} members", do=_DO)


def _place(target: Path, name: str, path: Path) -> Path:
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not parts or any(part in ("..", "/") or ":" in part or "\0" in part for part in parts) or name.startswith(("/", "\\")):
        raise MalformedInputError(f"{path.name}:1: {name[:80]!r} leaves the archive", do=_DO)
    place = target.joinpath(*parts)
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _copy(source: IO[bytes], place: Path, limit: int, path: Path) -> int:
    written = 0
    with place.open("xb") as file:
        while piece := source.read(_PIECE):
            written += len(piece)
            if written > limit:
                raise MalformedInputError(f"{path.name}:1: unpacks to more than its size allows", allowed=f"{LARGEST_RATIO} times", do=_DO)
            file.write(piece)
    return written
