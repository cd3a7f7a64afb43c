"""Job: every input that the articles' commands assume, made by the simulator, so that the commands run as they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Progress
from kb.errors import KbError
from kb.files import write_whole
from kb.profile.simulated.graph import Collective, Graph, Operator, Tensor, Workload
from kb.profile.simulated.imported import graph_of
from kb.profile.simulated.layout import layout_of
from kb.profile.simulated.models.names import model
from kb.profile.simulated.om.writing import om_bytes
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import Setup, simulate
from kb.session.codec import to_bytes
from kb.workflow.simulate import DEFAULT_SOC, chip

SEED: Final = 1


class Input(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file: a built-in model as ``.om`` or ``.prof``, a text, or zero bytes."""

    file: str
    model: str = ""
    options: Mapping[str, Any] = {}
    text: str = ""
    zeros: int = 0


def article_inputs() -> tuple[Input, ...]:
    """The files, from the data file beside this module."""
    return msgspec.json.decode(resources.files("kb.workflow").joinpath("article_inputs.json").read_bytes(), type=tuple[Input, ...])


def lay_down(folder: Path, catalogue: Catalogue, progress: Progress, *, force: bool = False) -> tuple[Path, ...]:
    """Write every input below ``folder``. Raises KbError naming the files that are there already, before anything is written."""
    wanted = article_inputs()
    present = [item.file for item in wanted if (folder / item.file).exists()]
    if present and not force:
        raise KbError(f"{folder} already holds {', '.join(present)}", allowed="a new folder", do="choose another, or add --force")
    written = []
    for done, item in enumerate(wanted):
        write_whole(folder / item.file, [_content(item, catalogue)])
        written.append(folder / item.file)
        progress("article", done + 1, len(wanted))
    return tuple(written)


def _content(item: Input, catalogue: Catalogue) -> bytes:
    if not item.model:
        return item.text.encode() if item.text else bytes(item.zeros)
    options = msgspec.convert(item.options, Options)
    if item.file.endswith(".prof"):
        name = Path(item.file).stem
        session, _truth = simulate(Setup(model=item.model, soc=chip(catalogue, DEFAULT_SOC), options=options, seed=SEED, name=name))
        return to_bytes(session)
    entry = model(item.model)
    workload = _alone(entry.build(options, layout_of(options).seat(0)))
    graph = replace(graph_of(workload, name=item.model, family=entry.type, batch=options.batch), repeats=1)
    return om_bytes(graph, info="built-in")


def _alone(workload: Workload) -> Workload:
    """One rank's kernels without communication, as a compiled model holds them."""
    operators = workload.segment.operators
    if not any(isinstance(operator, Collective) for operator in operators):
        return workload
    kept = tuple(_without_communication(operators))
    return replace(workload, segment=Graph(kept), left_out=(*workload.left_out, "communication between ranks"))


def _without_communication(operators: tuple[Operator, ...]) -> Iterator[Operator]:
    """Operators in order; what a collective would have made is read from what it would have sent."""
    sent: dict[int, Tensor] = {}
    for operator in operators:
        inputs = tuple(sent.get(tensor.id, tensor) for tensor in operator.inputs)
        if isinstance(operator, Collective):
            sent.update((made.id, given) for made, given in zip(operator.outputs, inputs, strict=False))
        else:
            yield replace(operator, inputs=inputs)
