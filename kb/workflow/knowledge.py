"""Job: one screen of knowledge straight from a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from kb.domain.finding import Finding
from kb.domain.record import Record
from kb.domain.text import Lang, Text
from kb.errors import NotFoundError
from kb.report.evidence_names import evidence_name
from kb.report.numbers import percent
from kb.text.script import is_cjk
from kb.text.slug import slug_of
from kb.workflow.card import card_of
from kb.workflow.diagnose import Diagnosed
from kb.workflow.draft import Wording, draft_from_sessions

_ROWS: Final = 3
"""Evidence cells cited for each cause."""


def session_card(diagnosed: Diagnosed, scenario: str, key_evidence: Sequence[str]) -> Record:
    """The card of a session: its causes, how much each exposes, the cells that prove it, the usual answers.

    ``key_evidence`` are the author's words: one that names a cause of the diagnosis moves it to the front, every other is
    printed as the author's statement, which nothing here proves. Raises KbError for a diagnosis without findings.
    """
    slug = slug_of(scenario, "card")
    recipe = draft_from_sessions(diagnosed, Wording(slug=slug or None))
    findings = _ordered(diagnosed, key_evidence)
    order = {finding.cause: place for place, finding in enumerate(findings)}
    cases = tuple(sorted(recipe.cases, key=lambda case: order.get(case.cause, len(order))))
    card = card_of(replace(recipe, cases=cases), diagnosed.catalogue)
    return replace(
        card,
        slug=slug or card.slug,
        title=scenario_title(scenario, recipe.title) if scenario else card.title,
        body=Text(zh=_body(diagnosed, findings, key_evidence, "zh"), en=_body(diagnosed, findings, key_evidence, "en")),
        links=(),
    )


def scenario_title(scenario: str, derived: Text) -> Text:
    """The author's words before the derived title; an English title takes no Chinese ones."""
    words = scenario.replace("_", " ")
    english = f"{words}: {derived.en}" if not any(map(is_cjk, words)) else derived.en
    return Text(zh=f"{words}：{derived.zh}", en=english)


def _ordered(diagnosed: Diagnosed, key_evidence: Sequence[str]) -> tuple[Finding, ...]:
    """One finding a cause, those the author names first, each group by exposed time."""
    by_cause = {finding.cause: finding for finding in reversed(diagnosed.diagnosis.all_findings())}
    named = {_cause(name, diagnosed) for name in key_evidence}
    return tuple(sorted(by_cause.values(), key=lambda finding: (finding.cause not in named, -finding.exposed_ns)))


def _cause(name: str, diagnosed: Diagnosed) -> str | None:
    try:
        return diagnosed.catalogue.cause(name).id
    except NotFoundError:
        return None


def _body(diagnosed: Diagnosed, findings: Sequence[Finding], key_evidence: Sequence[str], lang: Lang) -> str:
    simulated = any(session.meta.origin == "simulated" for session in diagnosed.sessions)
    mark = [("仿真结果，不是实测。" if lang == "zh" else "Simulated, not measured."), ""] if simulated else []
    lines = [*mark, *(line for finding in findings[:5] for line in _lines(finding, diagnosed, lang))]
    stated = [name for name in key_evidence if _cause(name, diagnosed) not in {finding.cause for finding in findings}]
    if stated:
        said = "作者陈述，未由采集证明" if lang == "zh" else "Stated by the author, not proved by the capture"
        lines += ["", f"{said}: {', '.join(f'`{name}`' for name in stated)}"]
    return "\n".join(lines)


def _lines(finding: Finding, diagnosed: Diagnosed, lang: Lang) -> list[str]:
    catalogue = diagnosed.catalogue
    cells = [
        f"  - {evidence_name(item.metric, lang)} = {item.value} {item.unit} ({item.file}: {item.row})".replace("  (", " (")
        for item in finding.evidence[:_ROWS]
    ]
    answers = "、".join(catalogue.strategy(name).name.pick(lang) for name in finding.strategies[:2])
    head = f"- **{catalogue.cause(finding.cause).name.pick(lang)}** ({percent(finding.share)}): {finding.message.pick(lang)}"
    return [head, *cells, *([f"  - → {answers}"] if answers else [])]
