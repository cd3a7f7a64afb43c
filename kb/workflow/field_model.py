"""The fitted field model, kept in the workspace's cache: a file that is believed only when it belongs to this very casebook."""

from __future__ import annotations

import hashlib
import io
import zipfile
from typing import Final

import msgspec
import numpy as np

from kb.domain.catalogue import Catalogue
from kb.domain.protocols import Store
from kb.files import write_whole
from kb.index.cache import IDENTITY
from kb.recommend.field.model import FieldModel
from kb.recommend.field.weights import load_field_weights
from kb.recommend.field.words import WordModel
from kb.workflow.workspace import Workspace

MODEL_FILE: Final = "field-model.npz"
_FORM: Final = "1"
"""Raise it when the same casebook would give another model."""


class _Names(msgspec.Struct, frozen=True, kw_only=True):
    """What is not an array."""

    key: str
    causes: tuple[str, ...]
    strategies: tuple[str, ...]
    words: tuple[str, ...]
    cases: int


def model_key(store: Store, catalogue: Catalogue, model_id: str) -> str:
    """64 hex digits over everything the model depends on: the store's identity and generation, the catalogue, the embedder, the weights."""
    parts = (store.state(IDENTITY) or "", store.generation(), model_id, load_field_weights(), catalogue.causes, catalogue.strategies)
    return hashlib.sha256(_FORM.encode() + msgspec.json.encode(parts)).hexdigest()


def remembered(place: Workspace, key: str) -> FieldModel | None:
    """The kept model, if there is a sound one with this key."""
    try:
        with (place.cache / MODEL_FILE).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            names = msgspec.json.decode(file["names"].tobytes(), type=_Names)
            if names.key != key:
                return None
            columns = {word: column for column, word in enumerate(names.words)}
            return FieldModel(
                causes=names.causes,
                strategies=names.strategies,
                words=WordModel(names.causes, columns, file["counts"]),
                mean=file["mean"],
                coefficients=file["coefficients"],
                answers=file["answers"],
                outcomes=file["outcomes"],
                cases=names.cases,
            )
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):  # msgspec's errors are ValueErrors
        return None


def kept(place: Workspace, key: str, model: FieldModel) -> bool:
    """Keep ``model``; whether that was possible. A cache that cannot be written costs time, nothing else."""
    names = _Names(key=key, causes=model.causes, strategies=model.strategies, words=tuple(model.words.columns), cases=model.cases)
    buffer = io.BytesIO()
    np.savez(
        buffer,
        names=np.frombuffer(msgspec.json.encode(names), dtype=np.uint8),
        counts=model.words.counts,
        mean=model.mean,
        coefficients=model.coefficients,
        answers=model.answers,
        outcomes=model.outcomes,
    )
    try:
        write_whole(place.cache / MODEL_FILE, [buffer.getvalue()])
    except OSError:
        return False
    return True
