"""Findings put together: what all of them promise never exceeds what there is to save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kb.diagnose.figures import milliseconds
from kb.domain.accounting import PARTS, Accounting
from kb.domain.catalogue import CauseId
from kb.domain.finding import Finding
from kb.domain.text import Text

Draws = Mapping[CauseId, tuple[str, ...]]
OUTLIER: Final = "outlier"
"""By how much the mean step is longer than the representative one: pauses that hit some steps only live there."""
PREPARING: Final = "preparing"
"""What the exporter sets beside the step: from its marker to the first device task."""
_FILE: Final = Path(__file__).with_name("draws.json")


def load_draws() -> Draws:
    """From which parts of the books each cause can save, in the order in which it takes."""
    return msgspec.json.decode(_FILE.read_bytes(), type=dict[str, tuple[str, ...]])


def room_of(accounting: Accounting, outlier_ns: int = 0) -> dict[str, int]:
    """What each part of one step holds, ns, with what lies beside it."""
    parts: dict[str, int] = {part: max(0, accounting.parts.get(part, 0)) for part in PARTS}
    return {**parts, OUTLIER: outlier_ns, PREPARING: max(0, accounting.preparing_ns or 0)}


def composed(findings: Sequence[Finding], room: Mapping[str, int], draws: Draws) -> tuple[Finding, ...]:
    """Findings by exposed time, gain bounds lowered so that those which save from one part never take more than it holds.

    The largest bound is served first; a later one gets what is left in its parts, and a note. A cause that ``draws``
    does not name may take from every part.
    """
    left = dict(room)
    bounded: list[Finding] = []
    for finding in sorted(findings, key=lambda finding: (-finding.gain_bound_ns, finding.cause)):
        taken = _take(left, finding.gain_bound_ns, draws.get(finding.cause, tuple(left)))
        bounded.append(finding if taken == finding.gain_bound_ns else _lowered(finding, taken))
    return tuple(sorted(bounded, key=lambda finding: (-finding.exposed_ns, finding.cause)))


def after(room: Mapping[str, int], findings: Sequence[Finding], draws: Draws) -> dict[str, int]:
    """What is left of ``room`` once ``findings`` (of the cluster) have taken theirs."""
    left = dict(room)
    for finding in findings:
        _take(left, finding.gain_bound_ns, draws.get(finding.cause, tuple(left)))
    return left


def _take(left: dict[str, int], wanted: int, parts: Sequence[str]) -> int:
    taken = 0
    for part in parts:
        share = min(wanted - taken, left.get(part, 0))
        left[part] = left.get(part, 0) - share
        taken += share
    return taken


def _lowered(finding: Finding, bound: int) -> Finding:
    own = milliseconds(finding.gain_bound_ns)
    note = Text(
        f"单独看最多可省 {own}；与省同一部分时间的其他发现合计不超过该部分，故下调",
        f"alone it could save up to {own}; lowered because findings that "
        f"save from the same part of the step cannot save more than it holds",
    )
    return msgspec.structs.replace(finding, gain_bound_ns=bound, notes=(*finding.notes, note))
