"""The numeric knobs a search may turn, and what is cut from them because the chip, its memory or the job cannot have it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Final, Literal

import msgspec

from kb.domain.recommendation import Constraints
from kb.domain.text import Text
from kb.errors import KbError, UsageError
from kb.profile.simulated.chip import capacity_bytes
from kb.profile.simulated.constants import load_constants
from kb.profile.simulated.layout import layout_of
from kb.profile.simulated.memory import memory_plan
from kb.profile.simulated.options import Options, Setting, checked
from kb.profile.simulated.setup import Setup
from kb.profile.simulated.tiling import Tiling, checked_tiling
from kb.profile.simulated.twins import TWINS
from kb.tune.entries import entry_for, graph_of

Choice = int | float | str
Needs = Literal["always", "launches", "batch", "memory", "tensor", "pipeline", "replicas", "loader", "paged", "full_precision"]
BF16_FAMILIES: Final = ("A2", "A3", "A5")
"""The vendor's operator lists name BFLOAT16 for these generations only."""
AUTO: Final = "auto"
"""The tile the vendor's own search picks."""
_TILE: Final = re.compile(r"(\d+)(?:x(\d+))?(?:x(\d+))?\Z")
_ENTRY: Final = re.compile(r"\s*([A-Za-z_]+)\s*[:=]\s*\[([^\]]*)\]\s*[;,]?")
_SPELLINGS: Final = {
    "tile_size": "tile",
    "batch_size": "batch",
    "pipeline_stages": "pipeline_parallel",
    "tensor_parallel_degree": "tensor_parallel",
}


