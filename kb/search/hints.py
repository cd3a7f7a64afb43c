"""What people say when they meet a cause, ready to compare a question with: vectors and words of ``symptoms.json`` and the catalogue.

A question in a user's own words often names no notion that the right record holds ("it gets slower the longer it runs"). These
sentences lead from such words to a cause, and the cause's name and definition to the records.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from kb.domain.text import LANGS, Lang
from kb.files import write_whole
from kb.text.tokens import counts

if TYPE_CHECKING:
    import numpy.typing as npt

    from kb.domain.catalogue import Catalogue, Cause
    from kb.domain.protocols import Embedder, Vectors

FORMAT: Final = 1
_LENGTH_BYTES: Final = 8
_SUM_BYTES: Final = 4


class Symptoms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of ``symptoms.json``: what people say about ``cause``, one sentence each."""

    cause: str
    zh: tuple[str, ...]
    en: tuple[str, ...]


class Hints(msgspec.Struct, frozen=True, eq=False):
    """Of each of ``causes``: its words (``tokens``), the unit mean ``centres`` (causes, dim) of everything said about it; of each
    sentence its vector (``sentences``, (n, dim)), its cause's place (``owners``) and language."""

    model_id: str
    causes: tuple[str, ...]
    tokens: tuple[Mapping[str, int], ...]
    centres: Vectors
    sentences: Vectors
    owners: npt.NDArray[np.intp]
    languages: tuple[Lang, ...]
    memo: dict[str, Any] = {}
    """What is made of the causes' names and words once, for all questions."""


class _Kept(msgspec.Struct, frozen=True):
    """The head of a cache file; the vectors of all texts follow."""

    tokens: tuple[dict[str, int], ...]
    shape: tuple[int, int]


def load_hints(catalogue: Catalogue, embedder: Embedder, folder: Path | None = None) -> Hints | None:
    """The hints for the causes of ``catalogue``; None when ``symptoms.json`` speaks of none of them.

    ``folder`` keeps vectors and words between processes (embedding some 500 texts takes 2 s); a file that is missing, damaged or made
    from anything else is written anew, and a folder that cannot be written is left alone.
    """
    rows = [row for row in read_symptoms() if row.cause in catalogue.causes]
    if not rows:
        return None
    said = [(at, lang, sentence) for at, row in enumerate(rows) for lang in LANGS for sentence in (row.zh if lang == "zh" else row.en)]
    described = [(at, text) for at, row in enumerate(rows) for text in _described(catalogue.causes[row.cause])]
    texts = [*(sentence for _, _, sentence in said), *(text for _, text in described)]
    kept, vectors = _kept(rows, texts, catalogue, embedder, folder)
    owners = np.array([*(at for at, _, _ in said), *(at for at, _ in described)])
    centres = np.stack([vectors[owners == at].mean(axis=0) for at in range(len(rows))])
    return Hints(
        model_id=embedder.model_id,
        causes=tuple(row.cause for row in rows),
        tokens=kept.tokens,
        centres=centres / np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-9),
        sentences=vectors[: len(said)],
        owners=owners[: len(said)],
        languages=tuple(lang for _, lang, _ in said),
    )


def read_symptoms() -> tuple[Symptoms, ...]:
    """The shipped sentences."""
    return msgspec.json.decode(Path(__file__).with_name("symptoms.json").read_bytes(), type=tuple[Symptoms, ...])


def _described(cause: Cause) -> list[str]:
    """What the catalogue says about a cause, name and definition together, in both languages."""
    zh, en = f"{cause.name.zh}。{cause.definition.zh}", f"{cause.name.en}. {cause.definition.en}"
    return [text for text in (zh, cause.evidence.zh, en, cause.evidence.en) if text.strip(" 。.")]


def _kept(
    rows: Sequence[Symptoms], texts: Sequence[str], catalogue: Catalogue, embedder: Embedder, folder: Path | None
) -> tuple[_Kept, Vectors]:
    key = hashlib.sha256(msgspec.json.encode([FORMAT, embedder.model_id, embedder.dim, rows, texts])).hexdigest()[:24]
    path = folder / f"causes-{key}.hints" if folder is not None else None
    found = _opened(path, (len(texts), embedder.dim)) if path is not None else None
    if found is not None:
        return found
    spoken = ["\n".join((*row.zh, *row.en, *_described(catalogue.causes[row.cause]))) for row in rows]
    made = _Kept(tuple(counts(text) for text in spoken), (len(texts), embedder.dim)), embedder.encode_documents(texts)
    if path is not None:
        _write(path, *made)
    return made


def _opened(path: Path, shape: tuple[int, int]) -> tuple[_Kept, Vectors] | None:
    """What a cache file holds; None for any reason not to trust it."""
    try:
        data = path.read_bytes()
        body, end = data[:-_SUM_BYTES], _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
        if zlib.crc32(body) != int.from_bytes(data[-_SUM_BYTES:], "little"):
            return None
        kept = msgspec.json.decode(body[_LENGTH_BYTES:end], type=_Kept)
        vectors = np.frombuffer(body[end:], dtype="<f4").astype(np.float32, copy=False)
    except (OSError, ValueError):  # msgspec's errors are ValueErrors
        return None
    return (kept, vectors.reshape(shape)) if kept.shape == shape and vectors.size == shape[0] * shape[1] else None


def _write(path: Path, kept: _Kept, vectors: Vectors) -> None:
    head = msgspec.json.encode(kept)
    body = len(head).to_bytes(_LENGTH_BYTES, "little") + head + vectors.astype("<f4").tobytes()
    try:
        write_whole(path, [body, zlib.crc32(body).to_bytes(_SUM_BYTES, "little")])
    except OSError:
        # A cache: the next process works it out again.
        return
