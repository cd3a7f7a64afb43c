"""The casebook that ships: every field case, the articles' case studies with their contradictions, cards, templates, words."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kb.domain.quantity import UNITS
from kb.domain.record import Record
from kb.domain.text import Text
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.library.records import read_records
from kb.text.language import chinese_share

STUDIES = {
    "sd3-attention-unfused": range(1, 11),
    "llama3-70b-kv-cache-reads": (12,),
    "yolov8-edge-throttling": (13,),
    "tts-video-pipeline-rates": (14,),
    "bert-large-latency": (15, 16, 17),
    "resnet50-training-throughput": (18,),
    "industry-claims-without-profiles": (11, 19, 20),
}
RULE_SETS = {"auto", "llm-kv-cache-rules", "edge-stability-rules", "pipeline-balance-rules", "diffusion-bottlenecks"}


@pytest.fixture(scope="module")
def records() -> dict[str, Record]:
    return {record.slug: record for record in read_records(library_root())}


@pytest.fixture(scope="module")
def field(records: dict[str, Record]) -> dict[str, Record]:
    """Field recipes by the id of their source case."""
    recipes = [record for record in records.values() if record.kind == "recipe"]
    found = {tag.removeprefix("case:"): record for record in recipes for tag in record.tags if ":" in tag}
    assert len(found) == sum("field" in record.tags for record in recipes)
    return found


@pytest.fixture(scope="module")
def sources(shared: Path) -> dict[str, dict[str, Any]]:
    lines = (shared / "data/cases/field_cases.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


def test_every_source_case_is_one_recipe_with_its_label_and_address(field: dict[str, Record], sources: Mapping[str, Any]) -> None:
    assert set(field) == set(sources)
    for name, source in sources.items():
        record, case = field[name], field[name].cases[0]
        assert (case.cause, case.outcomes[0].strategy) == (source["root_cause_label"], source["strategy_label"]), name
        assert [cited.url for cited in record.sources] == [source["url"]], name
        assert record.provenance == "claimed"


def test_a_suggestion_is_never_shown_as_worked(field: dict[str, Record], sources: Mapping[str, Any]) -> None:
    for name, source in sources.items():
        for outcome in field[name].cases[0].outcomes:
            if source["strategy_evidence"] == "suggested":
                assert not outcome.reported_to_work, name
                assert outcome.result != "improved", name
            else:
                assert outcome.reported_to_work, name


def test_the_cautions_of_the_data_are_kept(field: dict[str, Record], sources: Mapping[str, Any]) -> None:
    for name, source in sources.items():
        said = " ".join(caution.en for caution in field[name].cases[0].cautions)
        for key, value, words in (
            ("cause_evidence", "inferred", "reading of the source"),
            ("cause_evidence", "stated_in_source", "no fix has confirmed it"),
            ("cause_evidence", "not_established", "never established"),
            ("strategy_evidence", "suggested", "is a suggestion"),
            ("text_rechecked", False, "one in three"),
            ("text_rechecked", None, "second time"),
            ("source_trust", "low", "uncertain origin"),
        ):
            assert source[key] != value or words in said, (name, key)


def test_cases_where_the_same_lever_goes_the_other_way_are_linked(field: dict[str, Record], sources: Mapping[str, Any]) -> None:
    for name, source in sources.items():
        assert {field[other].slug for other in source["contrasts_with"] if other in field} <= set(field[name].links), name


def test_the_reported_gain_is_the_sources(field: dict[str, Record], sources: Mapping[str, Any]) -> None:
    checked = 0
    for name, source in sources.items():
        gain = source["gain"] or {}
        before, after = gain.get("before"), gain.get("after")
        pairs = [(outcome.before, outcome.after) for outcome in field[name].cases[0].outcomes if outcome.before and outcome.after]
        if not isinstance(before, int | float) or not isinstance(after, int | float) or not pairs:
            continue
        ratio = after / before if before > 0 else (100.0 + after) / (100.0 + before)
        mine = [second.to(first.unit) / first.value for first, second in pairs]
        checked += 1
        assert any(each == pytest.approx(option, rel=0.03) for each in mine for option in (ratio, 1 / ratio)), name
    assert checked > 60


def test_the_wording_is_not_the_datas(field: dict[str, Record], sources: Mapping[str, Any]) -> None:
    for name, source in sources.items():
        record = field[name]
        mine = "\n".join((record.title.zh, record.title.en, record.summary.zh, record.summary.en, record.body.zh, record.body.en))
        for key in ("title", "symptom", "root_cause", "strategy"):
            for sentence in re.split(r"[。.；;]\s*", source[key] or ""):
                assert len(sentence) < 25 or sentence not in mine, (name, key)


def _texts(record: Record) -> list[Text]:
    case = record.cases[0]
    return [record.title, record.summary, record.body, case.finding, *case.symptoms, *case.constraints, *case.cautions]


@pytest.mark.parametrize("seed", range(10))
def test_a_random_recipe_reads_like_one(field: dict[str, Record], seed: int) -> None:
    name = random.Random(seed).choice(sorted(field))
    record, case = field[name], field[name].cases[0]
    for text in _texts(record):
        assert chinese_share(text.zh) > 0.15, (name, text)
        assert chinese_share(text.en) == 0, (name, text)
        assert not re.search(r"TODO|TBD|XXX|\?\?|待补|unstated", text.zh + text.en), (name, text)
        assert "  " not in text.en
    assert len(record.body.en.split()) > 25, name
    assert len(record.body.zh) > 40, name
    assert next(line for line in record.body.zh.splitlines() if line.startswith("## ")) == "## 原因"
    assert 2 <= len(case.symptoms) <= 4
    label = case.cause.replace("_", " ")
    for symptom in case.symptoms:
        assert label not in symptom.en.lower(), name
        assert symptom.en != record.title.en
    for quantity in (
        *case.context.metrics.values(),
        *(side for outcome in case.outcomes for side in (outcome.before, outcome.after) if side),
    ):
        assert quantity.unit in UNITS


def test_the_seven_case_studies_carry_all_twenty_contradictions(records: dict[str, Record]) -> None:
    every: set[int] = set()
    for slug, flags in STUDIES.items():
        record = records[slug]
        for lang in ("zh", "en"):
            said = record.body.pick(lang) + " ".join(caution.pick(lang) for case in record.cases for caution in case.cautions)
            assert {int(flag) for flag in re.findall(r"\bF(\d+)", said)} == set(flags), (slug, lang)
        every |= set(flags)
        assert any("card" in link for link in record.links), slug
    assert every == set(range(1, 21))


def test_cards_stand_for_the_studies_and_ten_field_cases(records: dict[str, Record]) -> None:
    cards = [record for record in records.values() if record.kind == "card"]
    linked = {link for card in cards for link in card.links}
    assert set(STUDIES) <= linked
    assert sum("field" in records[slug].tags for slug in linked if slug in records) >= 10
    for card in cards:
        assert card.body.zh.count("**") >= 10, card.slug


def test_templates_cover_the_rule_sets_and_families(records: dict[str, Record]) -> None:
    templates = {slug: record.template for slug, record in records.items() if record.template is not None}
    assert len(templates) >= 20
    assert templates.keys() >= RULE_SETS
    for slug, template in templates.items():
        assert template.pitfalls, slug
        assert len(template.checks) >= 4, slug


def test_the_glossary_holds_how_people_talk() -> None:
    rows = load_catalogue(library_root()).glossary
    terms = {term for row in rows for term in (*row.zh, *row.en)}
    assert len(rows) >= 200
    assert terms >= {"吐字", "拖后腿", "打满", "爆显存", "蹦字", "越跑越慢", "straggler", "TTFT", "stuck"}
    assert {term for term in terms if len(term) == 1} <= {"慢"}, "one character fires inside other words"
