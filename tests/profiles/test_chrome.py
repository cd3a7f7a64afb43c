"""Chrome traces: the documented reading of every sample, exact times, and cuts that never split an event."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles.mutations import kineto_json, onnxruntime_json

from kb.errors import MalformedInputError
from kb.profile.chrome.numbers import integers
from kb.profile.chrome.stream import RawEvent, Trace
from kb.profile.chrome.tracks import lanes, partly_overlapping
from kb.profile.chrome.writing import trace_bytes
from kb.profile.sources import load, sniff
from kb.session.session import Session


def one(path: Path) -> Session:
    (session,) = load(path)
    return session


def steps_ms(session: Session) -> list[float]:
    steps = session.tables["steps"]
    return [round(float(span), 2) for span in (steps["end_ns"] - steps["start_ns"]) / 1e6]


@pytest.fixture
def kineto(shared: Path) -> Path:
    return shared / "data" / "profiles" / "kineto"


def test_the_data_loader_pair_gives_the_published_steps(kineto: Path) -> None:
    before, after = (steps_ms(one(kineto / f"resnet50_v100_num_workers_{workers}.pt.trace.json.gz")) for workers in (0, 4))
    assert np.mean(before) == pytest.approx(174.8, abs=0.05)
    assert np.mean(after) == pytest.approx(139.7, abs=0.05)
    assert (np.median(before), np.median(after)) == pytest.approx((176.3, 126.5), abs=0.05)


def test_partly_overlapping_tasks_are_counted(kineto: Path) -> None:
    session = one(kineto / "b200_eager_busy14.pt.trace.json.gz")
    assert any("74 of 768 device tasks" in violation.detail for violation in session.meta.violations)
    assert session.meta.soc.reported_name == "NVIDIA B200"
    assert (session.meta.rank, session.meta.world_size) == (0, 8)


def test_a_graph_replay_is_one_decode_step_of_its_device_work(kineto: Path) -> None:
    session = one(kineto / "vllm_decode_full_graph_busy99.pt.trace.json.gz")
    assert steps_ms(session) == [10.7]
    assert session.text(int(session.tables["steps"]["kind"][0])) == "decode"
    assert (session.meta.soc.reported_name, session.meta.soc.cores) == (None, 304)


def test_a_trace_without_a_device_says_so(kineto: Path) -> None:
    session = one(kineto / "cpu_only.pt.trace.json.gz")
    assert "kernels" not in session.tables
    assert "kernels" in {gap.what for gap in session.meta.missing}
    assert (session.meta.rank, session.meta.world_size) == (34, 300)


def test_times_with_fractions_keep_every_nanosecond(kineto: Path) -> None:
    session = one(kineto / "v100_busy98_ns_timestamps.pt.trace.json.gz")
    text = gzip.decompress((kineto / "v100_busy98_ns_timestamps.pt.trace.json.gz").read_bytes())
    events = json.loads(text, parse_float=Decimal)["traceEvents"]
    kernels = session.tables["kernels"]
    for index in (0, 1000, 4000):
        event = events[int(kernels["row"][index]) - 1]
        assert int(kernels["start_ns"][index]) == int(Decimal(event["ts"]) * 1000)
        assert int(kernels["duration_ns"][index]) == int(Decimal(event["dur"]) * 1000)


def test_nodes_of_onnx_runtime_are_tasks_and_runs_are_steps(shared: Path) -> None:
    folder = shared / "data" / "profiles" / "onnxruntime"
    for name, nodes in (("bertlike6L_unfused_opt_disabled", 294), ("bertlike6L_fused_opt_all", 168)):
        session = one(folder / f"{name}.json.gz")
        assert len(session.tables["kernels"]) == 20 * nodes
        assert len(session.tables["steps"]) == 20
        assert session.meta.soc.family == "cpu"


@pytest.mark.parametrize("make", [kineto_json, onnxruntime_json])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda data: b"\xef\xbb\xbf" + data])
def test_plain_packed_and_marked_files_read_alike(tmp_path: Path, make: object, pack: object) -> None:
    assert callable(make)
    assert callable(pack)
    (tmp_path / "a.json").write_bytes(make())
    (tmp_path / "b.json.gz").write_bytes(pack(make()))
    first, second = one(tmp_path / "a.json"), one(tmp_path / "b.json.gz")
    for name, table in first.tables.items():
        for column, values in table.columns.items():
            if column != "file":
                np.testing.assert_array_equal(values, second.tables[name][column])
    assert sniff(tmp_path / "a.json") is not None


def test_kernels_know_the_operator_that_launched_them(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(kineto_json())
    session = one(tmp_path / "a.json")
    kernels = session.tables["kernels"]
    assert {session.text(int(code)) for code in kernels["operator"]} == {"aten::mm"}
    assert {session.text(int(code)) for code in kernels["input_shapes"]} == {"2,3;"}
    assert steps_ms(session) == [0.9, 0.9, 0.9]


def test_a_cut_trace_keeps_whole_events_and_confesses(tmp_path: Path) -> None:
    data = kineto_json()
    (tmp_path / "a.json").write_bytes(data[: int(len(data) * 0.6)])
    session = one(tmp_path / "a.json")
    assert any("ends inside its events" in violation.detail for violation in session.meta.violations)


def test_a_gzip_bomb_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'{"traceEvents": [' + b" " * (90 << 20)))
    with pytest.raises(MalformedInputError):
        load(tmp_path / "a.json.gz")


VALUES = st.recursive(
    st.integers(0, 9) | st.text(alphabet='a{}[],:"\\ \n', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='a{},"', max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "ph": st.just("X"),
                "name": st.text(alphabet='}{,"] a', max_size=9),
                "ts": st.integers(0, 10**15),
                "args": st.dictionaries(st.text(max_size=3), VALUES, max_size=3),
            }
        ),
        min_size=1,
        max_size=30,
    ),
    st.booleans(),
    st.integers(1, 60),
    st.sampled_from([None, 1]),
)
def test_batches_hold_the_events_the_json_module_sees(
    events: list[dict[str, object]], wrapped: bool, piece: int, indent: int | None
) -> None:
    text = json.dumps({"a": "}, {", "traceEvents": events, "z": [{"b": 1}, {"c": 2}]} if wrapped else events, indent=indent).encode()

    def content() -> Iterator[bytes]:
        yield from (text[start : start + piece] for start in range(0, len(text), piece))

    monkey = pytest.MonkeyPatch()
    monkey.setattr("kb.profile.chrome.stream.BATCH", 40)
    try:
        trace = Trace(content(), "x.json", RawEvent)
        found = [(number, event) for batch in trace.batches() for number, event in zip(batch.numbers, batch.events, strict=True)]
    finally:
        monkey.undo()
    assert [number for number, _ in found] == list(range(1, len(events) + 1))
    assert [event.name for _, event in found] == [event["name"] for event in events]
    assert [json.loads(bytes(event.args)) for _, event in found] == [event["args"] for event in events]
    assert not trace.cut
    assert ("z" in trace.metadata) is wrapped


@given(st.lists(st.decimals(-(10**12), 10**12, places=6), min_size=1, max_size=20), st.booleans())
def test_many_numbers_at_once_agree_with_decimal_arithmetic(numbers: list[Decimal], quoted: bool) -> None:
    raws = [msgspec.Raw((f'"{number:f}"' if quoted else f"{number:f}").encode()) for number in numbers]
    expected = [int((number * 1000).to_integral_value(ROUND_HALF_UP)) for number in numbers]
    assert integers(raws, 3).tolist() == expected


INTERVALS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=25)


@given(INTERVALS)
def test_partly_overlapping_counts_what_a_pairwise_check_of_neighbours_counts(pairs: list[tuple[int, int]]) -> None:
    ordered = sorted(pairs, key=lambda pair: (pair[0], -pair[0] - pair[1]))
    expected = sum(b[0] < a[0] + a[1] < b[0] + b[1] for a, b in pairwise(ordered))
    start, duration = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    assert partly_overlapping(start, duration, np.zeros(len(pairs), np.int64)) == expected


@given(INTERVALS)
def test_no_two_intervals_of_a_lane_overlap(pairs: list[tuple[int, int]]) -> None:
    ordered = sorted(pairs)
    start, end = np.array([s for s, _ in ordered], np.int64), np.array([s + d for s, d in ordered], np.int64)
    found = lanes(start, end)
    for lane in np.unique(found):
        own = np.flatnonzero(found == lane)
        assert np.all(start[own][1:] >= end[own][:-1])


def test_a_written_trace_is_read_back_with_its_origin(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(kineto_json())
    before = one(tmp_path / "a.json")
    simulated = Session(msgspec.structs.replace(before.meta, origin="simulated"), before.tables, before.strings)
    (tmp_path / "b.json").write_bytes(trace_bytes(simulated))
    after = one(tmp_path / "b.json")
    assert after.meta.origin == "simulated"
    for name in ("start_ns", "duration_ns", "connection_id", "stream"):
        np.testing.assert_array_equal(before.tables["kernels"][name], after.tables["kernels"][name])
    np.testing.assert_array_equal(before.tables["steps"]["end_ns"], after.tables["steps"]["end_ns"])
