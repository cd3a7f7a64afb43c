"""Every backend of the table passes the one contract."""

from __future__ import annotations

import json
from pathlib import Path

from profiles.ascend_writer import OUTPUT, write_cluster
from profiles.contract import BackendContract, Subject
from profiles.mutations import kineto_json

from kb.profile.ascend.backend import ASCEND
from kb.profile.ascend.writing_db import write_rank_database
from kb.profile.chrome.backend import CHROME_TRACE
from kb.profile.prof_file import PROF_FILE
from kb.profile.sources import BACKENDS
from kb.session.codec import to_bytes


def cut(path: Path, share: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


def write_prof_files(folder: Path) -> Path:
    sessions = ASCEND.load(write_cluster(folder.with_name("source")))
    folder.mkdir()
    for session in sessions:
        (folder / f"{session.meta.name}.prof").write_bytes(to_bytes(session))
    return folder


def cut_of(name: str) -> Subject:
    return Subject(ASCEND, write_cluster, lambda folder, share: cut(folder / "rank_1_ascend_pt" / OUTPUT / name, share))


class TestAscendTextWithCutKernels(BackendContract):
    subject = cut_of("kernel_details.csv")


class TestAscendTextWithCutSteps(BackendContract):
    subject = cut_of("step_trace_time.csv")


class TestAscendTextWithCutCommunication(BackendContract):
    subject = cut_of("communication.json")


class TestProfFile(BackendContract):
    subject = Subject(PROF_FILE, write_prof_files, lambda folder, share: cut(folder / "rank_1_ascend_pt.prof", share))


def write_traces(folder: Path) -> Path:
    folder.mkdir()
    for rank in (0, 1):
        document = json.loads(kineto_json()) | {"distributedInfo": {"rank": rank, "world_size": 2}}
        (folder / f"rank{rank}.pt.trace.json").write_text(json.dumps(document))
    return folder


def write_databases(folder: Path) -> Path:
    for session in ASCEND.load(write_cluster(folder.with_name("source"))):
        write_rank_database(session, folder)
    return folder


class TestChromeTrace(BackendContract):
    subject = Subject(CHROME_TRACE, write_traces, lambda folder, share: cut(folder / "rank1.pt.trace.json", share))


class TestAscendDatabase(BackendContract):
    subject = Subject(ASCEND, write_databases, lambda folder, share: cut(next((folder / "rank_1_ascend_pt").rglob("ascend*.db")), share))


def test_every_backend_of_the_table_is_under_contract() -> None:
    subjects = (TestAscendTextWithCutKernels, TestProfFile, TestChromeTrace, TestAscendDatabase)
    assert {backend.name for backend in BACKENDS} == {subject.subject.backend.name for subject in subjects}
