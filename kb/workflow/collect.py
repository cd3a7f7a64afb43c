"""Job: a capture of a model on the simulated backend, or of a command on this machine with msprof."""

from __future__ import annotations

import math
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_dataclass
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from kb.domain.soc import Soc
from kb.domain.text import Text
from kb.errors import KbError, NotFoundError, UnusableCaptureError, UsageError
from kb.profile.simulated.capturing import captured, data_types_from
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.graph_file import GraphFile, packed
from kb.profile.simulated.imported import operator_coverage
from kb.profile.simulated.model_files import SUFFIXES, read_model
from kb.profile.simulated.models.names import MODELS
from kb.profile.simulated.onnx.binding import given_from
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import Setup, simulate
from kb.profile.simulated.stability import Stability, stability_of, told
from kb.profile.sources import load
from kb.session.session import Session

MSPROF: Final = "msprof"
MOST_STREAMS: Final = 8
"""Streams of a model file that are simulated at most."""
MOST_STEPS: Final = 50
"""Steps a simulated capture records at most: more of the same teach nothing."""
MOST_ROWS: Final = 200_000
EDGE: Final = ("310P", "310B")
EDGE_SAMPLE_S: Final = 5.0
EDGE_STEPS: Final = 60
"""Steps and seconds between them of a capture that watches the power of an edge chip: five minutes."""
LATENT_SCALE: Final = 8
"""Pixels of an image along the edge of one latent of the diffusion models simulated here."""
_IMAGE_AXES: Final = 4
_DURATION: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)?\s*")
_SECONDS: Final = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}
_TAIL: Final = 400
_CAPTURE: Final = ("--ascendcl=on", "--ai-core=on", "--aic-metrics=PipeUtilization", "--task-time=l1")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to collect of a model. Texts as on the command line; ``duration`` empty = ``steps`` as in ``options``."""

    model: str
    input_shape: tuple[str, ...] = ()
    dims: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    data_types: str = ""
    duration: str = ""
    focus: str = ""
    metrics: bool = True
    seed: int = 1
    options: Options = field(default_factory=Options)


@dataclass(frozen=True)
class Collected:
    """A session and what the reader should know about it. ``stability`` where the chip ran on between steps."""

    session: Session
    remarks: tuple[Text, ...]
    costed: int = 0
    operators: int = 0
    by_bytes: tuple[str, ...] = ()
    stability: Stability | None = None


def is_model_file(text: str) -> bool:
    """Whether a text names a model file, present or not, and no built-in model."""
    return text not in MODELS and (Path(text).suffix in SUFFIXES or "/" in text or Path(text).is_file())


def file_graph(wanted: Wanted) -> GraphFile:
    """The graph of a model file with the shapes asked for. Raises UsageError where an .om or JSON file has others."""
    return _file_graph(wanted)[0]


def _file_graph(wanted: Wanted) -> tuple[GraphFile, tuple[Text, ...]]:
    given = given_from(wanted.input_shape, wanted.dims, wanted.values)
    graph = read_model(Path(wanted.model), shapes=given.shapes, dims=given.dims, values=given.values)
    asked = given.shapes.get("")
    made = {name for operator in graph.operators for name in operator.outputs}
    inputs = [spec.shape for spec in graph.tensors if not spec.weight and not spec.storage and spec.name not in made]
    if asked is None or not inputs or graph.precision or asked in inputs:
        return graph, ()
    latent = next((shape for shape in inputs if _is_latent(asked, shape)), None)
    if latent is None:
        raise UsageError(
            f"{wanted.model} takes {' and '.join(str(list(shape)) for shape in inputs[:3])}, not {list(asked)}",
            do="leave --input_shape out, or convert the model for that shape",
        )
    said = Text(
        f"{list(asked)} 是图像尺寸；模型的输入是它的潜变量 {list(latent)}（每边 1/{LATENT_SCALE}）",
        f"{list(asked)} is the size of an image; the model takes its latents {list(latent)} (1/{LATENT_SCALE} of each edge)",
    )
    return graph, (said,)


def _is_latent(image: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether ``shape`` holds the latents of ``image``, both (batch, channels, height, width)."""
    return len(image) == len(shape) == _IMAGE_AXES and all(
        size == LATENT_SCALE * inner for size, inner in zip(image[2:], shape[2:], strict=True)
    )


def collect_model(wanted: Wanted, soc: Soc) -> Collected:
    """Simulate the model and keep what was asked for.

    Raises NotFoundError for an unknown model, and what the readers of model files raise.
    """
    kinds = data_types_from(wanted.data_types)
    wanted = replace_dataclass(wanted, options=_watched(wanted, soc))
    if not is_model_file(wanted.model):
        refuse_shapes(wanted)
        setup = Setup(model=wanted.model, soc=soc, options=wanted.options, seed=wanted.seed)
        session, remarks = _simulated(setup, wanted.duration)
        return Collected(_kept(session, kinds, wanted), remarks, stability=_steady(session, wanted))
    graph, said = _file_graph(wanted)
    options = replace(wanted.options, batch=graph.batch)
    if graph.streams > 1 and options.streams == 1:
        options = replace(options, streams=min(graph.streams, MOST_STREAMS))
        count = options.streams
        said = (
            *said,
            Text(
                f"模型的算子分在 {graph.streams} 条流上，按 {count} 条仿真",
                f"the model uses {graph.streams} streams; {count} are simulated",
            ),
        )
    setup = Setup(model=graph.name, soc=soc, options=options, seed=wanted.seed, graph=packed(graph))
    session, remarks = _simulated(setup, wanted.duration)
    costed, total, unknown = operator_coverage(graph, load_constants())
    said = (*said, *remarks, *_coverage(costed, total, unknown))
    return Collected(_kept(session, kinds, wanted), said, costed, total, unknown, _steady(session, wanted))


