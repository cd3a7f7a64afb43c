from __future__ import annotations

import msgspec
from search.samples import CATALOGUE, filled, record

from kb.domain.case import CaseQuery, Outcome, Result
from kb.domain.record import Record
from kb.search.query import search


def tried(slug: str, result: Result, en: str) -> Record:
    base = record(slug, en=en, cause="unfused_attention")
    outcome = Outcome(strategy="fuse_attention", result=result, metric="step_time")
    return msgspec.structs.replace(base, cases=(msgspec.structs.replace(base.cases[0], outcomes=(outcome,)),))


def against(*records: Record) -> dict[str, list[str]]:
    answer = search(CaseQuery(text="attention"), store=filled(records, None), embedder=None, catalogue=CATALOGUE)
    return {hit.slug: [text.en for text in hit.contrasts] for hit in answer.hits}


def test_a_lever_that_helped_is_shown_beside_where_it_did_not() -> None:
    said = against(
        tried("good", "improved", "attention"), tried("flat", "no_gain", "attention again"), tried("bad", "worse", "attention too")
    )
    assert ["made it worse" in said["good"][0], "gained nothing" in said["good"][1]] == [True, True]
    assert said["bad"] == []


def test_levers_that_only_helped_have_no_contrast() -> None:
    assert against(tried("good", "improved", "attention"), tried("fine", "improved", "attention")) == {"good": [], "fine": []}
