"""Pipelines against queueing theory, and their diagnosis against what was planted."""

from __future__ import annotations

import json
import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from cli.program import Run, runner
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kb.domain.pipeline import ArrivalSpec, Distribution, NodeSpec, PipelineAnalysis, PipelineSpec, Route, ServiceTime
from kb.errors import ContentError, MalformedInputError, NotFoundError, UsageError
from kb.profile.simulated.load.arrivals import arrival_times, arrivals_ns, read_trace
from kb.profile.simulated.pipelines.analysis import analysed, changed, divided
from kb.profile.simulated.pipelines.engine import drawn, run_pipeline
from kb.profile.simulated.pipelines.figures import figures
from kb.profile.simulated.pipelines.session import PipelineRun, kinds_from, pipeline_session, run_of
from kb.profile.simulated.pipelines.specification import builtin_pipelines, checked_pipeline, find_pipeline, loads, pipeline_from, visits
from kb.session.codec import from_bytes, to_bytes


@pytest.fixture
def profiler(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys, "profiler")


def line(
    *means: float, rate: float, workers: int = 1, buffer: int | None = None, distribution: Distribution = "exponential", cv: float = 1.0
) -> PipelineSpec:
    """Nodes one after the other; the first has an endless buffer."""
    nodes = tuple(
        NodeSpec(
            name=f"n{place}",
            service=ServiceTime(distribution, mean, cv),
            concurrency=workers,
            buffer=buffer if place else None,
            routes=(Route(f"n{place + 1}"),) if place + 1 < len(means) else (),
        )
        for place, mean in enumerate(means)
    )
    return PipelineSpec(format="kb-pipeline/1", name="line", entry="n0", arrivals=ArrivalSpec(rate=rate), nodes=nodes)


def erlang_wait_s(workers: int, rate: float, service: float) -> float:
    """Mean wait of M/M/c (Erlang C)."""
    load = rate / service
    queued = load**workers / math.factorial(workers) * workers / (workers - load)
    waits = queued / (sum(load**k / math.factorial(k) for k in range(workers)) + queued)
    return waits / (workers * service - rate)


@pytest.mark.parametrize(("workers", "load"), [(1, 0.5), (1, 0.8), (3, 0.8), (8, 0.9)])
def test_one_node_agrees_with_erlang(workers: int, load: float) -> None:
    rate = workers * 10.0 * load
    spec = line(100.0, rate=rate, workers=workers)
    seconds = 120_000 / rate
    found = figures(spec, run_pipeline(spec, seconds, 5)).nodes[0]
    assert found.wait_ms == pytest.approx(erlang_wait_s(workers, rate, 10.0) * 1e3, rel=0.08)
    assert found.utilisation == pytest.approx(load, rel=0.02)
    assert found.depth_mean == pytest.approx(rate * found.wait_ms / 1e3, rel=0.15)


def test_a_constant_service_waits_half_as_long() -> None:
    """M/D/1: half the wait of M/M/1 (Pollaczek and Khinchine)."""
    spec = line(100.0, rate=8.0, distribution="constant", cv=0.0)
    found = figures(spec, run_pipeline(spec, 12_000, 2)).nodes[0]
    assert found.wait_ms == pytest.approx(0.5 * erlang_wait_s(1, 8.0, 10.0) * 1e3, rel=0.08)


@pytest.mark.parametrize("cv", [0.5, 2.0])
def test_waits_grow_with_the_variation_of_service(cv: float) -> None:
    """M/G/1: (1 + cv^2) / 2 times the wait of M/M/1."""
    spec = line(100.0, rate=7.0, distribution="gamma", cv=cv)
    found = figures(spec, run_pipeline(spec, 20_000, 3)).nodes[0]
    assert found.wait_ms == pytest.approx((1 + cv**2) / 2 * erlang_wait_s(1, 7.0, 10.0) * 1e3, rel=0.12)


