"""Calibrated constants of the model, read from the data files beside this module."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

import msgspec

NoiseClass = Literal["matmul", "attention", "row", "elementwise", "move", "communication", "host", "step"]
Cost = Literal["cube", "attention", "vector"]
UNKNOWN: Final = "unknown"
"""The kind of an operator type nobody described: costed by the bytes it moves."""


class Constant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure: ``fitted_on`` names the measured rows it was fitted to, ``source`` who measured or states it."""

    value: float
    unit: str
    source: str
    fitted_on: str


class Kinetics(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an operator type behaves: ``passes`` of the vector unit over each element of the largest operand,
    ``move_share`` of the L2 rate its access pattern reaches, ``head_ns`` beside every kernel's own start-up and
    ``sync_ns`` where several cores meet. ``cold`` operands come from device memory even if they would fit the
    cache; a ``writes_only`` kernel reads nothing; one that ``gathers`` touches only what it puts out."""

    cost: Cost
    noise: NoiseClass
    passes: float = 0.0
    move_share: float = 1.0
    head_ns: float = 0.0
    sync_ns: float = 0.0
    cold: bool = False
    writes_only: bool = False
    gathers: bool = False
    kind: str = ""
    patterns: tuple[str, ...] = ()
    source: str = ""


class Spelling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An operator type by name: its ``kind``, how its kernel is spelt, and figures that differ from the kind's."""

    kind: str
    api: str = ""
    kernel: str = ""
    passes: float | None = None
    move_share: float | None = None
    head_ns: float | None = None
    sync_ns: float | None = None
    source: str = ""


class Spread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Standard deviation of the logarithm of a duration."""

    sigma: float
    source: str


class Constants(msgspec.Struct, frozen=True, dict=True):
    """Everything the model has that is not the chip or the graph. Rates are per core; ``passes`` per element."""

    figures: Mapping[str, Constant]
    kinds: Mapping[str, Kinetics]
    operators: Mapping[str, Spelling]
    noise: Mapping[NoiseClass, Spread]

    def __getitem__(self, name: str) -> float:
        return self.figures[name].value

    def kinetics(self, op_type: str) -> Kinetics:
        """The behaviour of an operator type: named, else of the first kind whose pattern matches, else unknown."""
        found = self._known.get(op_type)
        if found is None:
            found = self._known[op_type] = self._find(op_type)
        return found

    def nearest(self, op_type: str) -> str:
        """The named operator type most like an unknown one, for a message."""
        found = difflib.get_close_matches(op_type, self.operators, n=1, cutoff=0.0)
        return found[0] if found else ""

    def epilogue_passes(self, op_type: str) -> float:
        """Vector passes over each result of a product fused with others, as in ``FusionOp_MatMul_GeLU``; 0 for a plain one."""
        parts = op_type.split("_")
        return sum(self.kinetics(part).passes for part in parts[1:]) if parts[0] == "FusionOp" else 0.0

    def kernel_name(self, op_type: str) -> str:
        """The kernel's name as a profile shows it."""
        spelling = self.operators.get(op_type)
        api = spelling.api if spelling and spelling.api else f"aclnn{op_type}"
        return f"{api}_{spelling.kernel if spelling and spelling.kernel else f'{op_type}AiCore'}_{op_type}"

    def _find(self, op_type: str) -> Kinetics:
        spelling = self.operators.get(op_type)
        if spelling is None:
            kind = next((kind for kind, pattern in self._patterns if pattern.search(op_type)), UNKNOWN)
            return msgspec.structs.replace(self.kinds[kind], kind=kind)
        own = {name: getattr(spelling, name) for name in ("passes", "move_share", "head_ns", "sync_ns")}
        changes = {name: value for name, value in own.items() if value is not None}
        return msgspec.structs.replace(self.kinds[spelling.kind], kind=spelling.kind, **changes)

    @cached_property
    def _known(self) -> dict[str, Kinetics]:
        return {}

    @cached_property
    def _patterns(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        return tuple((name, re.compile(pattern)) for name, kind in self.kinds.items() for pattern in kind.patterns)


def load_constants() -> Constants:
    """The shipped constants. They are package data: a missing file is a broken installation and raises OSError."""
    folder = Path(__file__).parent
    return Constants(
        figures=msgspec.json.decode((folder / "constants.json").read_bytes(), type=dict[str, Constant]),
        kinds=msgspec.json.decode((folder / "kinds.json").read_bytes(), type=dict[str, Kinetics]),
        operators=msgspec.json.decode((folder / "operators.json").read_bytes(), type=dict[str, Spelling]),
        noise=msgspec.json.decode((folder / "noise.json").read_bytes(), type=dict[NoiseClass, Spread]),
    )
