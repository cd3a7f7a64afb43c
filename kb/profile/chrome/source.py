"""The bytes of a trace, plain or gzip, a piece at a time."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from kb.errors import MalformedInputError
from kb.files import open_regular

PIECE: Final = 1 << 20
"""Bytes read from the file at once."""
_PACKED: Final = 1 << 16
"""Bytes of a compressed file read at once: what the unpacker cannot take yet is copied each time."""
LARGEST_RATIO: Final = 200
"""Real traces shrink 8 to 40 times; a file that grows more than this beyond ``FREE_TOTAL`` bytes is a trap."""
FREE_TOTAL: Final = 64 << 20
_GZIP: Final = b"\x1f\x8b"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_BOM: Final = b"\xef\xbb\xbf"
_AUTO: Final = 47
"""zlib window bits: 15, and accept a gzip or zlib header."""


def pieces(path: Path, label: str) -> Iterator[bytes]:
    """The decompressed content of ``path`` in order, without a byte order mark.

    Raises MalformedInputError for a file that cannot be read, a broken or hostile gzip, or UTF-16 text.
    """
    try:
        with open_regular(path) as handle:
            first = handle.read(_PACKED)
            content = _unpacked(handle, first, label) if first.startswith(_GZIP) else _plain(handle, first)
            yield from _checked(content, label)
    except OSError as error:
        raise MalformedInputError(f"{label}:1: cannot be read: {error.strerror}", do="check the file and its permissions") from error


def head(path: Path, label: str, size: int) -> bytes:
    """The first ``size`` decompressed bytes, fewer when the file is shorter. Raises MalformedInputError."""
    found = b""
    for piece in pieces(path, label):
        found += piece
        if len(found) >= size:
            break
    return found[:size]


def _plain(handle: BinaryIO, first: bytes) -> Iterator[bytes]:
    while first:
        yield first
        first = handle.read(PIECE)


def _unpacked(handle: BinaryIO, data: bytes, label: str) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(_AUTO)
    packed = total = 0
    while data:
        packed += len(data)
        try:
            while data:
                made = unpacker.decompress(data, PIECE)
                total += len(made)
                _refuse_bomb(packed, total, label)
                if made:
                    yield made
                data = unpacker.unconsumed_tail
                if unpacker.eof:  # members may follow one another
                    data, unpacker = unpacker.unused_data.lstrip(b"\0"), zlib.decompressobj(_AUTO)
        except zlib.error as error:
            raise MalformedInputError(
                f"{label}:1: broken gzip: {error}", do="copy the file again; the compressed data is damaged"
            ) from error
        data = handle.read(_PACKED)


def _refuse_bomb(packed: int, total: int, label: str) -> None:
    if total > max(FREE_TOTAL, LARGEST_RATIO * packed):
        raise MalformedInputError(f"{label}:1: {packed} bytes grow to more than {total}", allowed=f"at most {LARGEST_RATIO} times")


def _checked(content: Iterator[bytes], label: str) -> Iterator[bytes]:
    first = next(content, b"")
    if first.startswith(_UTF16):
        raise MalformedInputError(f"{label}:1: the file is UTF-16", allowed="UTF-8", do="save it as UTF-8 or export again")
    yield first.removeprefix(_BOM)
    yield from content
