"""What a capture keeps of a simulated session: the kinds of data asked for, and counters of the operators in focus."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec
import numpy as np

from kb.domain.text import Text
from kb.errors import UsageError
from kb.session.meta import Missing
from kb.session.session import Array, Session, Table

_CUBE: Final = ("aicore_time_ns", "aic_total_cycles", "aic_mac_ratio", "aic_mte1_ratio", "aic_mte2_ratio", "aic_fixpipe_ratio",
                "aiv_time_ns", "aiv_total_cycles", "aiv_vec_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio", "cube_utilization")  # fmt: skip
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "operator": (),
        "memory": ("hbm_read_bytes", "hbm_write_bytes"),
        "stream": ("wait_ns", "connection_id"),
        "l2_cache": ("l2_hit_ratio",),
        "cube_util": _CUBE,
        "power": (),
        "event": (),
    }
)
"""Columns of the kernels table by kind of data; operators with their times, types and shapes are always there."""
TABLES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"memory": ("allocations", "copies"), "stream": ("host_ops",), "event": ("host_ops",)}
)
_COUNTERS: Final[Mapping[str, str]] = MappingProxyType({"memory": r"memory|HBM", "power": r"Power|Temperature|Freq"})
_FOCI: Final[Mapping[str, str]] = MappingProxyType(
    {
        "attention": r"Attention|Softmax|BatchMatMul",
        "kv_cache": r"Attention|BatchMatMul|KvCache|ScatterUpdate|Gather",
        "convolution": r"Conv",
        "conv": r"Conv",
        "matmul": r"MatMul",
        "norm": r"Norm",
    }
)
_COUNTED: Final = ("aic_", "aiv_", "aicore", "cube_", "l2_", "hbm_")


def data_types_from(text: str) -> frozenset[str]:
    """Kinds of data from ``operator, memory, ..``; empty = all. Raises UsageError for an unknown one."""
    names = frozenset(part.strip() for part in text.split(",") if part.strip())
    unknown = sorted(names - set(COLUMNS))
    if unknown:
        raise UsageError(f"no data type {', '.join(unknown)}", allowed=", ".join(COLUMNS))
    return names or frozenset(COLUMNS)


def captured(session: Session, kinds: Iterable[str], *, metrics: bool = True, focus: str = "") -> Session:
    """The session with what was asked for. ``metrics``: hardware counters of kernels at all; ``focus``: only of operators whose
    type or name contains the word (or belongs to that part of a model).

    What is left out is listed in ``meta.missing``. Raises UsageError for a focus that nothing matches.
    """
    wanted = set(kinds) | {"operator"}
    tables = {name: table for name, table in session.tables.items() if _kept(name, wanted)}
    gone = {column for kind, columns in COLUMNS.items() if kind not in wanted for column in columns}
    kernels = tables.get("kernels")
    if kernels is not None:
        if not metrics:
            gone |= {name for name in kernels.columns if name.startswith(_COUNTED)}
        columns = {name: values for name, values in kernels.columns.items() if name not in gone}
        if focus:
            columns = _focused(session, columns, focus)
        tables["kernels"] = Table("kernels", columns)
    counters = tables.get("counters")
    if counters is not None:
        tables["counters"] = counters.where(_sampled(session, counters, wanted))
    left_out = sorted(set(session.tables) - set(tables)) + sorted(
        f"kernels.{name}" for name in gone if kernels is not None and name in kernels
    )
    missing = (*session.meta.missing, *map(_missing, left_out))
    return Session(msgspec.structs.replace(session.meta, missing=missing), {n: t for n, t in tables.items() if len(t)}, session.strings)


def _kept(name: str, wanted: set[str]) -> bool:
    owners = {kind for kind, names in TABLES.items() if name in names}
    return not owners or bool(owners & wanted)


def _sampled(session: Session, counters: Table, wanted: set[str]) -> Array:
    gone = [pattern for kind, pattern in _COUNTERS.items() if kind not in wanted]
    named = {int(code): session.strings[code] for code in np.unique(counters["name"]) if code >= 0}
    dropped = [code for code, text in named.items() if any(re.search(pattern, text) for pattern in gone)]
    return ~np.isin(counters["name"], dropped)


def _focused(session: Session, columns: Mapping[str, Array], focus: str) -> dict[str, Array]:
    inside = np.zeros(len(columns["name"]), dtype=bool)
    for column in ("op_type", "name"):
        inside |= np.isin(columns[column], _matching(session.strings, focus))
    if not inside.any():
        types = sorted({session.strings[code] for code in np.unique(columns["op_type"]) if code >= 0})
        raise UsageError(f"nothing here matches the focus {focus!r}", allowed=f"{', '.join(_FOCI)}, or part of {', '.join(types[:20])}")
    counted = {name for name in columns if name.startswith(_COUNTED) and columns[name].dtype.kind == "f"}
    return {name: np.where(inside, values, np.nan) if name in counted else values for name, values in columns.items()}


def _matching(strings: Sequence[str], focus: str) -> list[int]:
    word = re.sub(r"_(block|layer|module)s?$", "", focus.strip().lower())
    pattern = re.compile(_FOCI.get(word, re.escape(word)), re.IGNORECASE)
    return [code for code, text in enumerate(strings) if pattern.search(text)]


def _missing(what: str) -> Missing:
    return Missing(
        what=what,
        why=Text("采集时没有要求这一项", "not asked for in this capture"),
        capture=Text("用 --data_types 要求，或不写 --data_types", "ask for it with --data_types, or leave that out"),
    )
