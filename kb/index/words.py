"""The postings and the listing of a store as one file, read a term at a time with nothing but the standard library.

A folder holds one manifest and the data file it names. Like the vectors' cache this is never the truth: what does not fit its
manifest, its store or itself is not believed, and search reads the store instead.

The data, little-endian: the *head* (columns over the records in order of id: ids int64, times int64, shares float64, lengths uint32,
kinds, tiers and states one byte each; then over the terms: ends of their names uint32, ends of their postings uint64,
checksums uint32; then the names, UTF-8, ascending), then of each term its places (uint32, ascending) and its counts (uint32).
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import zlib
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kb.errors import StoreError
from kb.files import write_whole
from kb.index.files import collect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kb.domain.protocols import Collection, Entry

FORMAT: Final = 1
MANIFEST: Final = "words.manifest.json"
FACET: Final = "\x1f"
"""Before the name of a filter value among the terms: the tokeniser gives no control characters."""
_COLUMNS: Final = (("ids", "q"), ("created", "q"), ("shares", "d"), ("lengths", "I"), ("kinds", "B"), ("tiers", "B"), ("states", "B"))
_TERM_COLUMNS: Final = (("name_ends", "I"), ("ends", "Q"), ("sums", "I"))
_DATA_NAME = re.compile(r"\d+-[0-9a-f]{16}\.words\Z")
_PLACE_BYTES: Final = 4


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``file`` holds: ``records`` and ``terms`` of the store ``identity`` at ``generation``.

    ``kinds``, ``tiers`` and ``states`` name the codes. ``heads`` are number and sum of the ids. ``head_bytes`` and ``head_sum`` (crc32)
    cover the head, ``size`` is that of the file; ``sha256`` covers the other values here.
    """

    format: int
    identity: str
    generation: int
    records: int
    terms: int
    heads: tuple[int, int]
    kinds: tuple[str, ...]
    tiers: tuple[str, ...]
    states: tuple[str, ...]
    head_bytes: int
    head_sum: int
    size: int
    file: str
    sha256: str = ""


class DamagedWordsError(Exception):
    """A part of the cache is not as it was written; whoever asked reads the store."""