def test_a_tandem_of_endless_buffers_is_a_row_of_single_queues() -> None:
    """Burke: what leaves M/M/1 is Poisson again, so each node behaves as if alone."""
    spec = line(50.0, 80.0, 60.0, rate=10.0)
    found = figures(spec, run_pipeline(spec, 12_000, 4))
    for node, mean in zip(found.nodes, (50.0, 80.0, 60.0), strict=True):
        assert node.wait_ms == pytest.approx(erlang_wait_s(1, 10.0, 1e3 / mean) * 1e3, rel=0.1)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_tandem_without_buffers_blocks_as_theory_says(seed: int) -> None:
    """Two exponential nodes, none waiting between, always work: throughput is 2/3 of either rate (blocking after service)."""
    spec = line(100.0, 100.0, rate=40.0, buffer=0)
    found = figures(spec, run_pipeline(spec, 6_000, seed))
    assert found.throughput == pytest.approx(10.0 * 2 / 3, rel=0.02)
    assert found.nodes[0].blocked == pytest.approx(1 / 3, abs=0.02)


def test_feedback_follows_the_traffic_equations() -> None:
    spec = line(20.0, 20.0, rate=10.0)
    spec = replace(spec, nodes=(spec.nodes[0], replace(spec.nodes[1], routes=(Route("n0", 0.3),))))
    assert visits(spec) == pytest.approx({"n0": 1 / 0.7, "n1": 1 / 0.7})
    found = figures(spec, run_pipeline(spec, 4_000, 1))
    assert found.nodes[1].utilisation == pytest.approx(10 / 0.7 * 0.02, rel=0.03)
    assert found.throughput == pytest.approx(10.0, rel=0.03)


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.floats(5, 80), st.integers(1, 4), st.one_of(st.none(), st.integers(0, 5))), min_size=1, max_size=5),
    st.floats(1, 40),
    st.integers(0, 999),
)
def test_nothing_is_lost_and_time_runs_forward(entries: list[tuple[float, int, int | None]], rate: float, seed: int) -> None:
    nodes = tuple(
        NodeSpec(
            name=f"n{place}",
            service=ServiceTime("lognormal", mean, 0.7),
            concurrency=workers,
            buffer=buffer if place else None,
            routes=(Route(f"n{place + 1}"),) if place + 1 < len(entries) else (),
        )
        for place, (mean, workers, buffer) in enumerate(entries)
    )
    spec = PipelineSpec(format="kb-pipeline/1", name="any", entry="n0", arrivals=ArrivalSpec(rate=rate), nodes=nodes)
    flow = run_pipeline(spec, 20.0, seed)
    inside = sum(int(np.isnan(seen.leave).sum()) for seen in flow.visits.values())
    assert int(np.isfinite(flow.left).sum()) + inside == len(flow.arrived)
    for node in nodes:
        seen = flow.visits[node.name]
        served = np.isfinite(seen.start)
        assert (seen.start[served] >= seen.arrive[served]).all()
        done = np.isfinite(seen.leave)
        assert (seen.leave[done] >= seen.end[done] - 1e-12).all()
        edges = np.sort(np.concatenate([seen.start[served], seen.arrive]))
        waiting = np.searchsorted(np.sort(seen.arrive), edges, "right") - np.searchsorted(np.sort(seen.start[served]), edges, "right")
        assert waiting.min(initial=0) >= 0
        if node.buffer is not None:
            assert waiting.max(initial=0) <= node.buffer
    assert run_pipeline(spec, 20.0, seed).left.tobytes() == flow.left.tobytes()


@pytest.mark.parametrize(
    ("distribution", "cv"), [("constant", 0.0), ("exponential", 1.0), ("gamma", 0.4), ("lognormal", 0.8), ("uniform", 0.3)]
)
def test_service_times_have_the_moments_asked_for(distribution: str, cv: float) -> None:
    values = drawn(ServiceTime(distribution, 30.0, cv), 200_000, np.random.default_rng(1))  # type: ignore[arg-type]  # a parameter of the test
    assert values.mean() == pytest.approx(0.030, rel=0.01)
    assert values.std() / values.mean() == pytest.approx(cv, abs=0.02)
    assert (values >= 0).all()


