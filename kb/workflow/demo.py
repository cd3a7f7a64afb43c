"""Job: the whole story on one model, each step in a line or two with its figures."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from kb.domain.case import Answer, CaseQuery
from kb.domain.comparison import Comparison
from kb.domain.diagnosis import SessionDiagnosis
from kb.domain.finding import Finding
from kb.domain.plan import Plan
from kb.domain.protocols import Progress
from kb.domain.recommendation import Constraints, RankedStrategy, Recommendation
from kb.domain.text import Lang, Text
from kb.domain.version import Version
from kb.errors import KbError
from kb.profile.simulated.options import Options
from kb.recommend.plan import plan
from kb.recommend.support import PastCase
from kb.report.answers import recommendation_document
from kb.report.comparison import comparison_document, verdict_line
from kb.report.diagnosis import diagnosis_document
from kb.report.document import Document
from kb.report.labels import labels
from kb.report.markdown import MarkdownRenderer
from kb.report.numbers import duration, percent, signed_percent
from kb.report.plan import plan_document
from kb.session.codec import to_bytes
from kb.session.session import Session
from kb.store.artefacts import FolderArtefacts
from kb.tune.application import apply
from kb.workflow.casebook import Casebook, open_casebook
from kb.workflow.diagnose import Diagnosed, diagnose_paths, diagnose_sessions
from kb.workflow.draft import Wording, draft_from_sessions
from kb.workflow.publish import publish, with_sessions
from kb.workflow.recommend import recommend_for
from kb.workflow.search import find, similar
from kb.workflow.simulate import simulated_session
from kb.workflow.workspace import Workspace

_FOLDER = "demo"
_MARK = ".made-by-kb-demo"


def demo(place: Workspace, progress: Progress, lang: Lang, *, model: str, soc: str, seed: int, program: str) -> Iterator[Text]:
    """Simulate, diagnose, search, recommend, apply, compare, publish, search again.

    Works in a workspace of its own (wiped first), so that nothing simulated mixes with the user's records. Yields one
    text a step; files lie under the workspace's ``demo`` folder.
    """
    own = _fresh(place)
    with open_casebook(own, progress, writable=True) as casebook:
        session = simulated_session(casebook.catalogue, model, soc=soc, seed=seed, options=Options(), name=f"{model}-{soc}")
        diagnosed = diagnose_sessions((session,), casebook.catalogue)
        yield _captured(session, diagnosed)
        yield from _diagnosed(diagnosed, casebook)
        yield _found(similar(casebook, diagnosed), diagnosed)
        recommendation = recommend_for(casebook, diagnosed, Constraints())
        best = _first_simulatable(recommendation)
        yield _recommended(best)
        applied = apply(session, best.id, casebook.catalogue)
        yield _verified(applied.comparison, best)
        record = draft_from_sessions(diagnosed, Wording(tags=(_FOLDER,)), comparison=applied.comparison, strategy=best.id)
        record = with_sessions(record, (applied.before, applied.after), FolderArtefacts(own.artefacts))
        version = publish(casebook, record, author=_FOLDER).version
        again = find(casebook, CaseQuery(text=record.title.pick(lang), include_simulated=True))
        yield _published(version, again)
        steps = plan(recommendation, diagnosed.diagnosis, casebook.catalogue)
        documents = _documents(diagnosed, recommendation, steps, casebook, lang)
        report = _keep(own, (*documents, comparison_document(applied.comparison, lang)), {"before": applied.before, "after": applied.after})
    yield _next(own, report, record.slug, program)


def demo_on_profile(place: Workspace, progress: Progress, lang: Lang, path: Path, *, program: str) -> Iterator[Text]:
    """The same on a real profile, up to the plan: the change itself happens on the user's machine."""
    own = _own(place)
    diagnosed = diagnose_paths((path,))
    with open_casebook(own, progress) as casebook:
        yield _captured(diagnosed.sessions[0], diagnosed)
        yield from _diagnosed(diagnosed, casebook)
        yield _found(similar(casebook, diagnosed), diagnosed)
        recommendation = recommend_for(casebook, diagnosed, Constraints())
        if recommendation.strategies:
            yield _recommended(recommendation.strategies[0])
        steps = plan(recommendation, diagnosed.diagnosis, casebook.catalogue)
        report = _keep(own, _documents(diagnosed, recommendation, steps, casebook, lang), {})
    if not steps.steps:
        yield Text(
            zh=f"没有可执行的步骤；报告（含未能判断的项）：{report}",
            en=f"No step to take; the report lists what could not be judged: {report}",
        )
        return
    yield Text(
        zh=f"报告与 {len(steps.steps)} 步方案：{report}\n接下来：改动后重新采集，再运行 {program} compare {path} <新采集>",
        en=f"Report and a plan of {len(steps.steps)} steps: {report}\n"
        f"Next: make the change, capture again, {program} compare {path} <new capture>",
    )


