"""What the store demands of the search data that comes with a record."""

from __future__ import annotations

import math
import struct
from typing import NoReturn

from kb.domain.protocols import Prepared
from kb.errors import StoreError


def field_vectors(prepared: Prepared) -> dict[str, bytes]:
    """Each field's vector as little-endian float32 bytes.

    Raises StoreError when ``prepared`` contradicts itself: sizes, repeated fields, numbers that are not
    finite, counts below 1, a share outside 0..1.
    """
    width = 4 * prepared.dim
    if len(prepared.vectors) != width * len(prepared.fields) or len(set(prepared.fields)) != len(prepared.fields):
        _refuse(
            f"{len(prepared.vectors)} bytes of vectors for the fields {list(prepared.fields)}",
            "one vector of dim float32 for each distinct field",
        )
    if not all(map(math.isfinite, struct.unpack(f"<{len(prepared.vectors) // 4}f", prepared.vectors))):
        _refuse("a vector with a number that is not finite", "finite numbers")
    if any(count < 1 for count in prepared.tokens.values()):
        _refuse("a token counted less than once", "counts from 1")
    if not 0.0 <= prepared.language_share <= 1.0:
        _refuse(f"a language share of {prepared.language_share}", "0 to 1")
    return {field: prepared.vectors[row * width : (row + 1) * width] for row, field in enumerate(prepared.fields)}


def _refuse(what: str, allowed: str) -> NoReturn:
    raise StoreError(f"nothing was published: the search data has {what}", allowed=allowed, do="prepare the record again")
