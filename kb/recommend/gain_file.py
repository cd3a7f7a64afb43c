"""A gain model as bytes: arrays in numpy's own container, without pickles; what was fitted with the outcomes it was fitted to."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from kb.errors import ContentError
from kb.recommend.boosting import Forest, constant
from kb.recommend.experience import GainModel, Reliability
from kb.recommend.fitting import completed, spread_of
from kb.recommend.outcomes import OutcomeTable
from kb.recommend.response import Response, share_traits

SCHEMA: Final = 1
SHIPPED: Final = Path(__file__).with_name("gains.npz")
MOST_BYTES: Final = 64 * 1024**2
"""A larger file is no casebook of ours."""
_DAMAGE: Final = (LookupError, ValueError, TypeError, OSError, EOFError, MemoryError, SyntaxError, RuntimeError)
"""What numpy's reader raises for bytes that are not its own."""
_Arrays = Mapping[str, npt.NDArray[Any]]


class _Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    schema: int
    traits: tuple[str, ...]
    strategies: tuple[str, ...]
    runs: tuple[str, ...]
    groups: tuple[str, ...]
    families: tuple[str, ...]
    made: dict[str, str]
    reliability: Reliability


def to_bytes(model: GainModel) -> bytes:
    """The file. Equal models give equal bytes."""
    table = model.table
    header = _Header(
        schema=SCHEMA, traits=table.traits, strategies=table.strategies, runs=table.runs, groups=table.groups, families=table.families,
        made=dict(table.made), reliability=model.reliability,
    )  # fmt: skip
    own = [model.responses[name] for name in table.strategies]
    held = [place for place, response in enumerate(own) if len(response.trees.leaf)]
    forests = [own[place].trees for place in held]
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        header=np.frombuffer(msgspec.json.encode(header), np.uint8),
        values=table.values.astype(np.float16),
        gains=table.gains.astype(np.float16),
        fitted=model.fitted.astype(np.float16),
        tried=np.packbits(table.tried),
        unfit=np.packbits(table.unfit),
        removed=np.array([response.removed for response in own], np.float32),
        base=np.array([response.trees.base for response in own], np.float32),
        importance=model.importance.astype(np.float16),
        held=np.array(held, np.int16),
        feature=np.array([forest.feature for forest in forests], np.int16),
        threshold=np.array([forest.threshold for forest in forests], np.float32),
        leaf=np.array([forest.leaf for forest in forests], np.float32),
    )
    return buffer.getvalue()


def from_bytes(data: bytes, source: str) -> GainModel:
    """The model in ``data``. Raises ContentError naming ``source`` for anything that is not one of ours."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return _model(arrays)
    except (*_DAMAGE, zipfile.BadZipFile, zlib.error, msgspec.MsgspecError) as error:
        raise ContentError(f"{source}: not a casebook of grown outcomes: {error}", do="grow it again with kb grow") from error


def read_gains(path: Path) -> GainModel:
    """The model in a file. Raises ContentError for one that cannot be read or is not one of ours."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ContentError(f"{path}: larger than {MOST_BYTES >> 20} MiB", do="grow it again with kb grow")
        return from_bytes(path.read_bytes(), str(path))
    except OSError as error:
        raise ContentError(f"{path}: {error.strerror}", do="grow it again with kb grow") from error


def _model(arrays: _Arrays) -> GainModel:
    header = msgspec.json.decode(arrays["header"].tobytes(), type=_Header)
    if header.schema != SCHEMA:
        raise ValueError(f"schema {header.schema}, this version reads {SCHEMA}")
    shape = len(header.runs), len(header.strategies)
    table = OutcomeTable(
        traits=header.traits, strategies=header.strategies, values=_floats(arrays["values"], (shape[0], len(header.traits))),
        gains=_floats(arrays["gains"], shape), tried=_bits(arrays["tried"], shape), unfit=_bits(arrays["unfit"], shape),
        runs=header.runs, groups=header.groups, families=header.families, made=header.made,
    )  # fmt: skip
    if not len(header.runs) == len(header.groups) == len(header.families):
        raise ValueError("runs, groups and families differ in number")
    middle, filled = completed(table)
    return GainModel(
        table=table, filled=filled, middle=middle, spread=spread_of(filled), responses=_responses(arrays, header),
        importance=_floats(arrays["importance"], (shape[1], len(header.traits))).astype(np.float64),
        fitted=_floats(arrays["fitted"], shape), reliability=header.reliability,
    )  # fmt: skip


def _responses(arrays: _Arrays, header: _Header) -> dict[str, Response]:
    removed = _floats(arrays["removed"], (len(header.strategies), int(share_traits(header.traits).sum()))).astype(np.float64)
    feature, threshold, leaf = arrays["feature"], arrays["threshold"], arrays["leaf"]
    if feature.size and not 0 <= int(feature.min()) <= int(feature.max()) < len(header.traits):
        raise ValueError("a tree asks for a trait that is not there")
    if feature.shape != threshold.shape or (leaf.size and leaf.shape != (*feature.shape[:2], feature.shape[2] + 1)):
        raise ValueError("trees of odd shape")
    trees = {int(place): number for number, place in enumerate(arrays["held"])}
    found = {}
    for place, name in enumerate(header.strategies):
        base, number = float(arrays["base"][place]), trees.get(place)
        forest = (
            constant(base) if number is None else Forest(base=base, feature=feature[number], threshold=threshold[number], leaf=leaf[number])
        )
        found[name] = Response(removed[place], forest)
    return found


def _floats(array: npt.NDArray[Any], shape: tuple[int, int]) -> npt.NDArray[np.float32]:
    if array.shape != shape:
        raise ValueError(f"an array of shape {array.shape} instead of {shape}")
    return array.astype(np.float32)


def _bits(array: npt.NDArray[Any], shape: tuple[int, int]) -> npt.NDArray[np.bool_]:
    if array.dtype != np.uint8 or array.shape != (-(-shape[0] * shape[1] // 8),):
        raise ValueError(f"{array.size} packed bytes for {shape}")
    return np.unpackbits(array, count=shape[0] * shape[1]).reshape(shape).astype(np.bool_)