class Words:
    """An opened cache: the columns in memory, postings read when asked for.

    Columns are arrays over the records in order of id; a *place* is an index into them. ``kinds``, ``tiers`` and ``states`` are
    bytes of codes whose names the manifest lists.
    """

    def __init__(self, manifest: Manifest, file: int, head: memoryview) -> None:
        """``file`` is the descriptor of the data file, closed with this object."""
        self.manifest = manifest
        self._file = file
        parts = _split(head, manifest)
        self.ids: Sequence[int] = parts["ids"]
        self.created: Sequence[int] = parts["created"]
        self.shares: Sequence[float] = parts["shares"]
        self.lengths: Sequence[int] = parts["lengths"]
        self.kinds, self.tiers, self.states = (bytes(parts[name]) for name in ("kinds", "tiers", "states"))
        self._name_ends, self._ends, self._sums = parts["name_ends"], parts["ends"], parts["sums"]
        self._names = parts["names"]
        self._checked = bytearray(manifest.terms)

    def __len__(self) -> int:
        return self.manifest.records

    def __del__(self) -> None:
        os.close(self._file)

    def frequency(self, token: str) -> int:
        """How many records hold the token."""
        term = self._find(token)
        return 0 if term is None else self._ends[term] - (self._ends[term - 1] if term else 0)

    def postings(self, token: str) -> tuple[memoryview, memoryview]:
        """Places of the records that hold the token, ascending, and how often, both uint32. Raises DamagedWordsError."""
        term = self._find(token)
        if term is None:
            return _NOTHING, _NOTHING
        first = self._ends[term - 1] if term else 0
        size = _PLACE_BYTES * (self._ends[term] - first)
        data = self._read(self.manifest.head_bytes + 2 * _PLACE_BYTES * first, 2 * size)
        # Once a term: the file is written whole and never again, and the sum of a frequent term costs more than its scores.
        if len(data) != 2 * size or not (self._checked[term] or zlib.crc32(data) == self._sums[term]):
            raise DamagedWordsError(f"the postings of term {term} differ from their checksum")
        self._checked[term] = 1
        view = memoryview(data)
        return view[:size].cast("I"), view[size:].cast("I")

    def _read(self, offset: int, size: int) -> bytes:
        try:
            os.lseek(self._file, offset, os.SEEK_SET)
            return os.read(self._file, size)
        except OSError as error:
            raise DamagedWordsError(f"{self.manifest.file}: {error.strerror}") from error

    def _find(self, token: str) -> int | None:
        wanted = token.encode("utf-8", "surrogatepass")
        low, high = 0, self.manifest.terms
        while low < high:
            middle = (low + high) // 2
            if self._name(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < self.manifest.terms and self._name(low) == wanted else None

    def _name(self, term: int) -> bytes:
        return bytes(self._names[self._name_ends[term - 1] if term else 0 : self._name_ends[term]])


_NOTHING: Final = memoryview(b"").cast("I")


def open_words(folder: Path, *, identity: str) -> Words | None:
    """The cache of the store ``identity``, its head checked; None for any reason not to trust it."""
    if sys.byteorder != "little":
        return None
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
        fits = (manifest.format, manifest.identity) == (FORMAT, identity) and _DATA_NAME.match(manifest.file) is not None
        if not fits or _seal(manifest) != manifest.sha256:
            return None
        file = os.open(folder / manifest.file, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError):  # msgspec's errors are ValueErrors
        return None
    return _opened(manifest, file)


def _opened(manifest: Manifest, file: int) -> Words | None:
    """``file`` as a cache, or closed when its size or head is not what the manifest says."""
    head = b""
    try:
        if os.fstat(file).st_size == manifest.size:
            head = os.read(file, manifest.head_bytes)
    except OSError:
        head = b""
    if len(head) != manifest.head_bytes or zlib.crc32(head) != manifest.head_sum:
        os.close(file)
        return None
    return Words(manifest, file, memoryview(head))


def save_words(folder: Path, collection: Collection, *, identity: str) -> None:
    """Make ``collection`` the cache of the store ``identity``: durable and atomic. Raises StoreError when the folder cannot be written."""
    manifest, parts = packed(collection, identity)
    try:
        write_whole(folder / manifest.file, parts)
        write_whole(folder / MANIFEST, [msgspec.json.encode(manifest)])
        collect(folder, "*.words", keep=manifest.file)
    except OSError as error:
        raise StoreError(
            f"the index cache was not written: {error.strerror}",
            allowed="a folder this user may write, with free space",
            do="nothing is lost: searches read the store instead, more slowly",
        ) from error


def packed(collection: Collection, identity: str) -> tuple[Manifest, list[bytes]]:
    """The manifest and the data of a cache."""
    entries = collection.entries
    names = {kind: tuple(sorted({getattr(entry, kind) for entry in entries})) for kind in ("kind", "provenance", "status")}
    codes = {kind: bytes(names[kind].index(getattr(entry, kind)) for entry in entries) for kind in names}
    terms = sorted((*_token_terms(collection), *_facet_terms(entries)))
    blocks = [places.tobytes() + counts.tobytes() for _, places, counts in terms]
    head = b"".join(
        (
            array("q", [entry.id for entry in entries]).tobytes(),
            array("q", [entry.created_ns for entry in entries]).tobytes(),
            array("d", [entry.language_share for entry in entries]).tobytes(),
            array("I", [entry.length for entry in entries]).tobytes(),
            *codes.values(),
            array("I", _running(len(name) for name, _, _ in terms)).tobytes(),
            array("Q", _running(len(places) for _, places, _ in terms)).tobytes(),
            array("I", [zlib.crc32(block) for block in blocks]).tobytes(),
            *(name for name, _, _ in terms),
        )
    )
    digest = hashlib.sha256(head).hexdigest()
    manifest = Manifest(
        format=FORMAT,
        identity=identity,
        generation=collection.generation,
        records=len(entries),
        terms=len(terms),
        heads=(len(entries), sum(entry.id for entry in entries)),
        kinds=names["kind"],
        tiers=names["provenance"],
        states=names["status"],
        head_bytes=len(head),
        head_sum=zlib.crc32(head),
        size=len(head) + sum(map(len, blocks)),
        file=f"{collection.generation}-{digest[:16]}.words",
    )
    return msgspec.structs.replace(manifest, sha256=_seal(manifest)), [head, *blocks]


def _token_terms(collection: Collection) -> Iterator[tuple[bytes, array[int], array[int]]]:
    place_of = {entry.id: place for place, entry in enumerate(collection.entries)}
    ids, counts = array("q", collection.ids), array("I", collection.counts)
    first = 0
    for token, end in zip(collection.tokens, collection.ends, strict=True):
        yield token.encode("utf-8", "surrogatepass"), array("I", map(place_of.__getitem__, ids[first:end])), counts[first:end]
        first = end


def _facet_terms(entries: Sequence[Entry]) -> Iterator[tuple[bytes, array[int], array[int]]]:
    held: dict[tuple[str, str], list[int]] = {}
    for place, entry in enumerate(entries):
        for facet in entry.facets:
            held.setdefault(facet, []).append(place)
    for (name, value), places in held.items():
        yield facet_term(name, value).encode("utf-8", "surrogatepass"), array("I", places), array("I", [1] * len(places))


def facet_term(name: str, value: str) -> str:
    """The term whose postings are the records with this filter value."""
    return f"{FACET}{name}{FACET}{value}"


def _running(lengths: Iterator[int]) -> Iterator[int]:
    end = 0
    for length in lengths:
        end += length
        yield end


def _split(head: memoryview, manifest: Manifest) -> dict[str, Any]:
    """The columns by name. A head that is too short gives short columns: its checksum was right, so it was written so."""
    parts: dict[str, Any] = {}
    offset = 0
    for columns, count in ((_COLUMNS, manifest.records), (_TERM_COLUMNS, manifest.terms)):
        for name, code in columns:
            size = array(code).itemsize * count
            column: Any = head[offset : offset + size]
            parts[name] = column.cast(code)
            offset += size
    parts["names"] = head[offset:]
    return parts


def _seal(manifest: Manifest) -> str:
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(manifest, sha256=""))).hexdigest()
