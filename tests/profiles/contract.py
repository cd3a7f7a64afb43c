"""What every backend owes its callers. Plug another one in with one line::

class TestMine(BackendContract):
    subject = Subject(backend=MINE, write=write_mine, truncate=cut_mine)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from kb.domain.protocols import Backend
from kb.errors import KbError, UnusableCaptureError
from kb.session.codec import from_bytes, to_bytes
from kb.session.session import Session


@dataclass(frozen=True)
class Subject:
    """``write`` puts a sound capture of at least two ranks under a folder and returns the path to give to the
    backend; ``truncate`` cuts a file of it down to a share (0..1) of its bytes."""

    backend: Backend[Session]
    write: Callable[[Path], Path]
    truncate: Callable[[Path, float], None]


def _contents(folder: Path) -> Mapping[str, tuple[bytes, int]]:
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def _confesses(session: Session, sound: Session) -> bool:
    meta, before = session.meta, sound.meta
    return meta.capture.dropped_rows > 0 or len(meta.violations) > len(before.violations) or len(meta.missing) > len(before.missing)


def loaded_or_refused(backend: Backend[Session], path: Path) -> Sequence[Session] | KbError:
    """The sessions, or the error of ours; any other exception is a failure of the test."""
    try:
        return backend.load(path)
    except KbError as error:
        return error


class BackendContract:
    subject: Subject

    @pytest.fixture
    def capture(self, tmp_path: Path) -> Path:
        return self.subject.write(tmp_path / "capture")

    def test_an_unknown_path_is_not_sniffed(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("nothing here")
        assert self.subject.backend.sniff(tmp_path) is None
        assert self.subject.backend.sniff(tmp_path / "notes.txt") is None
        assert self.subject.backend.sniff(tmp_path / "absent") is None

    def test_a_sound_capture_is_sniffed_with_one_root_a_rank(self, capture: Path) -> None:
        seen = self.subject.backend.sniff(capture)
        assert seen is not None
        assert len(seen.roots) == len(self.subject.backend.load(capture))
        assert seen.format

    def test_sessions_obey_the_schema(self, capture: Path) -> None:
        for session in self.subject.backend.load(capture):
            assert session.self_check() == []
            assert session.tables
            assert all(len(table) for table in session.tables.values())

    def test_sessions_are_ordered_by_rank_and_named(self, capture: Path) -> None:
        sessions = self.subject.backend.load(capture)
        ranks = [session.meta.rank for session in sessions]
        assert len(sessions) >= 2
        assert ranks == sorted(rank for rank in ranks if rank is not None)
        assert len({session.meta.name for session in sessions}) == len(sessions)

    def test_evidence_rows_name_files_that_were_read(self, capture: Path) -> None:
        for session in self.subject.backend.load(capture):
            for table in session.tables.values():
                if "file" in table and session.meta.origin == "measured":
                    assert {session.text(int(code)) for code in set(table["file"].tolist())} <= set(session.meta.capture.files)
                    assert int(table["row"].min()) >= 1

    def test_loading_twice_gives_the_same_bytes(self, capture: Path) -> None:
        first, second = (tuple(map(to_bytes, self.subject.backend.load(capture))) for _ in range(2))
        assert first == second

    def test_sessions_survive_their_file(self, capture: Path) -> None:
        for session in self.subject.backend.load(capture):
            data = to_bytes(session)
            again = from_bytes(data, source="memory")
            assert again.meta == session.meta
            assert to_bytes(again) == data

    def test_nothing_is_written_under_the_path(self, capture: Path) -> None:
        before = _contents(capture)
        self.subject.backend.sniff(capture)
        self.subject.backend.load(capture)
        assert _contents(capture) == before

    def test_an_empty_folder_is_unusable(self, tmp_path: Path) -> None:
        with pytest.raises(UnusableCaptureError) as caught:
            self.subject.backend.load(tmp_path)
        assert str(tmp_path) in caught.value.what
        assert caught.value.allowed

    def test_a_missing_path_is_unusable(self, tmp_path: Path) -> None:
        with pytest.raises(UnusableCaptureError):
            self.subject.backend.load(tmp_path / "absent")

    @pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.8, 0.95, 0.999])
    def test_a_truncated_capture_is_refused_or_confessed(self, capture: Path, share: float) -> None:
        sound = self.subject.backend.load(capture)
        self.subject.truncate(capture, share)
        loaded = loaded_or_refused(self.subject.backend, capture)
        if isinstance(loaded, KbError):
            assert loaded.do or loaded.allowed
        else:
            assert any(_confesses(session, before) for session, before in zip(loaded, sound, strict=True))
