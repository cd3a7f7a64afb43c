"""What fusing really saves in the simulator, against the bound the diagnosis gave before."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kb.compare.comparison import compare
from kb.diagnose.diagnosis import diagnose
from kb.domain.catalogue import Catalogue
from kb.library.catalogue import load_catalogue
from kb.library.location import library_root
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import Setup, simulate


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue(library_root())


@pytest.mark.parametrize(
    ("model", "chip", "settings"),
    [
        ("sd3", "910b2", {}),
        ("sd3", "310p3", {"stream_depth": 8}),
        # So short that the host sets the pace, with a queue deep enough to move its waits elsewhere.
        ("sd3", "910b4", {"sequence": 64, "stream_depth": 64}),
        ("sd3", "910b-gen1", {"sequence": 64, "stream_depth": 64}),
        ("bert-large", "910b2", {"sequence": 64, "stream_depth": 8}),
        ("bert-large", "910b2", {"sequence": 512, "batch": 8}),
        ("bert-large", "910b4", {"graph_launch": True}),
        ("bert-large", "910b2", {"noise": 1.0, "steps": 5}),
    ],
)
def test_fusing_never_saves_more_than_the_bound(catalogue: Catalogue, model: str, chip: str, settings: dict[str, Any]) -> None:
    options = msgspec.convert({"noise": 0.0, "steps": 2, **settings}, Options)
    setup = Setup(model=model, soc=catalogue.soc(chip), options=options)
    fused = msgspec.structs.replace(setup, options=msgspec.structs.replace(options, fused_attention=True))
    before, after = simulate(setup)[0], simulate(fused)[0]
    diagnoses = diagnose([before], catalogue).sessions[0], diagnose([after], catalogue).sessions[0]
    bound = sum(finding.gain_bound_ns for finding in diagnoses[0].findings if finding.cause == "unfused_attention")
    result = compare(before, after, diagnoses=diagnoses)
    assert result.before_step_ns - result.after_step_ns <= bound
    assert "unfused_attention" not in {finding.cause for finding in diagnoses[1].findings}
    assert result.verdict == "improved" or result.gain_fraction <= result.noise_fraction
