"""Attached sessions: a folder of files named by the sha256 of their bytes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kb.errors import NotFoundError, StoreError
from kb.files import sync_folder, write_whole

MAX_BYTES: Final = 256 * 2**20
"""Largest file kept: a session of a million kernels is tens of MiB, so this only stops mistakes."""
_NAME = re.compile(r"[0-9a-f]{64}\Z")


class FolderArtefacts:
    """``kb.domain.protocols.Artefacts`` in ``folder``; files are written once, equal bytes are kept once.

    Any number of processes may use one folder. Nothing in it is ever executed or changed.
    """

    def __init__(self, folder: Path, *, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes

    def put(self, data: bytes) -> str:
        """Keep ``data``, durable on return; its sha256 in hex. Raises StoreError when too large or not writable."""
        if len(data) > self._max_bytes:
            raise StoreError(
                f"an artefact of {len(data)} bytes is too large", allowed=f"up to {self._max_bytes} bytes", do="attach a shorter capture"
            )
        sha256 = hashlib.sha256(data).hexdigest()
        path = self._path(sha256)
        try:
            if not path.is_file() or path.read_bytes() != data:
                write_whole(path, [data])
                sync_folder(self._folder)
        except OSError as error:
            raise StoreError(
                f"artefact {sha256[:12]} was not kept: {error.strerror}",
                allowed="a folder this user may write, with free space",
                do="free space or set KB_HOME, then repeat the command",
            ) from error
        return sha256

    def get(self, sha256: str) -> bytes:
        """The bytes of ``sha256``. Raises NotFoundError when absent, StoreError when they no longer fit the name."""
        if _NAME.match(sha256) is None:
            raise NotFoundError(f"{sha256!r} does not name an artefact", allowed="64 lower-case hex digits")
        try:
            data = self._path(sha256).read_bytes()
        except FileNotFoundError:
            raise NotFoundError(f"no artefact {sha256}", do="import the record again together with its sessions") from None
        except OSError as error:
            raise StoreError(f"artefact {sha256[:12]} cannot be read: {error.strerror}", do="check the permissions") from error
        if hashlib.sha256(data).hexdigest() != sha256:
            raise StoreError(
                f"artefact {sha256[:12]} is damaged",
                allowed="bytes that fit their sha256",
                do="attach the session again: it replaces the file",
            )
        return data

    def names(self) -> Iterator[str]:
        """Hashes of everything kept, sorted."""
        yield from sorted(path.name for path in self._folder.glob("??/*") if _NAME.match(path.name))

    def _path(self, sha256: str) -> Path:
        return self._folder / sha256[:2] / sha256
