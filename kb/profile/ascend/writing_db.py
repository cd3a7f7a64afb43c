"""A session as an Ascend database export: ``ascend_pytorch_profiler_N.db`` and ``analysis.db``."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from kb.errors import KbError
from kb.profile.ascend.db_totals import total_rows
from kb.profile.ascend.layout import OUTPUT
from kb.profile.ascend.writing import put, rank_files
from kb.profile.ascend.writing_values import percent_of
from kb.session.session import Array, Session, Table

Row = tuple[int | float | str | None, ...]
_SINGLE_OPERATOR: Final = 4294967295
_API_TYPES: Final[Mapping[str, int]] = {
    "runtime": 5000, "node": 10000, "acl": 20000, "framework": 50001, "loader": 50001, "python": 50003, "other": 60000, "gc": 60001,
}  # fmt: skip
_ENUM_NAMES: Final = (
    (5000, "runtime"), (10000, "node"), (20000, "acl"), (50001, "op"), (50002, "queue"), (50003, "trace"), (50004, "mstx"),
    (60000, "other"), (60001, "gc"),
)  # fmt: skip
_PMU: Final[Mapping[str, str]] = {
    "aic_total_time": "aicore_time_ns", "aiv_total_time": "aiv_time_ns",
    **{name: name for name in (
        "aic_total_cycles", "aic_mac_ratio", "aic_scalar_ratio", "aic_mte1_ratio", "aic_mte2_ratio", "aic_fixpipe_ratio",
        "aic_icache_miss_rate", "aiv_total_cycles", "aiv_vec_ratio", "aiv_scalar_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio",
        "aiv_icache_miss_rate", "l2_hit_ratio", "hbm_read_bytes", "hbm_write_bytes",
    )},
}  # fmt: skip
_OPERATIONS: Final = ((0, "host to device"), (1, "device to host"), (2, "device to device"))
_COPY: Final[Mapping[str, int]] = {"h2d": 0, "d2h": 1, "d2d": 2}
_STEP: Final = ("computing_ns", "comm_not_overlapped_ns", "overlapped_ns", "communication_ns", "free_ns", "stage_ns", "bubble_ns")


class _Writer:
    """Text ids and global task ids of one file under construction."""

    def __init__(self, session: Session, database: sqlite3.Connection, official: Mapping[str, str]) -> None:
        self.session = session
        self.database = database
        self.official = official
        self.ids: dict[str, int] = {text: number for number, text in enumerate(session.strings)}
        self.task = 0

    def text(self, value: str | None) -> int | None:
        """The id of a text."""
        return None if value is None else self.ids.setdefault(value, len(self.ids))

    def codes(self, table: Table, column: str) -> list[int | None]:
        """Text ids of a code column, null where missing."""
        return [code if code >= 0 else None for code in table[column].tolist()] if column in table else [None] * len(table)

    def quoted(self, table: Table, column: str) -> list[int | None]:
        """Text ids of a column in the pair of quotes the exporter writes around shapes."""
        codes = self.codes(table, column)
        known = {code: self.text(f'"{self.session.strings[code]}"') for code in dict.fromkeys(codes) if code is not None}
        return [None if code is None else known[code] for code in codes]

    def put(self, name: str, columns: str, rows: Sequence[Row]) -> None:
        """Make a table and fill it. ``columns`` are names and types; an official table has all of its own, unfilled ones null."""
        names = ", ".join(column.split()[0] for column in columns.split(","))
        self.database.execute(f'CREATE TABLE "{name}" ({self.official.get(name, columns)})')
        places = ", ".join("?" * (columns.count(",") + 1))
        self.database.executemany(f'INSERT INTO "{name}" ({names}) VALUES ({places})', rows)  # noqa: S608  # our own names

    def complete(self) -> None:
        """Make the official tables there was nothing for: other tools ask for them."""
        for name, columns in self.official.items():
            self.database.execute(f'CREATE TABLE IF NOT EXISTS "{name}" ({columns})')

    def tasks(self, count: int) -> list[int]:
        """New global task ids."""
        self.task += count
        return list(range(self.task - count, self.task))


def write_rank_database(session: Session, folder: Path) -> Path:
    """Write ``session`` below ``folder`` as a database export and return the new ``<name>_ascend_pt`` folder.

    Raises KbError when the folder is already there; OSError when the disk refuses.
    """
    name = session.meta.name.removesuffix("_ascend_pt") + "_ascend_pt"
    root = folder / "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)
    if root.exists():
        raise KbError(f"{root} is already there", do="choose another folder, or remove it first")
    side = [(path, data) for path, data in rank_files(session) if len(path.parts) == 1 and path.name != "profiler_metadata.json"]
    for path, data in side:
        put(root / path, data)
    number = "" if session.meta.rank is None else f"_{session.meta.rank}"
    (root / OUTPUT).mkdir(parents=True)
    schema = msgspec.json.decode(Path(__file__).with_name("database_schema.json").read_bytes(), type=dict[str, dict[str, str]])
    _write(root / OUTPUT / f"ascend_pytorch_profiler{number}.db", session, _main, schema["main"])
    if any(session.table(table) is not None for table in ("step_trace", "comm_ops", "comm_links")):
        _write(root / OUTPUT / "analysis.db", session, _analysis, schema["analysis"])
    return root


def _write(path: Path, session: Session, fill: Callable[[_Writer], None], official: Mapping[str, str]) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for setting in ("synchronous=OFF", "journal_mode=OFF"):
            database.execute(f"PRAGMA {setting}")
        writer = _Writer(session, database, official)
        fill(writer)
        writer.complete()


def _main(writer: _Writer) -> None:
    session = writer.session
    tasks: list[Row] = []
    tasks += _kernels(writer, session.table("kernels"))
    tasks += _planes(writer, session.table("comm_tasks"), session.table("comm_ops"))
    tasks += _copies(writer, session.table("copies"))
    writer.put("TASK", "startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, globalPid INTEGER, "
                       "taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER", tasks)  # fmt: skip
    _host(writer, session.table("host_ops"))
    _allocations(writer, session.table("allocations"))
    _counters(writer, session.table("counters"))
    _ranges(writer, session.table("marks"), session.table("steps"))
    for name, columns, rows in total_rows(session, writer.codes):
        writer.put(name, columns, rows)
    _identity(writer)
    writer.put("STRING_IDS", "id INTEGER PRIMARY KEY, value TEXT", [(number, text) for text, number in writer.ids.items()])


def _identity(writer: _Writer) -> None:
    meta = writer.session.meta
    writer.put("RANK_DEVICE_MAP", "rankId INTEGER, deviceId INTEGER", [(-1 if meta.rank is None else meta.rank, meta.device or 0)])
    named = meta.soc.reported_name
    writer.put("NPU_INFO", "id INTEGER, name TEXT", [(meta.device or 0, named)] if named else [])
    writer.put("ENUM_API_TYPE", "id INTEGER PRIMARY KEY, name TEXT", list(_ENUM_NAMES))
    writer.put("ENUM_MEMCPY_OPERATION", "id INTEGER PRIMARY KEY, name TEXT", list(_OPERATIONS))
    documents = {path.name: data for path, data in rank_files(writer.session) if len(path.parts) == 1}
    stated = msgspec.json.decode(documents["profiler_metadata.json"], type=dict[str, msgspec.Raw])
    rows: list[Row] = [("SCHEMA_VERSION", "1.0.0"), *((name, bytes(value).decode()) for name, value in stated.items())]
    writer.put("META_DATA", "name TEXT, value TEXT", rows)


def _ints(table: Table, column: str, missing: int = -1) -> list[int]:
    found: list[int] = table[column].tolist() if column in table else [missing] * len(table)
    return found


def _kernels(writer: _Writer, table: Table | None) -> list[Row]:
    if table is None:
        return []
    talking = writer.session.code("COMMUNICATION")
    compute = table.where((table["core"] != talking) | (talking < 0))
    ids = writer.tasks(len(compute))
    texts = ("op_type", "core", "op_state", "input_formats", "input_dtypes", "input_shapes", "output_formats", "output_dtypes",
             "output_shapes")  # fmt: skip
    columns = [writer.quoted(compute, name) if name.endswith("_shapes") else writer.codes(compute, name) for name in ("name", *texts)]
    blocks = [_ints(compute, "block"), _ints(compute, "mix_block")]
    writer.put(
        "COMPUTE_TASK_INFO",
        "globalTaskId INTEGER PRIMARY KEY, blockNum INTEGER, mixBlockNum INTEGER, name INTEGER, opType INTEGER, taskType INTEGER, "
        "opState INTEGER, "
        "inputFormats INTEGER, inputDataTypes INTEGER, inputShapes INTEGER, outputFormats INTEGER, "
        "outputDataTypes INTEGER, outputShapes INTEGER",
        list(zip(ids, *blocks, *columns, strict=True)),
    )
    writer.put("TASK_PMU_INFO", "globalTaskId INTEGER, name INTEGER, value NUMERIC", list(_pmu(writer, compute, ids)))
    return _task_rows(writer, compute, ids, writer.codes(compute, "core"), _ints(compute, "connection_id"))


def _pmu(writer: _Writer, table: Table, ids: Sequence[int]) -> Iterator[Row]:
    if "cube_utilization" in table:
        code = writer.text("cube_utilization")
        yield from (
            (number, code, value)
            for number, value in zip(ids, percent_of(table["cube_utilization"]).tolist(), strict=True)
            if value == value
        )
    for name, column in _PMU.items():
        if column in table:
            code = writer.text(name)
            yield from ((number, code, value) for number, value in zip(ids, table[column].tolist(), strict=True) if value == value)


def _task_rows(writer: _Writer, table: Table, ids: Sequence[int], kinds: Sequence[int | None], connections: Sequence[int]) -> list[Row]:
    start, stream, task = table["start_ns"].tolist(), _ints(table, "stream"), _ints(table, "task_id")
    end = (table["start_ns"] + table["duration_ns"]).tolist()
    device = writer.session.meta.device or 0
    return [
        (
            start[row],
            end[row],
            device,
            connections[row],
            ids[row],
            0,
            kinds[row],
            _SINGLE_OPERATOR,
            stream[row],
            task[row],
            _SINGLE_OPERATOR,
        )
        for row in range(len(table))
    ]


def _planes(writer: _Writer, table: Table | None, operators: Table | None) -> list[Row]:
    numbers = _operators_of_device(writer, operators)
    if table is None:
        return []
    ids = writer.tasks(len(table))
    kinds = writer.codes(table, "kind")
    names = writer.codes(table, "op")
    sides = [[value if value >= 0 else _SINGLE_OPERATOR for value in _ints(table, side)] for side in ("src_rank", "dst_rank")]
    transports = [writer.session.text(code) for code in table["transport"].tolist()] if "transport" in table else [None] * len(table)
    known = {text: number for number, text in enumerate(dict.fromkeys(text for text in transports if text))}
    writer.put("ENUM_HCCL_TRANSPORT_TYPE", "id INTEGER PRIMARY KEY, name TEXT", [(number, text) for text, number in known.items()])
    sizes = [value if value == value else None for value in table["bytes"].tolist()] if "bytes" in table else [None] * len(table)
    writer.put(
        "COMMUNICATION_TASK_INFO",
        "name INTEGER, globalTaskId INTEGER, taskType INTEGER, planeId INTEGER, srcRank INTEGER, dstRank INTEGER, transportType INTEGER, "
        "size NUMERIC, opId INTEGER",
        [
            (
                names[i],
                ids[i],
                kinds[i],
                int(table["plane"][i]),
                sides[0][i],
                sides[1][i],
                known.get(transports[i] or ""),
                sizes[i],
                numbers.get(names[i] or -1, -1),
            )
            for i in range(len(table))
        ],
    )
    return _task_rows(writer, table, ids, kinds, [-1] * len(table))


def _operators_of_device(writer: _Writer, operators: Table | None) -> dict[int, int]:
    """COMMUNICATION_OP from the communication kernels, or, where the session has none, from the operators with a start.
    Returns operator numbers by name id."""
    kernels = writer.session.table("kernels")
    talking = writer.session.code("COMMUNICATION")
    source = kernels.where(kernels["core"] == talking) if kernels is not None and talking >= 0 else None
    if source is None or not len(source):
        source = operators.where(operators["start_ns"] >= 0) if operators is not None else None
    if source is None or not len(source):
        return {}
    stated = dict(zip(writer.codes(operators, "name"), writer.codes(operators, "group"), strict=True)) if operators is not None else {}
    start, end = source["start_ns"].tolist(), (source["start_ns"] + source["duration_ns"]).tolist()
    names, types, links = writer.codes(source, "name"), writer.codes(source, "op_type"), _ints(source, "connection_id")
    rows: list[Row] = [(names[i], start[i], end[i], links[i], stated.get(names[i]), i + 1, types[i]) for i in range(len(source))]
    columns = (
        "opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER, groupName INTEGER, opId INTEGER PRIMARY KEY, opType INTEGER"
    )
    writer.put("COMMUNICATION_OP", columns, rows)
    return {name: number + 1 for number, name in enumerate(names) if name is not None}


def _copies(writer: _Writer, table: Table | None) -> list[Row]:
    if table is None:
        return []
    ids = writer.tasks(len(table))
    kinds = [writer.session.text(code) for code in table["kind"].tolist()]
    sizes = [value if value == value else None for value in table["bytes"].tolist()] if "bytes" in table else [None] * len(table)
    rows: list[Row] = [(ids[i], sizes[i], _COPY.get(kinds[i] or "", -1)) for i in range(len(table))]
    writer.put("MEMCPY_INFO", "globalTaskId INTEGER, size INTEGER, memcpyOperation INTEGER", rows)
    names = [writer.text("MEMSET_ASYNC" if kind == "memset" else "MEMCPY_ASYNC") for kind in kinds]
    return _task_rows(writer, table, ids, names, [-1] * len(table))


def _host(writer: _Writer, table: Table | None) -> None:
    if table is None:
        return
    layers = [writer.session.text(code) or "other" for code in table["layer"].tolist()]
    start, end = table["start_ns"].tolist(), (table["start_ns"] + table["duration_ns"]).tolist()
    names, thread, link = writer.codes(table, "name"), _ints(table, "thread"), _ints(table, "connection_id")
    # Only calls of the runtime below the framework carry a link to the device.
    cann = np.array([layer in ("acl", "node", "runtime") or (layer == "other" and link[i] >= 0) for i, layer in enumerate(layers)], bool)
    shapes, stacks = writer.codes(table, "input_shapes"), writer.codes(table, "stack")
    chains = {code: number for number, code in enumerate(dict.fromkeys(code for code in stacks if code is not None))}
    own = np.flatnonzero(cann).tolist()
    rows: list[Row] = [(start[i], end[i], _API_TYPES[layers[i]], thread[i], link[i], names[i]) for i in own]
    columns = "startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER, connectionId INTEGER, name INTEGER"
    writer.put("CANN_API", columns, rows)
    own = np.flatnonzero(~cann).tolist()
    rows = [
        (str(start[i]), str(end[i]), thread[i], names[i], shapes[i], chains.get(stacks[i] or -1), _API_TYPES.get(layers[i], 60000))
        for i in own
    ]
    columns = "startNs TEXT, endNs TEXT, globalTid INTEGER, name INTEGER, inputShapes INTEGER, callchainId INTEGER, type INTEGER"
    writer.put("PYTORCH_API", columns, rows)
    writer.put(
        "PYTORCH_CALLCHAINS", "id INTEGER, stack INTEGER, stackDepth INTEGER", [(number, code, 0) for code, number in chains.items()]
    )


def _allocations(writer: _Writer, table: Table | None) -> None:
    if table is not None:
        ends = [value if value >= 0 else None for value in _ints(table, "end_ns")]
        rows: list[Row] = list(zip(writer.codes(table, "name"), table["bytes"].tolist(), table["start_ns"].tolist(), ends, strict=True))
        writer.put("OP_MEMORY", "name INTEGER, size NUMERIC, allocationTime INTEGER, releaseTime INTEGER", rows)


def _counters(writer: _Writer, table: Table | None) -> None:
    """Every sample under its own name, in a table of this package: the official ones hold only their own kinds."""
    if table is not None:
        rows: list[Row] = list(zip(writer.codes(table, "name"), table["start_ns"].tolist(), table["value"].tolist(), strict=True))
        writer.put("SAMPLED_VALUES", "name INTEGER, timestampNs INTEGER, value REAL", rows)


def _ranges(writer: _Writer, marks: Table | None, steps: Table | None) -> None:
    spans: list[Row] = []
    if steps is not None and "start_ns" in steps and "end_ns" in steps:
        for row in range(len(steps)):
            start, end = int(steps["start_ns"][row]), int(steps["end_ns"][row])
            if 0 <= start < end:
                spans.append((writer.session.text(int(steps["step_id"][row])), start, end))
    writer.put("STEP_TIME", "id, startNs INTEGER, endNs INTEGER", spans or list(_extents(writer.session)))
    if marks is not None:
        own = marks.where(~np.isin(marks["domain"], [writer.session.code("profiler_step")])) if "domain" in marks else marks
        ends: Array = own["start_ns"] + own["duration_ns"]
        rows: list[Row] = list(zip(own["start_ns"].tolist(), ends.tolist(), writer.codes(own, "name"), strict=True))
        writer.put("MSTX_EVENTS", "startNs INTEGER, endNs INTEGER, message INTEGER", rows)


def _extents(session: Session) -> Iterator[Row]:
    """Steps without a marker, from the first to the last of their kernels: the only way a database names a kernel's step."""
    kernels = session.table("kernels")
    if kernels is not None and "step_id" in kernels:
        for code in np.unique(kernels["step_id"][kernels["step_id"] >= 0]).tolist():
            own = kernels.where(kernels["step_id"] == code)
            yield session.text(code), int(own["start_ns"].min()), int((own["start_ns"] + own["duration_ns"]).max())


