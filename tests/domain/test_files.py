"""Whole files or none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kb.files import write_whole


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.bin"
    write_whole(path, [b"old"])
    write_whole(path, [b"n", memoryview(b"ew")])
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in path.parent.iterdir()] == ["a.bin"]


def test_a_failure_half_way_keeps_the_old_file_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    write_whole(path, [b"old"])

    def parts() -> Iterator[bytes]:
        yield b"half"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="space"):
        write_whole(path, parts())
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir() if entry.name != "kb-home"] == ["a.bin"]
