"""Records, a catalogue and stores for the tests of search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from search.memory_store import MemoryStore

from kb.domain.case import Case, CaseContext, Outcome
from kb.domain.catalogue import Catalogue, Cause, GlossaryRow, Strategy
from kb.domain.protocols import Embedder
from kb.domain.provenance import Provenance
from kb.domain.quantity import Quantity
from kb.domain.record import Record
from kb.domain.soc import SocFamily
from kb.domain.text import Text
from kb.search.prepare import prepare

CATALOGUE = Catalogue(
    causes={
        "unfused_attention": Cause(id="unfused_attention", layer="operator", name=Text(zh="注意力未融合", en="unfused attention"),
                                   definition=Text(), evidence=Text(), aliases=("attn_split",)),
        "pipeline_imbalance": Cause(id="pipeline_imbalance", layer="pipeline", name=Text(zh="流水线不均", en="pipeline imbalance"),
                                    definition=Text(), evidence=Text()),
    },
    strategies={
        "fuse_attention": Strategy(id="fuse_attention", name=Text(zh="融合注意力", en="fuse attention"), definition=Text(),
                                   aliases=("flash",)),
    },
    metrics={},
    socs={},
    glossary=(
        GlossaryRow(id="attention", zh=("注意力",), en=("attention",)),
        GlossaryRow(id="l2_hit", zh=("命中率",), en=("hit rate",)),
        GlossaryRow(id="stall", zh=("卡住",), en=("stall", "freeze")),
    ),
)  # fmt: skip


def record(slug: str, zh: str = "", en: str = "", *, cause: str | None = None, family: SocFamily = "unknown", symptoms: Iterable[Text] = (),
           metrics: Mapping[str, Quantity] | None = None, provenance: Provenance = "claimed", model_type: str | None = None,
           strategy: str = "fuse_attention") -> Record:  # fmt: skip
    """A recipe whose summary is the text given, with a case when a cause is named."""
    context = CaseContext(soc_family=family, model_type=model_type, metrics=metrics or {})
    note = Text(zh="改用融合算子", en="use the fused operator") if strategy == "fuse_attention" else Text()
    outcome = Outcome(strategy=strategy, result="improved", metric="step_time", note=note)
    cases = (Case(cause=cause, context=context, outcomes=(outcome,), symptoms=tuple(symptoms)),) if cause else ()
    return Record(kind="recipe", slug=slug, title=Text(), summary=Text(zh=zh, en=en), body=Text(), cases=cases, provenance=provenance)


def filled(records: Iterable[Record], embedder: Embedder | None) -> MemoryStore:
    """A store with these records, published in order."""
    store = MemoryStore()
    for item in records:
        store.publish(item, prepare(item, embedder, CATALOGUE), origin="library", author="test")
    return store