def _analysis(writer: _Writer) -> None:
    session = writer.session
    trace, operators, links = (session.table(name) for name in ("step_trace", "comm_ops", "comm_links"))
    if trace is not None:
        spans = [[None if value == -1 else value / 1000 for value in _ints(trace, name)] for name in (*_STEP, "preparing_ns")]
        steps = [session.text(code) for code in trace["step_id"].tolist()]
        rows: list[Row] = list(zip([session.meta.device or 0] * len(trace), steps, *spans, strict=True))
        waited = trace["comm_not_overlapped_ns"] - np.maximum(trace["bubble_ns"], 0)
        rows = [(*row, spent / 1000) for row, spent in zip(rows, waited.tolist(), strict=True)]
        writer.put("StepTraceTime", "deviceId INTEGER, step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC, "
                   "overlapped NUMERIC, "
                   "communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC, preparing NUMERIC, "
                   "communication_not_overlapped_and_exclude_receive NUMERIC", rows)  # fmt: skip
    if operators is not None:
        _operators(writer, operators)
    if links is not None:
        _links(writer, links)


def _operators(writer: _Writer, table: Table) -> None:
    session = writer.session
    text = {name: [session.text(code) for code in _ints(table, name)] for name in ("name", "group", "kind", "step_id")}
    spans = [
        [None if value < 0 else value / 1e6 for value in _ints(table, name)]
        for name in ("duration_ns", "transit_ns", "wait_ns", "sync_ns", "idle_ns")
    ]
    starts = [None if value < 0 else value / 1000 for value in table["start_ns"].tolist()]
    steps = [f"step{step or ''}" for step in text["step_id"]]
    rows: list[Row] = list(zip(text["name"], text["group"], starts, *spans, steps, text["kind"], strict=True))
    writer.put("CommAnalyzerTime", "hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, elapse_time NUMERIC, "
               "transit_time NUMERIC, "
               "wait_time NUMERIC, synchronization_time NUMERIC, idle_time NUMERIC, step TEXT, type TEXT", rows)  # fmt: skip
    if "bytes" in table:
        # Packets are not known: zero of them, since readers of the table expect numbers everywhere.
        spent = [value or 0.0 for value in spans[1]]
        sizes = [value / 1e6 for value in table["bytes"].tolist()]
        rows = [
            (name, group, "SDMA", size, time, size / time if time else 0.0, 0, 0, 0, time, step, kind)
            for name, group, size, time, step, kind in zip(text["name"], text["group"], sizes, spent, steps, text["kind"], strict=True)
            if size > 0
        ]
        writer.put("CommAnalyzerBandwidth", writer.official["CommAnalyzerBandwidth"], rows)


def _links(writer: _Writer, table: Table) -> None:
    session = writer.session
    rows: list[Row] = []
    for row in range(len(table)):
        name, _, group = (session.text(int(table["op"][row])) or "").partition("@")
        size, time = (float(table[column][row]) / 1e6 if column in table else None for column in ("bytes", "transit_ns"))
        transport = session.text(int(table["transport"][row])) if "transport" in table else None
        rows.append((name, group, str(table["src_rank"][row]), str(table["dst_rank"][row]), transport, size, time))
    writer.put("CommAnalyzerMatrix", "hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank TEXT, transport_type TEXT, "
               "transit_size NUMERIC, "
               "transit_time NUMERIC", rows)  # fmt: skip
