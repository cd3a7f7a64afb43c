"""Checks of what a record may claim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kb.library.lint.document import Document
from kb.library.lint.problem import Problem, problem
from kb.library.lint.references import FIELD_TAG

CARD_LONGEST: Final = 1800
"""Characters of one language of a card: one screen."""


def check_claims(document: Document) -> Iterator[Problem]:
    """A file states no tier above claimed; a suggested strategy never shows as worked; sources are named."""
    record = document.record
    if record.provenance != "claimed":
        yield problem(
            document.file, document.line_of(("provenance",)), "tier",
            zh="文件里只能写 claimed：更高的等级由采集数据重算", en="a file states claimed only: higher tiers are recomputed from sessions",
        )  # fmt: skip
    for at, case in enumerate(record.cases):
        for nth, outcome in enumerate(case.outcomes):
            steps = ("cases", at, "outcomes", nth)
            if not outcome.reported_to_work and outcome.result == "improved":
                yield problem(
                    document.file, document.line_of((*steps, "result")), "suggested",
                    zh="没有报告有效的策略不能写成 improved", en="a strategy not reported to work cannot have improved anything",
                )  # fmt: skip
            if outcome.provenance != "claimed":
                yield problem(document.file, document.line_of((*steps, "provenance")), "tier", zh="文件里只能写 claimed", en="claimed only")
    if record.kind in ("recipe", "card") and not record.sources:
        yield problem(document.file, 1, "source", zh="没有出处", en="no source is named")


def check_field_record(document: Document) -> Iterator[Problem]:
    """A field recipe names one source case and links to its page."""
    tags = [tag for tag in document.record.tags if tag.startswith(FIELD_TAG)]
    if "field" not in document.record.tags or document.record.kind != "recipe":
        return
    if len(tags) != 1:
        yield problem(document.file, document.line_of(("tags",)), "source", zh="要有一个 case: 标签", en="exactly one case: tag is wanted")
    if not any(source.url.startswith("http") for source in document.record.sources):
        yield problem(document.file, document.line_of(("sources",)), "source", zh="要有来源网址", en="the source's address is missing")


def check_card_size(document: Document) -> Iterator[Problem]:
    """A card fits one screen."""
    if document.record.kind != "card":
        return
    for lang, side in (("zh", document.record.body.zh), ("en", document.record.body.en)):
        if len(side) > CARD_LONGEST:
            yield problem(
                document.file, document.line_with("# English"), "card",
                zh=f"卡片超过一屏（{lang}，{len(side)} 字）", en=f"card longer than a screen ({lang}, {len(side)} characters)",
            )  # fmt: skip
