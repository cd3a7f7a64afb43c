"""What the readers of one rank bring together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kb.domain.soc import SocRef
from kb.profile.ascend.part import Part
from kb.profile.ascend.profiler_info import Metadata
from kb.session.session import Table


@dataclass(frozen=True, slots=True)
class Gathered:
    """Tables of one rank by name and the files they came from. ``split_cores``: counters carry the prefixes of products with
    separate cube and vector cores. ``markers`` are steps by name: begin, end (ns), row, file. ``soc`` and ``metadata`` are
    what the files state about the run themselves; ``rank`` is None where they are silent."""

    tables: dict[str, Table]
    parts: tuple[Part, ...]
    split_cores: bool = False
    markers: Mapping[str, tuple[int, int, int, str]] = field(default_factory=dict)
    soc: SocRef | None = None
    metadata: Metadata = field(default_factory=Metadata)
    rank: int | None = None
    files: tuple[str, ...] = ()
