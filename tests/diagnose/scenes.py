"""A small language for sessions that show one cause: device tasks, host events, copies and planes on one clock (us)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kb.domain.soc import SocRef
from kb.session.builder import Strings, session, table
from kb.session.meta import Capture, SessionMeta
from kb.session.schema import TABLES
from kb.session.session import Session

US = 1_000
A2 = SocRef(id="910b2", family="A2", cores=24, clock_mhz=1800.0)
_MISSING: Mapping[str, Any] = {"i8": -1, "i4": -1, "f8": float("nan"), "code": None}


@dataclass
class Scene:
    """Rows by table. Device tasks follow each other on ``clock`` (us) unless ``at`` says otherwise."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    clock: float = 0.0
    launches: int = 0

    def add(self, target: str, /, **row: Any) -> Scene:
        self.rows[target].append(row)
        return self

    def kernel(
        self,
        op_type: str | None,
        duration: float,
        *,
        at: float | None = None,
        gap: float = 0.0,
        core: str | None = "AI_VECTOR_CORE",
        **more: Any,
    ) -> Scene:
        begin = self.clock + gap if at is None else at
        self.clock = max(self.clock, begin + duration)
        row = {
            "op_type": op_type,
            "name": more.pop("name", f"aclnn{op_type}"),
            "core": core,
            "stream": 2,
            "start_ns": begin * US,
            "duration_ns": duration * US,
        }
        return self.add("kernels", **{**row, **more})

    def launched(self, op_type: str, duration: float, *, launch_at: float, launch: float = 5.0, **more: Any) -> Scene:
        """A kernel whose launch begins at ``launch_at``; it starts when launched and the device is free."""
        self.launches += 1
        self.host("launch", launch_at, launch, layer="node", connection_id=self.launches)
        begin = max(self.clock, launch_at + launch)
        return self.kernel(op_type, duration, at=begin, connection_id=self.launches, **more)

    def host(self, name: str, at: float, duration: float, *, layer: str = "framework", **more: Any) -> Scene:
        return self.add("host_ops", name=name, layer=layer, start_ns=at * US, duration_ns=duration * US, thread=1, **more)

    def copy(self, kind: str, at: float, duration: float, **more: Any) -> Scene:
        self.clock = max(self.clock, at + duration)
        return self.add("copies", kind=kind, start_ns=at * US, duration_ns=duration * US, **more)

    def step(self, begin: float, end: float, name: str = "1") -> Scene:
        return self.add("steps", step_id=name, start_ns=begin * US, end_ns=end * US, warmup=0)

    def made(self, **meta: Any) -> Session:
        strings = Strings()
        tables = [table(name, _columns(name, rows), strings) for name, rows in self.rows.items()]
        described: dict[str, Any] = {"name": "run", "origin": "measured", "capture": Capture(format="ascend_text"), "soc": A2, **meta}
        made = session(SessionMeta(**described), tables, strings)
        assert not made.self_check()
        return made


def _columns(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    given = {column for row in rows for column in row}
    spec = TABLES[name]
    wanted = [column for column in spec.columns if column.name in given or column.required]
    columns: dict[str, Any] = {}
    for column in wanted:
        values = [row.get(column.name, _MISSING[column.dtype]) for row in rows]
        columns[column.name] = [round(value) if column.dtype in ("i8", "i4") else value for value in values]
    return {**columns, "file": [f"rank/{name}.csv"] * len(rows), "row": list(range(2, len(rows) + 2))}


def busy(scene: Scene | None = None, count: int = 20, duration: float = 100.0) -> Scene:
    """Large products back to back, all launched in time: a healthy device."""
    scene = scene or Scene()
    for _ in range(count):
        product(scene, duration)
    return scene


def product(scene: Scene, duration: float = 100.0, **more: Any) -> Scene:
    """A half-precision product that takes 100 us at a good rate on 24 cores."""
    row: dict[str, Any] = {
        "core": "AI_CORE", "block": 24, "input_shapes": "2048,4096;4096,1536", "output_shapes": "2048,1536",
        "input_dtypes": "DT_BF16;DT_BF16",
        "aic_mac_ratio": 0.85, "aic_mte2_ratio": 0.7,
    }  # fmt: skip
    return scene.kernel("MatMulV3", duration, **{**row, **more})
