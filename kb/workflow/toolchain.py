"""Job: the conversion and tuning tools as the articles call them, on the simulator, and the commands of the real ones."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

import msgspec

from kb.domain.catalogue import Catalogue
from kb.domain.text import Text
from kb.errors import UsageError
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.graph import Workload
from kb.profile.simulated.graph_file import GraphFile, packed
from kb.profile.simulated.imported import graph_of
from kb.profile.simulated.layout import layout_of
from kb.profile.simulated.om.writing import om_bytes
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import last_step_ns, simulate
from kb.profile.simulated.setup import Setup
from kb.session.session import Session
from kb.tune.entries import entry_for
from kb.tune.precision import Precision, precision_loss, precision_of
from kb.tune.rewriting import Applied, rewritten
from kb.workflow.fusion_switches import Switches
from kb.workflow.subject import subject

METRICS: Final[Mapping[str, str]] = {"relative_error": "ratio", "cosine": "ratio", "max_abs": "ratio"}
"""Metrics the emulation of number formats gives; any other needs outputs of the real model."""


@dataclass(frozen=True, kw_only=True)
class Converted:
    """A converted model. ``om`` are the bytes of the file; ``baseline`` its profile. Step times before and after in ns."""

    setup: Setup
    om: bytes
    baseline: Session
    applied: tuple[Applied, ...]
    before_ns: int
    after_ns: int
    remarks: tuple[Text, ...]
    command: str


class Validated(msgspec.Struct, frozen=True, kw_only=True):
    """Emulated precision of two forms of a model. ``unknown`` metrics were asked for and cannot be emulated."""

    before: Precision
    after: Precision
    loss: float
    unknown: tuple[str, ...]


class _Texts(msgspec.Struct, frozen=True):
    banner: Text
    convert: str
    precision: str
    tune: str
    task_metrics: tuple[str, ...]


def texts() -> _Texts:
    """The label of everything these tools print, and the forms of the real commands."""
    return msgspec.json.decode(resources.files("kb.workflow").joinpath("toolchain.json").read_bytes(), type=_Texts)


def convert(
    model: str, catalogue: Catalogue, *, soc: str, seed: int, options: Options, switches: Switches, output: str, switch_file: Path | None
) -> Converted:
    """Convert ``model`` with the fusions of ``switches``; each is checked and undone when it breaks the graph.

    Raises UsageError for a job of several ranks, and what finding and reading the model raises.
    """
    found = subject(model, catalogue, soc=soc, seed=seed, options=options)
    setup = found.setup
    if setup.options.world_size > 1:
        raise UsageError("a converted model is one rank's", allowed="no parallel degrees", do="leave --set ..._parallel out")
    entry = entry_for(setup)
    workload = entry.build(setup.options, layout_of(setup.options).seat(0))
    done = rewritten(workload.segment, switches.on, load_constants())
    graph = _file(workload, done.graph, setup, entry.type)
    after = msgspec.structs.replace(setup, model=graph.name, graph=packed(graph), name=f"{Path(output).stem}_baseline")
    baseline, _truth = simulate(after)
    single = msgspec.structs.replace(graph, repeats=1)
    return Converted(
        setup=after,
        om=om_bytes(single, info=setup.soc.id),
        baseline=baseline,
        applied=done.applied,
        before_ns=last_step_ns(setup),
        after_ns=last_step_ns(after),
        remarks=tuple(_remarks(found.remark, workload, switches)),
        command=_command(model, output, setup, switch_file),
    )


def _file(workload: Workload, graph: object, setup: Setup, family: str) -> GraphFile:
    changed = msgspec.structs.replace(workload, segment=graph)
    return graph_of(changed, name=setup.model, family=family, batch=setup.options.batch)


def _remarks(found: Text, workload: Workload, switches: Switches) -> Sequence[Text]:
    remarks = [found] if found.en else []
    if workload.repeats > 1:
        remarks.append(
            Text(f"文件是一次前向；一步运行 {workload.repeats} 次", f"the file holds one pass; a step runs it {workload.repeats} times")
        )
    remarks += [Text(f"未建模的融合开关：{name}", f"a fusion that is not modelled: {name}") for name in switches.unknown]
    return remarks


def _command(model: str, output: str, setup: Setup, switch_file: Path | None) -> str:
    fusion = f" --fusion_switch_file={switch_file}" if switch_file is not None else ""
    source = f"{Path(model).stem}.onnx"
    return texts().convert.format(model=source, framework=5, output=Path(output).stem, soc=_vendor_name(setup), fusion=fusion)


def _vendor_name(setup: Setup) -> str:
    return setup.soc.name.replace(" ", "")


def read_metrics(text: str) -> tuple[str, ...]:
    """Metrics split by commas: emulated ones and those of tasks. Raises UsageError for none and for a name that is neither."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    known = (*METRICS, *texts().task_metrics)
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        near = difflib.get_close_matches(wrong[0], known, n=1) if wrong else []
        raise UsageError(
            f"no metric {wrong[0]!r}" if wrong else "no metrics",
            allowed=f"{', '.join(METRICS)}; named but not judged here: {', '.join(texts().task_metrics)}",
            do=f"did you mean {near[0]}?" if near else None,
        )
    return names


def validated(before: Setup, after: Setup, metrics: Sequence[str]) -> Validated:
    """Emulate both forms and name the metrics that only real outputs give."""
    return Validated(
        before=precision_of(before),
        after=precision_of(after),
        loss=precision_loss(before, after),
        unknown=tuple(name for name in metrics if name not in METRICS),
    )
