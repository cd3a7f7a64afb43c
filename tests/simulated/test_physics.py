"""Laws the cost model may not break, whatever the figures."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from simulated.chips import NAMES, chip_file, with_figure

from kb.profile.simulated.chip import Chip, chip_of
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.cost import kernel_time, kernel_times
from kb.profile.simulated.graph import Elementwise, Graph, Operator, Rearrangement, Tensor, tensor
from kb.profile.simulated.kernel import KernelTime
from kb.profile.simulated.layout import Seat
from kb.profile.simulated.models.names import model
from kb.profile.simulated.options import Options
from kb.profile.simulated.prediction import flash_attention, matmul, predicted
from kb.profile.simulated.residency import Traffic, kept, traffic

CONSTANTS = load_constants()
ALONE = Seat(0, 0, 0, 0, 0)
sizes = st.integers(1, 6000)
factors = st.floats(1.0, 8.0)
names = st.sampled_from(NAMES)


def chip(name: str = "910b2", **changes: float) -> Chip:
    soc = chip_file(name)
    for field, factor in changes.items():
        soc = with_figure(soc, field, factor)
    return chip_of(soc, CONSTANTS)


def add(elements: int) -> Elementwise:
    a, b, out = (tensor(number, (elements,), "FLOAT16") for number in range(3))
    return Elementwise("Add", (a, b), (out,))


operators: st.SearchStrategy[Operator] = st.one_of(
    st.builds(matmul, sizes, sizes, sizes),
    st.builds(flash_attention, sizes, st.integers(1, 24), st.sampled_from([32, 64, 128])),
    st.builds(add, st.integers(1, 10**8)),
)


@given(operators, names, factors, st.booleans())
def test_more_memory_bandwidth_is_never_slower(operator: Operator, name: str, factor: float, cold: bool) -> None:
    before = predicted(operator, chip(name), CONSTANTS, cold=cold)
    after = predicted(operator, chip(name, memory_bandwidth=factor), CONSTANTS, cold=cold)
    assert after.total <= before.total * (1 + 1e-12)


@given(operators, names, factors, st.booleans())
def test_a_larger_cache_is_never_slower(operator: Operator, name: str, factor: float, cold: bool) -> None:
    before = predicted(operator, chip(name), CONSTANTS, cold=cold)
    assert predicted(operator, chip(name, l2=factor), CONSTANTS, cold=cold).total <= before.total * (1 + 1e-12)


@given(operators, names, factors)
def test_a_faster_clock_is_never_slower(operator: Operator, name: str, factor: float) -> None:
    before = predicted(operator, chip(name), CONSTANTS, cold=True)
    assert predicted(operator, chip(name, clock=factor), CONSTANTS, cold=True).total <= before.total * (1 + 1e-12)


def body(time: KernelTime) -> float:
    """The kernel without its fixed head."""
    return time.total - CONSTANTS["cube_head_ns"]


def test_the_clock_scales_a_compute_bound_product() -> None:
    operator = matmul(4096, 4096, 4096)
    slow, fast = (predicted(operator, chip(clock=factor), CONSTANTS, cold=False) for factor in (1.0, 2.0))
    assert body(slow) == pytest.approx(2 * body(fast))


def test_the_clock_does_not_move_a_memory_bound_kernel() -> None:
    moved = tensor(0, (10**9,), "FLOAT16")
    copy = Rearrangement("TensorMove", (moved,), (tensor(1, (10**9,), "FLOAT16"),))
    slow, fast = (predicted(copy, chip(clock=factor), CONSTANTS, cold=True) for factor in (1.0, 2.0))
    assert slow.total == pytest.approx(fast.total, rel=1e-9)
    assert predicted(copy, chip(memory_bandwidth=2.0), CONSTANTS, cold=True).total < 0.51 * slow.total


@given(operators, names, st.booleans())
def test_no_kernel_beats_the_cube_peak_or_the_memory_interface(operator: Operator, name: str, cold: bool) -> None:
    device = chip(name)
    time = predicted(operator, device, CONSTANTS, cold=cold)
    flop = getattr(operator, "flop", 0)
    assert time.total >= flop / (device.mac_rate * device.cube_cores)
    assert time.total >= time.hbm_bytes / device.hbm_rate * (1 - 1e-12)
    assert 0.0 <= time.l2_hit <= 1.0


@given(sizes, sizes, sizes, names)
def test_a_product_reads_every_cold_operand_at_least_once(m: int, k: int, n: int, name: str) -> None:
    time = predicted(matmul(m, k, n), chip(name), CONSTANTS, cold=True)
    assert time.hbm_read >= 0.999 * 2 * (m * k + k * n)


def test_a_right_operand_beyond_the_cache_is_read_again_in_every_sweep() -> None:
    fits = predicted(matmul(4096, 8192, 4096), chip(), CONSTANTS, cold=True)
    spills = predicted(matmul(4096, 16384, 16384), chip(), CONSTANTS, cold=True)
    assert fits.hbm_read == pytest.approx(2 * (4096 * 8192 + 8192 * 4096))
    assert spills.hbm_read > 4 * 2 * 16384 * 16384


@given(st.floats(0, 1e10), st.floats(0, 1e10), st.floats(1e6, 1e9))
def test_kept_is_a_share_that_falls_with_the_footprint(a: float, b: float, capacity: float) -> None:
    small, large = sorted((a, b))
    assert 0.0 <= kept(large, capacity) <= kept(small, capacity) <= 1.0


@dataclass(frozen=True)
class Reuse:
    """The plain definition of reuse distance, as an oracle."""

    operators: tuple[Operator, ...]

    def cold(self, capacity: float) -> list[tuple[float, ...]]:
        accesses = [[*operator.inputs, *operator.outputs] for operator in (*self.operators, *self.operators)]
        flat: list[tuple[int, Tensor]] = [(place, t) for place, touched in enumerate(accesses) for t in touched]
        found = []
        for place in range(len(self.operators), len(accesses)):
            earlier = [t for at, t in flat if at < place]
            inputs = accesses[place][: len(self.operators[0].inputs)]
            named = [t.id in [other.id for other in inputs[:at]] for at, t in enumerate(inputs)]
            found.append(tuple(0.0 if again else self._one(t, earlier, capacity) for t, again in zip(inputs, named, strict=True)))
        return found

    @staticmethod
    def _one(wanted: Tensor, earlier: list[Tensor], capacity: float) -> float:
        since: set[tuple[int, int]] = set()
        for other in reversed(earlier):
            if other.id == wanted.id:
                return wanted.bytes * (1.0 - kept(wanted.bytes + sum(size for _, size in since), capacity))
            since.add((other.id, other.bytes))
        return float(wanted.bytes)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8), st.floats(10, 2000))
def test_residency_equals_the_plain_definition_of_reuse_distance(rows: list[tuple[int, int, int]], capacity: float) -> None:
    def operand(number: int) -> Tensor:
        return tensor(number, (10 * (number + 1),), "FLOAT16")

    sequence = tuple(Elementwise("Add", (operand(a), operand(b)), (operand(c),)) for a, b, c in rows)
    got = [moved.cold for moved in traffic(sequence, capacity)]
    for ours, plain in zip(got, Reuse(sequence).cold(capacity), strict=True):
        assert ours == pytest.approx(plain)


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from(["sd3", "bert-base", "yolov8n", "qwen3-0.6b-prefill"]),
    names,
    st.integers(1, 2),
    st.sampled_from([None, 256, 1024]),
    st.booleans(),
    st.sampled_from(["a", "e"]),
)
@example("sd3", "310b1", 1, 256, False, "e")
@example("sd3", "310p3", 8, 64, True, "e")
def test_fusion_never_moves_more_bytes_through_memory(
    which: str, name: str, batch: int, sequence: int | None, other: bool, fused: str
) -> None:
    plain_options = Options(batch=batch, sequence=sequence)
    base = msgspec.structs.replace(plain_options, **{"fused_elementwise" if fused == "a" else "fused_attention": other})
    more = Options(batch=batch, sequence=sequence, fused_attention=fused == "a" or other, fused_elementwise=fused == "e" or other)
    plain, better = (model(which).build(options, ALONE).segment for options in (base, more))
    device = chip(name)
    before, after = (sum(time.hbm_bytes for time in kernel_times(graph, device, CONSTANTS)) for graph in (plain, better))
    assert after <= before * (1 + 1e-9)
    assert len(better.operators) <= len(plain.operators)


def test_a_kernel_of_an_unknown_kind_is_refused() -> None:
    operator = Operator("Mystery", (), ())
    with pytest.raises(TypeError, match="no cost"):
        kernel_time(operator, Traffic((), 0, 0, 0.0), chip(), CONSTANTS)


def test_the_graph_of_a_model_has_the_published_size() -> None:
    # Parameters of the published checkpoints, two bytes each.
    published = (
        ("sd3", 2.03e9),
        ("bert-large", 335e6),
        ("bert-base", 109e6),
        ("resnet50", 25.6e6),
        ("yolov8n", 3.2e6),
        ("yolov8s", 11.2e6),
        ("sdxl-unet", 2.57e9),
        ("flux", 11.9e9),
        ("llama2-7b-prefill", 6.74e9),
        ("llama2-13b-prefill", 13.0e9),
        ("llama3-8b-prefill", 8.03e9),
        ("qwen3-0.6b-prefill", 0.596e9),
        ("qwen2.5-7b-prefill", 7.62e9),
        ("qwen3-14b-prefill", 14.8e9),
        ("qwen3-30b-a3b-prefill", 30.5e9),
        ("mixtral-8x7b-prefill", 46.7e9),
    )
    for name, parameters in published:
        graph: Graph = model(name).build(Options(), ALONE).segment
        assert graph.weight_bytes() / 2 == pytest.approx(parameters, rel=0.02)
