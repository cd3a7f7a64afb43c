"""The command line under test: quick hashing embedder unless a test says otherwise."""

from __future__ import annotations

import pytest
from cli.program import Run, runner


@pytest.fixture
def kb(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """``kb`` in this process, with the hashing embedder."""
    monkeypatch.setenv("KB_EMBEDDER", "hashing")
    return runner(capsys)
