"""The session schema is consistent, and sessions built from it pass their own check."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.session.builder import Strings, session, table
from kb.session.meta import Capture, SessionMeta
from kb.session.schema import NUMPY_DTYPES, TABLES
from kb.session.session import Session, Table

_META = SessionMeta(name="x", origin="measured", capture=Capture(format="test"))


@pytest.mark.parametrize("spec", TABLES.values(), ids=list(TABLES))
def test_every_table_is_well_formed(spec: object) -> None:
    found = TABLES[spec.name]  # type: ignore[attr-defined]  # parametrised over TableSpec
    names = [column.name for column in found.columns]
    assert len(names) == len(set(names))
    assert all(column.dtype in NUMPY_DTYPES for column in found.columns)
    assert found.sort is None or found.sort in names
    for column in found.columns:
        if column.name.endswith("_ns"):
            assert column.unit == "ns", column
        if column.name.endswith("_ratio"):
            assert column.unit == "ratio", column


@given(st.lists(st.tuples(st.integers(0, 10**18), st.integers(0, 10**9), st.sampled_from(["MatMul", "Add", ""])), min_size=1, max_size=30))
def test_built_sessions_are_sound_sorted_and_keep_every_row(rows: list[tuple[int, int, str]]) -> None:
    strings = Strings()
    starts, durations, names = zip(*rows, strict=True)
    kernels = table("kernels", {"start_ns": starts, "duration_ns": durations, "name": names, "op_type": names, "core": names}, strings)
    made = session(_META, [kernels], strings)
    assert made.self_check() == []
    decoded = [
        (int(s), int(d), made.text(int(n)) or "")
        for s, d, n in zip(*(kernels[c] for c in ("start_ns", "duration_ns", "name")), strict=True)
    ]
    assert sorted(decoded) == sorted(rows)
    assert [row[0] for row in decoded] == sorted(starts)


def test_the_check_names_each_breach() -> None:
    wrong = Table("kernels", {"start_ns": np.array([2, 1], dtype="<i8"), "duration_ns": np.array([1, -1], dtype="<i4"), "hue": np.zeros(2)})
    breaches = "\n".join(Session(_META, {"kernels": wrong, "tea": wrong}, ()).self_check())
    for word in ("tea: no such table", "hue: no such column", "dtype", "negative", "not sorted", "required column"):
        assert word in breaches


def test_an_unknown_column_is_an_error_of_the_caller() -> None:
    with pytest.raises(KeyError, match="hue"):
        table("kernels", {"hue": [1]}, Strings())
