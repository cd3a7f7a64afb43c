"""The canonical bytes of a record and its identity."""

from __future__ import annotations

import hashlib

import msgspec

from kb.domain.record import RECORD_SCHEMA, Record
from kb.errors import ContentError


def canonical(record: Record) -> bytes:
    """Deterministic JSON (sorted keys, defaults omitted): equal records give equal bytes, and so does a record read back.

    Defaults are left out so that a field added later with a default does not change old hashes. Raises ContentError for
    values that do not belong into a record.
    """
    # Through the typed form: a whole number given for a float field is equal to it, and must look like it.
    read = parse_record(msgspec.json.encode(record), source=f"record {record.slug}")
    return msgspec.json.encode(read, order="sorted")


def content_hash(record: Record) -> str:
    """sha256 of the canonical bytes, as 64 hex digits: the identity of a version."""
    return hashlib.sha256(canonical(record)).hexdigest()


def parse_record(data: bytes, *, source: str) -> Record:
    """Read a record from JSON. Raises ContentError naming ``source`` and the offending path."""
    try:
        record = msgspec.json.decode(data, type=Record)
    except msgspec.MsgspecError as error:
        raise ContentError(f"{source}: {error}", do="compare with the fields of kb.domain.record.Record") from error
    if record.schema > RECORD_SCHEMA:
        raise ContentError(f"{source}: schema {record.schema} is newer than this program's {RECORD_SCHEMA}", do="upgrade diagnosis-recipes")
    return record
