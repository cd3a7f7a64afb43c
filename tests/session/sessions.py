"""Random sessions that obey the schema."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from kb.domain.soc import SocRef
from kb.domain.text import Text
from kb.session.meta import Capture, Group, Missing, Model, Parallel, SessionMeta, Violation
from kb.session.schema import NUMPY_DTYPES, TABLES, Column, TableSpec
from kb.session.session import Session, Table

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)
SMALL = st.integers(-(2**40), 2**40)


@st.composite
def metas(draw: st.DrawFn) -> SessionMeta:
    return SessionMeta(
        name=draw(TEXT),
        origin=draw(st.sampled_from(["measured", "simulated"])),
        capture=Capture(format=draw(TEXT), level=draw(st.none() | TEXT), files=tuple(draw(st.lists(TEXT, max_size=2))), dropped_rows=3),
        rank=draw(st.none() | st.integers(0, 99)),
        parallel=Parallel(tensor=2, groups=(Group(name=draw(TEXT), dimension="pp", ranks=(0, 2)),)),
        model=Model(name=draw(st.none() | TEXT), phase="training"),
        soc=SocRef(cores=20, clock_mhz=draw(st.none() | st.floats(1, 3000)), family="A2"),
        software=draw(st.dictionaries(TEXT, TEXT, max_size=2)),
        options=draw(
            st.dictionaries(TEXT, st.none() | st.booleans() | SMALL | TEXT | st.floats(allow_nan=False, allow_infinity=False), max_size=3)
        ),
        simulator=draw(st.none() | TEXT),
        missing=(Missing(what=draw(TEXT), why=Text("x", "x")),),
        violations=(Violation(oracle=draw(TEXT), detail="y", difference_ns=draw(SMALL)),),
    )


def _column(draw: st.DrawFn, column: Column, rows: int, vocabulary: int) -> np.ndarray[Any, Any]:
    dtype = NUMPY_DTYPES[column.dtype]
    if column.dtype == "code":
        elements: st.SearchStrategy[Any] = st.integers(-1, vocabulary - 1)
    elif column.name == "duration_ns":
        elements = st.integers(0, 2**60)
    elif column.dtype == "f8":
        elements = st.floats(allow_nan=True)
    else:
        elements = st.integers(-1, 2**31 - 1)
    return draw(npst.arrays(dtype, rows, elements=elements))


def _table(draw: st.DrawFn, spec: TableSpec, vocabulary: int) -> Table:
    rows = draw(st.integers(0, 5))
    columns = {
        column.name: _column(draw, column, rows, vocabulary) for column in spec.columns if column.required or draw(st.integers(0, 3)) == 0
    }
    if spec.sort:
        columns[spec.sort].sort()
    return Table(spec.name, columns)


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    strings = tuple(draw(st.lists(TEXT, max_size=4, unique=True)))
    names = draw(st.lists(st.sampled_from(sorted(TABLES)), max_size=3, unique=True))
    return Session(draw(metas()), {name: _table(draw, TABLES[name], len(strings)) for name in names}, strings)
