"""One file of named arrays, opened by memory mapping.

Layout: 8 magic bytes, header length (8 bytes, little-endian), JSON header, zero padding, then each
array at an offset that is a multiple of ``ALIGNMENT``.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from kb.files import write_whole

Array = npt.NDArray[Any]
State = Mapping[str, Array | list[Array] | int | float]
MAGIC: Final = b"KBARRAY1"
ALIGNMENT: Final = 64


class _Entry(msgspec.Struct, frozen=True):
    """One array: numpy dtype string, shape, offset from the start of the data part."""

    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


class _Header(msgspec.Struct, frozen=True):
    """``key`` says what the arrays were made from; ``data_bytes`` and ``data_sha256`` cover the data part."""

    key: str
    data_bytes: int
    data_sha256: str
    arrays: dict[str, list[_Entry]]
    lists: list[str]
    numbers: dict[str, int | float]


class MismatchError(Exception):
    """The file is not the expected conversion; whoever opens it rebuilds."""


def write_state(path: Path, key: str, state: State) -> None:
    """Write arrays, lists of arrays and numbers under ``path``. Raises OSError when the folder cannot be written."""
    arrays: dict[str, list[_Entry]] = {}
    blocks: list[bytes] = []
    offset = 0
    for name, value in state.items():
        if isinstance(value, (int, float)):
            continue
        for array in value if isinstance(value, list) else [value]:
            arrays.setdefault(name, []).append(_Entry(array.dtype.str, array.shape, offset))
            block = array.tobytes()
            blocks.append(block + bytes(-len(block) % ALIGNMENT))
            offset += len(blocks[-1])
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    header = _Header(key, offset, digest.hexdigest(), arrays, [name for name, value in state.items() if isinstance(value, list)],
                     {name: value for name, value in state.items() if isinstance(value, (int, float))})  # fmt: skip
    write_whole(path, _head(header, blocks))


def _head(header: _Header, blocks: list[bytes]) -> Iterator[bytes]:
    text = msgspec.json.encode(header)
    text += zlib.crc32(text).to_bytes(4, "little")
    yield MAGIC + len(text).to_bytes(8, "little") + text
    yield bytes(-(16 + len(text)) % ALIGNMENT)
    yield from blocks


def read_state(path: Path, key: str, *, thorough: bool = False) -> State:
    """Map the arrays written under ``key``, read-only.

    The header's checksum, the key and the file's size are always checked; ``thorough`` also reads all the data
    and compares its sha256. Raises MismatchError when something differs and FileNotFoundError when nothing is there.
    """
    data = np.memmap(path, dtype=np.uint8, mode="r") if path.stat().st_size >= 16 else np.zeros(0, dtype=np.uint8)
    header, start = _read_header(data)
    if header.key != key:
        raise MismatchError("made from other model files or by another converter")
    if len(data) != start + header.data_bytes:
        raise MismatchError(f"{len(data)} bytes, {start + header.data_bytes} expected")
    if thorough and hashlib.sha256(data[start:].data).hexdigest() != header.data_sha256:
        raise MismatchError("the data differ from their checksum")
    return _state(header, data, start)


def _read_header(data: Array) -> tuple[_Header, int]:
    if data[:8].tobytes() != MAGIC:
        raise MismatchError("not a file of arrays")
    length = int.from_bytes(data[8:16].tobytes(), "little")
    text = data[16 : 16 + length].tobytes()
    if len(text) != length or length < 4 or zlib.crc32(text[:-4]).to_bytes(4, "little") != text[-4:]:
        raise MismatchError("the header differs from its checksum")
    return msgspec.json.decode(text[:-4], type=_Header), 16 + length + (-(16 + length) % ALIGNMENT)


def _state(header: _Header, data: Array, start: int) -> dict[str, Array | list[Array] | int | float]:
    # frombuffer on the mapping's plain view: subclass bookkeeping of numpy.memmap would cost each later slice
    plain = data.view(np.ndarray)

    def view(entry: _Entry) -> Array:
        return np.frombuffer(plain, entry.dtype, entry.size, start + entry.offset).reshape(entry.shape)

    state: dict[str, Array | list[Array] | int | float] = dict(header.numbers)
    for name, entries in header.arrays.items():
        views = [view(entry) for entry in entries]
        state[name] = views if name in header.lists else views[0]
    return state
