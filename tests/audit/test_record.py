"""Claims read from records and from sentences in both languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.audit.prose import quotients, sentences, targets, transitions
from kb.audit.record import audit_record
from kb.domain.case import Case, CaseContext, Outcome
from kb.domain.catalogue import Catalogue
from kb.domain.quantity import Quantity
from kb.domain.record import Record
from kb.domain.text import Text
from kb.library.catalogue import load_catalogue


@pytest.fixture(scope="module")
def catalogue(checkout: Path) -> Catalogue:
    return load_catalogue(checkout)


def record(body: str = "", *cases: Case, title: str = "title") -> Record:
    return Record(kind="recipe", slug="one", title=Text("标题", title), summary=Text(), body=Text(body, body), cases=cases)


def case(outcomes: tuple[Outcome, ...] = (), constraints: tuple[Text, ...] = (), **context: object) -> Case:
    return Case(cause="unfused_attention", context=CaseContext(**context), outcomes=outcomes, constraints=constraints)  # type: ignore[arg-type]


def outcome(metric: str, before: str, after: str, **more: object) -> Outcome:
    first, last = (Quantity(float(text.split()[0]), text.split()[1]) for text in (before, after))
    fields = {"strategy": "use_fused_attention", "result": "improved", "metric": metric, "before": first, "after": last, **more}
    return Outcome(**fields)  # type: ignore[arg-type]  # keywords of one test each


def found(catalogue: Catalogue, item: Record) -> list[str]:
    return [note.rule for note in audit_record(item, catalogue)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Latency fell from 1,520 ms to 890 ms (-41.4 %).", []),
        ("Latency fell from 1,520 ms to 890 ms (-51 %).", ["percentage"]),
        ("时延由 8.7 s 降到 3.1 s（-64.4 %）", []),
        ("时延由 8.7 s 降到 3.1 s（-74 %）", ["percentage"]),
        ("Throughput 38/s -> 145/s, 3.8x", []),
        ("Throughput 38/s -> 145/s, 4.8x", ["percentage"]),
        ("620 ms to 422 ms (-32 %), 41 % of the step", []),
        ("217 of 218 operators were captured (99.8 %)", ["percentage"]),
        ("217 of 218 operators were captured (99.5 %)", []),
        ('the sample says `"confidence": 0.94`', ["constant"]),
        ("L2 hit rate 63 %; HBM to L2 128 MB; L2 to L1 64 MB", ["cache_flow"]),
        ("Latency fell from 420 ms to 98 ms; attention takes 38 %, embedding takes 22 %.", ["amdahl"]),
        ("The target is throughput > 150/s. Throughput rose from 38/s to 145/s.", ["own_target"]),
        ("Measured on three chips, 12 % to 15 % faster, in 4 steps of 3.", []),
    ],
)
def test_sentences_are_checked(catalogue: Catalogue, text: str, expected: list[str]) -> None:
    assert found(catalogue, record(text)) == expected


def test_the_chip_of_the_title_is_asked(catalogue: Catalogue) -> None:
    assert found(catalogue, record("A peak of 204 GB/s.", title="Slow on Ascend 910B")) == ["bandwidth"]
    assert found(catalogue, record("A peak of 204 GB/s.", title="Slow on Ascend 310P")) == []


def test_two_stories_in_one_text_are_not_mixed(catalogue: Catalogue) -> None:
    text = "Latency went from 100 ms to 50 ms. On another model latency went from 80 ms to 70 ms. attention takes 20 %."
    assert found(catalogue, record(text)) == []


def test_figures_of_outcomes_are_checked(catalogue: Catalogue) -> None:
    assert found(catalogue, record("", case((outcome("step_time", "100 ms", "40 ms", share=0.3),)))) == ["amdahl"]
    assert found(catalogue, record("", case((outcome("step_time", "100 ms", "120 ms"),)))) == ["result"]
    assert found(catalogue, record("", case((outcome("step_time", "100 ms", "75 ms", share=0.3),)))) == []


def test_a_result_is_held_against_its_constraints(catalogue: Catalogue) -> None:
    limit = (Text("时延 < 60 ms", "latency < 60 ms"),)
    assert found(catalogue, record("", case((outcome("latency", "100 ms", "75 ms"),), limit))) == ["own_target"]
    assert found(catalogue, record("", case((outcome("latency", "100 ms", "55 ms"),), limit))) == []


def test_context_and_outcome_must_agree(catalogue: Catalogue) -> None:
    metrics = {"latency": Quantity(1.52, "s")}
    assert found(catalogue, record("", case((outcome("latency", "1520 ms", "1000 ms"),), metrics=metrics))) == []
    assert found(catalogue, record("", case((outcome("latency", "1400 ms", "1000 ms"),), metrics=metrics))) == ["one_value"]


def test_parts_of_several_cases_are_added_up(catalogue: Catalogue) -> None:
    whole = case((outcome("latency", "1520 ms", "890 ms"),), model="SD3")
    part = case((outcome("attention_time", "620 ms", "422 ms"),), model="SD3")
    assert found(catalogue, record("", whole, part)) == ["composition"]


def test_the_shipped_library_raises_few_doubts(catalogue: Catalogue, checkout: Path) -> None:
    from kb.library.records import read_records

    doubts = {item.slug: audit_record(item, catalogue) for item in read_records(checkout)}
    assert sum(1 for notes in doubts.values() if notes) <= 0.2 * len(doubts) + 3


def test_what_is_read_from_a_sentence() -> None:
    (claims,) = transitions("latency 420 ms to 98 ms (-77 %)")
    assert [(claim.when, claim.value, claim.unit) for claim in claims] == [("before", 420, "ms"), ("after", 98, "ms"), ("change", 77, "%")]
    assert [(claim.metric, claim.value, claim.bound) for claim in targets("latency < 100 ms, at least 150/s")] == [
        ("latency", 100, "max"), ("throughput", 150, "min"),
    ]  # fmt: skip
    assert list(quotients("3 of 2 (99 %)")) == []
    assert list(sentences("a. b。c")) == ["a", "b", "c"]
