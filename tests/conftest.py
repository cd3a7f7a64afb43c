"""Fixtures every test may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--remake-golden", action="store_true", help="write the golden files anew instead of comparing with them")


@pytest.fixture(scope="session")
def checkout() -> Path:
    """Root of the source tree."""
    return CHECKOUT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real profiles, cases and measurements beside the checkout."""
    folder = CHECKOUT.parent / "shared"
    if not (folder / "data").is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail("the shared data folder must lie beside the checkout in CI")
        pytest.skip("the shared data folder is not beside this checkout")
    return folder


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a workspace of its own; nobody's real one is touched."""
    home = tmp_path / "kb-home"
    monkeypatch.setenv("KB_HOME", str(home))
    monkeypatch.delenv("KB_STORE", raising=False)
    return home
