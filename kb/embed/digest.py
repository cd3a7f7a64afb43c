"""sha256 of large model files, remembered by their stat so that a new process need not read 33 MB."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from kb.files import write_whole

_MEMO = "digests.json"


class _Seen(msgspec.Struct, frozen=True):
    """Size (bytes) and times (ns) of a file when its sha256 (hex) was taken. The change time cannot be set by a user."""

    size: int
    modified_ns: int
    changed_ns: int
    sha256: str


def file_digest(path: Path) -> str:
    """sha256 of a file's bytes, hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def folder_digest(folder: Path, suffixes: Iterable[str]) -> str:
    """sha256 over names and contents of the files with these suffixes below ``folder``, hex."""
    wanted = set(suffixes)
    total = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in wanted and path.is_file()):
        total.update(f"{path.relative_to(folder).as_posix()}\0{file_digest(path)}\n".encode())
    return total.hexdigest()


def remembered_digest(path: Path, cache: Path) -> str:
    """``file_digest``, taken again only when size, modification or change time differ from the memo in ``cache``.

    Raises OSError when ``cache`` cannot be written; a damaged memo is replaced.
    """
    memo = _read_memo(cache / _MEMO)
    stat = path.stat()
    key = str(path)
    seen = memo.get(key)
    if seen is not None and (seen.size, seen.modified_ns, seen.changed_ns) == (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns):
        return seen.sha256
    sha256 = file_digest(path)
    memo[key] = _Seen(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, sha256)
    write_whole(cache / _MEMO, [msgspec.json.encode(memo)])
    return sha256


def _read_memo(path: Path) -> dict[str, _Seen]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, _Seen])
    except (FileNotFoundError, msgspec.MsgspecError):
        return {}