@pytest.mark.parametrize("kind", ["poisson", "constant", "bursts"])
def test_arrivals_have_the_rate_asked_for(kind: str) -> None:
    spec = ArrivalSpec(kind=kind, rate=50.0, factor=3.0, period_s=20, burst_s=5)  # type: ignore[arg-type]  # a parameter of the test
    times = arrival_times(spec, 2000, np.random.default_rng(3))
    assert len(times) / 2000 == pytest.approx(50, rel=0.02)
    assert (np.diff(times) >= 0).all()
    if kind == "bursts":
        burst = np.mod(times, 20) < 5
        assert burst.sum() / 5 / ((~burst).sum() / 15) == pytest.approx(3.0, rel=0.05)
    assert arrivals_ns(spec, 10.0, 1).dtype == np.int64


def test_a_trace_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "arrivals.csv"
    path.write_text("id,time_s\n1,0.5\n2,0.25\n3,9\n", encoding="utf-8")
    assert arrival_times(read_trace(path), 5.0, np.random.default_rng(0)).tolist() == [0.25, 0.5]
    path.write_text("1500\n100\n", encoding="utf-8")
    assert arrival_times(read_trace(path), 5.0, np.random.default_rng(0)).tolist() == [0.1, 1.5]
    for content in ("", "when\nnever\n", "-4\n", "nan\n"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(MalformedInputError):
            read_trace(path)
    with pytest.raises(MalformedInputError):
        read_trace(tmp_path / "absent.csv")


def diagnosed(spec: PipelineSpec, seconds: float = 300.0) -> PipelineAnalysis:
    return analysed(spec, seconds, 1, figures(spec, run_pipeline(spec, seconds, 1)))


def test_an_unstable_pipeline_is_said_with_its_bottleneck_and_made_stable() -> None:
    found = diagnosed(line(30.0, 120.0, 20.0, rate=20.0, workers=2))
    assert not found.stable
    assert found.bottleneck == "n1"
    first = found.findings[0]
    assert (first.cause, first.priority, first.node) == ("unstable", "P0", "n1")
    assert "cannot be stable" in first.message.en
    assert found.planned is not None
    assert found.planned.throughput == pytest.approx(20.0, rel=0.05)
    assert found.planned.latency_p99_ms < found.figures.latency_p99_ms / 10


def test_a_node_too_slow_for_bursts_is_a_rate_mismatch() -> None:
    spec = line(20.0, 90.0, rate=14.0, workers=2)
    spec = replace(spec, arrivals=ArrivalSpec(kind="bursts", rate=14.0, factor=4.0, period_s=30, burst_s=6))
    found = diagnosed(spec)
    assert found.stable
    finding = next(finding for finding in found.findings if finding.cause == "node_rate_mismatch")
    assert finding.node == "n1"
    assert "in every burst" in finding.message.en
    assert finding.outcome is not None
    assert finding.outcome.latency_p99_ms < 0.5 * found.figures.latency_p99_ms


def test_a_small_buffer_starves_the_node_behind_it() -> None:
    found = diagnosed(line(90.0, 90.0, rate=9.0, buffer=0), 2000.0)
    finding = next(finding for finding in found.findings if finding.cause == "buffer_starvation")
    assert finding.node == "n1"
    assert finding.changes[0].buffer_after is not None
    assert finding.outcome is not None
    assert finding.outcome.throughput > found.figures.throughput * 1.1


def test_workers_in_the_wrong_ratio_are_divided_anew() -> None:
    spec = line(20.0, 150.0, rate=19.0, workers=3)
    spec = replace(spec, nodes=tuple(replace(node, resource="npu") for node in spec.nodes))
    found = diagnosed(spec)
    finding = next(finding for finding in found.findings if finding.cause == "concurrency_ratio")
    assert {change.node: change.concurrency_after for change in finding.changes} == {"n0": 2, "n1": 4} or {
        change.node: change.concurrency_after for change in finding.changes
    } == {"n0": 1, "n1": 5}
    assert sum(change.concurrency_after - change.concurrency_before for change in finding.changes) == 0


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.floats(5, 200), st.integers(1, 4)), min_size=1, max_size=4),
    st.floats(2, 30),
    st.sampled_from(["poisson", "bursts"]),
)
def test_the_plan_of_any_unstable_pipeline_makes_it_stable(entries: list[tuple[float, int]], rate: float, kind: str) -> None:
    spec = line(*(mean for mean, _ in entries), rate=rate)
    nodes = tuple(replace(node, concurrency=workers) for node, (_, workers) in zip(spec.nodes, entries, strict=True))
    arrivals = ArrivalSpec(kind=kind, rate=rate, factor=3.0, period_s=20, burst_s=5)  # type: ignore[arg-type]  # a parameter of the test
    spec = replace(spec, nodes=nodes, arrivals=arrivals)
    found = diagnosed(spec, 40.0)
    worst = max(loads(spec, rate), key=lambda name: loads(spec, rate)[name])
    assert found.bottleneck == worst
    assert found.stable == (loads(spec, rate)[worst] < 1)
    if not found.stable:
        after = loads(changed(spec, found.plan), rate)
        assert max(after.values()) <= 0.75 + 1e-9 or max(after.values()) < 0.9
        assert found.planned is not None
        assert found.planned.throughput >= found.figures.throughput * 0.99


