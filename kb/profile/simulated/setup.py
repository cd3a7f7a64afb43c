"""A simulated run before it happens, and back from a session's metadata."""

from __future__ import annotations

from typing import Final

import msgspec

from kb.domain.soc import Soc
from kb.errors import MalformedInputError, NotFoundError
from kb.profile.simulated.options import Options, Setting, checked
from kb.session.session import Session

SIMULATOR: Final = "sim-0.2"
"""Version of the model and its constants. A session of another version cannot be continued by this one."""
_OWN: Final = ("model", "soc", "seed", "graph")


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a run depends on: equal setups give equal sessions."""

    model: str
    soc: Soc
    options: Options = Options()
    seed: int = 0
    name: str = ""
    graph: str = ""
    """The packed graph of a model file (``graph_file.packed``); "" = ``model`` is a built-in one."""

    @property
    def label(self) -> str:
        """The session's name: the one given, else model and chip."""
        return self.name or f"{self.model}-{self.soc.id}"


def as_options(setup: Setup) -> dict[str, str | Setting]:
    """The JSON values a session keeps to be run again."""
    file = {"graph": setup.graph} if setup.graph else {}
    return {"model": setup.model, "soc": setup.soc.id, "seed": setup.seed, **file, **msgspec.structs.asdict(setup.options)}


def setup_of(session: Session, soc: Soc) -> Setup:
    """The setup that made ``session``, on ``soc`` (the catalogue's entry of its chip).

    Raises NotFoundError for a session of another simulator version or another chip, MalformedInputError
    for options this version does not know.
    """
    meta = session.meta
    if meta.simulator != SIMULATOR:
        raise NotFoundError(
            f"{meta.name} was simulated by {meta.simulator}", allowed=SIMULATOR, do="simulate the case again with this version, then apply"
        )
    if meta.options.get("soc") != soc.id:
        raise NotFoundError(f"{meta.name} ran on {meta.options.get('soc')}", allowed=soc.id, do="pass the chip the session ran on")
    try:
        own = msgspec.convert({name: meta.options[name] for name in _OWN if name != "graph" or name in meta.options}, type=_Own)
        options = msgspec.convert({name: value for name, value in meta.options.items() if name not in _OWN}, type=Options)
    except (KeyError, msgspec.ValidationError) as error:
        raise MalformedInputError(f"{meta.name}: the simulator's options are damaged: {error}", do="simulate the case again") from error
    name = meta.name.removesuffix(f"-rank{meta.rank}") if (meta.world_size or 1) > 1 else meta.name
    return Setup(model=own.model, soc=soc, options=checked(options), seed=own.seed, name=name, graph=own.graph)


class _Own(msgspec.Struct, frozen=True):
    model: str
    soc: str
    seed: int
    graph: str = ""
