"""What rules look at: one rank's representative step, and the ranks of one job side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
import numpy as np

from kb.diagnose.accounting import Books, account, extent, is_communication
from kb.diagnose.memo import Memo
from kb.diagnose.operators import OperatorClasses, matching, searching
from kb.diagnose.shapes import NOTHING, Operands, operands
from kb.domain.accounting import Accounting
from kb.domain.finding import Evidence
from kb.domain.soc import Soc
from kb.domain.text import Text
from kb.session.meta import Group, SessionMeta
from kb.session.session import Array, Session, Table

KERNEL_COVERAGE_LEAST: Final = 0.9
"""Kernel rows that add up to less of the exporter's Computing are a cut table: on whole captures both agree within
30 ns, and a check on part of the kernels would call the missing rest healthy."""


@dataclass(frozen=True, slots=True)
class RankView:
    """One rank. ``kernels`` and ``comm_ops`` hold the representative step's rows (sorted by start), None when
    the table was not captured or no row belongs to the step."""

    session: Session
    books: Books
    classes: OperatorClasses
    kernels: Table | None
    comm_ops: Table | None
    soc: Soc | None = None
    """The catalogue's entry of the chip, None where the capture does not identify it."""
    memo: Memo = field(default_factory=Memo, compare=False, repr=False)
    """What rules computed from this view already."""

    @property
    def cube_cores(self) -> int | None:
        """Cube cores of the device, from the catalogue or from counters."""
        return int(self.soc.cube_cores.value) if self.soc else self.session.meta.soc.cores

    @property
    def vector_cores(self) -> int | None:
        """Vector cores of the device; two a cube core where only those are known (A2 and A3)."""
        if self.soc:
            return int(self.soc.vector_cores.value) or None
        meta = self.session.meta.soc
        return 2 * meta.cores if meta.cores and meta.family in ("A2", "A3") else None

    @property
    def window(self) -> tuple[int, int] | None:
        """Where the representative step lies in time (begin, end), ns."""
        step = self.books.step
        return extent(self.session, step, self.books.kernel_rows) if step is not None else None

    @property
    def accounting(self) -> Accounting:
        """The books of the representative step."""
        return self.books.accounting

    @property
    def rank(self) -> int | None:
        """Global rank, None where unknown."""
        return self.session.meta.rank

    def role(self, table: Table, role: str) -> Array:
        """Boolean mask of kernel rows whose operator type plays ``role`` (a key of the data file's ``types``). A kernel
        without a type of its own (none, or its name once more) is judged by its name."""
        if table is self.kernels:
            return self.memo.once(("role", role), lambda: self._role(table, role)).copy()
        return self._role(table, role)

    def _role(self, table: Table, role: str) -> Array:
        mask = matching(self.session, table["op_type"], self.classes.types[role])
        bare = np.flatnonzero((table["op_type"] < 0) | (table["op_type"] == table["name"]))
        if len(bare) and role in self.classes.names:
            mask[bare] |= searching(self.session, table["name"][bare], self.classes.names[role])
        return mask

    def communication(self, table: Table) -> Array:
        """Boolean mask of kernel rows that are communication."""
        if table is self.kernels:
            return self.memo.once("communication", lambda: is_communication(self.session, table, self.classes)).copy()
        return is_communication(self.session, table, self.classes)

    def operands(self, code: int) -> Operands:
        """Operands behind the string code of a shape text, read once; nothing for -1."""
        return self.memo.once(("operands", code), lambda: operands(self.session.strings[code])) if code >= 0 else NOTHING

    def typed(self) -> bool:
        """Whether kernels can be told apart by role: by type (Level0 names none), or on a GPU by name."""
        if self.kernels is None:
            return False
        return self.session.meta.soc.family == "gpu" or bool((self.kernels["op_type"] >= 0).any())

    def totals_by_type(self) -> Mapping[str, tuple[int, int]]:
        """Compute kernels of the step by operator type: (summed duration in ns, count)."""
        if self.kernels is None:
            return {}
        own = self.kernels.where(~self.communication(self.kernels) & (self.kernels["op_type"] >= 0))
        codes, inverse, counts = np.unique(own["op_type"], return_inverse=True, return_counts=True)
        sums = np.zeros(len(codes), np.int64)
        np.add.at(sums, inverse, own["duration_ns"])
        return {self.session.strings[code]: (int(sums[i]), int(counts[i])) for i, code in enumerate(codes.tolist())}

    def evidence(self, name: str, row: int, metric: str, value: float | int | str, unit: str) -> Evidence:
        """Cite position ``row`` of the session's table ``name``: the source's file and line, or, for a table that
        never was a file, the session's own table and position."""
        table = self.session.tables[name]
        file = self.session.text(int(table["file"][row])) if "file" in table else None
        if file is None:
            return Evidence(file=f"{self.session.meta.name}.prof", row=f"{name}/{row}", metric=metric, value=value, unit=unit)
        line: int | str = int(table["row"][row]) if "row" in table else f"{name}/{row}"
        if name == "comm_ops" and file.endswith(".json"):
            line = self._key_path(table, row)
        return Evidence(file=file, row=line, metric=metric, value=value, unit=unit)

    def _key_path(self, table: Table, row: int) -> str:
        """Where a communication operator stands in the exporter's JSON: class, then operator and group."""
        texts = [self.session.text(int(table[column][row])) if column in table else None for column in ("kind", "name", "group")]
        return f"{texts[0]}/{texts[1]}" + (f"@{texts[2]}" if texts[2] else "")


