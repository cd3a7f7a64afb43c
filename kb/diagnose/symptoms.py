"""Findings about kernels that only a slow rank shows: the same program runs on every rank, so they are its slowness again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kb.domain.catalogue import CauseId
from kb.domain.diagnosis import ClusterDiagnosis, SessionDiagnosis
from kb.domain.finding import Finding, Healthy
from kb.domain.text import Text

_PROGRAM: Final[frozenset[CauseId]] = frozenset({"suboptimal_tiling", "intra_kernel_stall", "low_batch_occupancy", "l2_pressure"})
"""Causes that lie in the program or its shapes, alike on every rank of a stage."""
_SLOW: Final = "slow_link_or_rank"


def without_symptoms(sessions: Sequence[SessionDiagnosis], cluster: ClusterDiagnosis) -> tuple[SessionDiagnosis, ...]:
    """The sessions, with such findings of a rank that ``slow_link_or_rank`` blames turned healthy where a peer of its stage
    was judged and is free of them."""
    slow = {rank for finding in cluster.findings if finding.cause == _SLOW for rank in finding.where.ranks}
    return tuple(_cleared(session, sessions) if session.rank in slow else session for session in sessions)


def _cleared(session: SessionDiagnosis, sessions: Sequence[SessionDiagnosis]) -> SessionDiagnosis:
    peers = [peer for peer in sessions if peer is not session and peer.stage == session.stage]
    symptoms = [finding for finding in session.findings if finding.cause in _PROGRAM and _free(finding.cause, peers)]
    if not symptoms:
        return session
    kept = tuple(finding for finding in session.findings if finding not in symptoms)
    return msgspec.structs.replace(session, findings=kept, healthy=(*session.healthy, *map(_healthy, symptoms)))


def _free(cause: CauseId, peers: Sequence[SessionDiagnosis]) -> bool:
    found = {finding.cause for peer in peers for finding in peer.findings}
    return cause not in found and any(item.cause == cause for peer in peers for item in peer.healthy)


def _healthy(finding: Finding) -> Healthy:
    message = Text(
        "同一程序在同段的其他卡上没有这个问题：这里只是这张卡慢的表现",
        "the same program is free of it on the other ranks of the stage: here it is this rank's slowness",
    )
    return Healthy(
        cause=finding.cause, message=message, metric="exposed_share", value=finding.share, unit="ratio", evidence=finding.evidence
    )
