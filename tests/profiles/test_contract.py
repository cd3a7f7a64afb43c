"""Every backend of the table passes the one contract."""

from __future__ import annotations

from pathlib import Path

from profiles.ascend_writer import OUTPUT, write_cluster
from profiles.contract import BackendContract, Subject

from kb.profile.ascend.backend import ASCEND_TEXT
from kb.profile.prof_file import PROF_FILE
from kb.profile.sources import BACKENDS
from kb.session.codec import to_bytes


def cut(path: Path, share: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


def write_prof_files(folder: Path) -> Path:
    sessions = ASCEND_TEXT.load(write_cluster(folder.with_name("source")))
    folder.mkdir()
    for session in sessions:
        (folder / f"{session.meta.name}.prof").write_bytes(to_bytes(session))
    return folder


def cut_of(name: str) -> Subject:
    return Subject(ASCEND_TEXT, write_cluster, lambda folder, share: cut(folder / "rank_1_ascend_pt" / OUTPUT / name, share))


class TestAscendTextWithCutKernels(BackendContract):
    subject = cut_of("kernel_details.csv")


class TestAscendTextWithCutSteps(BackendContract):
    subject = cut_of("step_trace_time.csv")


class TestAscendTextWithCutCommunication(BackendContract):
    subject = cut_of("communication.json")


class TestProfFile(BackendContract):
    subject = Subject(PROF_FILE, write_prof_files, lambda folder, share: cut(folder / "rank_1_ascend_pt.prof", share))


def test_every_backend_of_the_table_is_under_contract() -> None:
    under_contract = {TestAscendTextWithCutKernels.subject.backend.name, TestProfFile.subject.backend.name}
    assert {backend.name for backend in BACKENDS} == under_contract
