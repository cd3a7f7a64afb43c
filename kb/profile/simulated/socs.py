"""Which chip a text means: a name of the catalogue, cores and clock, or a file of one's own."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from kb.domain.quantity import Quantity
from kb.domain.soc import Soc, Sourced
from kb.errors import ContentError, NotFoundError

_PAIR: Final = re.compile(r"(\d+)\s*(?:cores?|c)?\s*(?:x|@|at|,|/|-|_|\s)\s*(\d{3,4})(?:\.0)?\s*(?:mhz)?", re.IGNORECASE)
_OLD_910B: Final = ("910b", "ascend910b")
FIRST_GENERATION_BLOCKS: Final = 32
"""A first-generation chip starts at most so many blocks for its 30 cores; A2 parts start 40 or 48 on the vector cores."""


def read_soc(path: Path) -> Soc:
    """A chip of one's own: a JSON file like those of the catalogue. Raises ContentError when it is not one."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Soc)
    except (OSError, msgspec.DecodeError) as error:
        raise ContentError(
            f"{path} is not a chip: {error}", allowed="a JSON file with the fields of recipes/catalogue/soc", do="copy one and edit it"
        ) from error


def find_soc(text: str, socs: Mapping[str, Soc]) -> Soc:
    """The chip named by id, name or alias (case and blanks ignored), by its family if that has one chip (Ascend310P), or by cube
    cores and clock as in ``20 x 1650``.

    A pair that no chip has takes the one of equal cores with the nearest clock, at the clock asked for. Raises
    NotFoundError naming the nearest ids.
    """
    wanted = _plain(text)
    for soc in socs.values():
        if wanted in {_plain(name) for name in (soc.id, soc.name, *soc.aliases)}:
            return soc
    family = [soc for soc in socs.values() if _plain(soc.family) == wanted]
    if len(family) == 1:
        return family[0]
    pair = _PAIR.fullmatch(text.strip())
    alike = [soc for soc in socs.values() if pair and soc.cube_cores.value == int(pair[1])]
    if pair and alike:
        return _at_clock(alike, float(pair[2]))
    near = difflib.get_close_matches(wanted, [_plain(name) for name in socs], n=3, cutoff=0.4)
    known = [soc.id for soc in socs.values() if _plain(soc.id) in near] or sorted(socs)
    raise NotFoundError(
        f"no SoC named {text!r}",
        allowed=f"nearest: {', '.join(known)}; or CORES x MHZ as in 20x1650",
        do="pick one, or pass a file of your own",
    )


def _plain(name: str) -> str:
    return re.sub(r"[\s_]", "", name).casefold().removeprefix("ascend")


def _at_clock(alike: list[Soc], clock: float) -> Soc:
    nearest = min(alike, key=lambda soc: abs(_mhz(soc) - clock))
    if _mhz(nearest) == clock:
        return nearest
    return msgspec.structs.replace(nearest, clock=Sourced(clock, "MHz", "asked for", "medium"))


def _mhz(soc: Soc) -> float:
    return Quantity(soc.clock.value, soc.clock.unit).to("GHz") * 1e3


def is_old_910b(text: str) -> bool:
    """Whether a name is the bare "910B", which means the first generation in old exports and any A2 part in new ones."""
    return _plain(text) in _OLD_910B


def which_910b(most_blocks: int, block_formats: bool) -> str:
    """The catalogue id a bare "910B" stands for: operands in cube blocks or few blocks mean the first generation; then
    48 blocks mean 24 cores, fewer 20."""
    if block_formats or most_blocks <= FIRST_GENERATION_BLOCKS:
        return "910b-gen1"
    return "910b2" if most_blocks >= 48 else "910b3"
