"""Pictures as data: what is drawn, not how. Times are ns, shares are 0..1; names are shown as they stand."""

from __future__ import annotations

from typing import Literal

import msgspec

Role = Literal["cube", "vector", "mix", "ai_cpu", "communication", "copy", "idle", "bubble", "other", "good", "bad", "accent"]
"""What a mark stands for; the palette gives each role one colour, the same in every picture."""


class Segment(msgspec.Struct, frozen=True):
    """One part of a bar."""

    name: str
    role: Role
    value_ns: int


class Bar(msgspec.Struct, frozen=True):
    """One stacked bar, for example a rank; the segments add up to ``total_ns``."""

    name: str
    total_ns: int
    segments: tuple[Segment, ...]


class Breakdown(msgspec.Struct, frozen=True, tag=True):
    """Stacked bars on one time axis."""

    bars: tuple[Bar, ...]


class Frame(msgspec.Struct, frozen=True):
    """A frame of a flame graph; children sum to at most ``value_ns``. ``count`` is the number of device tasks."""

    name: str
    value_ns: int
    role: Role
    count: int = 0
    children: tuple[Frame, ...] = ()


class FlameGraph(msgspec.Struct, frozen=True, tag=True):
    """A tree of time, root at the top."""

    root: Frame


class Lane(msgspec.Struct, frozen=True):
    """One stream: spans as columns, sorted by start. ``names`` and ``roles`` index the timeline's vocabularies;
    ``counts`` says how many device tasks a span stands for (1 = drawn as captured)."""

    name: str
    starts: tuple[int, ...]
    durations: tuple[int, ...]
    names: tuple[int, ...]
    roles: tuple[int, ...]
    counts: tuple[int, ...]


class Bubble(msgspec.Struct, frozen=True):
    """Device time in which nothing ran; ``cause`` says why as far as the capture tells."""

    start_ns: int
    duration_ns: int
    cause: str
    before: str
    after: str


class Timeline(msgspec.Struct, frozen=True, tag=True):
    """Streams over one step, times relative to its begin. ``tasks`` counts what was captured, also where spans were merged."""

    window_ns: int
    names: tuple[str, ...]
    roles: tuple[Role, ...]
    lanes: tuple[Lane, ...]
    bubbles: tuple[Bubble, ...]
    tasks: int
    merged_below_ns: int = 0


class HeatMap(msgspec.Struct, frozen=True, tag=True):
    """Rows by columns; ``heat`` is 0 (harmless) to 1 (worst), None where not captured; ``texts`` is what the cell says."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    heat: tuple[tuple[float | None, ...], ...]
    texts: tuple[tuple[str, ...], ...]


class Series(msgspec.Struct, frozen=True):
    """One line of a chart."""

    name: str
    role: Role
    x: tuple[float, ...]
    y: tuple[float, ...]


class Curves(msgspec.Struct, frozen=True, tag=True):
    """Lines over a common axis; ``filled`` draws areas, as for memory over time."""

    x_title: str
    y_title: str
    series: tuple[Series, ...]
    filled: bool = False


class Node(msgspec.Struct, frozen=True):
    """A node of a tree read from left to right; ``share`` draws a bar under it when given."""

    name: str
    detail: str = ""
    role: Role = "other"
    share: float | None = None
    children: tuple[Node, ...] = ()


class Tree(msgspec.Struct, frozen=True, tag=True):
    """Root causes (cause, evidence, strategy, case) or the path of a drill-down. ``levels`` names the columns."""

    levels: tuple[str, ...]
    roots: tuple[Node, ...]


class Dot(msgspec.Struct, frozen=True):
    """One operator type on the roofline: FLOP a byte, FLOP/s reached, and its weight in the step (0..1)."""

    name: str
    intensity: float
    flops: float
    weight: float
    role: Role = "cube"


class Roofline(msgspec.Struct, frozen=True, tag=True):
    """``peak_flops`` in FLOP/s and ``bandwidth`` in B/s are the chip's ceilings; ``source`` says whose figures they are."""

    peak_flops: float
    bandwidth: float
    dots: tuple[Dot, ...]
    source: str


class Pair(msgspec.Struct, frozen=True):
    """One quantity before and after; ``interval_ns`` bounds the second where known."""

    name: str
    before_ns: int
    after_ns: int
    interval_ns: tuple[int, int] | None = None


class BeforeAfter(msgspec.Struct, frozen=True, tag=True):
    """Two bars a row."""

    before: str
    after: str
    pairs: tuple[Pair, ...]


class Bin(msgspec.Struct, frozen=True):
    """Predictions of similar confidence: mean predicted, share that came true, and how many."""

    predicted: float
    observed: float
    count: int


class Reliability(msgspec.Struct, frozen=True, tag=True):
    """Calibration: bins against the diagonal; ``error`` is the expected calibration error."""

    bins: tuple[Bin, ...]
    error: float


Chart = Breakdown | FlameGraph | Timeline | HeatMap | Curves | Tree | Roofline | BeforeAfter | Reliability
