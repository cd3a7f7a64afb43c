from __future__ import annotations

import msgspec
import pytest
from diagnose.attention_runs import FLOPS, WIDTH, Q, S, backward, forward, over_scores, product, projection, without_shapes
from diagnose.factories import Kernel, in_sequence, made, view_of
from hypothesis import given
from hypothesis import strategies as st

from kb.diagnose.attention import AttentionRun, cube_floors_ns, find_runs
from kb.diagnose.rules.unfused_attention import unfused_attention
from kb.diagnose.thresholds import load_thresholds
from kb.domain.finding import Finding, Healthy, Judgement, NotJudged
from kb.domain.soc import SocRef
from kb.session.session import Session

THRESHOLDS = load_thresholds()
REACH = int(THRESHOLDS["attention_bridge_length"])


def session_of(kernels: list[Kernel], *, soc: SocRef | None = None) -> Session:
    return made(kernels=in_sequence(kernels), soc=soc or SocRef())


def runs_of(kernels: list[Kernel]) -> tuple[AttentionRun, ...]:
    return find_runs(view_of(session_of(kernels)), bridge_length=REACH)


def judged(session: Session) -> Judgement:
    (judgement,) = unfused_attention(view_of(session), THRESHOLDS)
    return judgement


def finding_of(session: Session) -> Finding:
    judgement = judged(session)
    assert isinstance(judgement, Finding)
    return judgement


def test_a_forward_attention_is_one_run_from_product_to_product() -> None:
    (run,) = runs_of([*projection(), *forward(), *projection()])
    assert run.members == (2, 3, 4, 5, 6)
    assert run.products == (2, 6)
    assert run.shaped
    assert not run.backward


def test_a_backward_attention_takes_all_four_products() -> None:
    (run,) = runs_of([*projection(), *backward(), *projection()])
    assert run.products == (2, 3, 6, 8)
    assert run.members == (2, 3, 4, 5, 6, 7, 8)
    assert run.backward


def test_a_projection_of_as_many_elements_is_not_taken_for_a_product_on_the_scores() -> None:
    # Sequence as long as a head is wide: queries and scores have equal element counts.
    square, flat = "12,64,64", "64,768"
    inner = [product(f"{square};{square}", square), Kernel(op_type="SoftmaxGrad", inputs=f"{square};{square}", outputs=square)]
    kernels = [*inner, product(f"{square};{square}", square), Kernel(op_type="Transpose", inputs=square, outputs=flat)]
    (run,) = runs_of([*kernels, product(f"{flat};768,768", flat)])
    assert run.products == (0, 2)


def test_damaged_shapes_count_as_unknown() -> None:
    kernels = [Kernel(op_type=kernel.op_type, core=kernel.core, inputs="8,²;x,y", outputs="9" * 5000) for kernel in forward()]
    (run,) = runs_of(kernels)
    assert not run.shaped


def test_every_layer_is_a_run_of_its_own_also_without_projections_between() -> None:
    runs = runs_of([*forward(), *forward(), *backward()])
    assert [run.backward for run in runs] == [False, False, True]
    members = [member for run in runs for member in run.members]
    assert len(members) == len(set(members)) == 17


