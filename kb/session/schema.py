"""Every table and column a session may hold: name, dtype, unit, meaning. Written first; importers and rules follow it.

dtypes: ``i8`` int64, ``i4`` int32, ``f8`` float64, ``code`` int32 index into ``Session.strings``. Missing is -1 for
integers and codes and NaN for floats. Times are int64 ns; ``start_ns`` is absolute in the capture's own clock.
Tables are sorted by their ``sort`` column. ``file`` (code) and ``row`` (i4, 1-based line, header = 1) say where a row was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

Dtype = Literal["i8", "i4", "f8", "code"]
SESSION_SCHEMA: Final = 1


class Column(msgspec.Struct, frozen=True):
    """One column. ``required`` columns exist whenever their table does; others only when captured."""

    name: str
    dtype: Dtype
    unit: str
    meaning: str
    required: bool = False


class TableSpec(msgspec.Struct, frozen=True):
    """One table and the column it is sorted by (None: order of the source)."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    sort: str | None = "start_ns"

    def column(self, name: str) -> Column | None:
        """The column of that name, or None."""
        return next((column for column in self.columns if column.name == name), None)


def _spec(name: str, meaning: str, columns: str, sort: str | None = "start_ns") -> TableSpec:
    """Build a spec from lines of ``name dtype unit meaning``; a ``*`` after the name marks a required column."""
    parsed = []
    for line in filter(str.strip, columns.splitlines()):
        column, dtype, unit, text = line.split(maxsplit=3)
        parsed.append(Column(column.rstrip("*"), dtype, unit, text, column.endswith("*")))  # type: ignore[arg-type]  # checked by a test
    origin = (
        Column("file", "code", "-", "source file, relative to the root the user gave"),
        Column("row", "i4", "line", "1-based line in it"),
    )
    return TableSpec(name, meaning, (*parsed, *origin), sort)


_KERNEL_METRICS = """
aicore_time_ns f8 ns time of the cube cores if all blocks start together
aic_total_cycles f8 count cycles summed over blocks
aic_mac_ratio f8 ratio cube pipe cycles / total cycles
aic_scalar_ratio f8 ratio scalar pipe of the cube core
aic_mte1_ratio f8 ratio L1 to L0 moves
aic_mte2_ratio f8 ratio GM to L1 moves
aic_fixpipe_ratio f8 ratio L0C to GM moves
aic_icache_miss_rate f8 ratio instruction cache misses of the cube core
aiv_time_ns f8 ns time of the vector cores
aiv_total_cycles f8 count cycles summed over blocks
aiv_vec_ratio f8 ratio vector pipe
aiv_scalar_ratio f8 ratio scalar pipe of the vector core
aiv_mte2_ratio f8 ratio GM to UB moves
aiv_mte3_ratio f8 ratio UB to GM moves
aiv_icache_miss_rate f8 ratio instruction cache misses of the vector core
cube_utilization f8 ratio occupancy of cube cores over the duration, not arithmetic efficiency
l2_hit_ratio f8 ratio L2 hits / accesses
hbm_read_bytes f8 B bytes read from device memory
hbm_write_bytes f8 B bytes written to device memory
hbm_read_rate f8 B/s rate of reads from device memory, both engines
hbm_write_rate f8 B/s rate of writes to device memory, both engines
l2_read_rate f8 B/s rate of L2 reads, both engines
l2_write_rate f8 B/s rate of L2 writes, both engines
l1_read_rate f8 B/s rate of L1 reads
l1_write_rate f8 B/s rate of L1 writes
l0a_read_rate f8 B/s rate of L0A reads
l0a_write_rate f8 B/s rate of L0A writes
l0b_read_rate f8 B/s rate of L0B reads
l0b_write_rate f8 B/s rate of L0B writes
l0c_read_rate f8 B/s rate of L0C reads by the cube
l0c_write_rate f8 B/s rate of L0C writes by the cube
ub_read_rate f8 B/s rate of UB reads by the vector core
ub_write_rate f8 B/s rate of UB writes by the vector core
mac_fp16_ratio f8 ratio FP16 instructions of the cube pipe
mac_int8_ratio f8 ratio INT8 instructions of the cube pipe
vec_fp32_ratio f8 ratio FP32 instructions of the vector pipe
vec_fp16_ratio f8 ratio FP16 instructions of the vector pipe
vec_int32_ratio f8 ratio INT32 instructions of the vector pipe
vec_misc_ratio f8 ratio other instructions of the vector pipe
cube_flops f8 count floating point operations of the cube pipe
vector_flops f8 count floating point operations of the vector pipe
vec_bank_conflict_ratio f8 ratio bank conflicts of the vector pipe
vec_bankgroup_conflict_ratio f8 ratio bank group conflicts of the vector pipe
vec_resource_conflict_ratio f8 ratio resource conflicts of the vector pipe
memory_bound f8 ratio mte2 / max(mac, vec) as exported
"""

