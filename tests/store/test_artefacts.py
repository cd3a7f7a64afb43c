"""Attached sessions in a folder."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.domain.protocols import Artefacts
from kb.errors import NotFoundError, StoreError
from kb.store.artefacts import FolderArtefacts


@pytest.fixture
def kept(tmp_path: Path) -> Artefacts:
    return FolderArtefacts(tmp_path / "artefacts")


@settings(max_examples=30)
@given(data=st.binary(max_size=300))
def test_bytes_come_back_under_their_hash(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    kept = FolderArtefacts(tmp_path_factory.mktemp("artefacts"))
    name = kept.put(data)
    assert name == hashlib.sha256(data).hexdigest()
    assert kept.get(name) == data
    assert list(kept.names()) == [name]


def test_equal_bytes_are_kept_once_and_nothing_else_is_left(kept: Artefacts, tmp_path: Path) -> None:
    names = {kept.put(b"one"), kept.put(b"two"), kept.put(b"one")}
    assert list(kept.names()) == sorted(names)
    assert len([path for path in (tmp_path / "artefacts").rglob("*") if path.is_file()]) == 2


@pytest.mark.parametrize("name", ["0" * 64, "../../etc/passwd", "", "A" * 64, "0" * 63 + "\n"])
def test_an_unknown_name_is_not_found(kept: Artefacts, name: str) -> None:
    with pytest.raises(NotFoundError):
        kept.get(name)


def test_damage_is_noticed_and_mended_by_putting_again(kept: Artefacts, tmp_path: Path) -> None:
    name = kept.put(b"precious")
    (path,) = (tmp_path / "artefacts").rglob(name)
    path.write_bytes(b"previous")
    with pytest.raises(StoreError, match="damaged"):
        kept.get(name)
    assert kept.get(kept.put(b"precious")) == b"precious"


def test_too_much_is_refused(tmp_path: Path) -> None:
    kept = FolderArtefacts(tmp_path / "artefacts", max_bytes=3)
    with pytest.raises(StoreError, match="too large"):
        kept.put(b"four")
    assert list(kept.names()) == []


def test_a_full_disk_leaves_no_half_file(kept: Artefacts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="No space left"):
            kept.put(b"data")
    assert [path for path in (tmp_path / "artefacts").rglob("*") if path.is_file()] == []
