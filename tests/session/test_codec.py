"""The .prof file: exact, deterministic, and safe to open when it comes from a stranger."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session.sessions import sessions

from kb.errors import KbError, MalformedInputError, UnusableCaptureError
from kb.session import codec
from kb.session.builder import Strings
from kb.session.builder import session as made_session
from kb.session.builder import table as made_table
from kb.session.codec import from_bytes, to_bytes
from kb.session.meta import Capture, SessionMeta
from kb.session.schema import SESSION_SCHEMA
from kb.session.session import Session, Table

KERNEL_START = "tables/kernels/start_ns.npy"


def small() -> Session:
    strings = Strings()
    columns: dict[str, list[Any]] = {
        "start_ns": [1, 5, 9],
        "duration_ns": [2, 2, 2],
        "name": ["a", "b", "a"],
        "op_type": [None, "T", "T"],
        "core": ["AI_CORE"] * 3,
    }
    meta = SessionMeta(name="r", origin="simulated", capture=Capture(format="simulated"), options={"seed": 3})
    return made_session(meta, [made_table("kernels", columns, strings)], strings)


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts: Mapping[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def forged(changes: Mapping[str, bytes], **header: object) -> bytes:
    """A file with changed members whose hashes are right: what a stranger could make."""
    parts = {**members(to_bytes(small())), **changes}
    stated = json.loads(parts[codec.HEADER])
    stated["members"] = {name: sha256(content).hexdigest() for name, content in parts.items() if name != codec.HEADER}
    return zipped({**parts, codec.HEADER: json.dumps({**stated, **header}).encode()})


def npy(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]], **options: bool) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values, **options)
    return buffer.getvalue()


def same(first: Session, second: Session) -> bool:
    return (
        first.meta == second.meta
        and first.strings == second.strings
        and {name: list(map(bytes, table.columns.values())) for name, table in _sorted(first)}
        == {name: list(map(bytes, table.columns.values())) for name, table in _sorted(second)}
    )


def _sorted(session: Session) -> list[tuple[str, Table]]:
    return [(name, Table(name, dict(sorted(table.columns.items())))) for name, table in sorted(session.tables.items())]


@settings(max_examples=60, deadline=None)
@given(sessions())
def test_a_session_comes_back_exactly_and_gives_the_same_bytes_again(session: Session) -> None:
    data = to_bytes(session)
    again = from_bytes(data, source="memory")
    assert same(session, again)
    assert to_bytes(again) == data


def test_the_origin_is_kept() -> None:
    assert from_bytes(to_bytes(small()), source="x").meta.origin == "simulated"


def test_columns_are_plain_arrays_that_numpy_opens() -> None:
    assert np.load(io.BytesIO(members(to_bytes(small()))[KERNEL_START]), allow_pickle=False).tolist() == [1, 5, 9]


def test_the_order_of_tables_and_columns_does_not_change_the_bytes() -> None:
    session = small()
    kernels = session.tables["kernels"]
    shuffled = Table("kernels", dict(reversed(list(kernels.columns.items()))))
    assert to_bytes(Session(session.meta, {"kernels": shuffled}, session.strings)) == to_bytes(session)


def test_very_regular_tables_are_stored_rather_than_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "FREE_TOTAL", 10_000)
    count = 200_000
    table = Table("counters", {"start_ns": np.zeros(count, "<i8"), "name": np.zeros(count, "<i4"), "value": np.zeros(count, "<f8")})
    session = Session(small().meta, {"counters": table}, ("x",))
    assert len(to_bytes(session)) > 4_000_000
    assert same(from_bytes(to_bytes(session), source="x"), session)


def test_a_session_that_breaks_the_schema_is_not_written() -> None:
    broken = Session(small().meta, {"kernels": Table("kernels", {"start_ns": np.array([2, 1])})}, ())
    with pytest.raises(KbError, match="breaks the schema"):
        to_bytes(broken)


def test_metadata_that_json_cannot_carry_is_not_written() -> None:
    session = small()
    with pytest.raises(KbError, match="does not survive JSON"):
        to_bytes(replace(session, meta=msgspec.structs.replace(session.meta, options={"x": float("nan")})))


def test_a_column_of_two_dimensions_is_not_written() -> None:
    kernels = small().tables["kernels"]
    wide = Table("kernels", {**kernels.columns, "wait_ns": np.zeros((3, 2), "<i8")})
    with pytest.raises(KbError, match="2 dimensions"):
        to_bytes(Session(small().meta, {"kernels": wide}, small().strings))


def test_a_newer_schema_asks_for_an_upgrade_whatever_else_the_file_holds() -> None:
    data = forged({"tables/new/new.npy": b"?"}, schema=SESSION_SCHEMA + 1)
    with pytest.raises(UnusableCaptureError, match="newer version") as caught:
        from_bytes(data, source="future.prof")
    assert not isinstance(caught.value, MalformedInputError)
    assert "upgrade" in str(caught.value.do)


HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "not a zip": b"hello",
    "empty zip": zipped({}),
    "no header": zipped({"meta.json": b"{}"}),
    "foreign format": forged({}, format="other"),
    "schema zero": forged({}, schema=0),
    "schema text": forged({}, schema="1"),
    "absolute name": forged({"/etc/passwd": b"x"}),
    "climbing name": forged({"../../x": b"x"}),
    "climbing inside": forged({"tables/kernels/../../x.npy": b"x"}),
    "backslash name": forged({"..\\x": b"x"}),
    "unknown table": forged({"tables/secrets/start_ns.npy": b"x"}),
    "unknown column": forged({"tables/kernels/extra.npy": b"x"}),
    "wrong dtype": forged({KERNEL_START: npy(np.zeros(3, "<f8"))}),
    "big endian": forged({KERNEL_START: npy(np.zeros(3, ">i8"))}),
    "two dimensions": forged({KERNEL_START: npy(np.zeros((3, 1), "<i8"))}),
    "no dimension": forged({KERNEL_START: npy(np.zeros((), "<i8"))}),
    "pickled objects": forged({KERNEL_START: npy(np.array([{}], dtype=object), allow_pickle=True)}),
    "announced rows": forged({KERNEL_START: npy(np.zeros(3, "<i8")).replace(b"(3,)", b"(9,)")}),
    "rows beyond memory": forged({KERNEL_START: npy(np.zeros(3, "<i8")).replace(b"(3,), }       ", b"(99999999,), }")}),
    "literal in the header": forged({KERNEL_START: npy(np.zeros(3, "<i8")).replace(b"False", b"[][0]")}),
    "header length": forged({KERNEL_START: b"\x93NUMPY\x01\x00\xff\xff" + npy(np.zeros(3, "<i8"))[10:]}),
    "short column": forged({KERNEL_START: npy(np.array([1, 5], "<i8"))}),
    "unsorted column": forged({KERNEL_START: npy(np.array([9, 5, 1], "<i8"))}),
    "code out of range": forged({"tables/kernels/name.npy": npy(np.array([0, 99, 0], "<i4"))}),
    "code below -1": forged({"tables/kernels/name.npy": npy(np.array([0, -5, 0], "<i4"))}),
    "meta of another type": forged({"meta.json": b"[]"}),
    "unknown origin": forged({"meta.json": members(to_bytes(small()))["meta.json"].replace(b'"simulated"', b'"real"')}),
    "deep meta": forged({"meta.json": b"[" * 100_000}),
    "strings of numbers": forged({"strings.json": b"[1]"}),
    "strings not utf-8": forged({"strings.json": b'["\xff"]'}),
    "bzip2": zipped(members(to_bytes(small())), zipfile.ZIP_BZIP2),
    "lzma": zipped(members(to_bytes(small())), zipfile.ZIP_LZMA),
    "deflate bomb": zipped({**members(to_bytes(small())), KERNEL_START: bytes(80 << 20)}, zipfile.ZIP_DEFLATED),
}


def test_the_forger_changes_nothing_by_itself() -> None:
    assert same(from_bytes(forged({}), source="x"), small())


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_files_are_refused(name: str) -> None:
    with pytest.raises(MalformedInputError, match=r"^evil\.prof: "):
        from_bytes(HOSTILE[name], source="evil.prof")


def test_a_bomb_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *arguments, **options: pytest.fail("unpacked"))
    with pytest.raises(MalformedInputError, match="claim to hold"):
        from_bytes(HOSTILE["deflate bomb"], source="evil.prof")


def test_a_size_that_lies_is_refused() -> None:
    data = bytearray(to_bytes(small()))
    entry = data.rfind(b"PK\x01\x02", 0, data.rfind(b"meta.json"))
    data[entry + 24 : entry + 28] = (7).to_bytes(4, "little")
    with pytest.raises(MalformedInputError):
        from_bytes(bytes(data), source="evil.prof")


def test_two_members_of_one_name_are_refused() -> None:
    buffer = io.BytesIO(to_bytes(small()))
    with zipfile.ZipFile(buffer, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("meta.json", b"{}")
    with pytest.raises(MalformedInputError, match="two members"):
        from_bytes(buffer.getvalue(), source="evil.prof")


@pytest.mark.parametrize("missing", ["meta.json", "strings.json", KERNEL_START])
def test_a_member_taken_out_is_noticed(missing: str) -> None:
    parts = members(to_bytes(small()))
    del parts[missing]
    with pytest.raises(MalformedInputError, match="missing in the zip"):
        from_bytes(zipped(parts), source="evil.prof")


def test_a_member_changed_without_its_hash_is_noticed() -> None:
    parts = members(to_bytes(small()))
    with pytest.raises(MalformedInputError, match="sha256"):
        from_bytes(zipped({**parts, "strings.json": parts["strings.json"].replace(b"AI_CORE", b"AI_CPU!")}), source="evil.prof")


def test_an_encrypted_flag_is_refused() -> None:
    data = to_bytes(small())
    flagged = data.replace(b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00")
    assert flagged != data
    with pytest.raises(MalformedInputError, match="encrypted"):
        from_bytes(flagged, source="evil.prof")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_bytes_are_refused_or_mean_the_same(data: st.DataObject) -> None:
    original = to_bytes(small())
    damaged = bytearray(original)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(len(original) // 2, len(original)))
    try:
        again = from_bytes(bytes(damaged[:end]), source="evil.prof")
    except UnusableCaptureError:
        return
    assert same(again, small())
