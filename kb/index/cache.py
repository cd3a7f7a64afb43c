"""The vectors of a store as one file: a cache, never the truth.

A folder holds, for each model, one manifest and the data file it names: ids (int64), vectors (float32), field numbers
(uint16), zeros up to a whole block; little-endian. Whatever does not fit its manifest, its store or itself is ignored
and read from the store.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from kb.errors import StoreError
from kb.files import write_whole
from kb.index.files import collect
from kb.index.rows import VectorRows, coded, joined, rows_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from kb.domain.protocols import Ids, Store, VectorBlock, Vectors

FORMAT: Final = 1
IDENTITY: Final = "identity"
"""Name of the store's state value that differs between stores."""
BLOCK_BYTES: Final = 4096
_ID_BYTES: Final = 8
_CODE_BYTES: Final = 2
_DATA_NAME = re.compile(r"[0-9a-f]{16}-\d+-[0-9a-f]{16}\.vectors\Z")


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the data file ``file`` holds: the vectors of ``model_id`` in the store ``identity`` up to ``generation``.

    ``sha256`` covers the other values here and the data's ``digest``.
    """

    format: int
    identity: str
    generation: int
    model_id: str
    dim: int
    rows: int
    field_names: tuple[str, ...]
    file: str
    sha256: str = ""


def save(folder: Path, block: VectorBlock, *, identity: str) -> None:
    """Make ``block``, all vectors of one model in the store ``identity``, the cache of that model; nothing for no rows.

    Durable and atomic: a reader sees the old cache or the new one. Raises StoreError when the folder cannot be written.
    """
    rows = len(block.ids) // _ID_BYTES
    if rows == 0:
        return
    names, codes = coded(block.fields)
    padding = bytes(-(rows * _row_bytes(block.dim)) % BLOCK_BYTES)
    data = b"".join((block.ids, block.vectors, codes.tobytes(), padding))
    sums = digest(np.frombuffer(data, dtype=np.uint8))
    name = f"{_model_key(block.model_id)}-{block.generation}-{sums[:16]}.vectors"
    manifest = Manifest(
        format=FORMAT,
        identity=identity,
        generation=block.generation,
        model_id=block.model_id,
        dim=block.dim,
        rows=rows,
        field_names=names,
        file=name,
    )
    manifest = msgspec.structs.replace(manifest, sha256=_seal(manifest, sums))
    try:
        write_whole(folder / name, [data])
        write_whole(_manifest_path(folder, block.model_id), [msgspec.json.encode(manifest)])
        collect(folder, f"*{_model_key(block.model_id)}-*", keep=name)
    except OSError as error:
        raise StoreError(
            f"the index cache was not written: {error.strerror}",
            allowed="a folder this user may write, with free space",
            do="nothing is lost: searches read the store instead, more slowly",
        ) from error


def refresh(store: Store, folder: Path, model_id: str) -> None:
    """Make the cache of ``model_id`` anew from the store. Raises StoreError."""
    save(folder, store.vectors_since(0, model_id), identity=store.state(IDENTITY) or "")


def open_cached(folder: Path, model_id: str, *, identity: str) -> VectorRows | None:
    """The cache of ``model_id`` in the store ``identity``, all of it checked; None for any reason not to trust it."""
    if sys.byteorder != "little":
        return None
    try:
        manifest = msgspec.json.decode(_manifest_path(folder, model_id).read_bytes(), type=Manifest)
        if not _fits(manifest, model_id, identity):
            return None
        data = _read(folder / manifest.file)
    except (OSError, ValueError):  # msgspec's errors are ValueErrors
        return None
    used = manifest.rows * _row_bytes(manifest.dim)
    if len(data) != used + -used % BLOCK_BYTES or _seal(manifest, digest(data)) != manifest.sha256:
        return None
    return _rows(data, manifest)


def _read(path: Path) -> npt.NDArray[np.uint8]:
    """The file's bytes, fewer when it is cut short meanwhile. Read, not mapped: a mapped file that somebody cuts short kills the process
    that looks at it. Into numpy's memory, whose large pages make it half as dear as ``read_bytes``."""
    with path.open("rb", buffering=0) as file:
        data = np.empty(os.fstat(file.fileno()).st_size, dtype=np.uint8)
        filled = 0
        while filled < len(data) and (count := file.readinto(data[filled:].data)):
            filled += count
    data.flags.writeable = False
    return data[:filled]


