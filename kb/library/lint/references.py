"""Checks of names: causes, strategies, metrics, thresholds and records that must exist."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import Final

from kb.domain.catalogue import Catalogue
from kb.domain.version import parse_ref
from kb.errors import UsageError
from kb.library.lint.document import Document
from kb.library.lint.problem import Problem, problem
from kb.library.schema import Steps

_BODY_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]+)")
_IN_CODE = re.compile(r"`([a-z]+(?:_[a-z]+)+)`")
FIELD_TAG: Final = "case:"


def check_ids(document: Document, catalogue: Catalogue) -> Iterator[Problem]:
    """Causes, strategies and metrics are the catalogue's, and a strategy answers its case's cause."""
    for at, case in enumerate(document.record.cases):
        for steps, name in _causes(at, case.cause, case.context.causes):
            yield from _known(document, steps, name, catalogue.causes.keys(), "cause")
        for name in case.context.metrics:
            yield from _known(document, ("cases", at, "context", "metrics", name), name, catalogue.metrics.keys(), "metric", rule="context")
        for nth, outcome in enumerate(case.outcomes):
            place: Steps = ("cases", at, "outcomes", nth)
            yield from _known(document, (*place, "metric"), outcome.metric, catalogue.metrics.keys(), "metric")
            yield from _known(document, (*place, "strategy"), outcome.strategy, catalogue.strategies.keys(), "strategy")
            strategy = catalogue.strategies.get(outcome.strategy)
            if strategy is not None and case.cause in catalogue.causes and case.cause not in strategy.addresses:
                yield problem(
                    document.file, document.line_of((*place, "strategy")), "id",
                    zh=f"策略 {strategy.id} 不针对 {case.cause}", en=f"strategy {strategy.id} does not address {case.cause}",
                )  # fmt: skip


def check_template(document: Document, catalogue: Catalogue, thresholds: Set[str]) -> Iterator[Problem]:
    """A template's causes exist, once each, every check has a reason, and thresholds are named as the rules name them."""
    template = document.record.template
    if template is None:
        return
    seen: set[str] = set()
    for at, check in enumerate(template.checks):
        steps: Steps = ("checks", at, "cause")
        yield from _known(document, steps, check.cause, catalogue.causes.keys(), "cause")
        if check.cause in seen:
            yield problem(document.file, document.line_of(steps), "id", zh=f"{check.cause} 查了两遍", en=f"{check.cause} is checked twice")
        seen.add(check.cause)
        if not (check.reason.zh and check.reason.en):
            yield problem(document.file, document.line_of(steps), "reason", zh="检查项没有理由", en="a check without a reason")
        for name in check.thresholds:
            yield from _known(document, ("checks", at, "thresholds", name), name, thresholds, "threshold")


def check_links(document: Document, slugs: Set[str]) -> Iterator[Problem]:
    """Links lead to records that exist; so do relative links and record names of the body."""
    for at, link in enumerate(document.record.links):
        try:
            slug = parse_ref(link).slug
        except UsageError:
            slug = link
        yield from _known(document, ("links", at), slug, slugs, "record", rule="link")
    for side in (document.record.body.zh, document.record.body.en):
        for target in _BODY_LINK.findall(side):
            slug = target.removesuffix("/recipe.md").removesuffix(".md").removesuffix(".json").rsplit("/", 1)[-1]
            if slug not in slugs:
                yield problem(document.file, document.line_with(target), "link", zh=f"没有记录 {slug}", en=f"no record {slug}")


def check_code_names(document: Document, catalogue: Catalogue, thresholds: Set[str]) -> Iterator[Problem]:
    """A name in code style that looks like an id of ours is one."""
    ours = {*catalogue.causes, *catalogue.strategies, *catalogue.metrics, *thresholds}
    stems = {name.split("_")[0] for name in (*catalogue.strategies, *catalogue.causes)}
    if document.record.template is not None:
        return
    for name in dict.fromkeys(_IN_CODE.findall(f"{document.record.body.en}\n{document.record.body.zh}")):
        if name not in ours and name.split("_")[0] in stems:
            yield problem(document.file, document.line_with(f"`{name}`"), "id", zh=f"目录里没有 {name}", en=f"the catalogue has no {name}")


def _causes(at: int, cause: str, causes: tuple[str, ...]) -> Iterator[tuple[Steps, str]]:
    yield ("cases", at, "cause"), cause
    yield from ((("cases", at, "context", "causes", nth), name) for nth, name in enumerate(causes))


def _known(document: Document, steps: Steps, name: str, known: Set[str], kind: str, *, rule: str = "id") -> Iterator[Problem]:
    if name not in known:
        yield problem(document.file, document.line_of(steps), rule, zh=f"没有这个 {kind}：{name}", en=f"no {kind} {name!r}")
