"""Search answers and recommendations as documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kb.domain.case import Answer, Hit
from kb.domain.catalogue import Catalogue
from kb.domain.recommendation import Percentile, Quality, RankedStrategy, Recommendation
from kb.domain.text import Lang
from kb.report.document import Block, Bullets, Document, Heading, Note, Paragraph, TableBlock
from kb.report.labels import Labels, labels
from kb.report.numbers import duration, percent


def answer_document(answer: Answer, lang: Lang) -> Document:
    """Hits, best first, each with the reasons that ranked it."""
    words = labels(lang)
    blocks: list[Block] = []
    if answer.abstained:
        blocks.append(Note("caution", words("abstained")))
    blocks += [Note("capture", note.pick(lang)) for note in answer.notes]
    for place, hit in enumerate(answer.hits, start=1):
        blocks += _hit(place, hit, words)
    return Document(tuple(blocks))


def _hit(place: int, hit: Hit, words: Labels) -> Iterator[Block]:
    similarity = f", cos {hit.similarity:.2f}" if hit.similarity is not None else ""
    tier = words(f"provenance.{hit.provenance}")
    yield Paragraph(f"{place}. {hit.slug}@{hit.version} [{hit.kind}, {tier}{similarity}] {hit.title.pick(words.lang)}")
    reasons = [reason.text.pick(words.lang) for reason in hit.why]
    snippet = hit.snippet.pick(words.lang)
    against = (contrast.pick(words.lang) for contrast in hit.contrasts)
    yield Bullets(tuple(filter(None, (f"{words('why')}: {'; '.join(reasons)}" if reasons else "", snippet, *against))))


def recommendation_document(recommendation: Recommendation, catalogue: Catalogue, lang: Lang) -> Document:
    """Ranked strategies, what was excluded and why, and whether the constraints can be met."""
    words = labels(lang)
    blocks: list[Block] = [Heading(2, words("recommendation"))]
    blocks += [Paragraph(note.pick(lang)) for note in recommendation.notes]
    if not recommendation.feasible:
        blocks.append(Note("caution", recommendation.closest.pick(lang)))
    if recommendation.strategies:
        rows = tuple(_row(item, catalogue, words) for item in recommendation.strategies)
        header = (
            words("strategy"),
            words("cause"),
            words("expected"),
            words("interval"),
            words("provenance"),
            words("effort"),
            words("cases"),
        )
        blocks.append(TableBlock(header, rows, right=(2, 3)))
        blocks.append(Bullets(tuple(_reason(item, words) for item in recommendation.strategies)))
        blocks += _beside(recommendation, words)
    if recommendation.percentiles:
        blocks += [Heading(3, words("percentiles")), Bullets(tuple(_percentile(item, words) for item in recommendation.percentiles))]
    if recommendation.excluded:
        blocks += [
            Heading(3, words("excluded")),
            Bullets(tuple(f"{item.id}: {item.reason.pick(lang)}" for item in recommendation.excluded)),
        ]
    return Document(tuple(blocks))


def _beside(recommendation: Recommendation, words: Labels) -> Iterator[Block]:
    """Effects besides time, and the front where the targets conflict."""
    if any(item.effects for item in recommendation.strategies):
        yield Heading(3, words("effects"))
        header = (words("strategy"), *(words(f"effect.{quality}") for quality in _BESIDE))
        rows = tuple((item.id, *(_effect(item, quality) for quality in _BESIDE)) for item in recommendation.strategies)
        yield TableBlock(header, rows, right=tuple(range(1, len(header))))
    if len(recommendation.front) > 1:
        yield Paragraph(f"{words('front')}: {', '.join(recommendation.front)}")


_BESIDE: Final[tuple[Quality, ...]] = ("throughput", "memory", "energy", "precision")


def _effect(item: RankedStrategy, quality: Quality) -> str:
    effect = item.effect(quality)
    if effect is None:
        return "?"
    low, high = effect.interval
    if low == high == effect.expected == 0:
        return "0"
    ceiling = "?" if high is None else percent(high)
    return f"{percent(effect.expected)} [{percent(low)}, {ceiling}]"


def _percentile(item: Percentile, words: Labels) -> str:
    value = percent(item.value) if item.unit == "ratio" else f"{item.value:g} {item.unit}"
    simulated = words.either(f"，其中 {item.simulated} 个为仿真", f", {item.simulated} of them simulated") if item.simulated else ""
    return words.either(
        f"{item.metric} {value}：高于 {item.below:.0%} 的{item.group.zh}（{item.n} 个{simulated}）",
        f"{item.metric} {value}: higher than {item.below:.0%} of {item.group.en} ({item.n}{simulated})",
    )


def _reason(item: RankedStrategy, words: Labels) -> str:
    untried = "" if item.simulatable else f"; {words('plan.not_simulatable')}"
    return f"{item.id}: {item.rationale.pick(words.lang)}{untried}"


def _row(item: RankedStrategy, catalogue: Catalogue, words: Labels) -> tuple[str, ...]:
    low, high = item.interval
    return (
        f"{catalogue.strategy(item.id).name.pick(words.lang)} ({item.id})",
        item.cause,
        f"{percent(item.gain_fraction)} = {duration(item.gain_ns)}{words('per.sample') if item.per == 'sample' else ''}",
        f"[{percent(low)}, {percent(high)}] @ {item.interval_level:.0%}",
        words(f"provenance.{item.provenance}"),
        item.effort,
        ", ".join(case.ref for case in item.cases) or "-",
    )
