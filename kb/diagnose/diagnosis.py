"""The whole diagnosis: accounts every session, runs the rules, and puts the findings in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from kb.diagnose.composition import Draws, after, composed, load_draws, room_of
from kb.diagnose.operators import load_classes
from kb.diagnose.ruleset import RULES, RuleEntry
from kb.diagnose.runner import run
from kb.diagnose.stalls import outlier_ns
from kb.diagnose.symptoms import without_symptoms
from kb.diagnose.thresholds import load_thresholds
from kb.diagnose.unexplained import left_open, unexplained_ns
from kb.diagnose.view import ClusterView, RankView, cluster_view, rank_view, stage_of
from kb.domain.catalogue import Catalogue
from kb.domain.diagnosis import ClusterDiagnosis, Diagnosis, SessionDiagnosis
from kb.domain.finding import Finding, Healthy, Judgement, NotJudged
from kb.domain.protocols import RuleKind
from kb.domain.template import Template
from kb.domain.text import Text
from kb.domain.thresholds import Thresholds
from kb.session.ranks import group_size
from kb.session.session import Session

_NO_STEP: Final = Text("没有完整的一步可供核算", "no complete step to account for")
_CAPTURE_STEP: Final = Text(
    "重新采集，至少包含一个完整的步，保留 step_trace_time.csv 与 kernel_details.csv",
    "capture at least one complete step and keep step_trace_time.csv and kernel_details.csv",
)


_NO_DEVICE: Final = Text(
    "没有采集到设备活动：设备上的任何问题都无法判断",
    "no device activity was captured: nothing on the device can be judged",
)
_CAPTURE_DEVICE: Final = Text(
    "activities 中加入设备（ProfilerActivity.NPU 或 CUDA），并确认采集期间设备在运行",
    "put the device into activities (ProfilerActivity.NPU or CUDA) and capture while it works",
)


class Check(msgspec.Struct, frozen=True):
    """One rule to run with the thresholds that apply to it."""

    entry: RuleEntry
    thresholds: Thresholds


def diagnose(sessions: Sequence[Session], catalogue: Catalogue, *, template: Template | None = None) -> Diagnosis:
    """Diagnose the sessions of one input, one a rank.

    ``template`` restricts the rules to its checks, in its order, with its thresholds; None runs every rule with the
    defaults ("auto"). Every check ends as finding, healthy or not judged. Raises UsageError for a threshold in
    ``template`` that no rule reads.
    """
    return diagnose_views(views_of(sessions, catalogue), catalogue, template=template)


def views_of(sessions: Sequence[Session], catalogue: Catalogue) -> tuple[RankView, ...]:
    """Each session accounted for, as the rules look at it."""
    classes = load_classes()
    return tuple(rank_view(session, classes, catalogue.socs) for session in sessions)


def diagnose_views(views: Sequence[RankView], catalogue: Catalogue, *, template: Template | None = None) -> Diagnosis:
    """``diagnose`` of sessions that are accounted for already."""
    checks, unknown = _plan(template)
    draws = load_draws()
    cluster = _cluster(cluster_view(views), checks, unknown, catalogue, draws)
    judged = [_session(view, checks, catalogue, cluster.findings, draws) for view in views]
    return Diagnosis(
        sessions=without_symptoms(judged, cluster),
        cluster=cluster,
        template=template.slug if template else "auto",
    )


def _plan(template: Template | None) -> tuple[tuple[Check, ...], tuple[str, ...]]:
    """The rules to run, and the template's causes that no rule judges."""
    defaults = load_thresholds()
    if template is None:
        return tuple(Check(entry, defaults) for entry in RULES), ()
    checks: list[Check] = []
    unknown: list[str] = []
    for wanted in template.checks:
        entry = next((entry for entry in RULES if wanted.cause in entry.causes), None)
        if entry is None:
            unknown.append(wanted.cause)
        else:
            checks.append(Check(entry, defaults.overridden(wanted.thresholds)))
    return tuple(checks), tuple(unknown)


