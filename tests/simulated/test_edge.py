"""Edge chips: power, heat, and a clock that follows it while the box runs on."""

from __future__ import annotations

import numpy as np
import pytest
from cli.program import runner
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from simulated.chips import SOC_FOLDER, chip_file

from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import Setup, simulate
from kb.profile.simulated.socs import find_soc
from kb.profile.simulated.stability import stability_of, told
from kb.profile.simulated.thermal import Activity, course, levels_of, settled, thermals_of
from kb.session.session import Session
from kb.workflow.diagnose import diagnose_sessions
from kb.workflow.location import shipped_catalogue

CONSTANTS = load_constants()
HOT = Options(batch=8, graph_launch=True, steps=120, sample_s=2.0, cooling=0.28, noise=0.2)


def ran(options: Options, soc: str = "310p3", model: str = "yolov8s") -> Session:
    return simulate(Setup(model=model, soc=chip_file(soc), options=options))[0]


def counter(session: Session, name: str) -> np.typing.NDArray[np.float64]:
    counters = session.tables["counters"]
    values: np.typing.NDArray[np.float64] = counters["value"][counters["name"] == session.code(name)]
    return values


def test_a_hot_edge_box_throttles_and_the_clock_explains_the_latency() -> None:
    session = ran(HOT)
    assert session.self_check() == []
    found = stability_of(session)
    assert found is not None
    assert found.throttled
    assert found.clock_latency_r < -0.95
    assert found.power_latency_r < -0.9
    assert found.clock_low_mhz < found.clock_high_mhz == pytest.approx(1060)
    assert found.temperature_max_c > thermals_of("310P", CONSTANTS).throttle_c
    assert "throttles" in told(found).en
    celsius = counter(session, "Temperature [C]")
    assert celsius[0] == thermals_of("310P", CONSTANTS).ambient_c
    assert counter(session, "AI Core Freq [MHz]")[0] == pytest.approx(1060)


@pytest.mark.parametrize("change", [{"cooling": 1.0}, {"clock_cap": 0.5}, {"ambient_c": 1.0, "cooling": 0.5}])
def test_better_cooling_or_a_capped_clock_makes_it_steady(change: dict[str, float]) -> None:
    found = stability_of(ran(replace(HOT, **change)))
    assert found is not None
    assert not found.throttled
    assert found.spread < 0.05
    assert "stays at" in told(found).en


def test_only_what_runs_on_the_clock_slows_down() -> None:
    session = ran(replace(HOT, noise=0.0))
    kernels = session.tables["kernels"]
    clock = counter(session, "AI Core Freq [MHz]")
    durations = kernels["duration_ns"].reshape(len(clock), -1)
    slow, fast = durations[clock == clock.min()][0], durations[clock == clock.max()][0]
    ratio = slow / fast
    assert (ratio >= 1 - 1e-6).all()
    assert (ratio <= clock.max() / clock.min() + 0.01).all()
    cube = kernels["aic_mac_ratio"].reshape(len(clock), -1)[0] > 0.8
    assert ratio[cube].mean() > 1.3


def test_cycles_follow_the_clock() -> None:
    session = ran(replace(HOT, noise=0.0))
    kernels = session.tables["kernels"]
    clock = counter(session, "AI Core Freq [MHz]")
    rows = kernels["aicore_time_ns"] > 0
    seen = kernels["aic_total_cycles"][rows] / kernels["aicore_time_ns"][rows] / kernels["block"][rows] * 1e3
    wanted = np.repeat(clock, len(rows) // len(clock))[rows]
    assert seen == pytest.approx(wanted, rel=1e-6)


def test_steps_lie_as_far_apart_as_asked() -> None:
    starts = ran(HOT).tables["steps"]["start_ns"]
    assert np.diff(starts) == pytest.approx(2e9)


def test_the_diagnosis_names_the_heat_where_the_step_was_slow() -> None:
    hot = replace(HOT, cooling=0.15)
    diagnosis = diagnose_sessions((ran(hot),), shipped_catalogue()).diagnosis
    assert diagnosis.has_books()
    assert "thermal_throttling" in {finding.cause for finding in diagnosis.all_findings()}


shares = st.floats(0.0, 1.0)


@settings(max_examples=60)
@given(shares, shares, shares, st.floats(0.2, 2.0), st.sampled_from(["310P", "310B", "A2"]))
def test_the_governor_stays_near_what_a_long_run_settles_at(cube: float, vector: float, memory: float, cooling: float, family: str) -> None:
    """Clocks go up and down around the steady one, never more than a level above it once warm."""
    thermals = thermals_of(family, CONSTANTS)
    options = Options(cooling=cooling, steps=200, sample_s=5.0)
    activity = Activity(cube, vector, memory)
    heats = course(lambda _level: activity, options, thermals, CONSTANTS)
    steady = settled(activity, options, thermals, CONSTANTS)
    levels = levels_of(options)
    late = {heat.clock for heat in heats[120:]}
    allowed = levels[max(0, levels.index(steady.clock) - 1) :]
    assert late <= set(allowed)
    assert all(heat.clock in levels for heat in heats)
    assert heats[0].celsius == thermals.ambient_c
    hottest = thermals.ambient_c + thermals.budget_w * thermals.c_per_w / cooling
    assert max(heat.celsius for heat in heats) <= hottest + 1e-9


def test_edge_chips_have_figures_of_their_own() -> None:
    assert thermals_of("310P", CONSTANTS).budget_w < 100 < thermals_of("A2", CONSTANTS).budget_w
    assert "assumption" in thermals_of("310B", CONSTANTS).source


def test_a_family_of_one_chip_is_a_name_for_it() -> None:
    socs = load_catalogue(library_root()).socs
    assert find_soc("Ascend310P", socs).id == "310p3"
    assert find_soc("310B", socs).id == "310b1"
    assert SOC_FOLDER.is_dir()


def test_few_steps_or_no_samples_say_nothing() -> None:
    assert stability_of(ran(Options(steps=3), model="yolov8n")) is None
    bare = ran(HOT)
    assert stability_of(Session(bare.meta, {name: t for name, t in bare.tables.items() if name != "counters"}, bare.strings)) is None


def test_power_of_an_edge_chip_is_watched_over_minutes(capsys: pytest.CaptureFixture[str], tmp_path: object) -> None:
    words = ("collect", "--model", "yolov8n", "--soc_version", "Ascend310P", "--output", f"{tmp_path}/yolo.prof", "--lang", "en")
    result = runner(capsys, "profiler")(*words, "--data_types", "stream, power", "--json")
    assert result.status == 0
    stability = result.json()["stability"]
    assert stability["steps"] == 59
    assert stability["clock_low_mhz"] == stability["clock_high_mhz"]
    plain = runner(capsys, "profiler")(*words, "--force", "--json").json()
    assert plain["stability"] is None


def test_the_command_tells_it(capsys: pytest.CaptureFixture[str], tmp_path: object) -> None:
    result = runner(capsys, "profiler")(
        "collect", "--model", "yolov8n", "--soc_version", "Ascend310P", "--data_types", "stream, power", "--steps", "60",
        "--set", "sample_s=3", "--set", "cooling=0.25",
        "--set", "graph_launch=true", "--set", "batch=8", "--output", f"{tmp_path}/yolo.prof",
        "--lang", "en",
    )  # fmt: skip
    assert result.status == 0
    assert "heat throttles the clock" in result.err
