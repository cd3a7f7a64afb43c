"""Case studies as data: complete, audited, and simulated as they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.audit.ruleset import audit
from kb.domain.catalogue import Catalogue
from kb.errors import NotFoundError
from kb.library.catalogue import load_catalogue
from kb.profile.simulated.models.names import MODELS
from kb.tune.space import impossible
from kb.workflow.scenario import shown
from kb.workflow.scenario_data import PipelineCase, Scenario, scenario, scenario_names

DOUBTS = {
    "bert-large": {"own_target", "amdahl", "little_grid"},
    "sd3": {"composition", "one_value", "little", "bandwidth", "cache_flow", "tile", "traffic", "work_against_time", "percentage"},
    "llama3-70b": {"model_memory", "attainable_bandwidth"},
    "yolov8-310p": {"throttling", "roofline"},
    "resnet50-8": {"measured_hardware"},
    "tts-video": {"range_base"},
}


@pytest.fixture(scope="module")
def catalogue(checkout: Path) -> Catalogue:
    return load_catalogue(checkout)


def test_every_case_study_is_there() -> None:
    assert set(scenario_names()) == set(DOUBTS)


@pytest.mark.parametrize("name", sorted(DOUBTS))
def test_the_audit_says_why_claims_cannot_hold(name: str, catalogue: Catalogue) -> None:
    case = scenario(name)
    rules = {note.rule for note in audit([case.sheet()], catalogue)}
    assert rules >= DOUBTS[name]
    for text in (case.title, case.configuration):
        assert text.zh
        assert text.en


@pytest.mark.parametrize("name", sorted(DOUBTS))
def test_the_configuration_can_run_and_the_record_exists(name: str, catalogue: Catalogue, checkout: Path) -> None:
    case = scenario(name)
    assert (checkout / "recipes" / case.record / "recipe.md").is_file()
    if isinstance(case, PipelineCase):
        return
    assert case.model in MODELS
    setup = case.setup(catalogue, name)
    assert impossible(setup, max(case.devices, setup.options.world_size)) is None


def test_limits_are_those_of_the_article() -> None:
    case = scenario("bert-large")
    assert isinstance(case, Scenario)
    limits = case.limits.constraints()
    assert (limits.max_latency_ns, limits.max_memory_b, limits.min_throughput) == (100e6, 2.5e9, 150.0)


def test_unknown_names_list_what_there_is() -> None:
    with pytest.raises(NotFoundError, match="no scenario named") as caught:
        scenario("bert-lrage")
    assert caught.value.allowed is not None
    assert "bert-large" in caught.value.allowed


def test_missing_figures_are_shown_as_missing() -> None:
    assert shown(None) == "-"