@dataclass(frozen=True, slots=True)
class ClusterView:
    """All captured ranks of one job. ``stages`` maps pipeline stage to its ranks' views, in stage order; a rank of
    unknown stage is in none. ``world_size`` and ``pipeline`` (number of stages) are None where no rank states them."""

    ranks: tuple[RankView, ...]
    stages: Mapping[int, tuple[RankView, ...]]
    groups: tuple[Group, ...]
    world_size: int | None
    pipeline: int | None

    @property
    def captured_ranks(self) -> tuple[int, ...]:
        """Known global ranks, ascending."""
        return tuple(sorted({view.rank for view in self.ranks if view.rank is not None}))


def rank_view(session: Session, classes: OperatorClasses, socs: Mapping[str, Soc] | None = None) -> RankView:
    """Account a session and select its representative step's rows. ``socs`` are the catalogue's chips by id."""
    books = account(session, classes)
    kernels = _selected(session, "kernels", books.kernel_rows)
    covered = _covered(session, books, kernels, classes)
    if covered < KERNEL_COVERAGE_LEAST:
        books, kernels = _noting_cut(books, covered), None
    soc = (socs or {}).get(session.meta.soc.id or "")
    return RankView(session, books, classes, kernels, _selected(session, "comm_ops", books.comm_rows), soc)


def _covered(session: Session, books: Books, kernels: Table | None, classes: OperatorClasses) -> float:
    """Share of the step's compute, as the exporter totals it, that the kernel rows add up to; 1 without such totals."""
    compute = books.accounting.parts.get("compute", 0)
    if kernels is None or books.accounting.source != "step_trace" or not compute:
        return 1.0
    computing = ~is_communication(session, kernels, classes)
    return float(kernels["duration_ns"][computing].sum()) / compute


def _noting_cut(books: Books, covered: float) -> Books:
    share = f"{100 * covered:.0f} %"
    note = Text(
        zh=f"算子表只覆盖单步计算时间的 {share}（文件可能被截断）：不对算子下结论",
        en=f"the kernel table covers only {share} of the step's compute (it may have been cut): kernels are not judged",
    )
    return replace(books, accounting=msgspec.structs.replace(books.accounting, notes=(*books.accounting.notes, note)))


def cluster_view(ranks: Sequence[RankView]) -> ClusterView:
    """Arrange rank views by pipeline stage."""
    staged: dict[int, list[RankView]] = {}
    for view in ranks:
        stage = stage_of(view.session)
        if stage is not None:
            staged.setdefault(stage, []).append(view)
    metas = [view.session.meta for view in ranks]
    groups = {group.name: group for meta in metas for group in meta.parallel.groups}
    return ClusterView(
        ranks=tuple(ranks),
        stages={stage: tuple(staged[stage]) for stage in sorted(staged)},
        groups=tuple(groups.values()),
        world_size=max((meta.world_size for meta in metas if meta.world_size is not None), default=None),
        pipeline=_pipeline(metas),
    )


def _pipeline(metas: Sequence[SessionMeta]) -> int | None:
    """Number of pipeline stages: as stated; a job on one device has one."""
    stated = [meta.parallel.pipeline for meta in metas if meta.parallel.pipeline is not None]
    alone = bool(metas) and all(meta.world_size == 1 for meta in metas)
    return max(stated, default=1 if alone else None)


def stage_of(session: Session) -> int | None:
    """The pipeline stage: as stated, else the rank's place in its pipeline group, else None."""
    meta = session.meta
    if meta.stage is not None:
        return meta.stage
    places = [group.ranks.index(meta.rank) for group in meta.parallel.groups if group.dimension == "pp" and meta.rank in group.ranks]
    return places[0] if places else None


def _selected(session: Session, name: str, rows: Array) -> Table | None:
    table = session.table(name)
    return table.where(rows) if table is not None and len(rows) else None
