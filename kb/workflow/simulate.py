"""Job: sessions from the simulated backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kb.domain.catalogue import Catalogue
from kb.domain.soc import Soc
from kb.errors import UsageError
from kb.profile.simulated.graph_file import GraphFile
from kb.profile.simulated.imported import graph_of
from kb.profile.simulated.layout import layout_of
from kb.profile.simulated.models.names import MODELS, model
from kb.profile.simulated.options import Options, Setting, checked
from kb.profile.simulated.run import Setup, simulate, simulate_ranks
from kb.profile.simulated.socs import find_soc, read_soc
from kb.session.session import Session

DEFAULT_SOC = "910b2"


def simulated_session(catalogue: Catalogue, model: str, *, soc: str, seed: int, options: Options, name: str) -> Session:
    """One simulated run. The truth the simulator also knows is dropped: the diagnosis must not see it."""
    session, _truth = simulate(Setup(model=model, soc=catalogue.soc(soc), options=options, seed=seed, name=name))
    return session


def simulated_sessions(
    catalogue: Catalogue, model: str, *, soc: str, seed: int, options: Options, name: str, ranks: Sequence[int] | None = None
) -> tuple[Session, ...]:
    """One simulated run, a session for each of ``ranks`` (None = all of the job). ``soc`` may name a file."""
    setup = Setup(model=model, soc=chip(catalogue, soc), options=options, seed=seed, name=name)
    return tuple(session for session, _truth in simulate_ranks(setup, ranks))


def chip(catalogue: Catalogue, text: str) -> Soc:
    """A chip by name, by cores and clock (``20x1650``), or from a JSON file of one's own."""
    path = Path(text)
    return read_soc(path) if path.suffix == ".json" else find_soc(text, catalogue.socs)


def model_names() -> tuple[str, ...]:
    """The models that can be simulated."""
    return tuple(MODELS)


def model_families() -> list[dict[str, Any]]:
    """Every built-in model: its name, family, and the dimensions it can be split along."""
    return [{"name": name, "family": entry.type, "dimensions": list(entry.dimensions)} for name, entry in MODELS.items()]


def model_graph(name: str, options: Options) -> GraphFile:
    """A built-in model as a graph file, as ``options`` build it. Raises NotFoundError for an unknown one, UsageError when it is split
    over ranks."""
    entry = model(name)
    layout = layout_of(options)
    workload = entry.build(options, layout.seat(0))
    return graph_of(workload, name=name, family=entry.type, batch=options.batch)


def options_from(settings: Sequence[str], own: Mapping[str, Setting]) -> Options:
    """Options from ``NAME=VALUE`` texts over ``own``. Raises UsageError naming the known options or what a value must be."""
    values: dict[str, object] = {name: value for name, value in own.items() if value is not None}
    for text in settings:
        name, found, value = text.partition("=")
        if not found or name not in Options.__struct_fields__:
            raise UsageError(f"no option {text!r}", allowed="NAME=VALUE with one of " + ", ".join(Options.__struct_fields__))
        values[name] = value
    try:
        return checked(msgspec.convert(values, type=Options, strict=False))
    except msgspec.ValidationError as error:
        raise UsageError(f"an option does not fit: {error}", allowed="see the defaults: " + _defaults(settings)) from error


def _defaults(settings: Sequence[str]) -> str:
    names = [text.partition("=")[0] for text in settings]
    return ", ".join(f"{name}={getattr(Options(), name)}" for name in names)
