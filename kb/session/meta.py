"""What is known about a run besides its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from kb.domain.provenance import Origin
from kb.domain.soc import SocRef
from kb.domain.text import Text


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was not captured: ``what`` (a table, column or fact), ``why``, and how to get it (empty = unknown)."""

    what: str
    why: Text
    capture: Text = Text()


STEP_ORACLE: Final = "Computing + Communication(Not Overlapped) + Free = Stage + Bubble"
"""The identity of the exporter's step totals, as violations name it."""


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A self-contradiction found at load: ``oracle`` names the identity, ``difference_ns`` how far it is off."""

    oracle: str
    detail: str
    difference_ns: int


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A communicator: its parallel dimension ("tp", "pp", "dp", "ep", ..) and global ranks in group order."""

    name: str
    dimension: str
    ranks: tuple[int, ...]


class Parallel(msgspec.Struct, frozen=True, kw_only=True):
    """Parallel layout as the capture states it; None = not stated."""

    tensor: int | None = None
    pipeline: int | None = None
    data: int | None = None
    context: int | None = None
    expert: int | None = None
    groups: tuple[Group, ...] = ()
    virtual: int | None = None
    """Chunks of the model on each pipeline stage; more than one is the interleaved schedule."""


class Capture(msgspec.Struct, frozen=True, kw_only=True):
    """How the profile was taken and read. ``format`` is ascend_text, ascend_db, kineto, onnxruntime, simulated, ..;
    ``files`` lists what was read, relative to the root given by the user."""

    format: str
    level: str | None = None
    metrics: str | None = None
    files: tuple[str, ...] = ()
    dropped_rows: int = 0


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """The workload as far as known; None = unknown."""

    name: str | None = None
    type: str | None = None
    phase: Literal["training", "inference", "prefill", "decode"] | None = None
    batch: int | None = None


class SessionMeta(msgspec.Struct, frozen=True, kw_only=True):
    """``name`` is the folder or file name. ``stage`` is the pipeline stage. ``environment`` holds captured
    variables (redacted before publishing). ``options`` are the simulator's or launcher's settings as JSON
    values; with ``origin == "simulated"`` they hold what is needed to run the same case again, and
    ``simulator`` its model version."""

    name: str
    origin: Origin
    capture: Capture
    rank: int | None = None
    world_size: int | None = None
    stage: int | None = None
    device: int | None = None
    parallel: Parallel = Parallel()
    model: Model = Model()
    soc: SocRef = SocRef()
    software: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}
    options: Mapping[str, str | int | float | bool | None] = {}
    simulator: str | None = None
    missing: tuple[Missing, ...] = ()
    violations: tuple[Violation, ...] = ()
