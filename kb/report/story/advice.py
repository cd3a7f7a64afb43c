"""What to do next, and what the casebook knows about it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kb.domain.case import Answer, Hit
from kb.domain.catalogue import Catalogue
from kb.domain.text import Text
from kb.report.answers import recommendation_document
from kb.report.document import Block, Bullets, Heading, Note, Paragraph, TableBlock
from kb.report.labels import Labels
from kb.report.plan import plan_document
from kb.report.report import Report, Reuse
from kb.report.story.names import cause_name

_HITS = 6
_STRATEGIES = 6
_STARS = (1, 2, 4, 8)
"""Cases from which the reuse index shows one star more; the first star is for being catalogued at all."""

_ALWAYS = (
    Text(
        "每次只改一处，改完重新采集并用 kb compare 对比，防止出现新的瓶颈。",
        "Change one thing at a time, capture again and run kb compare: a new bottleneck may appear.",
    ),
    Text(
        "输入尺寸、批大小或芯片变了，瓶颈可能不同，需要单独诊断。",
        "Another input size, batch or chip may have another bottleneck: diagnose it on its own.",
    ),
)


def advice_blocks(report: Report, catalogue: Catalogue, words: Labels) -> Iterator[Block]:
    """Ranked strategies, the plan, pitfalls."""
    if report.recommendation is None and report.plan is None:
        return
    yield Heading(2, words("report.next"))
    if report.recommendation is not None:
        ranked = report.recommendation.strategies
        shown = replace(report.recommendation, strategies=ranked[:_STRATEGIES])
        yield from _inner(recommendation_document(shown, catalogue, words.lang).blocks)
        if len(ranked) > _STRATEGIES:
            left = len(ranked) - _STRATEGIES
            yield Paragraph(words.either(f"另有 {left} 条策略，见 kb recommend。", f"{left} more strategies: see kb recommend."))
    if report.plan is not None and report.plan.steps:
        yield Heading(3, words("plan"))
        yield from _inner(plan_document(report.plan, words.lang).blocks, deeper=True)
    yield Heading(3, words("pitfalls"))
    yield Bullets(tuple(text.pick(words.lang) for text in (*report.pitfalls, *_ALWAYS)))


def _inner(blocks: tuple[Block, ...], *, deeper: bool = False) -> Iterator[Block]:
    """A chapter inside this one: its own title goes, its headings move down."""
    for block in blocks:
        if not isinstance(block, Heading):
            yield block
        elif block.level > 2:
            yield Heading(block.level + deeper, block.text)


def case_blocks(report: Report, catalogue: Catalogue, words: Labels) -> Iterator[Block]:
    """Similar cases, how far each cause reaches, related records."""
    if report.answer is None and not report.reuse:
        return
    yield Heading(2, words("report.cases"))
    if report.answer is not None:
        yield from _answer(report.answer, words)
    if report.reuse:
        yield Heading(3, words("reuse"))
        yield Bullets(tuple(_reuse(item, catalogue, words) for item in report.reuse))


def _answer(answer: Answer, words: Labels) -> Iterator[Block]:
    if answer.abstained:
        yield Note("caution", words("abstained"))
    yield from (Note("capture", note.pick(words.lang)) for note in answer.notes)
    if not answer.hits:
        yield Paragraph(words.either("案例库中没有相似案例。", "The casebook holds no similar case."))
        return
    header = (words("record"), words("title"), words("provenance"), words.either("相似度", "similarity"), words("why"))
    yield TableBlock(header, tuple(_hit(hit, words) for hit in answer.hits[:_HITS]), right=(3,))


def _hit(hit: Hit, words: Labels) -> tuple[str, ...]:
    similarity = "–" if hit.similarity is None else f"{hit.similarity:.2f}"
    why = "; ".join(reason.text.pick(words.lang) for reason in hit.why[:3])
    return (f"{hit.slug}@{hit.version}", hit.title.pick(words.lang), words(f"provenance.{hit.provenance}"), similarity, why)


def _reuse(item: Reuse, catalogue: Catalogue, words: Labels) -> str:
    filled = 1 + sum(item.cases >= least for least in _STARS)
    stars = "★" * filled + "☆" * (len(_STARS) + 1 - filled)
    reach = ", ".join((*item.families, *item.model_types)) or words.either("未注明芯片与模型类型", "chips and model types not stated")
    return words.either(
        f"{stars} {cause_name(item.cause, catalogue, words)}：{item.cases} 个案例，其中 {item.improved} 个变快（{reach}）",
        f"{stars} {cause_name(item.cause, catalogue, words)}: {item.cases} cases, {item.improved} of them improved ({reach})",
    )
