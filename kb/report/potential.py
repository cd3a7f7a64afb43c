"""The potential of a strategy in one paragraph."""

from __future__ import annotations

from kb.domain.catalogue import Catalogue
from kb.domain.potential import Potential
from kb.domain.text import Lang, Text
from kb.report.document import Block, Bullets, Document, Note, Paragraph
from kb.report.labels import labels
from kb.report.numbers import percent

_REFS = 10


def potential_document(found: Potential, catalogue: Catalogue, lang: Lang) -> Document:
    """Figure, interval, number of cases and tier, then which cases."""
    words = labels(lang)
    strategy = catalogue.strategy(found.strategy)
    name, tier = strategy.name.pick(lang), words(f"provenance.{found.provenance}")
    blocks: list[Block] = []
    if found.median is None:
        blocks.append(Note("caution", words.either(f"{name}：没有带数字的案例", f"{name}: no case with figures")))
    else:
        cases = "1 case" if found.n == 1 else f"{found.n} cases"
        interval = f" [{percent(found.interval[0])}, {percent(found.interval[1])}]" if found.interval else ""
        unknown = Text() if found.interval else Text(zh="，区间未知", en=", interval unknown")
        figure = f"{percent(found.median)}{interval}"
        blocks.append(
            Paragraph(
                words.either(
                    f"{name}：节省 {figure}，{found.n} 个案例{unknown.zh}，{tier}", f"{name}: saves {figure}, {cases}{unknown.en}, {tier}"
                )
            )
        )
    counts = ", ".join(f"{words(f'provenance.{own}')} {count}" for own, count in found.tiers.items())
    blocks.append(
        Bullets(
            (
                words.either(f"{found.reported} 个结果中 {found.worked} 个有效（{counts or '-'}）",
                             f"{found.worked} of {found.reported} reported outcomes helped ({counts or '-'})"),
                words.either(f"范围：{found.group.zh}", f"over: {found.group.en}"),
                words("plan.simulatable") if strategy.simulatable else words("plan.not_simulatable"),
                *((f"{words('cases')}: {', '.join(found.refs[:_REFS])}",) if found.refs else ()),
            )
        )
    )  # fmt: skip
    return Document(tuple(blocks))
