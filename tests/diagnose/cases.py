"""For each cause a session that shows it, one that is free of it, and one that cannot tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from diagnose.scenes import Scene, busy, product

from kb.session.meta import Group, Parallel
from kb.session.session import Session

Make = Callable[[], tuple[Session, ...]]
MISSING_HOST: Final = "no host events"


class Case(msgspec.Struct, frozen=True):
    """``cost`` is what the positive scene loses, us; the finding must name it within a tenth. ``reason`` stands in the
    answer to ``blind``."""

    positive: Make
    negative: Make
    blind: Make
    cost: float
    reason: str


def one(scene: Scene, **meta: Any) -> tuple[Session, ...]:
    return (scene.made(rank=0, **meta),)


def hosted(count: int = 20) -> Scene:
    """Products that the host launches far ahead of the device."""
    scene = Scene()
    for place in range(count):
        scene.launched("MatMulV3", 100.0, launch_at=place * 6.0, core="AI_CORE")
    return scene


def copies_only() -> Scene:
    """A step of the device that moved data and ran no kernel."""
    return Scene().step(0, 100).copy("h2d", 0.0, 50.0)


def untyped() -> Scene:
    """A Level0 capture: the kernel has neither type nor core."""
    return Scene().kernel(None, 100.0, core=None, name="kernel")


def paused(event: str, duration: float, *, layer: str = "framework", late: float = 0.0) -> Scene:
    """Ten kernels, a pause in which the host does ``event``, ten kernels launched after it."""
    scene = hosted(10)
    begin = scene.clock - 50.0
    scene.host(event, begin, duration + 50.0, layer=layer)
    after = begin + duration + 50.0 + late
    for place in range(10):
        scene.launched("MatMulV3", 100.0, launch_at=after + place * 6.0, core="AI_CORE")
    return scene


def pauses(event: str, duration: float = 400.0, *, layer: str = "framework", reason: str = MISSING_HOST) -> Case:
    return Case(lambda: one(paused(event, duration, layer=layer)), lambda: one(hosted()), lambda: one(busy()), duration, reason)


def late_launches(gap: float) -> Scene:
    scene = Scene()
    for place in range(40):
        scene.launched("Add", 10.0, launch_at=place * (10.0 + gap), launch=5.0 + gap)
    return scene


def shallow_queue(depth: int) -> Scene:
    """The host launches in 18 us what takes 10 or 40 us, but never more than ``depth`` kernels ahead."""
    scene, host = Scene(), 0.0
    ends: list[float] = []
    for place in range(60):
        if place >= depth:
            host = max(host, ends[place - depth])
        scene.launched("Add", 40.0 if place % 2 else 10.0, launch_at=host, launch=18.0)
        host += 18.0
        ends.append(scene.clock)
    return scene


def copied(*kinds: str, host: str | None = None, cost: float = 150.0) -> Scene:
    scene = hosted(10)
    begin = scene.clock
    for place, kind in enumerate(kinds):
        scene.copy(kind, begin + place * 400.0, cost)
    if host is not None:
        scene.host(host, begin + cost, 400.0 - cost)
    for place in range(10):
        scene.launched("MatMulV3", 100.0, launch_at=0.0 + place, core="AI_CORE")
    return scene


def with_type(op_type: str, spent: float, **more: Any) -> Scene:
    scene = busy()
    for _ in range(4):
        scene.kernel(op_type, spent / 4, **more)
        product(scene)
    return scene


def elementwise(count: int, *, shaped: bool = True) -> Scene:
    scene = busy(count=10)
    shapes: Mapping[str, Any] = {"input_shapes": "4096,4096", "output_shapes": "4096,4096"} if shaped else {}
    for _ in range(6):
        for op_type in ("Pows", "Muls", "Add", "Tanh", "Mul")[:count]:
            scene.kernel(op_type, 20.0, **shapes)
        product(scene)
    return scene


def training(*, again: bool) -> Scene:
    """Eight layers forward, then backward, each layer's forward run again before its gradient if ``again``."""
    layer = (("RmsNorm", 20.0), ("FlashAttentionScore", 60.0), ("MatMulV3", 100.0))
    scene = Scene()
    for _ in range(8):
        for op_type, duration in layer:
            scene.kernel(op_type, duration, input_shapes="4096,1024", output_shapes="4096,1024")
    for _ in range(8):
        if again:
            for op_type, duration in layer:
                scene.kernel(op_type, duration, input_shapes="4096,1024", output_shapes="4096,1024")
        for op_type, duration in (("MatMulV3", 200.0), ("FlashAttentionScoreGrad", 150.0), ("RmsNormGrad", 40.0)):
            scene.kernel(op_type, duration, input_shapes="1024,4096", output_shapes="1024,1024")
    return scene


def clocked(mhz: float) -> Scene:
    scene = busy()
    for place in range(8):
        scene.add("counters", name="AI Core Freq [MHz]", value=1800.0 if place == 0 else mhz, start_ns=(place * 200 - 100) * 1000)
    return scene


