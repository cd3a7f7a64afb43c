"""Values while shapes are inferred: shape, type, and the numbers of small constants."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from kb.profile.simulated.onnx.document import TensorRef
from kb.profile.simulated.onnx.reading import MOST_VALUES
from kb.profile.simulated.wire import Data

Array = npt.NDArray[Any]
DTYPES: Final[Mapping[int, str]] = {
    1: "FLOAT", 2: "UINT8", 3: "INT8", 4: "UINT16", 5: "INT16", 6: "INT32", 7: "INT64", 9: "BOOL", 10: "FLOAT16", 11: "DOUBLE",
    12: "UINT32", 13: "UINT64", 14: "COMPLEX64", 15: "COMPLEX128", 16: "DT_BF16", 17: "INT8", 18: "INT8", 19: "INT8", 20: "INT8",
    21: "INT4", 22: "INT4", 23: "INT4",
}  # fmt: skip
"""ONNX element type codes in Ascend's spelling; 8-bit floats count as INT8 and 4-bit types as INT4: the bytes are the same."""
STRING: Final = 8
_NUMPY: Final[Mapping[int, str]] = {
    1: "<f4", 2: "u1", 3: "i1", 4: "<u2", 5: "<i2", 6: "<i4", 7: "<i8", 9: "?", 10: "<f2", 11: "<f8", 12: "<u4", 13: "<u8",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Value:
    """``constant``: known before the run, so a weight. ``data``: its numbers, where they are few. ``name`` is its own or
    that of the value whose memory it shares."""

    shape: tuple[int, ...]
    dtype: str
    constant: bool = False
    data: Array | None = None
    owner: str = ""

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def numpy_type(dtype: str) -> str:
    """The numpy spelling a constant of this type is computed in."""
    return {"FLOAT": "<f4", "FLOAT16": "<f4", "DT_BF16": "<f4", "DOUBLE": "<f8", "INT32": "<i4", "BOOL": "?"}.get(dtype, "<i8")


def constant_of(ref: TensorRef, data: Data) -> Value:
    """An initialiser as a value; its numbers only where they are few and lie in this file."""
    dtype = DTYPES.get(ref.code, "FLOAT")
    elements = math.prod(ref.shape)
    found: Array | None = None
    if elements <= MOST_VALUES and not ref.external and ref.code in _NUMPY:
        found = _numbers(ref, data, elements)
    return Value(ref.shape, dtype, constant=True, data=found)


def _numbers(ref: TensorRef, data: Data, elements: int) -> Array | None:
    kind = np.dtype(_NUMPY[ref.code])
    if ref.raw is not None:
        if ref.raw[1] - ref.raw[0] != elements * kind.itemsize:
            return None
        return np.frombuffer(bytes(data[ref.raw[0] : ref.raw[1]]), kind).reshape(ref.shape)
    if len(ref.values) != elements:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        return np.array(ref.values, dtype=np.float64).astype(kind).reshape(ref.shape)
