"""Models of one's own through sentence-transformers. Importing that library costs seconds: only the constructor does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kb.embed.content import encode_meaningful, unit_rows
from kb.embed.digest import folder_digest
from kb.errors import KbError, install

if TYPE_CHECKING:
    from kb.domain.protocols import Vectors

_MODEL_FILES: Final = (".json", ".safetensors", ".bin", ".model", ".txt")
_MODEL_MARKS: Final = ("modules.json", "config.json")


class SentenceEmbedder:
    """A sentence-transformers model from a local folder, or from the local cache of models already downloaded.

    Nothing is fetched: the hub client is set offline before it is imported, and only local files are opened.
    A folder that wants to run code of its own is refused. The folder's prompts for queries and documents are
    used. ``model_id`` holds a hash of the model's files. Raises KbError when the library or the model is missing.
    """

    name = "st"

    def __init__(self, source: str) -> None:
        # Read once when the hub client is imported, so an argument could not replace it.
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        folder = _checked_folder(Path(source)) if Path(source).exists() or source.startswith((".", "/", "~")) else _downloaded(source)
        self._model = _load(folder)
        self.dim = int(np.asarray(self._model.encode_query("a", show_progress_bar=False)).shape[-1])
        self.model_id = f"st/{folder.name}/{folder_digest(folder, _MODEL_FILES)[:16]}/{self.dim}"

    def encode_query(self, text: str) -> Vectors:
        """Shape (dim,), float32, length 1, with the model's query prompt."""
        vector: Vectors = encode_meaningful([text], self.dim, lambda texts: self._unit(self._model.encode_query, texts))[0]
        return vector

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dim), float32, rows of length 1, with the model's document prompt."""
        return encode_meaningful(texts, self.dim, lambda texts: self._unit(self._model.encode_document, texts))

    def _unit(self, encode: Any, texts: list[str]) -> Vectors:
        return unit_rows(np.asarray(encode(texts, show_progress_bar=False), dtype=np.float32))


def _checked_folder(folder: Path) -> Path:
    folder = folder.expanduser()
    if not any((folder / mark).is_file() for mark in _MODEL_MARKS):
        raise KbError(f"{folder} is not a model folder", allowed=f"a folder that holds {' or '.join(_MODEL_MARKS)}", do="check the path")
    return folder


def _missing() -> KbError:
    return KbError("st: models need sentence-transformers", do=f"{install('transformers')}; or use the default embedder")


def _downloaded(name: str) -> Path:
    try:
        snapshot_download = import_module("huggingface_hub").snapshot_download
    except ImportError as error:
        raise _missing() from error
    full = name if "/" in name else f"sentence-transformers/{name}"
    try:
        return Path(snapshot_download(full, local_files_only=True))
    except (OSError, ValueError) as error:
        raise KbError(
            f"no model {name!r} on this machine: {error}", allowed="a model folder or a model already downloaded", do="give its folder"
        ) from error


def _load(folder: Path) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise _missing() from error
    try:
        return SentenceTransformer(
            str(folder), device="cpu", local_files_only=True, trust_remote_code=False, model_kwargs={"dtype": "float32"}
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise KbError(f"the model in {folder} cannot be loaded: {error}", do="check that the folder is complete") from error
