"""The shipped catalogue and a small simulated run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.domain.catalogue import Catalogue
from kb.library.catalogue import load_catalogue
from kb.profile.simulated.options import Options
from kb.profile.simulated.run import simulate
from kb.profile.simulated.setup import Setup
from kb.session.session import Session


@pytest.fixture(scope="session")
def shipped(checkout: Path) -> Catalogue:
    return load_catalogue(checkout)


@pytest.fixture(scope="session")
def small(shipped: Catalogue) -> Setup:
    """BERT-base, host-bound, without noise: gains are exact."""
    return Setup(model="bert-base", soc=shipped.soc("910b2"), options=Options(steps=3, noise=0.0), seed=3)


@pytest.fixture(scope="session")
def profile(small: Setup) -> Session:
    return simulate(small)[0]
