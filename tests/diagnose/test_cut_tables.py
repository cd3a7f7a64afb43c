"""A kernel table that misses most of the step's compute is not judged as if it were whole."""

from __future__ import annotations

import pytest
from diagnose.factories import MS, Kernel, made, view_of


@pytest.mark.parametrize(("captured", "kept"), [(100, True), (95, True), (50, False), (5, False)])
def test_kernels_are_judged_only_when_they_cover_the_compute(captured: int, kept: bool) -> None:
    kernels = [Kernel(op_type="Add", core="AI_VECTOR_CORE", start=place * MS, duration=MS) for place in range(captured)]
    view = view_of(made(kernels=kernels, trace=[{"computing_ns": 100 * MS, "free_ns": 10 * MS}]))
    assert (view.kernels is not None) == kept
    assert any("may have been cut" in note.en for note in view.accounting.notes) != kept