def beside(slow: float) -> Scene:
    """Products of one shape, half of them beside a collective and ``slow`` times as long."""
    scene = Scene()
    for place in range(20):
        begin = scene.clock
        product(scene, 100.0 * slow if place % 2 else 100.0)
        if place % 2:
            scene.kernel("hcom_allReduce_", 100.0 * slow, at=begin, core="COMMUNICATION", stream=9)
    return scene


def decoding(spent: float, mac: float) -> Scene:
    scene = busy(count=6)
    for _ in range(6):
        scene.kernel("IncreFlashAttention", spent / 6, core="MIX_AIC", aic_mac_ratio=mac, aic_mte2_ratio=0.9)
    return scene


def collective(scene: Scene, name: str, at: float, duration: float, *, size: float = 64e6, kind: str = "collective") -> Scene:
    scene.clock = max(scene.clock, at + duration)
    scene.kernel(f"{name}_", duration, at=at, core="COMMUNICATION", stream=9, name=name)
    return scene.add("comm_ops", name=name, kind=kind, group="g", start_ns=at * 1000, duration_ns=duration * 1000, bytes=size)


def reduced(
    *, wait: float = 0.0, size: float = 64e6, count: int = 4, hidden: bool = False, planes: bool = True, each: float = 200.0
) -> Scene:
    """Products, then collectives of ``each`` us, the first ``wait`` us of them waiting on the longest plane."""
    scene = busy(count=10)
    for place in range(count):
        begin = scene.clock
        name = f"hcom_allReduce__1_{place}_1"
        collective(scene, name, begin, each, size=size)
        if planes:
            scene.add(
                "comm_tasks", op=name, kind="Notify_Wait", plane=1, start_ns=begin * 1000, duration_ns=wait * 1000, src_rank=0, dst_rank=5
            )
            moving = (each - wait) * 1000
            scene.add(
                "comm_tasks", op=name, kind="Memcpy", plane=2, start_ns=(begin + wait) * 1000, duration_ns=moving, src_rank=0, dst_rank=1
            )
        if hidden:
            for _ in range(round(each / 100.0)):
                product(scene, 100.0, at=begin)
                begin += 100.0
    return scene


def expert_ranks(*loads: float) -> tuple[Session, ...]:
    return tuple(with_type("GroupedMatmul", load, core="AI_CORE").made(rank=rank, world_size=len(loads)) for rank, load in enumerate(loads))


def staged(microbatches: int, *compute: float) -> tuple[Session, ...]:
    """Ranks of a pipeline: compute ms a stage, and the exchanges of the schedule on each."""
    stages, sessions = len(compute), []
    group = Group(name="pp", dimension="pp", ranks=tuple(range(stages)))
    slowest = max(compute) * 1e6
    step = slowest * (microbatches + stages - 1) / microbatches
    for stage, ms in enumerate(compute):
        scene = Scene()
        spent = ms * 1e6
        scene.add("step_trace", step_id="1", computing_ns=spent, comm_not_overlapped_ns=step - spent, overlapped_ns=0,
                  communication_ns=step - spent,
                  free_ns=0, stage_ns=step, bubble_ns=0)  # fmt: skip
        count = microbatches + stages - 1
        for place in range(count):
            scene.add(
                "comm_ops",
                name=f"hcom_batchSendRecv__1_{place}_1",
                kind="p2p",
                group="pp",
                start_ns=place,
                duration_ns=(step - spent) / count,
            )
        sessions.append(scene.made(rank=stage, world_size=stages, stage=stage, parallel=Parallel(pipeline=stages, groups=(group,))))
    return tuple(sessions)


