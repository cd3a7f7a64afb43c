"""One BLAS thread while encoding: texts are short, and a second thread costs more than it brings.

On a 2-core machine with four threads one query takes 220 to 450 ms instead of 4 ms.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

_SYMBOLS = (
    ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"),
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads64_", "openblas_set_num_threads64_"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
)
_FOLDERS = ("numpy.libs", "numpy/.dylibs")


class Blas:
    """The thread count of the OpenBLAS inside the numpy wheel; does nothing where numpy uses another library."""

    def __init__(self) -> None:
        self._controls = _find_controls()
        self._lock = threading.Lock()

    @property
    def controlled(self) -> bool:
        """Whether the count can be set here."""
        return self._controls is not None

    def threads(self) -> int | None:
        """The present count, None where unknown."""
        return self._controls[0]() if self._controls else None

    @contextmanager
    def single(self) -> Iterator[None]:
        """One thread inside the block, the former count after it. The count is the process's: callers take turns."""
        if self._controls is None:
            yield
            return
        get, put = self._controls
        with self._lock:
            before = get()
            put(1)
            try:
                yield
            finally:
                put(before)


def _find_controls() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    site = Path(np.__file__).parent.parent
    for path in (path for folder in _FOLDERS for path in sorted((site / folder).glob("*openblas*"))):
        library = ctypes.CDLL(str(path))
        for getter, setter in _SYMBOLS:
            if hasattr(library, getter) and hasattr(library, setter):
                put = getattr(library, setter)
                put.argtypes, put.restype = [ctypes.c_int], None
                return getattr(library, getter), put
    return None