_SPECS = (
    _spec("steps", "one row a step of the capture", """
        step_id* code - as written by the exporter
        start_ns i8 ns begin of the marker
        end_ns i8 ns end of the marker
        kind code - train, infer, prefill, decode, unknown
        warmup* i4 flag 1 for a warm-up step, never the representative one
        """, None),
    _spec("step_trace", "the exporter's own totals of each step", """
        step_id* code - step, missing when none was marked
        computing_ns* i8 ns Computing
        comm_not_overlapped_ns* i8 ns Communication(Not Overlapped), bubble included
        overlapped_ns* i8 ns Overlapped
        communication_ns* i8 ns Communication
        free_ns* i8 ns Free
        stage_ns* i8 ns Stage
        bubble_ns* i8 ns Bubble
        preparing_ns i8 ns Preparing
        """, None),
    _spec("kernels", "one row a task on the device, communication rows included", """
        start_ns* i8 ns begin
        duration_ns* i8 ns scheduling, execution and completion
        wait_ns i8 ns gap to the previous task as exported
        step_id code - step
        name* code - kernel name
        op_type* code - operator type, missing at Level0
        core* code - AI_CORE, AI_VECTOR_CORE, MIX_AIC, MIX_AIV, AI_CPU, COMMUNICATION, DSA_SQE
        stream i4 id stream
        task_id i8 id task
        connection_id i8 id link to the host launch
        operator code - framework operator that launched it, where the trace links them
        block i4 count cores used by the primary engine, may exceed the physical count
        mix_block i4 count cores used by the secondary engine
        op_state code - static or dynamic as exported; no evidence of dynamic shapes
        input_shapes code - operands split by ; dimensions by ,
        input_dtypes code - operands split by ;
        input_formats code - operands split by ;
        output_shapes code - operands split by ;
        output_dtypes code - operands split by ;
        output_formats code - operands split by ;
        """ + _KERNEL_METRICS),
    _spec("comm_ops", "one row a communication operator", """
        start_ns* i8 ns begin, -1 where only totals are known
        duration_ns* i8 ns elapsed
        name* code - operator, as hcom_allReduce__..
        kind* code - collective or p2p
        group code - communicator
        step_id code - step
        transit_ns i8 ns transmitting, of the reported plane
        wait_ns i8 ns waiting before the transfer
        sync_ns i8 ns synchronising
        idle_ns i8 ns neither, of the reported plane; never read it as transmission
        bytes f8 B transmitted over all transports
        """),
    _spec("comm_tasks", "one row a task of a communication plane", """
        start_ns* i8 ns begin
        duration_ns* i8 ns elapsed
        op* code - operator it belongs to
        kind* code - Notify_Wait, Notify_Record, Memcpy, Reduce_Inline, ..
        plane* i4 id plane
        src_rank i4 id rank inside the group
        dst_rank i4 id rank inside the group
        transport code - HCCS, RDMA, SDMA, ..
        bytes f8 B size
        """),
    _spec("comm_links", "communication matrix", """
        op* code - operator or total
        src_rank* i4 id inside the group
        dst_rank* i4 id inside the group
        transport code - LOCAL, HCCS, RDMA, ..
        bytes f8 B transmitted
        transit_ns f8 ns transmitting
        """, None),
    _spec("host_ops", "one row a host event: framework operator, Python frame, CANN or runtime call", """
        start_ns* i8 ns begin
        duration_ns* i8 ns elapsed
        name* code - event
        layer* code - framework, python, acl, node, runtime, loader, gc, other
        thread i8 id thread
        connection_id i8 id link to device tasks
        input_shapes code - shapes
        stack code - call stack, redacted before publishing
        """),
    _spec("api_totals", "host calls summed by name", """
        name* code - call
        layer* code - acl, node, communication, runtime
        count* i8 count calls
        total_ns* i8 ns total
        max_ns i8 ns longest
        """, None),
    _spec("op_totals", "device operators summed by type, as exported", """
        op_type* code - operator type
        core code - engine
        count* i8 count calls
        total_ns* i8 ns total
        min_ns i8 ns shortest
        max_ns i8 ns longest
        """, None),
    _spec("operators", "framework operators with the time they took on the host and caused on the device", """
        name* code - operator
        input_shapes code - operands split by ; dimensions by ,
        stack code - call stack, redacted before publishing
        host_self_ns i8 ns on the host, without what it called
        host_total_ns i8 ns on the host
        device_self_ns i8 ns on the device, without what it called
        device_total_ns i8 ns on the device
        device_self_aicore_ns i8 ns on the AI cores, without what it called
        device_total_aicore_ns i8 ns on the AI cores
        """, None),
    _spec("aicpu", "nodes on the AI CPU, data preprocessing included", """
        start_ns* i8 ns begin
        duration_ns* i8 ns total
        name* code - node
        compute_ns i8 ns computing
        memcpy_ns i8 ns copying
        dispatch_ns i8 ns dispatching
        """),
    _spec("fusions", "operators the graph compiler put in place of others", """
        name* code - fused operator
        originals* code - operators it replaces
        bytes f8 B memory of it
        """, None),
    _spec("allocations", "device memory blocks", """
        start_ns* i8 ns allocation, -1 = planned before the run
        end_ns i8 ns release, -1 = alive at the end
        name* code - operator
        bytes* f8 B size
        """),
    _spec("counters", "sampled values: memory, clock, power, bandwidth", """
        start_ns* i8 ns sample time
        name* code - counter, with its unit in square brackets
        value* f8 - sample
        """),
    _spec("copies", "host-device and device-device copies", """
        start_ns* i8 ns begin
        duration_ns* i8 ns elapsed
        kind* code - h2d, d2h, d2d, memset
        bytes f8 B size
        stream i4 id stream
        """),
    _spec("marks", "user and framework ranges: markers, scopes, iterations", """
        start_ns* i8 ns begin
        duration_ns* i8 ns elapsed
        name* code - label
        domain code - mstx, profiler_step, scope, request
        """),
)  # fmt: skip

TABLES: Final[Mapping[str, TableSpec]] = {spec.name: spec for spec in _SPECS}
NUMPY_DTYPES: Final[Mapping[Dtype, str]] = {"i8": "<i8", "i4": "<i4", "f8": "<f8", "code": "<i4"}
