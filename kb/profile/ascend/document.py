"""JSON side files, decoded into typed values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from kb.errors import MalformedInputError
from kb.profile.ascend.rows import read_bounded

SIDE_FILE_LARGEST: Final = 64 << 20
"""Bytes; information and metadata files have a few thousand."""
_Document = TypeVar("_Document")


def read_json(path: Path, label: str, kind: type[_Document], limit: int = SIDE_FILE_LARGEST) -> tuple[_Document, bytes]:
    """A typed JSON document and its bytes. Raises MalformedInputError naming file, line and key path."""
    data = read_bounded(path, label, limit).removeprefix(b"\xef\xbb\xbf")
    try:
        return msgspec.json.decode(data, type=kind), data
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        where = f"{label}:{_line(data, str(error))}: {error}"
        raise MalformedInputError(where, allowed="the JSON the profiler writes, in UTF-8", do="export again") from error


def _line(data: bytes, message: str) -> int:
    match = re.search(r"byte (\d+)", message)
    return data.count(b"\n", 0, int(match[1])) + 1 if match else 1
