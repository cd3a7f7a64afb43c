"""How the process handles memory that the readers free and take again a thousand times."""

from __future__ import annotations

from typing import Final

import numpy as np

_BLOCK: Final = 31 << 20
"""Bytes; the allocator of glibc takes no notice of blocks from 32 MiB on."""


def keep_freed_blocks() -> None:
    """Let the allocator keep the blocks of one batch for the next instead of giving their pages back to the system.

    glibc returns every large block to the system until one of that size has been freed once; half of the time of reading
    then goes into getting the same pages again. The block freed here is never touched, so it takes no memory itself.
    """
    np.empty(_BLOCK, np.uint8)