def test_a_balanced_pipeline_is_healthy() -> None:
    found = diagnosed(line(30.0, 30.0, 30.0, rate=20.0, workers=2))
    assert found.stable
    assert found.findings == ()
    assert found.healthy == ("n0", "n1", "n2")
    assert found.planned is None


@given(st.lists(st.tuples(st.integers(1, 9), st.floats(0.01, 3.0)), min_size=2, max_size=6))
def test_dividing_keeps_the_workers_and_never_raises_the_highest_load(entries: list[tuple[int, float]]) -> None:
    nodes = [
        NodeSpec(name=f"n{place}", service=ServiceTime(mean_ms=1.0), concurrency=workers) for place, (workers, _) in enumerate(entries)
    ]
    load = {f"n{place}": value for place, (_, value) in enumerate(entries)}
    changes = {change.node: change.concurrency_after for change in divided(nodes, load)}
    after = {node.name: changes.get(node.name, node.concurrency) for node in nodes}
    assert sum(after.values()) == sum(node.concurrency for node in nodes)
    work = {node.name: load[node.name] * node.concurrency for node in nodes}
    assert max(work[name] / after[name] for name in after) <= max(load.values()) + 1e-9


def broken(**changes: object) -> bytes:
    spec = msgspec.to_builtins(line(10.0, 10.0, rate=1.0))
    return json.dumps(spec | changes).encode()


NODE = {"name": "a", "service": {"mean_ms": 1}}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{}", "is not a pipeline"),
        (b"[", "is not a pipeline"),
        (broken(entry="ghost"), "which is no node"),
        (broken(nodes=[]), "0 nodes"),
        (broken(nodes=[NODE, NODE], entry="a"), "its own name"),
        (broken(nodes=[NODE | {"concurrency": 0}], entry="a"), "concurrency 0"),
        (broken(nodes=[NODE | {"buffer": -1}], entry="a"), "buffer -1"),
        (broken(nodes=[NODE | {"service": {"mean_ms": -1}}], entry="a"), "negative"),
        (broken(nodes=[NODE | {"service": {}}], entry="a"), "takes no time"),
        (broken(nodes=[NODE | {"service": {"distribution": "uniform", "mean_ms": 1, "cv": 2}}], entry="a"), "uniform"),
        (broken(nodes=[NODE | {"routes": [{"to": "b"}]}], entry="a"), "routes to 'b'"),
        (broken(nodes=[NODE | {"routes": [{"to": "a", "share": 0.6}, {"to": "a", "share": 0.6}]}], entry="a"), "more than 1"),
        (broken(nodes=[NODE | {"routes": [{"to": "a"}]}], entry="a"), "never leave"),
    ],
)
def test_wrong_pipelines_say_what_is_wrong(data: bytes, message: str) -> None:
    with pytest.raises(ContentError, match=message):
        pipeline_from(data, "mine.json")


@pytest.mark.parametrize(
    "arrivals",
    [
        ArrivalSpec(rate=0),
        ArrivalSpec(rate=float("inf")),
        ArrivalSpec(kind="bursts", rate=1, period_s=5, burst_s=5),
        ArrivalSpec(kind="trace"),
    ],
)
def test_impossible_arrivals_are_refused(arrivals: ArrivalSpec) -> None:
    with pytest.raises(UsageError):
        checked_pipeline(replace(line(10.0, rate=1.0), arrivals=arrivals), "x")


