from __future__ import annotations

import subprocess
import sys

import pytest

from kb.embed.choice import open_embedder
from kb.errors import UsageError


@pytest.mark.parametrize("name", ["", "USE", "st:", "openai"])
def test_an_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match="use, hashing, st:"):
        open_embedder(name)


def test_hashing_is_for_tests_and_needs_no_weights() -> None:
    assert open_embedder("hashing").name == "hashing"


def test_choosing_imports_nothing_heavy() -> None:
    code = "import sys, kb.embed.choice; print([name for name in ('numpy', 'torch', 'sentencepiece') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
