"""Job: one capture from the step down to single events, or two of them side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, get_args

from msgspec.structs import replace

from kb.diagnose.drilldown import at_levels, drill_down, paired
from kb.diagnose.operators import load_classes
from kb.diagnose.view import RankView, rank_view
from kb.domain.drilldown import DrillDown, DrillNode, Level
from kb.domain.finding import Finding
from kb.errors import NotFoundError, UsageError
from kb.session.session import Session
from kb.text.glossary import expand
from kb.workflow.diagnose import diagnose_sessions
from kb.workflow.location import shipped_catalogue

BELOW: Final[tuple[Level, ...]] = tuple(level for level in get_args(Level) if level != "session")


@dataclass(frozen=True)
class Drilled:
    """One tree a session and the findings that name one of its operators; with a baseline one tree of changes."""

    trees: tuple[DrillDown, ...]
    findings: tuple[Finding, ...]
    compared: bool
    simulated: bool


def levels_of(text: str) -> tuple[Level, ...]:
    """``module → operator → hardware``, with ``→``, ``->``, ``>`` or commas between. Raises UsageError for another level."""
    words = [word.strip().lower() for word in re.split(r"→|->|>|,", text) if word.strip()]
    wrong = [word for word in words if word not in BELOW]
    if wrong or not words:
        raise UsageError(f"no level is called {', '.join(wrong) or 'nothing'}", allowed=", ".join(BELOW))
    return tuple(level for level in BELOW if level in words)


def drilled(sessions: Sequence[Session], target: str, levels: Sequence[Level], baseline: Sequence[Session] = ()) -> Drilled:
    """Trees of ``target`` (empty = the whole step) at ``levels``; with ``baseline`` (one session) each tree holds the changes
    from it. Raises NotFoundError for an unknown target, UsageError for a baseline of several ranks."""
    if baseline and len(baseline) != 1:
        raise UsageError(f"the baseline holds {len(baseline)} sessions", allowed="one", do="name one rank")
    trees = tuple(_tree(session, target) for session in sessions)
    roots = [tree.root for tree in trees]
    if baseline:
        before = _tree(baseline[0], target).root
        roots = [paired(before, root) for root in roots]
    made = tuple(replace(tree, root=at_levels(root, levels)) for tree, root in zip(trees, roots, strict=True))
    return Drilled(made, _findings(sessions, trees, target), bool(baseline), any(one.meta.origin == "simulated" for one in sessions))


def _tree(session: Session, target: str) -> DrillDown:
    """The tree of ``target``, or of the word the glossary has for it in the other language: captures name things in English."""
    view = _view(session)
    try:
        return drill_down(view, target)
    except NotFoundError:
        others = expand(target, shipped_catalogue().glossary).terms
        found = next((tree for term in others if (tree := _tree_or_none(view, term)) is not None), None)
        if found is None:
            raise
        return found


def _tree_or_none(view: RankView, target: str) -> DrillDown | None:
    try:
        return drill_down(view, target)
    except NotFoundError:
        return None


def _view(session: Session) -> RankView:
    return rank_view(session, load_classes(), shipped_catalogue().socs)


def _findings(sessions: Sequence[Session], trees: Sequence[DrillDown], target: str) -> tuple[Finding, ...]:
    """Findings about an operator of the trees, the most costly first, each cause once."""
    named = {name for tree in trees for name in _operators(tree.root)}
    found = diagnose_sessions(tuple(sessions), shipped_catalogue()).diagnosis.all_findings()
    once: dict[str, Finding] = {}
    for finding in sorted(found, key=lambda finding: -finding.exposed_ns):
        if not target or named & set(finding.where.operators):
            once.setdefault(finding.cause, finding)
    return tuple(once.values())


def _operators(node: DrillNode) -> set[str]:
    own = {node.name} if node.level == "operator" else set()
    return own.union(*(_operators(child) for child in node.children))