def refuse_shapes(wanted: Wanted) -> None:
    """UsageError for shapes asked of a built-in model, which would be ignored."""
    if wanted.input_shape or wanted.dims or wanted.values:
        raise UsageError(
            f"{wanted.model} is built in: its shapes follow from options", allowed="--set batch=N, --set sequence=N",
            do="leave --input_shape, --dim and --value out, or give a model file",
        )  # fmt: skip


def _kept(session: Session, kinds: frozenset[str], wanted: Wanted) -> Session:
    return captured(session, kinds, metrics=wanted.metrics, focus=wanted.focus)


def _steady(session: Session, wanted: Wanted) -> Stability | None:
    return stability_of(session) if wanted.options.sample_s else None


def _watched(wanted: Wanted, soc: Soc) -> Options:
    """The options; where the power of an edge chip is asked for by name, steps lie a second apart so that heat can build up."""
    asked = "power" in wanted.data_types and soc.family in EDGE
    if not asked or wanted.options.sample_s or wanted.duration:
        return wanted.options
    return replace(wanted.options, sample_s=EDGE_SAMPLE_S, steps=max(wanted.options.steps, EDGE_STEPS))


def _coverage(costed: int, total: int, unknown: Sequence[str]) -> tuple[Text, ...]:
    listed = ", ".join(unknown)
    said = Text(f"{costed}/{total} 个算子有代价模型", f"{costed} of {total} operators have a cost model")
    if not unknown:
        return (said,)
    return (said, Text(f"只按搬运字节计时的算子：{listed}", f"costed by the bytes they move alone: {listed}"))


def _simulated(setup: Setup, duration: str) -> tuple[Session, tuple[Text, ...]]:
    """The session, of as many steps as fill ``duration`` but no more than teach something."""
    if not duration:
        session, _ = simulate(setup)
        return session, tuple(_heat(setup, session))
    seconds = seconds_from(duration)
    probe, truth = simulate(replace(setup, options=replace(setup.options, steps=2)))
    step_s = truth.steps[-1].step_ns / 1e9
    rows = max(1, len(probe.tables["kernels"]) // 2)
    steps = max(2, min(math.ceil(seconds / step_s), MOST_STEPS, max(2, MOST_ROWS // rows)))
    session, _ = simulate(replace(setup, options=replace(setup.options, steps=steps)))
    spent = steps * step_s
    if spent >= seconds:
        return session, ()
    remark = Text(
        f"记录了 {steps} 步（{spent:.2f} s）；其余时间重复同样的步，不再记录",
        f"recorded {steps} steps ({spent:.2f} s of {seconds:g} s); the rest repeats them",
    )
    return session, (remark,)


def _heat(setup: Setup, session: Session) -> Iterator[Text]:
    """What clock and temperature did while the chip ran on between steps."""
    if not setup.options.sample_s:
        return
    span = setup.options.steps * setup.options.sample_s
    yield Text(
        f"每 {setup.options.sample_s:g} s 记录一步，其间芯片继续运行，共 {span:g} s",
        f"a step recorded every {setup.options.sample_s:g} s while the chip runs on, {span:g} s in all",
    )
    found = stability_of(session)
    if found is not None:
        yield told(found)


def seconds_from(text: str) -> float:
    """Seconds of ``60s``, ``10m``, ``500ms``. Raises UsageError."""
    match = _DURATION.fullmatch(text)
    seconds = float(match[1]) * _SECONDS[match[2] or ""] if match else 0.0
    if seconds <= 0:
        raise UsageError(f"cannot read the duration {text!r}", allowed="a positive number with ms, s, m or h, as in 60s")
    return seconds


def measure_command(command: Sequence[str], output: Path, environment: Mapping[str, str]) -> tuple[Session, ...]:
    """Run ``command`` under msprof, its capture in the new folder ``output``, and read what it left.

    Raises NotFoundError without msprof, KbError when the run fails, UnusableCaptureError when it leaves no profile.
    """
    tool = shutil.which(MSPROF, path=environment.get("PATH"))
    if tool is None:
        raise NotFoundError(
            f"no {MSPROF} on this machine",
            allowed="a host with the CANN toolkit, its set_env.sh sourced",
            do="collect on the Ascend host and bring the folder here, or simulate with --model",
        )
    if output.exists() and any(output.iterdir()):
        raise KbError(f"{output} is not empty", allowed="a new folder", do="choose another --output")
    output.mkdir(parents=True, exist_ok=True)
    _run([tool, f"--output={output}", *_CAPTURE, *command], shlex.join(command), environment)
    try:
        return load(output)
    except UnusableCaptureError:
        raw = sorted(folder for folder in output.rglob("PROF_*") if folder.is_dir())
        if not raw:
            raise
    for folder in raw:  # older versions leave the export to the user
        _run([tool, "--export=on", f"--output={folder}"], "the export", environment)
    return load(output)


def _run(arguments: Sequence[str], what: str, environment: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(arguments, env=dict(environment), stderr=subprocess.PIPE, check=False)  # noqa: S603  # the user's own command
    except OSError as error:
        raise KbError(f"{MSPROF} cannot be started: {error.strerror}", do="check the installation of CANN") from error
    if done.returncode:
        tail = done.stderr.decode("utf-8", "replace")[-_TAIL:].strip()
        raise KbError(
            f"{what} under {MSPROF} ended with status {done.returncode}{f': {tail}' if tail else ''}",
            do="run the command alone first, then with msprof",
        )
