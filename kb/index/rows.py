"""All vectors of one model as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from kb.domain.protocols import Ids, VectorBlock, Vectors

    Codes = npt.NDArray[np.uint16]


@dataclass(frozen=True, slots=True, eq=False)
class VectorRows:
    """All vectors of one model at one generation: ``ids`` (n,) int64, ``vectors`` (n, dim) float32 and ``field_codes`` (n,)
    uint16, places in ``field_names``. Read-only."""

    generation: int
    model_id: str
    dim: int
    ids: Ids
    vectors: Vectors
    field_codes: Codes
    field_names: tuple[str, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """The name of each row's field."""
        return tuple(self.field_names[code] for code in self.field_codes.tolist())


def rows_of(block: VectorBlock) -> VectorRows:
    """The arrays of a store's block."""
    names, codes = coded(block.fields)
    ids = np.frombuffer(block.ids, dtype="<i8").astype(np.int64, copy=False)
    return VectorRows(
        generation=block.generation,
        model_id=block.model_id,
        dim=block.dim,
        ids=ids,
        vectors=np.frombuffer(block.vectors, dtype="<f4").astype(np.float32, copy=False).reshape(len(ids), block.dim),
        field_codes=codes.astype(np.uint16),
        field_names=names,
    )


def joined(first: VectorRows, added: VectorRows) -> VectorRows:
    """``first`` and then ``added``, as copies, at the generation of ``added``."""
    names = tuple(dict.fromkeys(first.field_names + added.field_names))
    places = np.array([names.index(name) for name in added.field_names], dtype=np.uint16)
    return VectorRows(
        generation=added.generation,
        model_id=added.model_id,
        dim=added.dim,
        ids=np.concatenate([first.ids, added.ids]),
        vectors=np.concatenate([first.vectors, added.vectors]),
        field_codes=np.concatenate([first.field_codes, places[added.field_codes]]),
        field_names=names,
    )


def coded(fields: Sequence[str]) -> tuple[tuple[str, ...], Codes]:
    """The distinct names in order of first use, and each field's place among them as little-endian uint16."""
    places = {name: place for place, name in enumerate(dict.fromkeys(fields))}
    return tuple(places), np.fromiter((places[name] for name in fields), dtype="<u2", count=len(fields))