def _session(view: RankView, checks: Sequence[Check], catalogue: Catalogue, across: Sequence[Finding], draws: Draws) -> SessionDiagnosis:
    own = [check for check in checks if check.entry.kind == "rank"]
    refusal = _refusal(view)
    if refusal is None:
        judgements = left_open(view, _judgements(view, "rank", checks, catalogue))
    else:
        reason, capture = refusal
        judgements = [NotJudged(cause=cause, reason=reason, capture=capture) for check in own for cause in check.entry.causes]
    meta = view.session.meta
    return SessionDiagnosis(
        name=meta.name,
        rank=meta.rank,
        stage=stage_of(view.session),
        origin=meta.origin,
        steps=view.books.steps,
        accounting=view.accounting,
        findings=composed(_only(judgements, Finding), after(room_of(view.accounting, outlier_ns(view)), across, draws), draws),
        healthy=_only(judgements, Healthy),
        not_judged=_only(judgements, NotJudged),
        violations=tuple(violation.detail for violation in view.books.violations),
        unexplained_ns=unexplained_ns(view, judgements),
    )


def _cluster(view: ClusterView, checks: Sequence[Check], unknown: Sequence[str], catalogue: Catalogue, draws: Draws) -> ClusterDiagnosis:
    refusal = _different_jobs(view)
    if refusal is None:
        judgements = _judgements(view, "cluster", checks, catalogue)
    else:
        causes = [cause for check in checks if check.entry.kind == "cluster" for cause in check.entry.causes]
        judgements = [NotJudged(cause=cause, reason=refusal) for cause in causes]
    skipped = [
        NotJudged(cause=cause, reason=Text("这个版本没有判断该原因的规则", "this version has no rule that judges this cause"))
        for cause in unknown
    ]
    return ClusterDiagnosis(
        findings=composed(_only(judgements, Finding), _widest(view), draws),
        healthy=_only(judgements, Healthy),
        not_judged=(*_only(judgements, NotJudged), *skipped),
        captured_ranks=view.captured_ranks,
        world_size=view.world_size,
        group_size=max((size for rank in view.ranks if (size := group_size(rank.session)) is not None), default=None),
    )


def _different_jobs(view: ClusterView) -> Text | None:
    """Why the sessions cannot be ranks of one job, or None: a rank captured twice, or two sizes of the world."""
    ranks = [rank.rank for rank in view.ranks if rank.rank is not None]
    worlds = sorted({rank.session.meta.world_size for rank in view.ranks if rank.session.meta.world_size is not None})
    if len(worlds) > 1:
        seen = ", ".join(map(str, worlds))
        return Text(
            f"采集来自不同的作业（总卡数 {seen}），不作跨卡判断",
            f"the sessions belong to different jobs (world sizes {seen}): not compared",
        )
    twice = sorted({number for number in ranks if ranks.count(number) > 1})
    if twice:
        seen = ", ".join(map(str, twice))
        return Text(
            f"同一张卡出现多次（{seen}）：采集来自不同的运行，不作跨卡判断",
            f"rank {seen} occurs more than once: sessions of different runs are not compared",
        )
    return None


def _widest(view: ClusterView) -> dict[str, int]:
    """For findings across ranks: the most any rank holds of each part."""
    rooms = [room_of(rank.accounting) for rank in view.ranks]
    return {part: max(room[part] for room in rooms) for part in rooms[0]} if rooms else {}


def _refusal(view: RankView) -> tuple[Text, Text] | None:
    """Why no rule can speak about this rank and what to capture, or None: without a step or a device task, or with books that
    contradict themselves."""
    if view.books.step is None:
        return _NO_STEP, _CAPTURE_STEP
    if view.books.violations:
        detail = view.books.violations[0].detail
        broken = Text(f"账目不平，占比不可信：{detail}", f"the books do not balance, so no share can be trusted: {detail}")
        return broken, _CAPTURE_STEP
    if not any(view.accounting.parts.get(part, 0) for part in ("compute", "comm_exposed", "copy_exposed")):
        return _NO_DEVICE, _CAPTURE_DEVICE
    return None


def _judgements(view: RankView | ClusterView, kind: RuleKind, checks: Sequence[Check], catalogue: Catalogue) -> list[Judgement]:
    made: list[Judgement] = []
    for check in checks:
        if check.entry.kind == kind:
            made += run(check.entry, view, check.thresholds, catalogue.causes)
    return [_with_strategies(judgement, catalogue) for judgement in made]


def _with_strategies(judgement: Judgement, catalogue: Catalogue) -> Judgement:
    if not isinstance(judgement, Finding):
        return judgement
    return msgspec.structs.replace(judgement, strategies=catalogue.causes[judgement.cause].strategies)


_Kind = TypeVar("_Kind", Finding, Healthy, NotJudged)


def _only(judgements: Sequence[Judgement], kind: type[_Kind]) -> tuple[_Kind, ...]:
    return tuple(judgement for judgement in judgements if isinstance(judgement, kind))
