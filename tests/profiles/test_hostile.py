"""What no profiler writes: odd places, odd archives, odd databases. Our errors, or sessions that obey the schema."""

from __future__ import annotations

import gzip
import io
import os
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from profiles.ascend_writer import OUTPUT, write_rank
from profiles.mutations import kineto_json

from kb.errors import MalformedInputError, UnusableCaptureError
from kb.profile.ascend.writing_db import write_rank_database
from kb.profile.sources import load, sniff
from kb.session.health import assess

EVENT = '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":%s,"dur":%s,"args":{"stream":7,"device":0,"correlation":1}}'


def trace(folder: Path, *events: str, more: str = "") -> Path:
    path = folder / "a.json"
    path.write_text('{"schemaVersion":1,"traceEvents":[' + ",".join(events) + "]" + more + "}")
    return path


@pytest.mark.parametrize(
    ("start", "duration", "kept"),
    [
        ("-5", "1", 3), ("1.5e3", "2.5e-1", 3), ("4611686018427387", "4611686018427387", 3), ('"5"', "1", 3), ("1e400", "1", 2),
        ("5", "-1", 2), ("9" * 400, "1", 2), ("9223372036854775807", "1", 2), ("true", "1", 2), ("null", "null", 2), ("[1]", "1", 2),
        ('"NaN"', "1", 2), ('"0x5"', "1", 2),
    ],
)  # fmt: skip
def test_an_event_without_a_usable_time_is_left_out_and_counted(tmp_path: Path, start: str, duration: str, kept: int) -> None:
    (session,) = load(trace(tmp_path, EVENT % (5, 1), EVENT % (start, duration), EVENT % (100, 1)))
    assert session.self_check() == []
    assert (len(session.tables["kernels"]), session.meta.capture.dropped_rows) == (kept, 3 - kept)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "007", "1.2.3", "1e"])
def test_what_is_no_json_number_names_the_event(tmp_path: Path, number: str) -> None:
    with pytest.raises(MalformedInputError, match=r"a\.json:2"):
        load(trace(tmp_path, EVENT % (5, 1), EVENT % (number, 1)))


@pytest.mark.parametrize(
    "more",
    [
        ',"baseTimeNanoseconds":1e300',
        ',"baseTimeNanoseconds":9223372036854775807',
        ',"deviceProperties":{"a":1}',
        ',"distributedInfo":[1]',
        ',"distributedInfo":{"rank":1208925819614629174706176,"world_size":-3}',
    ],
)
def test_odd_metadata_of_a_trace_is_not_believed(tmp_path: Path, more: str) -> None:
    (session,) = load(trace(tmp_path, EVENT % (5, 1), more=more))
    assert session.self_check() == []
    assert (session.meta.rank, session.meta.world_size) == (None, None)


def test_links_in_circles_pipes_and_devices_are_refused_or_passed_by(tmp_path: Path) -> None:
    rank = write_rank(tmp_path / "run" / "rank_0_ascend_pt", 0)
    (rank / "up").symlink_to(tmp_path / "run")
    assert len(load(tmp_path / "run")) == 1
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(UnusableCaptureError, match="no such file"):
        load(tmp_path / "a")
    steps = rank / OUTPUT / "step_trace_time.csv"
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        steps.unlink()
        make(steps)
        with pytest.raises(MalformedInputError, match=r"step_trace_time\.csv:1: .*not a regular file"):
            load(rank)


