"""Export for speedscope (file format schema at speedscope.app/file-format-schema.json): one sampled profile a session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kb import __version__
from kb.report.figures import Frame


def speedscope(flames: Sequence[tuple[str, Frame]]) -> bytes:
    """``flames`` are names of sessions with their flame graphs. Each frame's own time is one weighted sample of its stack."""
    index: dict[str, int] = {}
    profiles = [_profile(name, root, index) for name, root in flames]
    document: dict[str, Any] = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": f"diagnosis-recipes {__version__}",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in index]},
        "profiles": profiles,
    }
    return msgspec.json.encode(document)


def _profile(name: str, root: Frame, index: dict[str, int]) -> dict[str, Any]:
    samples, weights = [], []
    for stack, own in _stacks(root, ()):
        samples.append([index.setdefault(frame, len(index)) for frame in stack])
        weights.append(own)
    return {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }


def _stacks(frame: Frame, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    stack = (*above, frame.name)
    own = frame.value_ns - sum(child.value_ns for child in frame.children)
    if own > 0:
        yield stack, own
    for child in frame.children:
        yield from _stacks(child, stack)
