"""Where the difference between two sessions lies."""

from __future__ import annotations

import re

from kb.diagnose.view import RankView
from kb.domain.accounting import PARTS
from kb.domain.comparison import Delta


def part_deltas(before: RankView, after: RankView) -> tuple[Delta, ...]:
    """The parts of both books that are not zero on both sides, in the order of ``PARTS``; they sum to the step's change."""
    first, second = before.accounting.parts, after.accounting.parts
    return tuple(Delta(name=part, before_ns=first[part], after_ns=second[part]) for part in PARTS if first[part] or second[part])


def operator_deltas(before: RankView, after: RankView) -> tuple[Delta, ...]:
    """Compute kernels of both representative steps by operator type, largest change first; empty unless both name types."""
    first, second = before.totals_by_type(), after.totals_by_type()
    if not first or not second:
        return ()
    rows = [_delta(name, first.get(name, (0, 0)), second.get(name, (0, 0))) for name in first.keys() | second.keys()]
    return tuple(sorted(rows, key=lambda row: (-abs(row.saved_ns), row.name)))


def work_classes(view: RankView) -> dict[str, tuple[int, int]]:
    """Compute kernels of the step by kind of work, (ns, count): fusing renames operators, but products stay products and
    convolutions convolutions. Empty where no types are named."""
    found: dict[str, tuple[int, int]] = {}
    for name, (spent, count) in view.totals_by_type().items():
        kind = next((kind for kind, patterns in _kinds(view).items() if any(re.fullmatch(pattern, name) for pattern in patterns)), "other")
        have = found.get(kind, (0, 0))
        found[kind] = have[0] + spent, have[1] + count
    return found


def _kinds(view: RankView) -> dict[str, tuple[str, ...]]:
    types = view.classes.types
    product = (*types["product"], *types["fused_attention"], *types["quantised_product"], *types["moe"], "FusedMatMul", "FusedGemm")
    return {"convolution": types["convolution"], "product": product}


def _delta(name: str, before: tuple[int, int], after: tuple[int, int]) -> Delta:
    return Delta(name=name, before_ns=before[0], after_ns=after[0], before_count=before[1], after_count=after[1])