def zipped(*members: tuple[str, bytes]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members:
                archive.writestr(name, data)
        return folder / "a.zip"

    return make


def taped(kind: bytes, name: str = "k.json") -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        with tarfile.open(folder / "a.tar.gz", "w:gz") as archive:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.size = kind, "/etc/hosts", 0
            archive.addfile(member, io.BytesIO())
        return folder / "a.tar.gz"

    return make


@pytest.mark.parametrize(
    "make",
    [
        zipped(("../a.json", b"x")), zipped(("/a.json", b"x")), zipped(("..\\a.json", b"x")), zipped(("C:/a.json", b"x")),
        zipped((".", b"x")), zipped(("n" * 5000, b"x")), zipped(("a", b"x"), ("a/b.json", b"x")), zipped(("a.json", bytes(300_000_000))),
        taped(tarfile.SYMTYPE), taped(tarfile.LNKTYPE), taped(tarfile.CHRTYPE), taped(tarfile.FIFOTYPE),
        taped(tarfile.REGTYPE, "../k.json"),
    ],
)  # fmt: skip
def test_hostile_archives_are_refused_by_name(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    with pytest.raises(MalformedInputError, match=r"a\.(zip|tar\.gz):1"):
        load(make(tmp_path))
    assert not (tmp_path.parent / "a.json").exists()


def test_an_archive_without_a_profile_is_called_by_its_own_name(tmp_path: Path) -> None:
    path = zipped(("x.zip", b"x"))(tmp_path)
    with pytest.raises(UnusableCaptureError) as caught:
        load(path)
    assert caught.value.what == f"{path}: no profile, found x.zip"


@pytest.mark.parametrize("data", [b"", b"\x1f\x8b", gzip.compress(b"\0" * 50_000_000), gzip.compress(gzip.compress(kineto_json()))])
def test_gzip_without_a_trace_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.json.gz").write_bytes(data)
    with pytest.raises(UnusableCaptureError):
        load(tmp_path / "a.json.gz")
    assert sniff(tmp_path / "a.json.gz") is None


ENDLESS = "with recursive r(n) as (select 1 union all select n + 1 from r)"


@pytest.mark.parametrize(
    "statement",
    [
        f"create view TASK as {ENDLESS} select n as startNs, n as endNs, n as globalTaskId, n as taskType from r",
        "create view COMMUNICATION_OP as select randomblob(1000000000) as opName, 1 as startNs, 2 as endNs",
        "create table TASK(startNs integer, endNs generated always as (startNs / 0) virtual)",
        "create table TASK(startNs, endNs, globalTaskId, taskType, streamId)",
        "create table API_TOTALS(name, layer, count, total_ns, max_ns)",
    ],
)
def test_databases_with_odd_tables_end(tmp_path: Path, statement: str) -> None:
    output = tmp_path / "r_ascend_pt" / OUTPUT
    output.mkdir(parents=True)
    with closing(sqlite3.connect(output / "ascend_pytorch_profiler_0.db")) as database, database:
        database.execute(statement)
        if statement.startswith("create table TASK(startNs,"):
            rows = [("x", "y", None, 1e300, b"\0"), (1, 2**63 - 1, 2, 2, 2), (-5, 5, 3, 2, 2), (2**63 - 1, 2**63 - 1, 4, 2, 2)]
            database.executemany("insert into TASK values (?, ?, ?, ?, ?)", rows)
        if "API_TOTALS" in statement:
            database.execute("insert into API_TOTALS values (1, 1, -9223372036854775808, 9223372036854775807, 'x')")
    with pytest.raises(UnusableCaptureError, match=r"ascend_pytorch_profiler_0\.db"):
        load(tmp_path)


def test_a_database_with_an_unmerged_log_confesses(tmp_path: Path) -> None:
    (session,) = load(write_rank(tmp_path / "rank_0_ascend_pt", 0))
    path = next(write_rank_database(session, tmp_path / "db").rglob("ascend_pytorch*.db"))
    path.with_name(f"{path.name}-wal").write_bytes(b"frames")
    (read,) = load(tmp_path / "db")
    assert any("write-ahead log" in violation.detail for violation in read.meta.violations)
    assert assess((read,)).verdict != "good"


def test_a_trace_of_the_device_alone_abstains_on_the_host(tmp_path: Path) -> None:
    (session,) = load(trace(tmp_path, *(EVENT % (100 * place, 50) for place in range(40))))
    missing = {gap.what: gap for gap in session.meta.missing}
    assert "host_ops" in missing
    assert "CPU" in missing["host_ops"].capture.en
    assert assess((session,)).verdict == "usable"
