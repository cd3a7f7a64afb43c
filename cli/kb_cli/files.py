"""Files that commands leave behind."""

from __future__ import annotations

from pathlib import Path

from kb.errors import KbError
from kb.files import write_whole


def write_new(path: Path, content: str | bytes, *, force: bool = False) -> None:
    """Write a whole file or nothing. A device such as a pipe is written to directly.

    Raises KbError when ``path`` exists and ``force`` is False; OSError (disk full, no such folder) passes through.
    """
    data = content.encode() if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    if path.exists() and not force:
        raise KbError(f"{path} exists", allowed="a new file", do="choose another name or add --force")
    write_whole(path, [data])