def current_parts(store: Store, folder: Path, model_id: str) -> tuple[VectorRows, ...]:
    """All vectors of ``model_id`` in the store: the cache, where it can be trusted, and beside it what was committed since.

    Writes nothing and copies no cached vector. Versions no longer visible are among them: leave them out at query time with ``allowed``.
    """
    cached = open_cached(folder, model_id, identity=store.state(IDENTITY) or "")
    if cached is None:
        return (rows_of(store.vectors_since(0, model_id)),)
    added = store.vectors_since(cached.generation, model_id)
    # A cache ahead of its store, or of another width, belongs to a past the store no longer has.
    if added.generation < cached.generation or added.dim != cached.dim:
        return (rows_of(store.vectors_since(0, model_id)),)
    return (cached, rows_of(added)) if added.ids else (replace(cached, generation=added.generation),)


def current_rows(store: Store, folder: Path, model_id: str) -> VectorRows:
    """``current_parts`` as one."""
    first, *rest = current_parts(store, folder, model_id)
    return joined(first, rest[0]) if rest else first


def current(store: Store, folder: Path, model_id: str) -> tuple[Ids, Vectors]:
    """Ids and vectors of ``current_rows``."""
    rows = current_rows(store, folder, model_id)
    return rows.ids, rows.vectors


def digest(data: npt.NDArray[np.uint8]) -> str:
    """sha256 over the 64-bit sums of each block of ``data`` (uint8, whole blocks), as hex.

    Ten times faster than sha256 over the bytes, which would cost more than the search; still every changed word, lost
    or moved block shows. It guards against faults, not against forgers: the folder is the user's own.
    """
    sums = data.view("<u8").reshape(-1, BLOCK_BYTES // 8).sum(axis=1, dtype="<u8")
    return hashlib.sha256(sums.tobytes()).hexdigest()


def _seal(manifest: Manifest, sums: str) -> str:
    unsealed = msgspec.json.encode(msgspec.structs.replace(manifest, sha256=""))
    return hashlib.sha256(unsealed + sums.encode()).hexdigest()


def _row_bytes(dim: int) -> int:
    return _ID_BYTES + 4 * dim + _CODE_BYTES


def _fits(manifest: Manifest, model_id: str, identity: str) -> bool:
    same = (manifest.format, manifest.model_id, manifest.identity) == (FORMAT, model_id, identity)
    return same and manifest.rows > 0 and manifest.dim > 0 and _DATA_NAME.match(manifest.file) is not None


def _rows(data: npt.NDArray[np.uint8], manifest: Manifest) -> VectorRows:
    ids_end = _ID_BYTES * manifest.rows
    vectors_end = ids_end + 4 * manifest.dim * manifest.rows
    return VectorRows(
        generation=manifest.generation,
        model_id=manifest.model_id,
        dim=manifest.dim,
        ids=data[:ids_end].view(np.int64),
        vectors=data[ids_end:vectors_end].view(np.float32).reshape(manifest.rows, manifest.dim),
        field_codes=data[vectors_end : vectors_end + _CODE_BYTES * manifest.rows].view(np.uint16),
        field_names=manifest.field_names,
    )


def _model_key(model_id: str) -> str:
    return hashlib.sha256(model_id.encode()).hexdigest()[:16]


def _manifest_path(folder: Path, model_id: str) -> Path:
    return folder / f"{_model_key(model_id)}.manifest.json"