class Knob(msgspec.Struct, frozen=True, kw_only=True):
    """A name (an option of the simulator, or ``tile`` for its three edges) and the values to try."""

    name: str
    values: tuple[Choice, ...]


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken out of a space, and why. ``value`` None = the whole knob."""

    knob: str
    value: Choice | None
    reason: Text


class _Default(msgspec.Struct, frozen=True):
    knob: str
    values: tuple[Choice, ...]
    needs: Needs


def default_space(setup: Setup, constraints: Constraints) -> tuple[Knob, ...]:
    """The knobs that mean something for this run and target, with the usual values and the present one."""
    data = resources.files("kb.tune").joinpath("space.json").read_bytes()
    wanted = _wanted(setup, constraints)
    rows = [
        row for row in msgspec.json.decode(data, type=tuple[_Default, ...]) if row.needs in wanted and _permitted(row.knob, constraints)
    ]
    return tuple(_with_present(Knob(name=row.knob, values=row.values), setup.options) for row in rows)


def _permitted(knob: str, constraints: Constraints) -> bool:
    """A forbidden strategy must not come in by way of its number."""
    option = "tile_m" if knob == "tile" else knob
    twins = {name: TWINS[name].option for name in (*constraints.forbid, *constraints.allow) if name in TWINS}
    if any(twins.get(name) == option for name in constraints.forbid):
        return False
    return not constraints.allow or any(twins.get(name) == option for name in constraints.allow)


def _wanted(setup: Setup, constraints: Constraints) -> frozenset[Needs]:
    """What applies: a knob that cannot move the figures of this run would waste trials."""
    options, dimensions = setup.options, _dimensions(setup)
    applies: dict[Needs, bool] = {
        "always": True,
        "launches": not options.graph_launch,
        "batch": constraints.target in ("throughput", "energy") or constraints.min_throughput is not None,
        "memory": constraints.target == "memory" or constraints.max_memory_b is not None,
        "tensor": "tensor" in dimensions,
        "pipeline": "pipeline" in dimensions,
        "replicas": options.data_parallel > 1,
        "loader": options.loader_ms > 0,
        "paged": options.kv_policy == "paged",
        "full_precision": options.precision == "fp32" and constraints.allow_model_change,
    }
    return frozenset(name for name, applied in applies.items() if applied)


def _dimensions(setup: Setup) -> tuple[str, ...]:
    return entry_for(setup).dimensions


def _with_present(knob: Knob, options: Options) -> Knob:
    present = value_of(options, knob.name)
    return knob if present in knob.values else Knob(name=knob.name, values=(present, *knob.values))


def parse_space(text: str) -> tuple[Knob, ...]:
    """A space as the tools write it: ``tile_size: [128, 160, 192]; stream_depth: [2, 4]``.

    Raises UsageError for anything else, an unknown knob, or a value of the wrong kind.
    """
    knobs, rest = [], text.strip()
    while rest:
        match = _ENTRY.match(rest)
        if match is None:
            raise UsageError(f"{rest!r} is no search space", allowed='NAME: [VALUE, ...]; for example "tile_size: [128,160,192,224]"')
        knobs.append(_knob(match[1], match[2]))
        rest = rest[match.end() :].strip()
    if not knobs:
        raise UsageError("an empty search space", allowed='for example "tile_size: [128,160,192,224]"')
    return tuple(knobs)


def _knob(name: str, listed: str) -> Knob:
    own = _SPELLINGS.get(name, name)
    words = [word.strip().strip("\"'") for word in listed.split(",") if word.strip()]
    if not words:
        raise UsageError(f"{name} has no values", allowed="at least one")
    if own == "tile":
        return Knob(name=own, values=tuple(_tile_text(word) for word in words))
    if own not in Options.__struct_fields__:
        raise UsageError(f"no knob {name!r}", allowed=", ".join(("tile_size", "batch_size", *Options.__struct_fields__)))
    kind = type(getattr(Options(), own))
    try:
        values = tuple(msgspec.convert(word, type=kind, strict=False) for word in words)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}: {error}", allowed=f"values like {getattr(Options(), own)}") from error
    return Knob(name=own, values=values)


def _tile_text(word: str) -> str:
    match = _TILE.match(word)
    if word == AUTO:
        return word
    if match is None:
        raise UsageError(f"{word!r} is no tile", allowed="auto, an edge as 128, or MxN or MxNxK as 128x256x64")
    m = int(match[1])
    return f"{m}x{match[2] or m}x{match[3] or Options().tile_k}"


def value_of(options: Options, knob: str) -> Choice:
    """Where a knob stands."""
    if knob != "tile":
        value: Choice = getattr(options, knob)
        return value
    return AUTO if not options.tile_m else f"{options.tile_m}x{options.tile_n}x{options.tile_k}"


def turned(options: Options, values: Mapping[str, Choice]) -> Options:
    """The options with knobs turned."""
    plain: dict[str, Setting] = {name: value for name, value in values.items() if name != "tile"}
    tile = values.get("tile")
    if isinstance(tile, str):
        m, n, k = (0, 0, Options().tile_k) if tile == AUTO else map(int, tile.split("x"))
        plain |= {"tile_m": m, "tile_n": n, "tile_k": k}
    return msgspec.structs.replace(options, **plain)


def cut_space(space: Sequence[Knob], setup: Setup, devices: int) -> tuple[tuple[Knob, ...], tuple[Cut, ...]]:
    """The space without what is impossible on its own (all other knobs as in ``setup``), and what was cut with the reason."""
    left, cuts = [], []
    for knob in space:
        possible = []
        for value in knob.values:
            reason = impossible(msgspec.structs.replace(setup, options=turned(setup.options, {knob.name: value})), devices)
            if reason is None:
                possible.append(value)
            else:
                cuts.append(Cut(knob=knob.name, value=value, reason=reason))
        if len(possible) > 1 or (possible and possible[0] != value_of(setup.options, knob.name)):
            left.append(Knob(name=knob.name, values=tuple(possible)))
    return tuple(left), tuple(cuts)


def impossible(setup: Setup, devices: int) -> Text | None:
    """Why a setup cannot run: buffers, device memory, devices, or the model; None when it can.

    The same checks as the simulator's own, without running: tile buffers, parallel degrees, and the memory plan of rank 0.
    """
    options = setup.options
    if options.world_size > devices:
        return Text(f"需要 {options.world_size} 个设备，只有 {devices} 个", f"needs {options.world_size} devices, {devices} are there")
    try:
        checked(options)
        tiling = Tiling(tile_m=options.tile_m, tile_n=options.tile_n, tile_k=options.tile_k, double_buffer=options.double_buffer)
        checked_tiling(tiling, setup.soc)
        layout_of(options)
    except KbError as error:
        return Text(error.what, error.what)
    if options.precision == "bf16" and setup.soc.family not in BF16_FAMILIES:
        return Text(f"{setup.soc.name} 不支持 BF16", f"{setup.soc.name} has no BF16")
    return _undivided(setup) or _too_large(setup)


def _undivided(setup: Setup) -> Text | None:
    known = _dimensions(setup)
    degrees = {"tensor": "tensor_parallel", "pipeline": "pipeline_parallel", "data": "data_parallel", "expert": "expert_parallel"}
    wrong = [option for dimension, option in degrees.items() if getattr(setup.options, option) > 1 and dimension not in known]
    if not wrong:
        return None
    return Text(f"{setup.model} 不支持 {wrong[0]}", f"{setup.model} cannot be split: {wrong[0]} = {getattr(setup.options, wrong[0])}")


def _too_large(setup: Setup) -> Text | None:
    try:
        graph = graph_of(setup)
    except UsageError as error:
        return Text(error.what, error.what)
    need = memory_plan(graph, setup.options).reserved_bytes
    room = capacity_bytes(setup.soc) * load_constants()["usable_memory_share"]
    if need <= room:
        return None
    figures = f"{need / 1e9:.1f} GB", f"{room / 1e9:.1f} GB"
    return Text(
        f"显存放不下：需要 {figures[0]}，{setup.soc.name} 可分配 {figures[1]}",
        f"does not fit: needs {figures[0]}, {setup.soc.name} can allocate {figures[1]}",
    )
