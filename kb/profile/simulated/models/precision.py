"""The element type a model runs in."""

from __future__ import annotations

from typing import Final

from kb.profile.simulated.models.recording import Recording
from kb.profile.simulated.options import Options

_TYPES: Final = {"fp16": "FLOAT16", "bf16": "DT_BF16", "fp32": "FLOAT"}


def recording(options: Options, own: str) -> Recording:
    """An empty recording in the type asked for, else the model's ``own``; "int8" quantises the products alone."""
    return Recording(_TYPES.get(options.precision, own), fractal=options.weight_format_nz, quantized=options.precision == "int8")
