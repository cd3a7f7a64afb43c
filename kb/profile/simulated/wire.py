"""Protocol-buffer wire format, without a schema: fields of hostile bytes, and bytes of fields.

Payloads are given as places in the data, so that a reader never copies what it skips (weights of gigabytes).
Source: the public wire format description of Protocol Buffers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from mmap import mmap
from typing import Final, NamedTuple

from kb.errors import MalformedInputError

Data = bytes | mmap
VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2
FIXED32: Final = 5
_LONGEST_VARINT: Final = 10
_SIGN: Final = 1 << 63
_WRAP: Final = 1 << 64


class Field(NamedTuple):
    """One field: ``value`` of a number (as unsigned), or the payload's place ``begin`` to ``end`` in the data."""

    number: int
    wire: int
    value: int
    begin: int
    end: int


def fields(data: Data, begin: int, end: int, source: str) -> Iterator[Field]:
    """The fields of the message at ``begin`` to ``end``. Raises MalformedInputError where the bytes are no message."""
    place = begin
    while place < end:
        key, place = _varint(data, place, end, source)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise _broken(source, place, "field number 0")
        if wire == LENGTH:
            size, place = _varint(data, place, end, source)
            if size > end - place:
                raise _broken(source, place, f"a payload of {size} bytes where {end - place} are left")
            yield Field(number, wire, size, place, place + size)
            place += size
        elif wire == VARINT:
            start = place
            value, place = _varint(data, place, end, source)
            yield Field(number, wire, value, start, place)
        elif wire in (FIXED32, FIXED64):
            width = 4 if wire == FIXED32 else 8
            if width > end - place:
                raise _broken(source, place, "a number cut short")
            yield Field(number, wire, int.from_bytes(data[place : place + width], "little"), place, place + width)
            place += width
        else:
            raise _broken(source, place, f"wire type {wire}")


def _varint(data: Data, place: int, end: int, source: str) -> tuple[int, int]:
    value = shift = 0
    for count in range(_LONGEST_VARINT):
        if place + count >= end:
            raise _broken(source, place, "a number cut short")
        byte = data[place + count]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # the continuation bit
            return value & (_WRAP - 1), place + count + 1
        shift += 7
    raise _broken(source, place, "a number of more than ten bytes")


def _broken(source: str, place: int, what: str) -> MalformedInputError:
    return MalformedInputError(f"{source}: {what} at byte {place}", do="the file is damaged or not of this format; export it again")


def signed(value: int) -> int:
    """A 64-bit value as two's complement."""
    return value - _WRAP if value & _SIGN else value


def single(value: int) -> float:
    """The float whose 32 bits these are."""
    return float(struct.unpack("<f", (value & 0xFFFFFFFF).to_bytes(4, "little"))[0])


def text(data: Data, field: Field) -> str:
    """A payload as text; bytes that are no UTF-8 are replaced."""
    return bytes(data[field.begin : field.end]).decode("utf-8", "replace")


def numbers(data: Data, field: Field, source: str) -> list[int]:
    """Signed integers of a repeated field, packed or one at a time."""
    if field.wire != LENGTH:
        return [signed(field.value)]
    found, place = [], field.begin
    while place < field.end:
        value, place = _varint(data, place, field.end, source)
        found.append(signed(value))
    return found


def varint(value: int) -> bytes:
    """A number as bytes; negative ones in ten."""
    value &= _WRAP - 1
    made = bytearray()
    while value > 0x7F:  # seven bits a byte
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def number_field(number: int, value: int) -> bytes:
    """A number as a field."""
    return varint(number << 3 | VARINT) + varint(value)


def bytes_field(number: int, payload: bytes | str) -> bytes:
    """A text or message as a field."""
    raw = payload.encode() if isinstance(payload, str) else payload
    return varint(number << 3 | LENGTH) + varint(len(raw)) + raw


def packed_field(number: int, values: Iterable[int]) -> bytes:
    """Numbers as one packed field."""
    return bytes_field(number, b"".join(map(varint, values)))
