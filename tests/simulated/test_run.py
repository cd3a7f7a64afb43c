"""A simulated run as a whole: the session, its identities, and the truth beside it."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from simulated.chips import chip_file, ran

from kb.errors import MalformedInputError, NotFoundError, UsageError
from kb.profile.simulated.memory import OutOfDeviceMemoryError
from kb.profile.simulated.models.names import MODELS
from kb.profile.simulated.options import Options
from kb.profile.simulated.plan import IDLE_CAUSES
from kb.profile.simulated.run import Setup, setup_of, simulate
from kb.profile.simulated.truth import Truth
from kb.session.session import Array, Session, Table

SMALL = ("sd3", "bert-base", "resnet50", "resnet50-train", "yolov8n", "qwen3-0.6b-prefill", "qwen3-0.6b-decode", "qwen3-0.6b-train")
"""One model of every kind."""
SETTINGS = (
    Options(steps=2, denoise_steps=2, microbatches=1),
    Options(steps=2, denoise_steps=1, microbatches=2, fused_attention=True, host_syncs=2, gc_ms=1.0, loader_ms=30.0, checkpoint_ms=2.0),
    Options(steps=2, denoise_steps=1, microbatches=1, fused_elementwise=True, stream_depth=8, async_copy=True, capture="level2"),
    Options(steps=2, denoise_steps=1, microbatches=1, graph_launch=True, jit_compile=True, dynamic_shapes=1),
)


def kernels(session: Session) -> Table:
    return session.tables["kernels"]


def texts(session: Session, codes: Array) -> Array:
    return np.array(session.strings)[codes]


def steps(session: Session) -> list[int]:
    trace = session.tables["step_trace"]
    return [int(value) for value in trace["stage_ns"] + trace["bubble_ns"]]


@pytest.mark.parametrize("model", SMALL)
@pytest.mark.parametrize("options", SETTINGS)
def test_the_session_is_sound_and_its_step_identity_exact(model: str, options: Options) -> None:
    session, truth = ran(model, options=options)
    assert session.self_check() == []
    trace = session.tables["step_trace"]
    parts = trace["computing_ns"] + trace["comm_not_overlapped_ns"] + trace["free_ns"]
    assert parts.tolist() == (trace["stage_ns"] + trace["bubble_ns"]).tolist()
    table = kernels(session)
    for row, step in enumerate(truth.steps):
        mine = table["step_id"] == trace["step_id"][row]
        assert table["duration_ns"][mine].sum() == trace["computing_ns"][row] == step.computing_ns == sum(step.busy_ns.values())
        assert trace["free_ns"][row] == sum(step.idle_ns.values())


@pytest.mark.parametrize("options", SETTINGS)
def test_every_idle_nanosecond_has_one_cause(options: Options) -> None:
    session, truth = ran("bert-base", options=options)
    table, steps_table = kernels(session), session.tables["steps"]
    edges = np.concatenate([[steps_table["start_ns"][0]], (table["start_ns"] + table["duration_ns"])])
    gaps = np.concatenate([table["start_ns"], [steps_table["end_ns"][-1]]]) - edges
    assert (gaps >= 0).all()
    idle = truth.idle
    assert (idle.end_ns - idle.start_ns).sum() == gaps.sum()
    assert (idle.end_ns > idle.start_ns).all()
    assert (idle.start_ns[1:] >= idle.end_ns[:-1]).all()
    for number, cause in enumerate(IDLE_CAUSES):
        mine = idle.cause == number
        assert (idle.end_ns - idle.start_ns)[mine].sum() == sum(step.idle_ns[cause] for step in truth.steps)


@pytest.mark.parametrize("model", ["bert-base", "sd3", "resnet50"])
@pytest.mark.parametrize("soc", ["910b2", "310p3", "910a"])
def test_counters_satisfy_their_identities(model: str, soc: str) -> None:
    session, _ = ran(model, soc, options=Options(steps=1, denoise_steps=1, fused_attention=True))
    chip, table = chip_file(soc), kernels(session)
    ghz, cores = chip.clock.value / 1e3, chip.cube_cores.value
    block, mix = table["block"], table["mix_block"]
    np.testing.assert_allclose(table["aic_total_cycles"], table["aicore_time_ns"] * ghz * block, rtol=1e-12)
    np.testing.assert_allclose(table["aiv_total_cycles"], table["aiv_time_ns"] * ghz * np.where(mix > 0, mix, block), rtol=1e-12)
    np.testing.assert_allclose(table["cube_utilization"], table["aic_total_cycles"] / (ghz * cores * table["duration_ns"]), rtol=1e-12)
    products = texts(session, table["op_type"]) == "MatMulV3"
    shapes = [tuple(map(int, text.split(";")[1].split(","))) for text in texts(session, table["input_shapes"][products])]
    rows = [
        int(np.prod(list(map(int, text.split(","))))) // k[1]
        for k, text in zip(shapes, texts(session, table["output_shapes"][products]), strict=True)
    ]
    flop = np.array([2 * m * k * n for m, (k, n) in zip(rows, shapes, strict=True)])
    ideal = flop / (np.minimum(block[products], cores) * 8192 * ghz) * 1.018
    np.testing.assert_allclose(table["aic_mac_ratio"][products], ideal / table["aicore_time_ns"][products], rtol=1e-9)
    assert (table["aic_mac_ratio"] <= 1.0).all()
    assert (table["cube_utilization"] <= 1.0).all()
    overhead = table["duration_ns"] - np.maximum(table["aicore_time_ns"], table["aiv_time_ns"])
    assert (overhead > 0).all()
    assert overhead.max() <= 2000


def test_equal_setups_give_equal_sessions_and_another_seed_does_not() -> None:
    options = Options(steps=3)
    first, again = (simulate(Setup(model="bert-base", soc=chip_file(), options=options, seed=7))[0] for _ in range(2))
    other, _ = ran(seed=8)
    assert first.strings == again.strings
    for name, table in first.tables.items():
        for column, values in table.columns.items():
            np.testing.assert_array_equal(values, again.tables[name][column])
    assert steps(first) == steps(again) != steps(other)


def test_another_chip_changes_the_figures() -> None:
    assert len({tuple(steps(ran(soc=name)[0])) for name in ("910b2", "910b4", "910a", "310p3")}) == 4


def test_without_noise_all_steps_are_alike_and_the_first_is_the_warm_up() -> None:
    session, _ = ran(options=Options(steps=4, noise=0.0))
    assert len(set(steps(session))) == 1
    assert session.tables["steps"]["warmup"].tolist() == [1, 0, 0, 0]


def test_noise_spreads_products_less_than_elementwise_kernels() -> None:
    session, _ = ran("bert-large", options=Options(steps=3, batch=32))
    table = kernels(session)

    def spread(op_type: str, shape: str) -> float:
        mine = (texts(session, table["op_type"]) == op_type) & (texts(session, table["output_shapes"]) == shape)
        return float(np.std(np.log(table["duration_ns"][mine])))

    assert 0.005 < spread("MatMulV3", "32,128,4096") < 0.02
    assert 0.08 < spread("Mul", "32,128,4096") < 0.16


def attention_share(truth: Truth) -> tuple[float, int]:
    busy = truth.steps[-1].busy_ns
    spent = sum(busy.get(name, 0) for name in ("BatchMatMulV3", "SoftmaxV2", "FlashAttentionScore"))
    return spent / truth.steps[-1].computing_ns, spent


def test_sd3_attention_dominates_until_it_is_fused() -> None:
    # Physics from other models of the same shapes: 83 ms of attention in a forward unfused, 60 to 76 % less when fused.
    share, unfused = attention_share(ran("sd3")[1])
    _, fused = attention_share(ran("sd3", options=Options(steps=3, fused_attention=True))[1])
    assert 0.45 < share < 0.75
    assert 65e6 < unfused / 8 < 100e6  # two forwards in each of four denoising steps
    assert 0.50 < 1 - fused / unfused < 0.80


def test_a_small_batch_waits_for_the_host_and_a_graph_launch_removes_that() -> None:
    eager, graph = (ran("bert-large", options=Options(steps=3, graph_launch=on))[1].steps[-1] for on in (False, True))
    assert eager.idle_ns["launch"] > 0.2 * eager.step_ns
    assert graph.idle_ns["launch"] < 0.02 * graph.step_ns


def test_every_launch_is_linked_to_its_kernels() -> None:
    for options in SETTINGS:
        session, _ = ran(options=options)
        host, table = session.tables["host_ops"], kernels(session)
        launches = host["name"] == session.code("launch")
        ends = dict(zip(host["connection_id"][launches].tolist(), (host["start_ns"] + host["duration_ns"])[launches].tolist(), strict=True))
        assert all(start >= ends[link] for start, link in zip(table["start_ns"].tolist(), table["connection_id"].tolist(), strict=True))


def test_the_session_says_it_is_simulated_and_what_it_leaves_out() -> None:
    session, _ = ran("sd3")
    meta = session.meta
    assert (meta.origin, meta.capture.format, meta.simulator, meta.soc.how) == ("simulated", "simulated", "sim-0.2", "simulator")
    assert (meta.model.type, meta.model.phase, meta.soc.id, meta.soc.family, meta.soc.cores) == (
        "diffusion",
        "inference",
        "910b2",
        "A2",
        24,
    )
    assert {"text encoders", "VAE decoder"} <= {missing.what for missing in meta.missing}
    assert session.text(int(kernels(session)["file"][0])) == "simulated/kernels"
    assert kernels(session)["row"].tolist()[:2] == [2, 3]


def test_sd3_has_the_true_shapes() -> None:
    session, _ = ran("sd3")
    shapes = set(texts(session, kernels(session)["output_shapes"]))
    assert {"1,24,4250,4250", "1,4096,1536", "1,154,1536"} <= shapes
    counts = np.unique(texts(session, kernels(session)["op_type"]), return_counts=True)
    softmax = dict(zip(*counts, strict=True))["SoftmaxV2"]
    assert softmax == 24 * 2 * 4 * 3  # layers, guidance forwards, denoising steps, profiled steps


def test_a_setup_survives_the_session() -> None:
    setup = Setup(model="bert-base", soc=chip_file("910b3"), options=Options(steps=2, sequence=64, noise=0.5), seed=3, name="mine")
    session, _ = simulate(setup)
    assert setup_of(session, chip_file("910b3")) == setup


def test_a_foreign_session_is_not_rebuilt() -> None:
    session, _ = ran()
    meta = session.meta
    with pytest.raises(NotFoundError, match="ran on 910b2"):
        setup_of(session, chip_file("910a"))
    older = Session(msgspec.structs.replace(meta, simulator="sim-0.0"), session.tables, session.strings)
    with pytest.raises(NotFoundError, match="simulated by sim"):
        setup_of(older, chip_file())
    damaged = Session(msgspec.structs.replace(meta, options=dict(meta.options) | {"batch": "many"}), session.tables, session.strings)
    with pytest.raises(MalformedInputError, match="damaged"):
        setup_of(damaged, chip_file())


def test_an_unknown_model_names_the_known_ones() -> None:
    with pytest.raises(NotFoundError, match="bert-large") as caught:
        simulate(Setup(model="bert-huge", soc=chip_file()))
    assert caught.value.allowed is not None
    assert set(caught.value.allowed.split(", ")) == set(MODELS)


@pytest.mark.parametrize(
    "options", [Options(batch=0), Options(stream_depth=0), Options(noise=-1), Options(noise=float("nan")), Options(sequence=1000)]
)
def test_impossible_options_are_refused(options: Options) -> None:
    with pytest.raises(UsageError):
        simulate(Setup(model="sd3", soc=chip_file(), options=options))


def test_what_does_not_fit_is_reported_with_need_and_capacity() -> None:
    with pytest.raises(OutOfDeviceMemoryError) as caught:
        simulate(Setup(model="sd3", soc=chip_file("310b1"), options=Options(batch=8)))
    assert caught.value.need > caught.value.capacity
    assert caught.value.capacity == int(8e9 * 0.952)
    assert f"{caught.value.need / 1e9:.1f} GB" in str(caught.value)
