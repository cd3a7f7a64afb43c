"""Files that commands leave behind."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kb.errors import KbError
from kb.files import check_place, write_whole


def write_new(path: Path, content: str | bytes, *, force: bool = False, keep: Iterable[Path] = ()) -> None:
    """Write a whole file or nothing. A device such as a pipe is written to directly.

    Raises KbError when ``path`` exists and ``force`` is False, and whatever ``force`` says when it is one of the
    inputs named by ``keep``; OSError (disk full, no such folder) passes through.
    """
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and any(source.exists() and path.samefile(source) for source in keep):
        raise KbError(f"{path} is the input", allowed="another file", do="choose another name for the output")
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    if path.exists() and not force:
        raise KbError(f"{path} exists", allowed="a new file", do="choose another name or add --force")
    write_whole(path, [data])


def check_new(path: Path, *, force: bool) -> None:
    """Raise what ``write_new`` would at once; a folder or device that is there is the command's own matter."""
    if path.is_file() and not force:
        raise KbError(f"{path} exists", allowed="a new file", do="choose another name or add --force")
    if not path.exists() or path.is_file():
        check_place(path)


def free_name(path: Path) -> Path:
    """``path``, or the first of ``path-2``, ``path-3``, .. that is not there: for names a command chose itself."""
    found, number = path, 1
    while found.exists():
        number += 1
        found = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return found
