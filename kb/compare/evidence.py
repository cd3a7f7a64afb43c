"""What else two sides say about a difference: causes, untouched operators, tails, order, warm-up, scaling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kb.diagnose.steps import candidates, complete_steps
from kb.domain.comparison import Delta
from kb.domain.diagnosis import SessionDiagnosis
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds
from kb.session.meta import SessionMeta
from kb.session.session import Array, Session


def cause_deltas(diagnoses: tuple[SessionDiagnosis, SessionDiagnosis] | None) -> tuple[Delta, ...]:
    """Exposed time of each cause on both sides, largest change first; empty without diagnoses."""
    if diagnoses is None:
        return ()
    sides = tuple(_exposed(diagnosis) for diagnosis in diagnoses)
    rows = []
    for cause in sides[0].keys() | sides[1].keys():
        (before, many), (after, few) = sides[0].get(cause, (0, 0)), sides[1].get(cause, (0, 0))
        rows.append(Delta(name=cause, before_ns=before, after_ns=after, before_count=many, after_count=few))
    return tuple(sorted(rows, key=lambda row: (-abs(row.saved_ns), row.name)))


def _exposed(diagnosis: SessionDiagnosis) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for finding in diagnosis.findings:
        spent, count = found.get(finding.cause, (0, 0))
        found[finding.cause] = spent + finding.exposed_ns, count + 1
    return found


def controls(operators: Sequence[Delta]) -> tuple[tuple[Delta, ...], float | None]:
    """Operator types that ran equally often on both sides, and by how much their time together moved (after over before,
    minus 1; None without any)."""
    kept = tuple(row for row in operators if row.before_count == row.after_count and row.before_count and row.before_ns and row.after_ns)
    before = sum(row.before_ns for row in kept)
    return kept, (sum(row.after_ns for row in kept) / before - 1.0 if before else None)


def tails(before: Array, after: Array, limits: Thresholds) -> tuple[int, int] | None:
    """99th percentiles of the step lengths (int64 ns), None where a side has too few."""
    if min(len(before), len(after)) < limits["p99_steps"]:
        return None
    return int(np.percentile(before, 99)), int(np.percentile(after, 99))


def scaling(before: SessionMeta, after: SessionMeta, steps: tuple[int, int]) -> float | None:
    """Efficiency of more ranks on the same total work; None for equal or unknown world sizes."""
    first, second = before.world_size, after.world_size
    if not first or not second or first == second or not all(steps):
        return None
    return steps[0] * first / (steps[1] * second)


def all_lengths(session: Session) -> Array:
    """Lengths of the steps not marked as warm-up, in order, int64 ns, shape (n,)."""
    return np.array([step.step_ns for step in candidates(complete_steps(session))], np.int64)


def warms_up(lengths: Array, limits: Thresholds) -> bool:
    """Whether the first of several steps is much longer than the middle of the others."""
    return len(lengths) >= limits["warm_up_steps"] and bool(lengths[0] > limits["warm_up_ratio"] * np.median(lengths[1:]))


def cautions(sides: tuple[Sequence[Session], Sequence[Session]], drift: float | None, limits: Thresholds) -> tuple[Text, ...]:
    """Signs that the difference may come from something else: a warm-up step that is not marked, or moved controls."""
    found = []
    for captures, zh, en in ((sides[0], "之前", "before"), (sides[1], "之后", "after")):
        if any(warms_up(all_lengths(capture), limits) for capture in captures):
            found.append(
                Text(
                    f"“{zh}”一方的第一步明显更长，按没有标记的预热处理，未计入",
                    f"the first step of the side {en} is much longer: taken as a warm-up that is not marked, and left out",
                )
            )
    if drift is not None and abs(drift) >= limits["drift_shown"]:
        found.append(
            Text(
                f"次数不变的算子总时间变化 {drift:+.1%}：频率或机器可能不同",
                f"operators that ran equally often took {drift:+.1%} time: clock or machine may differ",
            )
        )
    return tuple(found)


def order_caution(before: Sequence[Session], after: Sequence[Session]) -> tuple[Text, ...]:
    """Captures taken all of one side first cannot separate the change from a drift."""
    first, second = ([begin for session in side if (begin := _begin(session)) is not None] for side in (before, after))
    if not first or not second or (min(second) < max(first) and min(first) < max(second)):
        return ()
    return (
        Text(
            "两方的采集没有交替进行：随时间的漂移也会落在差异里",
            "the captures were not interleaved: a drift over time would be part of the difference",
        ),
    )


def _begin(session: Session) -> int | None:
    kernels = session.table("kernels")
    return int(kernels["start_ns"].min()) if kernels is not None and len(kernels) else None
