"""Where things lie in an offline model: header, partition table in two variants, partitions.

Source: `inc/framework/common/framework_types_internal.h` of the public GE repository (facts retyped). All numbers are
little-endian; offsets of partitions count from the end of the table.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from kb.errors import MalformedInputError
from kb.profile.simulated.wire import Data

Table = Literal["new", "old"]
MAGIC: Final = b"IMOD"
HEADER_BYTES: Final = 256
MODEL_DEF, WEIGHTS, TASK_INFO, FLOW_MODEL, FLOW_SUBMODEL = 0, 1, 2, 6, 7
MARK: Final = "kb-simulated"
"""Begin of the user-info field of every model this program writes."""
_FAMILY: Final = re.compile(re.escape(MARK) + r":([a-z][a-z0-9_-]*)(?: |\Z)")
UNNAMED: Final = "kernel_"
"""Begin of the name of an operator that has none in the graph it is written from."""
MOST_PARTITIONS: Final = 4096
NAME_BYTES: Final = 32
_HEADER: Final = struct.Struct("<4sII64sIBBBB32sI32sII20sB3xQ64x")
_NEW_TABLE, _NEW_ENTRY = struct.Struct("<II"), struct.Struct("<IIQQ")
_OLD_TABLE, _OLD_ENTRY = struct.Struct("<I"), struct.Struct("<III")


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of the header that mean something to a reader. ``info`` is the user-defined field."""

    version: int = 0x20000000
    length: int = 0
    encrypted: bool = False
    model_type: int = 0
    name: str = ""
    operators: int = 0
    info: str = ""
    platform: str = ""
    models: int = 1
    model_length: int = 0

    @property
    def table(self) -> Table:
        """Which table follows: the new one where only the long length is set."""
        return "new" if self.length == 0 and self.model_length else "old"


class Partition(msgspec.Struct, frozen=True):
    """One part of the file: its type and its place."""

    type: int
    begin: int
    end: int


def read_header(data: Data, begin: int, end: int, source: str) -> Header:
    """The header at ``begin``. Raises MalformedInputError for another magic, a short file, or an encrypted model."""
    if end - begin < HEADER_BYTES:
        raise MalformedInputError(
            f"{source}: {end - begin} bytes are no offline model", allowed=f"a header of {HEADER_BYTES} bytes and more"
        )
    (magic, size, version, _, length, encrypted, _, kind, _, name, operators, info, _, models, platform, _, model_length) = _HEADER.unpack(
        bytes(data[begin : begin + HEADER_BYTES])
    )
    if magic != MAGIC or size != HEADER_BYTES:
        raise MalformedInputError(f"{source}: no offline model (magic {magic!r}, header of {size} bytes)", allowed="IMOD, 256 bytes")
    if encrypted:
        raise MalformedInputError(f"{source} is encrypted", do="give the model before encryption")
    return Header(
        version=version,
        length=length,
        encrypted=bool(encrypted),
        model_type=kind,
        name=_text(name),
        operators=operators,
        info=_text(info),
        platform=_text(platform),
        models=models,
        model_length=model_length,
    )


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")


def read_partitions(data: Data, begin: int, end: int, header: Header, source: str) -> tuple[Partition, ...]:
    """The partitions of a model at ``begin`` to ``end``. Raises MalformedInputError where one lies outside."""
    table, entry = (_NEW_TABLE, _NEW_ENTRY) if header.table == "new" else (_OLD_TABLE, _OLD_ENTRY)
    place = begin + HEADER_BYTES
    if place + table.size > end:
        raise MalformedInputError(f"{source}: no partition table")
    count = table.unpack(bytes(data[place : place + table.size]))[0]
    place += table.size
    if count > MOST_PARTITIONS or place + count * entry.size > end:
        raise MalformedInputError(
            f"{source}: a table of {count} partitions does not fit", allowed=f"up to {MOST_PARTITIONS} inside the file"
        )
    base = place + count * entry.size
    found = []
    for number in range(count):
        fields = entry.unpack(bytes(data[place + number * entry.size : place + (number + 1) * entry.size]))
        kind, offset, size = fields[0], fields[-2], fields[-1]
        if offset + size > end - base:
            raise MalformedInputError(f"{source}: partition {number} (type {kind}) of {size} bytes at {offset} lies outside the file")
        found.append(Partition(kind, base + offset, base + offset + size))
    return tuple(found)


def family_in(header: Header) -> str:
    """The family of the model (cnn, llm, ..) where this program wrote it down; "" elsewhere."""
    found = _FAMILY.match(header.info)
    return found[1] if found else ""


def header_bytes(header: Header) -> bytes:
    """The header; texts are cut to their fields."""
    return _HEADER.pack(
        MAGIC, HEADER_BYTES, header.version, bytes(64), header.length, 0, 0, header.model_type, 0, _raw(header.name, NAME_BYTES),
        header.operators, _raw(header.info, NAME_BYTES), 0, header.models, _raw(header.platform, 20), 0, header.model_length,
    )  # fmt: skip


def _raw(text: str, size: int) -> bytes:
    """Text of at most ``size`` - 1 bytes, cut between characters."""
    return text.encode()[: size - 1].decode("utf-8", "ignore").encode()


def table_bytes(table: Table, parts: Sequence[tuple[int, bytes]]) -> bytes:
    """The partition table of ``parts`` (type, content), which follow each other behind it."""
    offset = 0
    entries = []
    for kind, content in parts:
        entries.append(_NEW_ENTRY.pack(kind, 0, offset, len(content)) if table == "new" else _OLD_ENTRY.pack(kind, offset, len(content)))
        offset += len(content)
    head = _NEW_TABLE.pack(len(parts), 0) if table == "new" else _OLD_TABLE.pack(len(parts))
    return head + b"".join(entries)
