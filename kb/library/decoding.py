"""Strict reading of JSON content: unknown fields, wrong types and bad syntax name file and place."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from kb.errors import ContentError
from kb.library.schema import allowed_at, split_error

LARGEST_FILE: Final = 2**20
"""Bytes; a content file is text written by people, a larger one is a mistake."""
_BYTE = re.compile(r" \(byte (\d+)\)")
_Content = TypeVar("_Content")


def read_content(path: Path) -> bytes:
    """The bytes of a content file. Raises ContentError when it cannot be read or is larger than ``LARGEST_FILE``."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read() if size <= LARGEST_FILE else b""
    except OSError as error:
        raise ContentError(f"{path}: {error.strerror}", do="check that the file exists and may be read") from error
    if size > LARGEST_FILE:
        raise ContentError(f"{path}: {size} bytes are too many", allowed=f"up to {LARGEST_FILE} bytes", do="split it or cut it down")
    return data


def decode_json(data: bytes, decoder: msgspec.json.Decoder[_Content], *, source: str) -> _Content:
    """Read JSON into the decoder's type. Raises ContentError naming ``source``, the place and what is allowed there."""
    try:
        return decoder.decode(data)
    except UnicodeDecodeError as error:
        raise ContentError(f"{source}: not UTF-8 at byte {error.start}", allowed="UTF-8 text", do="save the file as UTF-8") from error
    except msgspec.ValidationError as error:
        raise misfit(error, decoder.type, source=source) from error
    except msgspec.DecodeError as error:
        raise ContentError(
            f"{source}{_line(error, data)}: {error}", allowed="one JSON value", do="check quotes, commas and brackets"
        ) from error


def misfit(error: msgspec.ValidationError, kind: object, *, source: str) -> ContentError:
    """A ContentError for a value that does not fit ``kind``: where, what is wrong, and what is allowed there."""
    wrong, path = split_error(error)
    return ContentError(f"{source}: {path}: {wrong}", allowed=allowed_at(kind, path), do="correct this field")


def _line(error: msgspec.DecodeError, data: bytes) -> str:
    match = _BYTE.search(str(error))
    return f":{data.count(10, 0, int(match[1])) + 1}" if match else ""
