"""Text and database exports of one session lead to the same causes at the same cost, with the same checks passed and skipped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kb.diagnose.diagnosis import diagnose
from kb.domain.catalogue import Catalogue
from kb.domain.diagnosis import SessionDiagnosis
from kb.profile.ascend.writing import write_rank
from kb.profile.ascend.writing_db import write_rank_database
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import simulate
from kb.profile.simulated.setup import Setup
from kb.profile.sources import load
from kb.session.session import Session

PLANTED = {
    "clean": Options(steps=2),
    "slow host": Options(steps=2, host_scale=3.0),
    "slow loader": Options(steps=2, loader_ms=400.0, prefetch=0),
    "conversions and casts": Options(steps=2, layout_conversions=2, extra_casts=2),
    "AI CPU, collector and waits": Options(steps=2, aicpu_ops="Cast", gc_ms=60.0, host_syncs=8),
}
SAMPLES = (
    "cnn-ddp-2rank-text/rank0_ascend_pt", "cnn-ddp-2rank-text/rank1_ascend_pt", "cnn-ddp-2rank-db/rank0_ascend_pt",
    "cnn-ddp-2rank-db/rank1_ascend_pt", "qwen3-0.6b-train-pp2-dp2/rank_0_ascend_pt", "qwen3-0.6b-train-pp2-dp2/rank_2_ascend_pt",
)  # fmt: skip
WRITERS: tuple[Callable[[Session, Path], Path], ...] = (write_rank, write_rank_database)
Causes = dict[tuple[str, str], tuple[object, ...]]


def judged(session: Session, catalogue: Catalogue) -> tuple[Causes, set[str], set[str], dict[str, int]]:
    """Findings by cause and place with their figures, causes found healthy, causes not judged, and the books."""
    found: SessionDiagnosis = diagnose([session], catalogue).sessions[0]
    causes: Causes = {
        (finding.cause, f"{finding.where.module}/{finding.where.frame}"): (
            finding.priority, finding.exposed_ns, finding.gain_bound_ns, round(finding.share, 9), round(finding.confidence, 9),
            finding.strategies, {name: round(value, 9) for name, value in finding.observed.items()},
        )
        for finding in found.findings
    }  # fmt: skip
    books = {"step": found.accounting.step_ns, **{str(part): spent for part, spent in found.accounting.parts.items()}}
    return causes, {one.cause for one in found.healthy}, {one.cause for one in found.not_judged}, books


def agree(before: Session, catalogue: Catalogue, folder: Path) -> Causes:
    text, database = (judged(load(write(before, folder / write.__name__))[0], catalogue) for write in WRITERS)
    for cause in text[0].keys() | database[0].keys():
        assert text[0].get(cause) == database[0].get(cause), cause
    assert text[1:] == database[1:]
    return text[0]


@pytest.mark.parametrize("name", list(PLANTED))
def test_simulated_runs_have_the_same_causes_in_both_exports(tmp_path: Path, catalogue: Catalogue, name: str) -> None:
    session, _ = simulate(Setup(model="bert-large", soc=catalogue.soc("910b3"), options=PLANTED[name], seed=5))
    found = agree(session, catalogue, tmp_path)
    assert found or name == "clean"


@pytest.mark.parametrize("sample", SAMPLES)
def test_real_ranks_have_the_same_causes_in_both_exports(shared: Path, tmp_path: Path, catalogue: Catalogue, sample: str) -> None:
    (session,) = load(shared / "data" / "profiles" / "ascend" / sample)
    agree(session, catalogue, tmp_path)
