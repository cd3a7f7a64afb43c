"""A language model under load, and what its energy comes to."""

from __future__ import annotations

import numpy as np
import pytest
from cli.program import Run, runner
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from simulated.chips import chip_file

from kb.domain.pipeline import ArrivalSpec
from kb.errors import UsageError
from kb.profile.simulated.energy.footprint import footprint, green, idle_power, step_cost
from kb.profile.simulated.load.arrivals import arrival_times
from kb.profile.simulated.load.serving import ServerSpec, StepTimes, lengths, serve, step_times
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import Setup, last_step_ns
from kb.workflow.load_profile import served

ONE = StepTimes(prefill_tokens=(1.0, 1e6), prefill_s=(0.05, 0.05), decode_batch=(1.0, 1e3), decode_s=(0.01, 0.01))
"""Every prompt takes 50 ms, every token 10 ms, whatever the batch."""


@pytest.fixture
def kb(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys)


def poisson(rate: float, seconds: float, seed: int = 0) -> np.typing.NDArray[np.float64]:
    return arrival_times(ArrivalSpec(rate=rate), seconds, np.random.default_rng(seed))


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_one_request_at_a_time_is_a_single_queue(load: float) -> None:
    """Batch of one, fixed lengths: M/D/1 with a service of 50 ms + 9 tokens of 10 ms."""
    service = 0.05 + 9 * 0.01
    rate = load / service
    spec = ServerSpec(batch=1, prompt=100, output=10, cv=0.0)
    found = serve(poisson(rate, 8000), 8000, spec, ONE, 1)
    wait = rate * service**2 / (2 * (1 - load))
    mean_latency = (wait + service) * 1e3
    assert found.busy == pytest.approx(load, rel=0.05)
    assert found.latency_p50_ms < mean_latency * 1.1
    assert found.throughput == pytest.approx(rate, rel=0.05)
    assert found.tpot_p50_ms == pytest.approx(10.0)
    assert found.stable


def test_batching_serves_more_where_a_step_costs_the_same() -> None:
    arrived = poisson(40.0, 200)
    alone, together = (serve(arrived, 200, ServerSpec(batch=batch, output=50, cv=0.0), ONE, 1) for batch in (1, 32))
    assert not alone.stable
    assert together.throughput > 10 * alone.throughput
    assert together.batch_mean > 8


@settings(max_examples=20)
@given(st.floats(0.5, 30), st.integers(1, 32), st.integers(1, 60), st.floats(0, 1.5), st.integers(0, 99))
def test_figures_of_any_server_are_consistent(rate: float, batch: int, output: int, cv: float, seed: int) -> None:
    spec = ServerSpec(batch=batch, output=output, cv=cv)
    found = serve(poisson(rate, 30, seed), 30, spec, ONE, seed)
    assert 0 <= found.busy <= 1
    assert found.batch_mean <= batch
    if found.throughput:
        assert not found.ttft_p50_ms > found.ttft_p99_ms
        assert not found.latency_p50_ms > found.latency_p99_ms
        assert np.isnan(found.ttft_p50_ms) or found.ttft_p50_ms >= 50 - 1e-6


def test_latency_grows_with_the_load_of_a_simulated_model() -> None:
    runs = served(
        "qwen3-0.6b", chip_file(), ArrivalSpec(rate=1), ServerSpec(batch=8, prompt=128, output=32), seconds=120, seed=1,
        options=Options(fused_attention=True, graph_launch=True), sweep=(1.0, 4.0, 400.0),
    )  # fmt: skip
    assert [run.figures.latency_p99_ms for run in runs] == sorted(run.figures.latency_p99_ms for run in runs)
    assert runs[0].figures.stable
    assert not runs[-1].figures.stable


def test_step_times_are_those_of_the_simulator() -> None:
    setup = Setup(model="qwen3-0.6b-decode", soc=chip_file(), options=Options(steps=2, noise=0.0, batch=4, context=256))

    def decode(batch: int) -> tuple[float, float]:
        assert batch in (1, 4, 16)
        return step_cost(setup)

    times = step_times(lambda tokens: (tokens * 1e-6, 100.0 + tokens), decode, ServerSpec(batch=16, prompt_tokens=1600))
    assert times.prefill_power(400) == pytest.approx(500.0)
    assert times.decode(4) == pytest.approx(last_step_ns(setup) / 1e9)
    assert times.prefill(800) == pytest.approx(800e-6)
    assert times.prefill(3200) == pytest.approx(3200e-6)


