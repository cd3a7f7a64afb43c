"""Chips and runs the simulator tests share."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from kb.domain.soc import Soc, Sourced
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import Setup, simulate
from kb.profile.simulated.truth import Truth
from kb.session.session import Session

SOC_FOLDER = Path(__file__).resolve().parents[2] / "recipes" / "catalogue" / "soc"
NAMES = ("310b1", "310p3", "910a", "910b-gen1", "910b1", "910b2", "910b3", "910b4", "910c-die")


@cache
def chip_file(name: str = "910b2") -> Soc:
    """A catalogue chip."""
    return msgspec.json.decode((SOC_FOLDER / f"{name}.json").read_bytes(), type=Soc)


def with_figure(soc: Soc, field: str, factor: float) -> Soc:
    """The chip with one figure multiplied."""
    figure: Sourced = getattr(soc, field)
    return msgspec.structs.replace(soc, **{field: msgspec.structs.replace(figure, value=figure.value * factor)})


@cache
def ran(model: str = "bert-base", soc: str = "910b2", seed: int = 0, options: Options | None = None) -> tuple[Session, Truth]:
    """A run of three steps or as ``options`` say, once per test process."""
    return simulate(Setup(model=model, soc=chip_file(soc), options=options or Options(steps=3), seed=seed))