@pytest.mark.parametrize("op_type", ["BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "MatMul", "MatMulV2", "MatMulV3"])
@pytest.mark.parametrize("softmax", ["Softmax", "SoftmaxV2", "ScaledMaskedSoftmax", "ScaledMaskedSoftmaxV2", "MaskedSoftmax"])
def test_every_spelling_of_products_and_softmax_is_known(op_type: str, softmax: str) -> None:
    kernels = [product(f"{Q};{Q}", S), over_scores(softmax), product(f"{S};{Q}", Q)]
    kernels = [msgspec.structs.replace(kernel, op_type=op_type) if kernel.core == "AI_CORE" else kernel for kernel in kernels]
    assert len(runs_of(kernels)) == 1


def test_dropout_masks_are_passed_over_but_not_counted() -> None:
    kernels = forward()
    kernels[4:4] = [Kernel(op_type="DropOutGenMask", duration=70), over_scores("DropOutDoMask", 30)]
    (run,) = runs_of(kernels)
    assert run.members == (0, 1, 2, 3, 5, 6)


def test_a_layout_change_of_the_values_is_passed_over_but_not_counted() -> None:
    kernels = forward()
    kernels[4:4] = [Kernel(op_type="Transpose", inputs=Q, outputs=Q, duration=30)]
    (run,) = runs_of(kernels)
    assert run.members == (0, 1, 2, 3, 5)


def test_a_router_whose_softmax_is_not_read_by_the_next_product_is_no_attention() -> None:
    router = [product("4096,1024;1024,64", "4096,64"), Kernel(op_type="SoftmaxV2", inputs="4096,64", outputs="4096,64")]
    assert (
        runs_of([*router, Kernel(op_type="Cast", inputs="4096,64", outputs="4096,64"), product("4096,1024;1024,4096", "4096,4096")]) == ()
    )


def test_a_classifier_softmax_at_the_end_is_no_attention() -> None:
    assert runs_of([product("64,1024;1024,1000", "64,1000"), Kernel(op_type="SoftmaxV2", inputs="64,1000", outputs="64,1000")]) == ()


def test_kernels_of_another_kind_between_break_the_run() -> None:
    kernels = forward()
    kernels[2:2] = [Kernel(op_type="LayerNormV3", inputs=S, outputs=S)]
    assert runs_of(kernels) == ()


@pytest.mark.parametrize(("bridges", "found"), [(REACH, 1), (REACH + 1, 0)])
def test_a_chain_longer_than_the_threshold_is_not_followed(bridges: int, found: int) -> None:
    kernels = [product(f"{Q};{Q}", S), *[over_scores("Muls")] * bridges, over_scores("SoftmaxV2"), product(f"{S};{Q}", Q)]
    assert len(runs_of(kernels)) == found


def test_kernels_of_another_stream_neither_join_nor_break_a_run() -> None:
    alien = [Kernel(op_type="LayerNormV3", stream=7, start=350, duration=10), Kernel(op_type="SoftmaxV2", stream=7, start=10, duration=10)]
    view = view_of(made(kernels=sorted([*in_sequence(forward()), *alien], key=lambda kernel: kernel.start)))
    (run,) = find_runs(view, bridge_length=REACH)
    assert len(run.members) == 5


def test_the_exposed_time_of_one_stream_is_the_sum_of_the_matched_kernels() -> None:
    finding = finding_of(session_of([*projection(), *forward(), *projection()]))
    assert finding.exposed_ns == sum(kernel.duration for kernel in forward())
    assert finding.share == pytest.approx(finding.exposed_ns / (finding.exposed_ns + 400))
    assert finding.priority == "P0"


def test_time_another_stream_computes_through_is_not_exposed() -> None:
    side = Kernel(op_type="LayerNormV3", stream=9, start=0, duration=400)
    finding = finding_of(made(kernels=[*in_sequence(forward()), side]))
    assert finding.exposed_ns == sum(kernel.duration for kernel in forward()) - 400
    assert finding.gain_bound_ns <= finding.exposed_ns


US = 1_000


def spaced(gap: int, *, kernels: list[Kernel] | None = None) -> Session:
    return made(kernels=in_sequence(kernels or forward(), gap=gap))


def test_layout_changes_and_scaling_of_the_operands_belong_to_the_run_and_biases_do_not() -> None:
    layout, scale, bias = (Kernel(op_type=name, inputs=Q, outputs=Q, duration=40) for name in ("Transpose", "Muls", "Add"))
    added = Kernel(op_type="Add", inputs=f"{Q};{WIDTH}", outputs=Q, duration=40)
    alien = Kernel(op_type="Transpose", inputs="7,7", outputs="7,7", duration=40)
    (run,) = runs_of([*projection(), bias, added, alien, layout, scale, *forward(), layout, *projection()])
    assert run.members == (5, 6, 7, 8, 9, 10, 11, 12)


def test_launch_gaps_inside_a_run_are_exposed_with_it_and_those_around_it_are_not() -> None:
    gap = 2 * US
    finding = finding_of(spaced(gap, kernels=[*projection(), *forward(), *projection()]))
    assert finding.exposed_ns == sum(kernel.duration for kernel in forward()) + 4 * gap


def test_a_long_gap_inside_a_run_counts_only_as_far_as_a_launch_explains_it() -> None:
    most = int(THRESHOLDS["launch_gap_most"]) * US
    kernels = list(in_sequence(forward()))
    kernels[3:] = in_sequence(kernels[3:], start=kernels[3].start + 5 * most)
    assert finding_of(made(kernels=kernels)).exposed_ns == sum(kernel.duration for kernel in forward()) + most


def test_a_gap_in_which_another_stream_works_is_not_idle() -> None:
    side = Kernel(op_type="hcom_allReduce_", core="COMMUNICATION", stream=5, start=0, duration=200 * US)
    finding = finding_of(made(kernels=[*in_sequence(forward(), gap=2 * US), side]))
    assert finding.exposed_ns == sum(kernel.duration for kernel in forward())


def test_where_the_host_sets_the_pace_saved_launches_count_wherever_they_shorten_the_step() -> None:
    # The run itself is launched ahead, without a gap; the rest of the step waits 10 us for every launch.
    late = in_sequence([Kernel(op_type="LayerNormV3", duration=100)] * 20, gap=10 * US)
    run = in_sequence(forward(), start=late[-1].start + 100)
    finding = finding_of(made(kernels=[*late, *run]))
    assert finding.gain_bound_ns == finding.exposed_ns == 4 * 10_100


def test_the_bound_leaves_the_measured_cube_time_of_the_products() -> None:
    finding = finding_of(session_of(forward(mac_ratio=0.5, aicore=180.0)))
    assert finding.gain_bound_ns == finding.exposed_ns - 2 * 90
    assert finding.notes == ()


def test_without_counters_the_bound_leaves_what_shapes_and_chip_demand() -> None:
    soc = SocRef(cores=200, clock_mhz=1650.0)
    finding = finding_of(session_of(forward(), soc=soc))
    ideal = 2 * FLOPS / (200 * 8192 * 1650e6) * 1e9
    assert finding.gain_bound_ns == pytest.approx(finding.exposed_ns - ideal, abs=1)


def test_without_counters_and_chip_the_bound_is_all_and_the_finding_less_sure() -> None:
    bare, counted = finding_of(session_of(forward())), finding_of(session_of(forward(mac_ratio=0.5, aicore=180.0)))
    assert bare.gain_bound_ns == bare.exposed_ns
    assert bare.confidence < counted.confidence
    assert any("counted as zero" in note.en for note in bare.notes)


def test_adjacency_alone_is_enough_but_less_sure() -> None:
    bare, shaped = finding_of(session_of(without_shapes(forward()))), finding_of(session_of(forward()))
    assert bare.exposed_ns == shaped.exposed_ns
    assert bare.confidence < shaped.confidence
    assert any("adjacency" in note.en for note in bare.notes)


def test_a_tiled_shape_gives_no_floor_instead_of_a_wrong_one() -> None:
    tiled = product("8,4,32,16,16;8,32,4,16,16", "8,32,32,16")
    view = view_of(session_of([tiled], soc=SocRef(cores=20, clock_mhz=1650.0)))
    assert cube_floors_ns(view, [AttentionRun((0,), (0,), 0, backward=False, shaped=True)]) == (None,)


def test_evidence_cites_products_and_softmax_by_file_row_and_value() -> None:
    finding = finding_of(session_of([*projection(), *forward()]))
    assert [(cited.row, cited.value, cited.unit) for cited in finding.evidence] == [(4, 0.2, "us"), (7, 0.5, "us"), (8, 0.2, "us")]


def test_both_languages_carry_the_figures() -> None:
    finding = finding_of(session_of([*projection(), *forward()]))
    for text in (finding.message.zh, finding.message.en):
        assert "0.002 ms" in text
        assert "88.2 %" in text


def test_fused_attention_is_healthy_with_its_count() -> None:
    fused = Kernel(op_type="FlashAttentionScore", core="MIX_AIC", duration=800)
    judgement = judged(session_of([*projection(), fused, *projection()]))
    assert isinstance(judgement, Healthy)
    assert (judgement.value, judgement.unit) == (1.0, "count")
    assert judgement.evidence[0].row == 4


def test_a_trace_of_unfused_attention_in_a_long_step_is_healthy_with_its_share() -> None:
    big = Kernel(op_type="Conv2D", core="AI_CORE", duration=10_000_000)
    judgement = judged(session_of([big, *forward()]))
    assert isinstance(judgement, Healthy)
    assert judgement.metric == "exposed_share"


@pytest.mark.parametrize(
    ("session", "phrase"),
    [
        (made(trace=[{"computing_ns": 100}]), "no kernel rows"),
        (session_of([Kernel(op_type=None, core=None)]), "Level0"),
        (session_of(projection()), "no attention in this capture"),
    ],
)
def test_what_the_capture_cannot_show_is_not_judged_and_says_how_to_capture_it(session: Session, phrase: str) -> None:
    judgement = judged(session)
    assert isinstance(judgement, NotJudged)
    assert phrase in judgement.reason.en
    assert judgement.capture.zh
    assert judgement.capture.en


ROLES = ["BatchMatMulV3", "SoftmaxV2", "SoftmaxGrad", "Muls", "Cast", "DropOutGenMask", "LayerNormV3", "FlashAttentionScore"]
SHAPES = st.sampled_from([S, Q, None])
KERNELS = st.lists(
    st.builds(
        Kernel,
        op_type=st.sampled_from(ROLES),
        start=st.integers(0, 400),
        duration=st.integers(1, 60),
        stream=st.integers(0, 1),
        inputs=SHAPES,
        outputs=SHAPES,
        mac_ratio=st.sampled_from([float("nan"), 0.3, 2.0]),
        aicore=st.sampled_from([float("nan"), 50.0, 500.0]),
    ),
    min_size=1,
    max_size=40,
)


@given(KERNELS)
def test_no_kernel_is_counted_twice_and_no_gain_exceeds_the_exposed_time(kernels: list[Kernel]) -> None:
    view = view_of(made(kernels=kernels))
    members = [member for run in find_runs(view, bridge_length=REACH) for member in run.members]
    assert len(members) == len(set(members))
    for judgement in unfused_attention(view, THRESHOLDS):
        if isinstance(judgement, Finding):
            assert 0 <= judgement.gain_bound_ns <= judgement.exposed_ns <= view.accounting.step_ns