def test_energy_under_load_is_power_over_time() -> None:
    """An idle server burns its idle power; a busy one that of its steps; requests share it."""
    watts = replace(ONE, prefill_w=(300.0, 300.0), decode_w=(200.0, 200.0), idle_w=120.0)
    quiet = serve(np.array([]), 100, ServerSpec(), watts, 1)
    assert quiet.power_w == pytest.approx(120.0)
    busy = serve(poisson(60, 100), 100, ServerSpec(batch=4, output=50, cv=0.0), watts, 1)
    assert 200 <= busy.power_w <= 300
    assert busy.energy_1000_kj == pytest.approx(busy.power_w * 100 / (busy.throughput * 100), rel=0.1)


def test_an_idle_chip_draws_less_than_a_busy_one() -> None:
    setup = Setup(model="resnet50", soc=chip_file(), options=Options(steps=2, noise=0.0))
    assert 0 < idle_power(chip_file()) < step_cost(setup)[1]
    assert footprint(setup, 1, 1).unit == "request"
    assert footprint(replace(setup, model="qwen3-0.6b-decode"), 1, 1).unit == "token"


def test_lengths_have_the_mean_asked_for() -> None:
    found = lengths(200, 0.5, 50_000, np.random.default_rng(1))
    assert found.mean() == pytest.approx(200, rel=0.02)
    assert found.std() / found.mean() == pytest.approx(0.5, rel=0.03)


@pytest.mark.parametrize("spec", [ServerSpec(batch=0), ServerSpec(output=0), ServerSpec(cv=-1.0)])
def test_impossible_servers_are_refused(spec: ServerSpec) -> None:
    with pytest.raises(UsageError):
        serve(poisson(1, 5), 5, spec, ONE, 1)


def test_only_decoders_are_served() -> None:
    with pytest.raises(UsageError, match="token by token"):
        served("resnet50", chip_file(), ArrivalSpec(rate=1), ServerSpec(), seconds=10, seed=1, options=Options())


def test_energy_is_power_times_time_and_carbon_follows_the_grid() -> None:
    setup = Setup(model="resnet50", soc=chip_file(), options=Options(steps=2, noise=0.0, batch=4))
    found = footprint(setup, 500.0, 1.3)
    assert found.energy_step_j == pytest.approx(found.power_w * found.step_ms / 1e3)
    assert found.energy_1000_kj == pytest.approx(found.energy_step_j / 4)
    assert found.carbon_1000_g == pytest.approx(found.energy_1000_kj / 3600 * 500 * 1.3)
    assert footprint(setup, 100.0, 1.3).carbon_1000_g == pytest.approx(found.carbon_1000_g / 5)


def test_low_carbon_suggestions_save_energy_and_say_their_price() -> None:
    found = green(Setup(model="resnet50", soc=chip_file(), options=Options()))
    assert found.suggestions
    assert all(item.energy_change < -0.01 for item in found.suggestions)
    assert list(found.suggestions) == sorted(found.suggestions, key=lambda item: item.energy_change)
    batches = [item for item in found.suggestions if item.option == "batch"]
    assert batches
    assert all(item.latency_change > 0 for item in batches)


def test_a_lower_clock_costs_latency() -> None:
    busy = Setup(model="llama3-8b-prefill", soc=chip_file(), options=Options(steps=2, noise=0.0, graph_launch=True))
    slower = [footprint(Setup(model=busy.model, soc=busy.soc, options=Options(steps=2, noise=0.0, graph_launch=True, clock_cap=cap)), 1, 1)
              for cap in (1.0, 0.8, 0.6)]  # fmt: skip
    assert [item.step_ms for item in slower] == sorted(item.step_ms for item in slower)
    assert [item.power_w for item in slower] == sorted((item.power_w for item in slower), reverse=True)


@pytest.mark.parametrize(("grid", "overhead"), [(-1.0, 1.3), (500.0, 0.5)])
def test_impossible_grids_are_refused(grid: float, overhead: float) -> None:
    with pytest.raises(UsageError):
        green(Setup(model="resnet50", soc=chip_file()), grid_g_per_kwh=grid, site_overhead=overhead)


def test_the_commands_answer(kb: Run) -> None:
    words = ("simulate", "load", "qwen3-0.6b", "--rate", "1", "--rate", "2", "--duration", "30s", "--prompt", "64", "--output-tokens", "16")
    answer = kb(*words, "--json").json()
    assert [item["rate_per_s"] for item in answer["loads"]] == [1.0, 2.0]
    assert answer["origin"] == "simulated"
    assert "simulated" in kb(*words, "--lang", "en").out
    assert kb("simulate", "load", "qwen3-0.6b", "--rate", "fast").status == 2
    energy = kb("simulate", "energy", "resnet50", "--grid", "100", "--json").json()
    assert energy["now"]["carbon_1000_g"] > 0
    assert "assumptions" in kb("simulate", "energy", "resnet50", "--lang", "en").out
