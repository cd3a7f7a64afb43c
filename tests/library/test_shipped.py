"""The content that ships: complete, consistent, and in its canonical form."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kb.diagnose.thresholds import load_thresholds
from kb.domain.catalogue import Catalogue
from kb.domain.record import Record
from kb.domain.text import Text
from kb.library.catalogue import load_catalogue
from kb.library.crosslinks import faults
from kb.library.location import library_root
from kb.library.markdown import write_markdown
from kb.library.records import read_records
from kb.text.glossary import expand
from kb.text.language import chinese_share

ARTICLES = {"stream_bubbles", "memory_bandwidth_pressure", "l2_pressure", "node_rate_mismatch", "buffer_starvation", "microbatch_count"}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue(library_root())


@pytest.fixture(scope="module")
def records() -> dict[str, Record]:
    return {record.slug: record for record in read_records(library_root())}


def test_the_catalogue_has_no_fault(catalogue: Catalogue) -> None:
    assert list(faults(catalogue)) == []


def test_every_cause_of_the_taxonomy_and_of_the_articles_is_there(catalogue: Catalogue, shared: Path) -> None:
    text = (shared / "data" / "cases" / "TAXONOMY.md").read_text(encoding="utf-8")
    table = text.partition("## Root-cause labels")[2].partition("## Strategy labels")[0]
    labels = set(re.findall(r"^\| ([a-z0-9_]+) \|", table, re.MULTILINE)) - {"label"}
    assert len(labels) == 35
    assert set(catalogue.causes) == labels | ARTICLES


def test_every_strategy_of_the_taxonomy_is_there(catalogue: Catalogue, shared: Path) -> None:
    text = (shared / "data" / "cases" / "TAXONOMY.md").read_text(encoding="utf-8")
    listed = text.partition("## Strategy labels")[2].partition("## Extra keys")[0]
    labels = {part.partition(":")[0].strip() for part in listed.split("·")}
    assert len(labels) == 45
    assert labels <= set(catalogue.strategies)


def test_the_articles_names_are_aliases(catalogue: Catalogue) -> None:
    assert catalogue.cause("attention_unfused").id == "unfused_attention"
    assert catalogue.cause("tile_size_suboptimal").id == "suboptimal_tiling"
    assert catalogue.strategy("fused_attention").id == "use_fused_attention"
    assert catalogue.strategy("stream_depth").id == "increase_stream_depth"


def test_every_strategy_says_when_it_fits_how_to_verify_and_go_back_and_what_it_risks(catalogue: Catalogue) -> None:
    for strategy in catalogue.strategies.values():
        for text in (strategy.evidence, strategy.healthy, strategy.verify, strategy.roll_back, *strategy.prerequisites):
            assert text.zh, strategy.id
            assert text.en, strategy.id
        assert strategy.prerequisites, strategy.id
        assert strategy.precision_risk != "unknown", strategy.id


def test_a_healthy_range_stands_with_every_cause_and_most_have_a_number(catalogue: Catalogue) -> None:
    texts = [cause.healthy for cause in catalogue.causes.values()]
    assert all(text.zh and text.en for text in texts)
    assert sum(bool(re.search(r"\d|no |No |zero", text.en)) for text in texts) > 0.8 * len(texts)


def test_most_strategies_come_with_a_documented_command(catalogue: Catalogue) -> None:
    without = sorted(strategy.id for strategy in catalogue.strategies.values() if not strategy.commands)
    assert len(without) < 0.25 * len(catalogue.strategies), without


def test_no_command_claims_to_be_verified_and_each_names_its_version(catalogue: Catalogue) -> None:
    commands = [command for strategy in catalogue.strategies.values() for command in strategy.commands]
    assert commands
    assert not any(command.verified for command in commands)
    assert all(command.documented_for and command.tool for command in commands)


def _texts(catalogue: Catalogue, records: dict[str, Record]) -> list[Text]:
    found = [text for cause in catalogue.causes.values() for text in (cause.name, cause.definition, cause.evidence, cause.healthy)]
    for strategy in catalogue.strategies.values():
        found += [strategy.definition, strategy.evidence, strategy.healthy, strategy.verify, strategy.roll_back, *strategy.prerequisites]
    for record in records.values():
        found += [record.title, record.summary, record.body, *record.pitfalls]
        found += [text for case in record.cases for text in (*case.symptoms, *case.cautions)]
    return found


def test_each_text_is_written_in_its_language(catalogue: Catalogue, records: dict[str, Record]) -> None:
    for text in _texts(catalogue, records):
        assert chinese_share(text.zh) > 0.3, text
        assert chinese_share(text.en) == 0, text


def test_records_name_known_causes_strategies_and_metrics(catalogue: Catalogue, records: dict[str, Record]) -> None:
    for record in records.values():
        for case in record.cases:
            assert {case.cause, *case.context.causes} <= set(catalogue.causes), record.slug
            assert set(case.context.metrics) <= set(catalogue.metrics), record.slug
            for outcome in case.outcomes:
                assert outcome.strategy in catalogue.strategies
                assert outcome.metric in catalogue.metrics
                assert case.cause in catalogue.strategies[outcome.strategy].addresses


def test_templates_use_known_causes_and_thresholds(catalogue: Catalogue, records: dict[str, Record]) -> None:
    known = set(load_thresholds().values)
    templates = [record.template for record in records.values() if record.template is not None]
    assert templates
    for template in templates:
        for check in template.checks:
            assert check.cause in catalogue.causes
            assert set(check.thresholds) <= known
            assert check.reason.zh
            assert check.reason.en


def test_the_sd3_recipe_carries_the_claim_and_all_ten_contradictions(records: dict[str, Record]) -> None:
    recipe = records["sd3-attention-unfused"]
    assert recipe.provenance == "claimed"
    assert [case.cause for case in recipe.cases] == ["unfused_attention", "suboptimal_tiling", "stream_bubbles"]
    gain = recipe.cases[0].outcomes[0].gain_fraction
    assert gain == pytest.approx(0.319, abs=0.001)
    for lang in ("zh", "en"):
        cautions = " ".join(caution.pick(lang) for case in recipe.cases for caution in case.cautions)
        assert set(re.findall(r"\bF\d+", cautions)) == {f"F{n}" for n in range(1, 11)}


def test_markdown_files_are_in_canonical_form(records: dict[str, Record]) -> None:
    root = library_root()
    for path in [*root.glob("recipes/**/recipe.md"), *root.glob("cards/*.md")]:
        slug = path.parent.name if path.name == "recipe.md" else path.stem
        assert path.read_text(encoding="utf-8") == write_markdown(records[slug]), path.name


@pytest.mark.parametrize(
    ("query", "other"), [("L2命中率", "hit rate"), ("L2 hit rate", "命中率"), ("注意力没融合", "not fused"), ("bubbles", "气泡")]
)
def test_the_glossary_leads_to_the_other_language(catalogue: Catalogue, query: str, other: str) -> None:
    assert other in expand(query, catalogue.glossary).terms


def test_content_names_no_local_path() -> None:
    root = library_root()
    for folder in ("recipes", "cards", "templates"):
        for path in (root / folder).rglob("*"):
            if path.is_file():
                assert not re.search(r"(?<![\w/.])/(?:work|tmp|root|home)/", path.read_text(encoding="utf-8")), path.name
