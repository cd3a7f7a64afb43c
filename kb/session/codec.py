"""The ``.prof`` file: one session as a zip of JSON and plain numpy arrays, the same bytes for the same session.

Members: ``header.json`` (format, schema version, sha256 of every other member), ``meta.json``, ``strings.json`` and
``tables/<table>/<column>.npy`` (format 1.0, one dimension, dtype of ``kb.session.schema``). Anybody can open it with a
zip tool and ``numpy.load``. Reading trusts nothing: names come from the schema, sizes are bounded, hashes compared.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

import msgspec
import numpy as np

from kb.errors import KbError, MalformedInputError, UnusableCaptureError
from kb.session.meta import SessionMeta
from kb.session.schema import NUMPY_DTYPES, SESSION_SCHEMA, TABLES
from kb.session.session import Array, Session, Table

SUFFIX: Final = ".prof"
FORMAT: Final = "diagnosis-recipes session"
HEADER: Final = "header.json"
META: Final = "meta.json"
STRINGS: Final = "strings.json"
FIRST_BYTES: Final = b"PK\x03\x04"
LARGEST_MEMBER: Final = 1 << 30
LARGEST_TOTAL: Final = 2 << 30
"""Bytes after decompression: a million kernels with every column need 0.4 GB."""
FREE_TOTAL: Final = 64 << 20
LARGEST_RATIO: Final = 200
"""Above ``FREE_TOTAL`` bytes a file may not grow more than this when it is read; the writer keeps to it by storing."""
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_LEVEL: Final = 6
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED: Final = 1
_NPY: Final = re.compile(
    rb"\x93NUMPY\x01\x00(..)\{'descr': '(<[if][48])', 'fortran_order': False, 'shape': \((\d{1,12}),\), \} *\n", re.DOTALL
)
_DO: Final = "take the file as it was written, or make it again from the profile"
_Document = TypeVar("_Document")


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """``members`` maps names to the sha256 of their bytes."""

    format: str
    schema: int
    members: dict[str, str]


def to_bytes(session: Session) -> bytes:
    """The ``.prof`` bytes of a session; equal sessions give equal bytes.

    Raises KbError when the session breaks the schema, holds a value JSON cannot carry, or is larger than the format allows.
    """
    breaches = session.self_check()
    if breaches:
        raise KbError(f"session {session.meta.name} breaks the schema: {breaches[0]}", do="report this: an importer made it")
    members = dict(_members(session))
    if msgspec.json.decode(members[META], type=SessionMeta) != session.meta:
        raise KbError(f"session {session.meta.name}: its metadata does not survive JSON", allowed="finite numbers, text, lists of them")
    total = sum(map(len, members.values()))
    if total > LARGEST_TOTAL or max(map(len, members.values())) > LARGEST_MEMBER:
        raise KbError(f"session {session.meta.name} needs {total} bytes", allowed=f"at most {LARGEST_TOTAL}", do="capture fewer steps")
    header = Header(format=FORMAT, schema=SESSION_SCHEMA, members={name: _digest(data) for name, data in members.items()})
    packed = _packed({HEADER: msgspec.json.encode(header), **members}, zipfile.ZIP_DEFLATED)
    return packed if _is_modest(total, len(packed)) else _packed({HEADER: msgspec.json.encode(header), **members}, zipfile.ZIP_STORED)


def from_bytes(data: bytes, *, source: str) -> Session:
    """The session in ``.prof`` bytes; ``source`` names them in messages. Arrays are read-only.

    Raises UnusableCaptureError for a file of a newer version and MalformedInputError for anything damaged or hostile.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = _read_members(archive, len(data), source)
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError, OverflowError, OSError) as error:
        raise MalformedInputError(f"{source}: not a sound zip: {error}", do=_DO) from error
    _check(members, _header(members, source), source)
    meta = _json(members[META], SessionMeta, META, source)
    strings = tuple(_json(members[STRINGS], list[str], STRINGS, source))
    session = Session(meta, _tables(members, source), strings)
    breaches = session.self_check()
    if breaches:
        raise MalformedInputError(f"{source}: {breaches[0]}", do=_DO)
    return session


def _members(session: Session) -> Iterator[tuple[str, bytes]]:
    yield META, msgspec.json.encode(session.meta, order="sorted")
    yield STRINGS, msgspec.json.encode(session.strings)
    for spec in TABLES.values():
        table = session.table(spec.name)
        for column in spec.columns if table is not None else ():
            if table is not None and column.name in table:
                yield f"tables/{spec.name}/{column.name}.npy", _npy(table[column.name])


def _npy(values: Array) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(values), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _packed(members: Mapping[str, bytes], method: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, date_time=_EPOCH)
            info.create_system = 3  # the same on every platform
            info.external_attr = 0o644 << 16
            archive.writestr(info, data, compress_type=method, compresslevel=_LEVEL)
    return buffer.getvalue()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _is_modest(total: int, packed: int) -> bool:
    return total <= max(FREE_TOTAL, LARGEST_RATIO * packed)


