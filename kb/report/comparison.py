"""A comparison as a document: verdict first, then what moved."""

from __future__ import annotations

from kb.domain.comparison import Comparison, Delta
from kb.domain.text import Lang
from kb.report.document import Block, Bullets, Document, Heading, Note, Paragraph, TableBlock
from kb.report.labels import Labels, labels
from kb.report.numbers import duration, percent, signed_percent

_OPERATORS_SHOWN = 8


def comparison_document(comparison: Comparison, lang: Lang) -> Document:
    """Verdict, interval and noise, reasons, parts and operators."""
    words = labels(lang)
    blocks: list[Block] = [Heading(2, f"{words('comparison')}: {words(f'verdict.{comparison.verdict}')}")]
    if "simulated" in comparison.origins:
        blocks.append(Note("simulated", words("simulated")))
    if comparison.verdict != "not_comparable":
        blocks.append(Paragraph(verdict_line(comparison, words)))
    reasons = [reason.pick(lang) for reason in comparison.reasons]
    if comparison.quality == "unchecked":
        reasons.append(words("quality_unchecked"))
    blocks.append(Bullets(tuple(reasons)))
    if comparison.parts:
        blocks.append(_table(words("part"), [_named(delta, words(f"part.{delta.name}")) for delta in comparison.parts], words))
    if comparison.operators:
        blocks.append(_table(words.either("算子类型", "operator type"), list(comparison.operators[:_OPERATORS_SHOWN]), words))
    return Document(tuple(blocks))


def verdict_line(comparison: Comparison, words: Labels) -> str:
    """One sentence with both step times, the gain, its interval and the noise band."""
    low, high = comparison.interval
    n_before, n_after = comparison.n
    return (
        f"{words('step')}: {duration(comparison.before_step_ns)} → {duration(comparison.after_step_ns)}, "
        f"{words('saved')} {signed_percent(comparison.gain_fraction)} "
        f"[{signed_percent(low)}, {signed_percent(high)}] @ {comparison.interval_level:.0%}, "
        f"{words('noise')} ±{percent(comparison.noise_fraction)}, n = {n_before} / {n_after}"
    )


def _named(delta: Delta, name: str) -> Delta:
    return Delta(
        name=name, before_ns=delta.before_ns, after_ns=delta.after_ns, before_count=delta.before_count, after_count=delta.after_count
    )


def _table(title: str, deltas: list[Delta], words: Labels) -> TableBlock:
    rows = tuple((delta.name, duration(delta.before_ns), duration(delta.after_ns), duration(delta.saved_ns)) for delta in deltas)
    return TableBlock((title, words("before"), words("after"), words("saved")), rows, right=(1, 2, 3))
