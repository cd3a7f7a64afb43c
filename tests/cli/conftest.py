"""The command line under test: quick hashing embedder, and a workspace that already holds the shipped library."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli.program import Run, runner

from kb.workflow.casebook import open_casebook
from kb.workflow.workspace import Workspace


@pytest.fixture(scope="session")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace synced once a session, with the hashing embedder; tests get a copy."""
    home = tmp_path_factory.mktemp("synced")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KB_EMBEDDER", "hashing")
        with open_casebook(Workspace(home), lambda *_: None):
            pass
    return home


@pytest.fixture
def kb(synced: Path, own_home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """``kb`` in this process, on a synced workspace of the test's own."""
    shutil.copytree(synced, own_home)
    monkeypatch.setenv("KB_EMBEDDER", "hashing")
    return runner(capsys)