def test_full_buffers_in_a_circle_lock_and_it_is_said() -> None:
    spec = line(10.0, 10.0, rate=60.0, buffer=0)
    spec = replace(spec, nodes=(replace(spec.nodes[0], buffer=0), replace(spec.nodes[1], routes=(Route("n0", 0.9),))))
    with pytest.raises(UsageError, match="locked itself"):
        run_pipeline(spec, 500.0, 1)


def test_too_many_requests_are_refused() -> None:
    with pytest.raises(UsageError, match="too many"):
        run_pipeline(line(1.0, rate=1e6), 3600.0, 1)


@pytest.mark.parametrize("name", sorted(builtin_pipelines()))
def test_built_in_pipelines_are_sound(name: str) -> None:
    spec = find_pipeline(name)
    assert spec.note.en
    assert set(loads(spec, spec.arrivals.rate)) == {node.name for node in spec.nodes}


def test_an_unknown_pipeline_names_the_known() -> None:
    with pytest.raises(NotFoundError, match="poetry_poster"):
        find_pipeline("poetry_postr")
    with pytest.raises(NotFoundError, match="no pipeline file"):
        find_pipeline("absent.json")


def test_a_session_keeps_what_is_needed_to_run_it_again() -> None:
    spec = line(30.0, 20.0, rate=10.0)
    run = PipelineRun(spec, 60.0, 4)
    flow = run_pipeline(spec, 60.0, 4)
    session = pipeline_session(run, flow, kinds_from(""))
    assert session.self_check() == []
    assert run_of(from_bytes(to_bytes(session), source="x")) == run
    assert len(session.tables["marks"]) == int(np.isfinite(flow.left).sum())
    less = pipeline_session(run, flow, kinds_from("queue_depth"))
    assert {text for text in less.strings if "[" in text} == {"n0 queue depth [count]", "n1 queue depth [count]"}
    with pytest.raises(UsageError, match="no data type"):
        kinds_from("colour")


def test_the_commands_collect_and_analyse(profiler: Run, tmp_path: Path) -> None:
    capture, report = tmp_path / "pipeline.prof", tmp_path / "report.md"
    made = profiler(
        "collect-pipeline", "--pipeline", "multilingual_gen", "--data_types", "node_latency, queue_depth", "--duration", "2m",
        "--output", str(capture), "--json",
    )  # fmt: skip
    assert made.status == 0
    assert made.json()["origin"] == "simulated"
    assert "assumptions" in made.err or "假设" in made.err
    assert "video_gen" in made.err
    found = profiler("analyze-pipeline", "--data", str(capture), "--output", str(report), "--json", "--lang", "en")
    assert found.status == 0
    answer = found.json()
    assert answer["bottleneck"] == "video_gen"
    assert answer["stable"] is False
    text = report.read_text(encoding="utf-8")
    assert "cannot be stable" in text
    assert "simulated" in text.lower()
    assert "video_gen: workers 8 →" in text
    chinese = profiler("analyze-pipeline", "--data", str(capture), "--lang", "zh")
    assert "不可能稳定" in chinese.out


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("collect-pipeline", "--pipeline", "nothing"), 1),
        (("collect-pipeline", "--pipeline", "poetry_poster", "--duration", "soon"), 2),
        (("collect-pipeline", "--pipeline", "poetry_poster", "--concurrency", "image"), 2),
        (("collect-pipeline", "--pipeline", "poetry_poster", "--concurrency", "ghost=2"), 2),
        (("collect-pipeline", "--pipeline", "poetry_poster", "--rate", "0"), 2),
        (("analyze-pipeline", "--data", "absent.prof"), 1),
        (("analyze-pipeline", "--output", "x.docx"), 2),
    ],
)
def test_wrong_calls_have_their_status(
    profiler: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], status: int
) -> None:
    monkeypatch.chdir(tmp_path)
    assert profiler(*words).status == status


def test_a_capture_of_a_model_is_no_pipeline(profiler: Run, tmp_path: Path) -> None:
    capture = tmp_path / "bert.prof"
    assert profiler("collect", "--model", "bert-base", "--set", "sequence=32", "--output", str(capture)).status == 0
    result = profiler("analyze-pipeline", "--data", str(capture), "--lang", "en")
    assert result.status == 3
    assert "no capture of a pipeline" in result.err
