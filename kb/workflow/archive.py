"""An export as a folder or a zip file, read without trusting either."""

from __future__ import annotations

import hashlib
import re
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from kb.errors import ContentError

LARGEST_FILE: Final = 256 * 2**20
"""Bytes of one member; an attached session may be this large, see ``kb.store.artefacts``."""
LARGEST_TOTAL: Final = 8 * 2**30
LARGEST_RATIO: Final = 200
"""Decompressed over compressed size above which a zip file is refused once it is larger than ``FREE_TOTAL``."""
FREE_TOTAL: Final = 64 * 2**20
MOST_FILES: Final = 2_000_000
_NAME: Final = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]*/){0,4}[A-Za-z0-9_-][A-Za-z0-9._-]*\Z")
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_ENCRYPTED: Final = 1
_LINK: Final = 0o120000
_CHUNK: Final = 2**20
_BROKEN: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)
"""What the zip module raises for damaged members, unknown compression methods included."""


class Source(Protocol):
    """Named files, sorted; names are relative, of harmless characters, without ``..``."""

    def names(self) -> Iterator[str]:
        """Every file."""

    def read(self, name: str) -> bytes:
        """A file's bytes. Raises ContentError when it is too large or cannot be read."""

    def close(self) -> None:
        """Release the file."""


class FolderSource:
    """An export in a folder. Links are not followed, hidden files and other names are not looked at."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def names(self) -> Iterator[str]:
        """Every file below the folder."""
        found = (path for path in self._root.rglob("*") if path.is_file() and not path.is_symlink())
        yield from sorted(name for path in found if _NAME.match(name := path.relative_to(self._root).as_posix()))

    def read(self, name: str) -> bytes:
        """See ``Source``."""
        path = self._root / name
        inside = path.resolve().is_relative_to(self._root.resolve())
        if not inside or not path.is_file():
            raise ContentError(f"{name} is not a file of this export", allowed="plain files inside the folder", do="export it again")
        if path.stat().st_size > LARGEST_FILE:
            raise ContentError(f"{name} is larger than {LARGEST_FILE} bytes", do="leave it out")
        return path.read_bytes()

    def close(self) -> None:
        """Nothing is held."""


class ZipSource:
    """An export in a zip file. Raises ContentError for what is no zip file, names that lead elsewhere or come twice, links,
    encryption, and sizes that a small file should not unpack to."""

    def __init__(self, path: Path) -> None:
        try:
            self._archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError) as error:
            raise ContentError(f"{path.name} is not a zip file: {error}", allowed="a file made by `kb export FILE.zip`") from error
        try:
            _check_members(self._archive.infolist(), path)
        except ContentError:
            self._archive.close()
            raise

    def names(self) -> Iterator[str]:
        """Every member."""
        yield from sorted(self._archive.namelist())

    def read(self, name: str) -> bytes:
        """See ``Source``."""
        try:
            with self._archive.open(name) as file:
                data = file.read(LARGEST_FILE + 1)
        except (*_BROKEN, KeyError, OSError) as error:
            raise ContentError(f"{name} cannot be unpacked: {error}", do="export it again") from error
        if len(data) > LARGEST_FILE:
            raise ContentError(f"{name} is larger than {LARGEST_FILE} bytes", do="leave it out")
        return data

    def unpack(self, name: str, target: Path) -> str:
        """Write a large member to the new file ``target`` without holding it in memory; its sha256. Raises ContentError."""
        try:
            with self._archive.open(name) as packed, target.open("xb") as file:
                shutil.copyfileobj(packed, file, _CHUNK)
        except (*_BROKEN, KeyError) as error:
            raise ContentError(f"{name} cannot be unpacked: {error}", do="use another file") from error
        with target.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def close(self) -> None:
        """Close the file."""
        self._archive.close()


def _check_members(members: list[zipfile.ZipInfo], path: Path) -> None:
    names = [member.filename for member in members]
    wrong = next((name for name in names if _NAME.match(name) is None), None)
    if wrong is not None:
        raise ContentError(
            f"{path.name}: member {wrong!r}", allowed="relative names of letters, digits, . _ and -", do="do not unpack this file"
        )
    if len(set(names)) != len(names) or len(names) > MOST_FILES:
        raise ContentError(f"{path.name}: a name twice, or more than {MOST_FILES} members", do="export it again")
    if any(member.flag_bits & _ENCRYPTED or (member.external_attr >> 16) & 0o170000 == _LINK for member in members):
        raise ContentError(f"{path.name}: an encrypted member or a link", allowed="plain files", do="export it again")
    total, packed = sum(member.file_size for member in members), sum(member.compress_size for member in members)
    if total > LARGEST_TOTAL or (total > FREE_TOTAL and total > LARGEST_RATIO * max(packed, 1)):
        raise ContentError(f"{path.name} would unpack to {total} bytes from {packed}", do="do not unpack this file")


def open_source(path: Path) -> Source:
    """The export at ``path``. Raises ContentError for anything else."""
    if path.is_dir():
        return FolderSource(path)
    if path.is_file():
        return ZipSource(path)
    raise ContentError(f"there is no export at {path}", allowed="a folder or a .zip file made by `kb export`", do="check the path")


def write_zip(folder: Path, target: Path) -> None:
    """Pack the files below ``folder``: equal files give an equal zip."""
    source = FolderSource(folder)
    with zipfile.ZipFile(target, "x", zipfile.ZIP_DEFLATED) as archive:
        for name in source.names():
            member = zipfile.ZipInfo(name, _EPOCH)
            member.compress_type = zipfile.ZIP_STORED if name.endswith(".prof") else zipfile.ZIP_DEFLATED
            archive.writestr(member, source.read(name))
