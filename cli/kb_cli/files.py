"""Files that commands leave behind."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from kb.errors import KbError


def write_new(path: Path, content: str | bytes, *, force: bool = False) -> None:
    """Write a whole file or nothing: a temporary neighbour is renamed into place.

    Raises KbError when ``path`` exists and ``force`` is False; OSError (disk full, no such folder) passes through.
    """
    if path.exists() and not force and not path.is_char_device():
        raise KbError(f"{path} exists", allowed="a new file", do="choose another name or add --force")
    data = content.encode() if isinstance(content, str) else content
    if path.is_char_device():
        path.write_bytes(data)
        return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        _open_to_umask(name)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _open_to_umask(name: str) -> None:
    """Temporary files are private; a result gets the mode any new file would."""
    mask = os.umask(0)
    os.umask(mask)
    Path(name).chmod(0o666 & ~mask)
