"""Job: what the casebook already holds that is nearly the record about to be published."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from kb.domain.case import CaseQuery, Hit
from kb.domain.record import Record
from kb.search.prepare import field_texts
from kb.workflow.casebook import Casebook
from kb.workflow.search import find, version_of

NEAR: Final = 0.9
"""Raw cosine of title, summary and finding in one language from which two records of one cause and chip family may be one story."""
_LOOKED_AT: Final = 5


def near_records(casebook: Casebook, record: Record) -> tuple[Hit, ...]:
    """Records of another name that tell nearly the same, nearest first: same kind, a cause in common, a chip family that
    does not differ, and words at ``NEAR`` or above. Versions of the record itself are not duplicates."""
    causes = tuple(dict.fromkeys(case.cause for case in record.cases))
    families = {case.context.soc_family for case in record.cases} - {"unknown"}
    best: dict[str, Hit] = {}
    for field, words in field_texts(record, casebook.catalogue).items():
        if not field.startswith("title."):
            continue
        query = CaseQuery(text=words, kinds=(record.kind,), causes=causes, limit=_LOOKED_AT, include_simulated=True)
        for hit in find(casebook, query).hits:
            if hit.slug != record.slug and _cosine(hit) >= NEAR and _cosine(hit) > _cosine(best.get(hit.slug)):
                best[hit.slug] = hit
    near = sorted(best.values(), key=lambda hit: -_cosine(hit))
    return tuple(hit for hit in near if _same_family(version_of(casebook, hit).record, families))


def _cosine(hit: Hit | None) -> float:
    return 0.0 if hit is None or hit.similarity is None else hit.similarity


def _same_family(record: Record, families: AbstractSet[str]) -> bool:
    own = {case.context.soc_family for case in record.cases} - {"unknown"}
    return not own or not families or bool(own & families)
