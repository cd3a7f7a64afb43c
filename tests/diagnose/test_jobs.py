"""Sessions of different jobs are never read as ranks of one."""

from __future__ import annotations

from diagnose.factories import MS, made

from kb.diagnose.diagnosis import diagnose
from kb.domain.catalogue import Catalogue
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.session.meta import Parallel
from kb.session.session import Session


def _rank(number: int, stage: int, compute: int, world: int) -> Session:
    row = {"computing_ns": compute, "comm_not_overlapped_ns": 300 * MS, "free_ns": 500 * MS - compute}
    return made(name=f"rank_{number}", rank=number, stage=stage, trace=[row], exchanges=["hcom_batchSendRecv"] * 3, exchange_ns=100 * MS,
                world_size=world, parallel=Parallel(pipeline=2))  # fmt: skip


def _reasons(*sessions: Session) -> set[str]:
    catalogue: Catalogue = load_catalogue(library_root())
    cluster = diagnose(sessions, catalogue).cluster
    assert not cluster.findings
    return {note.reason.en for note in cluster.not_judged}


def test_two_sizes_of_the_world_are_two_jobs() -> None:
    reasons = _reasons(_rank(0, 0, 200 * MS, 2), _rank(1, 1, 400 * MS, 4))
    assert any("different jobs" in reason for reason in reasons)


def test_a_rank_seen_twice_is_two_runs() -> None:
    reasons = _reasons(_rank(0, 0, 200 * MS, 2), _rank(0, 1, 400 * MS, 2))
    assert any("more than once" in reason for reason in reasons)


def test_the_ranks_of_one_job_are_compared() -> None:
    catalogue = load_catalogue(library_root())
    cluster = diagnose((_rank(0, 0, 200 * MS, 2), _rank(1, 1, 400 * MS, 2)), catalogue).cluster
    assert "pipeline_imbalance" in [finding.cause for finding in cluster.findings]