CASES: Final[Mapping[str, Case]] = {
    "dataloader_bound": pauses("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", layer="loader"),
    "gc_pause": pauses("gc", layer="gc"),
    "io_checkpoint": pauses("torch.save", layer="python"),
    "synchronization_stall": pauses("aclrtSynchronizeStream", layer="acl"),
    "dynamic_shape_recompile": pauses("aclopCompile", 6000.0, layer="acl"),
    "memory_fragmentation": pauses("aclrtMallocPhysical", layer="acl"),
    "host_bound_launch": Case(
        lambda: one(late_launches(20.0)), lambda: one(hosted()), lambda: one(copies_only()), 39 * 20.0, "no kernel rows"
    ),
    "stream_bubbles": Case(lambda: one(shallow_queue(2)), lambda: one(shallow_queue(60)), lambda: one(busy()), 230.0, MISSING_HOST),
    "h2d_copy": Case(
        lambda: one(copied("h2d")), lambda: one(hosted().copy("h2d", 200.0, 150.0)), lambda: one(busy()), 150.0, "not captured"
    ),
    "cpu_fallback_op": Case(
        lambda: one(copied("d2h", "h2d", host="aten::nonzero")), lambda: one(copied("d2h")), lambda: one(busy()), 550.0, "not captured"
    ),
    "aicpu_operator": Case(
        lambda: one(with_type("IndexPut", 400.0, core="AI_CPU")),
        lambda: one(busy()),
        lambda: one(copies_only()),
        400.0,
        "no kernel rows",
    ),
    "format_conversion": Case(lambda: one(with_type("TransData", 400.0)), lambda: one(busy()), lambda: one(untyped()), 400.0, "type"),
    "excess_cast": Case(lambda: one(with_type("Cast", 400.0)), lambda: one(busy()), lambda: one(untyped()), 400.0, "type"),
    "quantization_dequant_overhead": Case(
        lambda: one(with_type("AscendDequant", 400.0)), lambda: one(busy()), lambda: one(untyped()), 400.0, "type"
    ),
    "suboptimal_tiling": Case(
        lambda: one(busy(with_type("MatMulV3", 400.0, core="AI_CORE", block=25))),
        lambda: one(busy()),
        lambda: (busy().made(soc=msgspec.structs.replace(busy().made().meta.soc, cores=None)),),
        163.0,  # 25 blocks leave 23 of 48 places of two waves empty, while the busiest pipe works 340 of the 400 us
        "cores",
    ),
    "low_batch_occupancy": Case(
        lambda: one(
            with_type(
                "MatMulV3",
                4000.0,
                core="AI_CORE",
                block=24,
                input_shapes="8,4096;4096,4096",
                output_shapes="8,4096",
                input_dtypes="DT_BF16;DT_BF16",
            )
        ),
        lambda: one(busy()),
        lambda: one(with_type("Add", 400.0), soc=msgspec.structs.replace(busy().made().meta.soc, cores=None)),
        4000.0,
        "cores",
    ),
    "intra_kernel_stall": Case(
        lambda: one(
            with_type("FlashAttentionScore", 1600.0, core="MIX_AIC", block=24, aic_mac_ratio=0.2, aiv_vec_ratio=0.3, aic_mte2_ratio=0.2)
        ),
        lambda: one(busy()),
        lambda: one(hosted()),
        1000.0,
        "pipe counters",
    ),
    "unfused_elementwise": Case(
        lambda: one(elementwise(5)), lambda: one(elementwise(2)), lambda: one(copies_only()), 600.0, "no kernel rows"
    ),
    "recompute_overhead": Case(
        lambda: one(training(again=True)), lambda: one(training(again=False)), lambda: one(busy()), 8 * 180.0, "not a training step"
    ),
    "kv_cache_bandwidth": Case(lambda: one(decoding(900.0, 0.1)), lambda: one(decoding(900.0, 0.9)), lambda: one(untyped()), 900.0, "type"),
    "memory_bandwidth_pressure": Case(
        lambda: one(with_type("GatherV2", 2000.0, aiv_vec_ratio=0.05, aiv_mte2_ratio=0.95)),
        lambda: one(busy()),
        lambda: one(hosted()),
        2000.0,
        "pipe counters",
    ),
    "l2_pressure": Case(
        lambda: one(with_type("Conv2D", 800.0, core="AI_CORE", l2_hit_ratio=0.3)),
        lambda: one(with_type("Conv2D", 800.0, core="AI_CORE", l2_hit_ratio=0.9)),
        lambda: one(busy()),
        800.0,
        "not captured",
    ),
    "thermal_throttling": Case(lambda: one(clocked(1350.0)), lambda: one(clocked(1790.0)), lambda: one(busy()), 500.0, "clock"),
    "overlap_contention": Case(lambda: one(beside(1.4)), lambda: one(beside(1.0)), lambda: one(busy()), 400.0, "no communication"),
    "comm_not_overlapped": Case(
        lambda: one(reduced(), world_size=8),
        lambda: one(reduced(hidden=True), world_size=8),
        lambda: one(reduced(planes=False), world_size=8),
        800.0,
        "waiting",
    ),
    "comm_volume_excess": Case(
        lambda: one(reduced(size=4e3, count=20, each=20.0)), lambda: one(reduced()), lambda: one(busy()), 400.0, "no communication"
    ),
    "slow_link_or_rank": Case(
        lambda: one(reduced(wait=180.0), world_size=8),
        lambda: one(reduced(wait=2.0), world_size=8),
        lambda: one(busy()),
        720.0,
        "no communication",
    ),
    "moe_imbalance": Case(lambda: expert_ranks(800.0, 400.0), lambda: expert_ranks(600.0, 590.0), lambda: one(busy()), 200.0, "expert"),
    "microbatch_count": Case(
        lambda: staged(2, 100.0, 100.0), lambda: staged(64, 100.0, 100.0), lambda: one(busy(), world_size=8), 50_000.0, "stage"
    ),
    "pipeline_imbalance": Case(
        lambda: staged(8, 60.0, 120.0), lambda: staged(8, 100.0, 100.0), lambda: one(busy(), world_size=8), 60_000.0, "stage"
    ),
}