def _own(place: Workspace) -> Workspace:
    """The demo's workspace. Raises KbError when a folder of that name holds something the demo did not make."""
    own = place.separate(_FOLDER)
    if own.home.exists() and not (own.home / _MARK).is_file() and (not own.home.is_dir() or any(own.home.iterdir())):
        raise KbError(
            f"{own.home} was not made by the demo", allowed="a folder of the demo's own", do="move it away, or set KB_HOME elsewhere"
        )
    own.prepared()
    (own.home / _MARK).write_text("Everything here is rebuilt by each run of the demo.\n")
    return own


def _fresh(place: Workspace) -> Workspace:
    """The demo's workspace, emptied: the same call always tells the same story."""
    own = _own(place)
    shutil.rmtree(own.home)
    return _own(place)


def _captured(session: Session, diagnosed: Diagnosed) -> Text:
    meta, first = session.meta, diagnosed.diagnosis.sessions[0]
    kernels = session.table("kernels")
    count = len(kernels) if kernels is not None else 0
    chip = meta.soc.id or meta.soc.reported_name or meta.soc.family
    step = duration(first.accounting.step_ns)
    if meta.origin == "simulated":
        return Text(
            zh=f"[仿真] {meta.model.name} 在 {chip} 上：{first.steps} 步，{count} 个算子记录，单步 {step}（{meta.simulator}）",
            en=f"[simulated] {meta.model.name} on {chip}: {first.steps} steps, {count} kernel rows, {step} a step ({meta.simulator})",
        )
    ranks = len(diagnosed.sessions)
    return Text(
        zh=f"{ranks} 份采集，首份 {meta.name}：{count} 个算子记录，单步 {step}",
        en=f"{ranks} sessions, first {meta.name}: {count} kernel rows, {step} a step",
    )


def _diagnosed(diagnosed: Diagnosed, casebook: Casebook) -> Iterator[Text]:
    first = diagnosed.diagnosis.sessions[0]
    total = percent(sum(first.accounting.parts.values()) / first.accounting.step_ns if first.accounting.step_ns else 0.0)
    yield Text(zh=f"账目：{_books(first, 'zh')}；合计为单步的 {total}", en=f"Books: {_books(first, 'en')}; together {total} of the step")
    findings = diagnosed.diagnosis.all_findings()
    for finding in findings[:2]:
        yield _finding(finding, casebook)
    if not findings:
        yield Text(zh="没有发现；未能判断的项见报告", en="No findings; the report lists what could not be judged")


def _books(session: SessionDiagnosis, lang: Lang) -> str:
    words, books = labels(lang), session.accounting
    parts = sorted(books.parts.items(), key=lambda item: -item[1])
    return ", ".join(f"{words(f'part.{part}')} {duration(value)} ({percent(books.share(part))})" for part, value in parts if value)


def _finding(finding: Finding, casebook: Casebook) -> Text:
    cause, proof = casebook.catalogue.cause(finding.cause), finding.evidence[0]
    place = f"{proof.file}:{proof.row} {proof.metric} = {proof.value} {proof.unit}"
    figures = f"{duration(finding.exposed_ns)} ({percent(finding.share)})", duration(finding.gain_bound_ns)
    return Text(
        zh=f"{finding.priority} {cause.name.zh}：暴露 {figures[0]}，收益上限 {figures[1]}\n  证据 {place}",
        en=f"{finding.priority} {cause.name.en}: exposed {figures[0]}, gain bound {figures[1]}\n  evidence {place}",
    )


