"""Damaged captures end in our errors, naming the file, or in sessions that still obey the schema."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from profiles.ascend_writer import OUTPUT, write_rank
from profiles.contract import loaded_or_refused

from kb.errors import KbError, MalformedInputError
from kb.profile.ascend.backend import ASCEND_TEXT
from kb.profile.sources import load
from kb.session.codec import to_bytes

BATCHES = 10
PER_BATCH = 32
ODD_CELLS = (
    b"",
    b"N/A",
    b"-1",
    b"nan",
    b"1e308",
    b"9" * 40,
    b"1.69512E+15",
    b"\xff\xfe",
    b'"',
    b'"""',
    b"\n",
    b"0x1f",
    b"\t",
    "１２".encode(),
)


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def insert_nul(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + b"\0" * rng.randint(1, 3) + data[place:]


def remove(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data))
    return data[:start] + data[start + rng.randint(1, 200) :]


def repeat(data: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data))
    piece = data[start : start + rng.randint(1, 200)]
    return data[:start] + piece * rng.randint(2, 50) + data[start:]


def swap_cell(data: bytes, rng: random.Random) -> bytes:
    for separator in (b",", b":"):
        cells = data.split(separator)
        if len(cells) > 1:
            cells[rng.randrange(len(cells))] = rng.choice(ODD_CELLS)
            data = separator.join(cells)
    return data


def recode(data: bytes, rng: random.Random) -> bytes:
    return data.decode().encode(rng.choice(["utf-16", "utf-16-le", "utf-8-sig", "utf-32"]))


def line_ends(data: bytes, rng: random.Random) -> bytes:
    return data.replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\n", b""]))


def huge(data: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(data))
    return data[:place] + rng.choice([b"7", b"x", b"[", b'"']) * rng.choice([1_000, 1_200_000]) + data[place:]


def empty(data: bytes, rng: random.Random) -> bytes:
    return rng.choice([b"", b"\n", b"\r\n\r\n", b" ", b"{}", b"[]", b"null"])


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    truncate, flip, flip, insert_nul, remove, repeat, swap_cell, swap_cell, swap_cell, recode, line_ends, huge, empty,
)  # fmt: skip


def names_file_and_row(error: KbError, name: str) -> bool:
    place = error.what.find(f"{name}:")
    return place >= 0 and error.what[place + len(name) + 1].isdigit()


@pytest.mark.parametrize("batch", range(BATCHES))
def test_damage_ends_in_our_errors(tmp_path: Path, batch: int) -> None:
    folder = write_rank(tmp_path / "rank_0_ascend_pt", 0)
    sound = {path: path.read_bytes() for path in sorted(folder.rglob("*.*")) if path.is_file()}
    rng = random.Random(batch)
    refused = 0
    for _ in range(PER_BATCH):
        path = rng.choice(list(sound))
        path.write_bytes(rng.choice(MUTATIONS)(sound[path], rng))
        loaded = loaded_or_refused(ASCEND_TEXT, folder)
        if isinstance(loaded, KbError):
            assert isinstance(loaded, MalformedInputError)
            assert names_file_and_row(loaded, path.name), loaded
            refused += 1
        else:
            assert loaded[0].self_check() == []
            to_bytes(loaded[0])
        path.write_bytes(sound[path])
    assert 0 < refused < PER_BATCH


@pytest.mark.parametrize(
    "name", [f"{OUTPUT}/kernel_details.csv", f"{OUTPUT}/memory_record.csv", "profiler_metadata.json", "profiler_info_0.json"]
)
def test_a_folder_in_place_of_any_file_is_refused(tmp_path: Path, name: str) -> None:
    folder = write_rank(tmp_path / "rank_0_ascend_pt", 0)
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(MalformedInputError) as caught:
        load(folder)
    assert names_file_and_row(caught.value, Path(name).name)
