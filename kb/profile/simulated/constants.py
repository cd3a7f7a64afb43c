"""Calibrated constants of the model, read from the data files beside this module."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

NoiseClass = Literal["matmul", "attention", "row", "elementwise", "move", "host", "step"]


class Constant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure: ``fitted_on`` names the measured rows it was fitted to, ``source`` who measured or states it."""

    value: float
    unit: str
    source: str
    fitted_on: str


class Kinetics(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How an operator type behaves: ``passes`` of the vector unit over each element of the largest operand,
    ``move_share`` of the L2 rate its access pattern reaches; ``api`` and ``kernel`` spell the kernel's name."""

    api: str
    kernel: str
    noise: NoiseClass
    passes: float = 0.0
    move_share: float = 1.0
    source: str = ""


class Spread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Standard deviation of the logarithm of a duration."""

    sigma: float
    source: str


class Constants(msgspec.Struct, frozen=True):
    """Everything the model has that is not the chip or the graph. Rates are per core; ``passes`` per element."""

    figures: Mapping[str, Constant]
    operators: Mapping[str, Kinetics]
    noise: Mapping[NoiseClass, Spread]

    def __getitem__(self, name: str) -> float:
        return self.figures[name].value


def load_constants() -> Constants:
    """The shipped constants. They are package data: a missing file is a broken installation and raises OSError."""
    folder = Path(__file__).parent
    return Constants(
        figures=msgspec.json.decode((folder / "constants.json").read_bytes(), type=dict[str, Constant]),
        operators=msgspec.json.decode((folder / "operators.json").read_bytes(), type=dict[str, Kinetics]),
        noise=msgspec.json.decode((folder / "noise.json").read_bytes(), type=dict[NoiseClass, Spread]),
    )
