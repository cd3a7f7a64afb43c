"""How a listing is counted."""

from __future__ import annotations

from kb.domain.case import RecordKind
from kb.domain.protocols import Summary
from kb.domain.provenance import Provenance
from kb.domain.record import Record
from kb.domain.text import Text
from kb.domain.version import Ref, Version
from kb.workflow.records import counts


def _pair(at: int, kind: RecordKind, title: Text, tier: Provenance) -> tuple[Summary, Version]:
    record = Record(kind=kind, slug=f"r{at}", title=title, summary=title, body=title, provenance=tier)
    summary = Summary(id=at, ref=Ref(slug=record.slug), kind=kind, provenance=tier, language_share=0.5, status="published", created_ns=0)
    return summary, Version(record=record, origin="library", n=1, sha256=str(at), author="a", created_ns=0)


def test_a_listing_is_counted_by_kind_language_and_tier() -> None:
    pairs = (
        _pair(1, "recipe", Text("甲", "A"), "claimed"),
        _pair(2, "recipe", Text("乙", ""), "simulated"),
        _pair(3, "card", Text("", "C"), "claimed"),
    )
    assert counts(pairs) == {
        "kind": {"recipe": 2, "card": 1},
        "language": {"zh": 2, "en": 2},
        "provenance": {"claimed": 2, "simulated": 1},
    }
    assert counts(()) == {"kind": {}, "language": {"zh": 0, "en": 0}, "provenance": {}}
