"""The wildcard of transcripts stands for what it should and for nothing else."""

from __future__ import annotations

import pytest
from docs.transcripts import agrees


@pytest.mark.parametrize(
    ("shown", "printed", "equal"),
    [
        (("a", "b"), "a\nb\n", True),
        (("a", "b"), "a\nc\n", False),
        (("a", "…", "d"), "a\nb\nc\nd", True),
        (("a", "…", "d"), "a\nd", True),
        (("a", "…", "d"), "a\nb\n", False),
        (("a", "…"), "a\nb\nc", True),
        (("took … ms",), "took 12 ms", True),
        (("took … ms",), "took 12 s", False),
        (("(1 + 1)",), "(1 + 1)", True),
    ],
)
def test_agreement(shown: tuple[str, ...], printed: str, equal: bool) -> None:
    assert agrees(shown, printed) is equal
