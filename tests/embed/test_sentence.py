from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest
from embed.contract import EmbedderContract

from kb.domain.protocols import Embedder
from kb.embed.choice import open_embedder
from kb.embed.hashing import HashingEmbedder
from kb.errors import KbError


class FakeModel:
    """Stands for sentence_transformers.SentenceTransformer: puts the folder's prompts before each text."""

    made: ClassVar[list[tuple[str, dict[str, Any]]]] = []

    def __init__(self, folder: str, **options: Any) -> None:
        if "broken" in folder:
            raise OSError("no weights")
        self.made.append((folder, options))
        self._inner = HashingEmbedder(32)

    def encode_query(self, texts: str | list[str], *, show_progress_bar: bool) -> npt.NDArray[np.float32]:
        return self._encode("query ", texts)

    def encode_document(self, texts: list[str], *, show_progress_bar: bool) -> npt.NDArray[np.float32]:
        return self._encode("", texts)

    def _encode(self, prompt: str, texts: str | list[str]) -> npt.NDArray[np.float32]:
        if isinstance(texts, str):
            return 3 * self._inner.encode_query(prompt + texts)
        return 3 * self._inner.encode_documents([prompt + text for text in texts])


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = ModuleType("sentence_transformers")
    fake.SentenceTransformer = FakeModel  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", fake)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(FakeModel, "made", [])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "model"
    made.mkdir()
    (made / "modules.json").write_text("[]")
    (made / "model.safetensors").write_bytes(b"weights")
    return made


class TestSentence(EmbedderContract):
    @pytest.fixture
    def embedder(self, library: None, folder: Path) -> Embedder:
        return open_embedder(f"st:{folder}")


def test_models_open_offline_from_local_files_without_their_code(library: None, folder: Path) -> None:
    open_embedder(f"st:{folder}")
    opened, options = FakeModel.made[0]
    assert opened == str(folder)
    assert options["local_files_only"] is True
    assert options["trust_remote_code"] is False
    assert os.environ["HF_HUB_OFFLINE"] == "1"


def test_the_query_prompt_is_used_for_queries_only(library: None, folder: Path) -> None:
    embedder = open_embedder(f"st:{folder}")
    assert not np.allclose(embedder.encode_query("cache"), embedder.encode_documents(["cache"])[0])
    np.testing.assert_allclose(embedder.encode_query("cache"), embedder.encode_documents(["query cache"])[0])


def test_other_weights_are_another_model(library: None, folder: Path) -> None:
    before = open_embedder(f"st:{folder}").model_id
    (folder / "model.safetensors").write_bytes(b"other")
    assert open_embedder(f"st:{folder}").model_id != before


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    for name in ("sentence_transformers", "huggingface_hub"):
        monkeypatch.setitem(sys.modules, name, None)
    for source in (str(folder), "all-MiniLM-L6-v2"):
        with pytest.raises(KbError, match=r"'\.\[transformers\]'"):
            open_embedder(f"st:{source}")


def test_a_folder_that_is_no_model_is_refused(library: None, tmp_path: Path) -> None:
    for source in (tmp_path, tmp_path / "absent"):
        with pytest.raises(KbError, match="not a model folder"):
            open_embedder(f"st:{source}")


def test_a_model_that_does_not_load_is_named(library: None, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{}")
    with pytest.raises(KbError, match="no weights"):
        open_embedder(f"st:{broken}")


def test_a_name_that_was_never_downloaded_is_refused_without_asking_the_network(library: None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, bool]] = []

    def snapshot_download(name: str, *, local_files_only: bool) -> str:
        asked.append((name, local_files_only))
        raise FileNotFoundError("not in the local cache")

    hub = ModuleType("huggingface_hub")
    hub.snapshot_download = snapshot_download  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    with pytest.raises(KbError, match="on this machine"):
        open_embedder("st:some-model")
    assert asked == [("sentence-transformers/some-model", True)]
