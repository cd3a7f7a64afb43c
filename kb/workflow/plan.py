"""Job: a plan of changes from profiles or from a saved diagnosis, and the files it leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

import msgspec

from kb.domain.diagnosis import Diagnosis
from kb.domain.finding import Priority
from kb.domain.plan import Plan
from kb.domain.recommendation import Constraints, Recommendation
from kb.domain.text import Lang
from kb.errors import KbError, UsageError
from kb.recommend.plan import plan
from kb.recommend.plan_files import load_forms, tools_of
from kb.report.markdown import MarkdownRenderer
from kb.report.plan import plan_document
from kb.workflow.casebook import Casebook
from kb.workflow.diagnose import Diagnosed
from kb.workflow.recommend import recommend_for, recommend_saved
from kb.workflow.report import saved_report

PRIORITIES: tuple[Priority, ...] = get_args(Priority)


class PlanWishes(msgspec.Struct, frozen=True, kw_only=True):
    """How the plan should look: at most ``limit`` steps, of ``priorities`` (empty: all), with the commands of ``toolchains``
    (names of software or tools; empty: those of the capture first, the others after). ``samples`` of one step."""

    limit: int = 3
    priorities: tuple[Priority, ...] = ()
    toolchains: tuple[str, ...] = ()
    samples: float | None = None


def plan_for(casebook: Casebook, diagnosed: Diagnosed, constraints: Constraints, wishes: PlanWishes) -> Plan:
    """The plan for diagnosed profiles. Raises UsageError for an unknown toolchain."""
    recommendation = recommend_for(casebook, diagnosed, constraints, samples=wishes.samples)
    return _planned(casebook, recommendation, diagnosed.diagnosis, wishes, diagnosed.sessions[0].meta.software)


def plan_saved(casebook: Casebook, diagnosis: Diagnosis, constraints: Constraints, wishes: PlanWishes) -> Plan:
    """The plan for a diagnosis without its profiles. Raises UsageError for an unknown toolchain."""
    return _planned(casebook, recommend_saved(casebook, diagnosis, constraints, samples=wishes.samples), diagnosis, wishes, {})


def _planned(casebook: Casebook, recommendation: Recommendation, diagnosis: Diagnosis, wishes: PlanWishes,
             software: Mapping[str, str]) -> Plan:  # fmt: skip
    tools = tools_of(wishes.toolchains, casebook.catalogue, load_forms())
    return plan(
        recommendation,
        diagnosis,
        casebook.catalogue,
        limit=wishes.limit,
        tools=tools,
        software=software,
        priorities=wishes.priorities,
    )


def read_priorities(text: str) -> tuple[Priority, ...]:
    """``P0,P1`` as priorities; empty text = all. Raises UsageError for another word."""
    named = [part.strip().upper() for part in text.split(",") if part.strip()]
    wrong = [part for part in named if part not in PRIORITIES]
    if wrong:
        raise UsageError(f"no priority {', '.join(wrong)}", allowed=", ".join(PRIORITIES), do="separate them by commas")
    return tuple(priority for priority in PRIORITIES if priority in named)


def saved_diagnosis(path: Path) -> Diagnosis | None:
    """The diagnosis in a saved report or ``kb diagnose --json`` file; None when ``path`` is something else, as a profile.

    Raises KbError for a report that holds none.
    """
    report = saved_report(path)
    if report is None:
        return None
    if report.diagnosis is None:
        raise KbError(f"{path} is a report without a diagnosis", do="name a profile, or a report made from one")
    return report.diagnosis


def plan_text(made: Plan, suffix: str, lang: Lang) -> str:
    """The plan as the content of a file ending in ``suffix``: .json, else Markdown."""
    if suffix == ".json":
        return msgspec.json.format(msgspec.json.encode(made), indent=2).decode() + "\n"
    return MarkdownRenderer().render(plan_document(made, lang))


def configuration(made: Plan) -> Sequence[tuple[str, str]]:
    """Name and content of every configuration file of the plan, in order."""
    return [(file.name, file.content) for step in made.steps for file in step.files]