def _found(past: tuple[PastCase, ...], diagnosed: Diagnosed) -> Text:
    """The most similar case of the leading cause; without one, the nearest record as a lead only."""
    findings = diagnosed.diagnosis.all_findings()
    if not findings or not past:
        return Text(zh="案例库中没有相似案例", en="No similar case in the casebook")
    cause = findings[0].cause
    same = [item for item in past if any(case.cause == cause for case in item.record.cases)]
    hit = (same or list(past))[0].hit
    why = Text(zh="；".join(reason.text.zh for reason in hit.why[:2]), en="; ".join(reason.text.en for reason in hit.why[:2]))
    name = f"{hit.slug}@{hit.version}"
    if not same:
        return Text(
            zh=f"没有同一原因的案例；文字最接近的是 {name}，仅供参考", en=f"No case of this cause; nearest by words is {name}, a lead only"
        )
    return Text(zh=f"最相似的案例：{name}（{why.zh}）", en=f"Most similar case: {name} ({why.en})")


def _first_simulatable(recommendation: Recommendation) -> RankedStrategy:
    for item in recommendation.strategies:
        if item.simulatable:
            return item
    raise KbError("no recommended strategy has a twin on the simulator", do="try another model: kb demo --model sd3")


def _recommended(item: RankedStrategy) -> Text:
    low, high = item.interval
    figures = f"{signed_percent(item.gain_fraction)} [{percent(low)}, {percent(high)}]"
    words = labels("zh"), labels("en")
    tier = f"provenance.{item.provenance}"
    count = sum(case.gain_fraction is not None for case in item.cases)
    backing = Text(zh=f"{count} 个案例，来源等级：{words[0](tier)}", en=f"{count} case{'s' * (count > 1)}, {words[1](tier)}")
    if not count:
        backing = Text(zh="没有案例，仅为先验估计", en="no case, a prior only")
    return Text(
        zh=f"推荐 {item.id}：预期单步收益 {figures}，{backing.zh}",
        en=f"Recommended {item.id}: expected gain {figures} of the step, {backing.en}",
    )


def _verified(comparison: Comparison, expected: RankedStrategy) -> Text:
    zh, en = labels("zh"), labels("en")
    verdict = f"verdict.{comparison.verdict}"
    wanted, got = percent(expected.gain_fraction), percent(comparison.gain_fraction)
    gap = f"{100 * (comparison.gain_fraction - expected.gain_fraction):+.1f}"
    lines = (
        f"[仿真] 已应用并重测：{zh(verdict)}；{verdict_line(comparison, zh)}\n  预期 {wanted}，仿真得到 {got}，相差 {gap} 个百分点",
        f"[simulated] Applied and profiled again: {en(verdict)}; {verdict_line(comparison, en)}\n"
        f"  expected {wanted}, simulated {got}, off by {gap} points",
    )
    return Text(*lines)


def _published(version: Version, answer: Answer) -> Text:
    slug, tier = version.record.slug, f"provenance.{version.record.provenance}"
    place = next((number for number, hit in enumerate(answer.hits, start=1) if hit.slug == slug), None)
    found = (
        Text(zh=f"搜索排第 {place}", en=f"search finds it at place {place}")
        if place
        else Text(zh="搜索未找到", en="search does not find it")
    )
    return Text(
        zh=f"已发布 {version.ref}（来源等级：{labels('zh')(tier)}）；{found.zh}",
        en=f"Published {version.ref} (provenance: {labels('en')(tier)}); {found.en}",
    )


def _documents(diagnosed: Diagnosed, recommendation: Recommendation, steps: Plan, casebook: Casebook, lang: Lang) -> tuple[Document, ...]:
    return (
        diagnosis_document(diagnosed.diagnosis, casebook.catalogue, lang),
        recommendation_document(recommendation, casebook.catalogue, lang),
        plan_document(steps, lang),
    )


def _keep(own: Workspace, documents: tuple[Document, ...], sessions: dict[str, Session]) -> Path:
    """Write the report and the sessions; returns the report's path."""
    own.reports.mkdir(parents=True, exist_ok=True)
    for name, session in sessions.items():
        (own.home / f"{name}.prof").write_bytes(to_bytes(session))
    report = own.reports / "report.md"
    report.write_text("\n".join(MarkdownRenderer().render(document) for document in documents), encoding="utf-8")
    return report


def _next(own: Workspace, report: Path, slug: str, program: str) -> Text:
    lines = [
        f"KB_HOME={own.home} {program} show {slug}@1",
        f"{program} compare {own.home / 'before.prof'} {own.home / 'after.prof'}",
        f"{program} demo --soc 910b4 --seed 7",
        f"{program} demo --profile PATH/TO/rank_0_ascend_pt",
    ]
    listed = "\n  ".join(lines)
    return Text(zh=f"报告：{report}\n接下来可以试试：\n  {listed}", en=f"Report: {report}\nTry next:\n  {listed}")
