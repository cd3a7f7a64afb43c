from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kb.embed.digest import file_digest, folder_digest, remembered_digest
from kb.embed.mapped import ALIGNMENT, Array, MismatchError, State, read_state, write_state

STATE: State = {
    "table": np.arange(12, dtype=np.uint8).reshape(3, 4),
    "layers": [np.ones(3, np.float32), np.zeros((2, 2))],
    "eps": 1e-6,
    "n": 7,
}


@settings(max_examples=25, deadline=None)
@given(array=arrays.arrays(st.sampled_from([np.uint8, np.float32, np.float64, np.int64]), arrays.array_shapes(min_side=0)))
def test_arrays_survive_the_round_trip(tmp_path_factory: pytest.TempPathFactory, array: Array) -> None:
    path = tmp_path_factory.mktemp("mapped") / "x.bin"
    write_state(path, "key", {"a": array, "b": [array, array], "c": 2})
    state = read_state(path, "key", thorough=True)
    np.testing.assert_array_equal(state["a"], array)
    assert isinstance(state["b"], list)
    np.testing.assert_array_equal(state["b"][1], array)
    assert state["c"] == 2


def test_views_are_aligned_and_read_only(tmp_path: Path) -> None:
    write_state(tmp_path / "x.bin", "key", STATE)
    table = read_state(tmp_path / "x.bin", "key")["table"]
    assert isinstance(table, np.ndarray)
    assert table.ctypes.data % ALIGNMENT == 0
    with pytest.raises(ValueError, match="read-only"):
        table[0, 0] = 1


def test_another_key_is_a_mismatch(tmp_path: Path) -> None:
    write_state(tmp_path / "x.bin", "key", STATE)
    with pytest.raises(MismatchError):
        read_state(tmp_path / "x.bin", "other")


def test_every_shortened_file_is_a_mismatch(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    write_state(path, "key", STATE)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(MismatchError):
            read_state(path, "key")


def test_every_changed_byte_before_the_data_is_a_mismatch_or_padding(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    write_state(path, "key", STATE)
    whole = bytearray(path.read_bytes())
    used = 16 + int.from_bytes(whole[8:16], "little")
    for place in range(0, used, 3):
        changed = bytearray(whole)
        changed[place] ^= 0x15
        path.write_bytes(changed)
        with pytest.raises(MismatchError):
            read_state(path, "key")


def test_a_digest_is_taken_again_when_the_file_changes(tmp_path: Path) -> None:
    file, cache = tmp_path / "weights", tmp_path / "cache"
    file.write_bytes(b"one")
    first = remembered_digest(file, cache)
    assert first == remembered_digest(file, cache) == file_digest(file)
    file.write_bytes(b"two")
    assert remembered_digest(file, cache) == file_digest(file) != first


def test_a_damaged_memo_is_replaced(tmp_path: Path) -> None:
    file, cache = tmp_path / "weights", tmp_path / "cache"
    file.write_bytes(b"one")
    cache.mkdir()
    (cache / "digests.json").write_text("{")
    assert remembered_digest(file, cache) == file_digest(file)


def test_a_folder_digest_covers_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("1")
    first = folder_digest(tmp_path, [".json"])
    (tmp_path / "note.md").write_text("not the model's")
    assert folder_digest(tmp_path, [".json"]) == first
    (tmp_path / "a.json").rename(tmp_path / "b.json")
    assert folder_digest(tmp_path, [".json"]) != first