def _allowed_names() -> set[str]:
    columns = (f"tables/{spec.name}/{column.name}.npy" for spec in TABLES.values() for column in spec.columns)
    return {HEADER, META, STRINGS, *columns}


def _read_members(archive: zipfile.ZipFile, packed: int, source: str) -> dict[str, bytes]:
    infos = archive.infolist()
    names = [info.filename for info in infos]
    if any(info.compress_type not in _METHODS or info.flag_bits & _ENCRYPTED for info in infos):
        raise MalformedInputError(f"{source}: a member is encrypted or packed in another way", allowed="stored or deflated", do=_DO)
    if len(set(names)) != len(names):
        raise MalformedInputError(f"{source}: two members of one name", do=_DO)
    sizes = [info.file_size for info in infos]
    if max(sizes, default=0) > LARGEST_MEMBER or sum(sizes) > LARGEST_TOTAL or not _is_modest(sum(sizes), packed):
        raise MalformedInputError(f"{source}: {packed} bytes claim to hold {sum(sizes)}", allowed=f"at most {LARGEST_TOTAL}", do=_DO)
    if HEADER not in names:
        raise MalformedInputError(f"{source}: no {HEADER} inside", allowed="a file this program wrote", do=_DO)
    # A newer version may hold members we do not know: read the header first, so that the answer is "upgrade".
    header = _read(archive, HEADER, source)
    _header({HEADER: header}, source)
    unknown = sorted(set(names) - _allowed_names())
    if unknown:
        raise MalformedInputError(
            f"{source}: unexpected member {unknown[0][:80]!r}", allowed="header, meta, strings and schema columns", do=_DO
        )
    return {HEADER: header, **{name: _read(archive, name, source) for name in names if name != HEADER}}


def _read(archive: zipfile.ZipFile, name: str, source: str) -> bytes:
    info = archive.getinfo(name)
    with archive.open(info) as handle:
        data = handle.read(info.file_size + 1)
    if len(data) != info.file_size:
        raise MalformedInputError(f"{source}: {name} holds {len(data)} bytes, not the declared {info.file_size}", do=_DO)
    return data


def _header(members: Mapping[str, bytes], source: str) -> Header:
    header = _json(members[HEADER], Header, HEADER, source)
    if header.format != FORMAT:
        raise MalformedInputError(f"{source}: format {header.format[:80]!r}", allowed=FORMAT)
    if header.schema > SESSION_SCHEMA:
        raise UnusableCaptureError(
            f"{source}: written by a newer version (session schema {header.schema})",
            allowed=f"schema 1 to {SESSION_SCHEMA}",
            do="upgrade diagnosis-recipes",
        )
    if header.schema < 1:
        raise MalformedInputError(f"{source}: session schema {header.schema}", allowed=f"1 to {SESSION_SCHEMA}", do=_DO)
    return header


def _check(members: Mapping[str, bytes], header: Header, source: str) -> None:
    held = {name: _digest(data) for name, data in members.items() if name != HEADER}
    for name in (META, STRINGS, *sorted(set(held) | set(header.members))):
        if name not in held or name not in header.members:
            raise MalformedInputError(f"{source}: {name[:80]!r} is missing in the {'zip' if name not in held else 'header'}", do=_DO)
        if held[name] != header.members[name]:
            raise MalformedInputError(f"{source}: {name} does not match its sha256", do=_DO)


def _json(data: bytes, kind: type[_Document], name: str, source: str) -> _Document:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedInputError(f"{source}: {name}: {error}", do=_DO) from error


def _tables(members: Mapping[str, bytes], source: str) -> dict[str, Table]:
    tables: dict[str, Table] = {}
    for spec in TABLES.values():
        names = {column.name: f"tables/{spec.name}/{column.name}.npy" for column in spec.columns}
        columns = {
            column.name: _array(members[names[column.name]], NUMPY_DTYPES[column.dtype], names[column.name], source)
            for column in spec.columns
            if names[column.name] in members
        }
        if columns:
            tables[spec.name] = Table(spec.name, columns)
    return tables


def _array(data: bytes, dtype: str, name: str, source: str) -> Array:
    # The header is matched against the one form we write, so no parser of Python literals ever sees foreign bytes.
    match = _NPY.match(data)
    if match is None or int.from_bytes(match[1], "little") != match.end() - 10:
        raise MalformedInputError(f"{source}: {name} is not a plain one-dimensional array", allowed=f"npy 1.0, {dtype}", do=_DO)
    if match[2].decode() != dtype:
        raise MalformedInputError(f"{source}: {name} is {match[2].decode()}", allowed=dtype, do=_DO)
    rows = int(match[3])
    if len(data) - match.end() != rows * np.dtype(dtype).itemsize:
        raise MalformedInputError(f"{source}: {name} announces {rows} rows but holds {len(data) - match.end()} bytes", do=_DO)
    return np.frombuffer(data, dtype=dtype, offset=match.end())
