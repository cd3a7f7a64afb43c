"""Job: the Tuning Impact Score of a record, from its sessions where they are attached, else from its outcomes."""

from __future__ import annotations

from typing import Final

import numpy as np

from kb.diagnose.operators import load_classes
from kb.diagnose.view import rank_view
from kb.domain.catalogue import Catalogue
from kb.domain.impact import Impact, ImpactPart
from kb.domain.protocols import Artefacts
from kb.domain.provenance import capped, weakest
from kb.domain.record import Record
from kb.domain.version import Version
from kb.errors import KbError
from kb.recommend.impact import hardest, impact, load_impact_weights, reported_impact
from kb.session.codec import from_bytes
from kb.session.session import Session
from kb.workflow.baseline import held_memory
from kb.workflow.location import shipped_catalogue

_STEPS: Final = 10
"""Steps on each side from which their spread says something: of fewer, the standard deviation is off by a quarter or more by chance."""


def impact_of(version: Version, artefacts: Artefacts) -> float | None:
    """The score (0..100) of a version with the shipped catalogue; None where nothing it carries allows one."""
    found = record_impact(version.record, artefacts, shipped_catalogue())
    return None if found is None else found.score


def record_impact(record: Record, artefacts: Artefacts | None, catalogue: Catalogue) -> Impact | None:
    """The whole reckoning. Sessions that are missing or damaged leave the outcomes to speak. None where there are no figures of the run."""
    pair = _pair(record, artefacts) if artefacts is not None else None
    if pair is None:
        return reported_impact(record, catalogue, load_impact_weights())
    tier = weakest(*(capped("measured", session.meta.origin) for session in pair))
    return impact(_benefits(*pair), hardest(record, catalogue), tier, load_impact_weights(), from_sessions=True)


def _pair(record: Record, artefacts: Artefacts) -> tuple[Session, Session] | None:
    """The first attached session and the last of the same rank: what the whole record changed."""
    try:
        first, *others = (from_bytes(artefacts.get(name), source=f"session {name[:12]}") for name in record.sessions)
    except (KbError, ValueError):  # ValueError: no session at all
        return None
    after = next((session for session in reversed(others) if session.meta.rank == first.meta.rank), None)
    return None if after is None else (first, after)


def _benefits(before: Session, after: Session) -> dict[ImpactPart, float]:
    found: dict[ImpactPart, float] = {}
    classes = load_classes()
    steps = [rank_view(session, classes).accounting.step_ns for session in (before, after)]
    if all(steps):
        found["latency"] = 1.0 - steps[1] / steps[0]
        batches = before.meta.model.batch, after.meta.model.batch
        if batches[0] and batches[1]:
            found["throughput"] = 1.0 - (batches[0] / steps[0]) / (batches[1] / steps[1])
    memory = held_memory(before), held_memory(after)
    if memory[0] and memory[1]:
        found["memory"] = 1.0 - memory[1] / memory[0]
    spread = _spread(before), _spread(after)
    if spread[0] and spread[1] is not None:
        found["stability"] = 1.0 - spread[1] / spread[0]
    return found


def _spread(session: Session) -> float | None:
    """Standard deviation of the step time over its mean, warm-up left out; None for too few steps."""
    table = session.table("steps")
    if table is None:
        return None
    lengths = (table["end_ns"] - table["start_ns"])[table["warmup"] == 0]
    return float(np.std(lengths) / np.mean(lengths)) if len(lengths) >= _STEPS and np.mean(lengths) > 0 else None
