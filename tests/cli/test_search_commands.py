from __future__ import annotations

import json

import pytest
from cli.program import Run


def test_reembed_says_what_it_did_and_leaves_held_vectors_alone(kb: Run) -> None:
    done = json.loads(kb("reembed", "--embedder", "hashing", "--json").out)
    assert (done["embedded"], done["held"]) == (0, done["records"])
    assert done["model_id"].startswith("hashing")


def test_reembed_names_the_embedders_it_knows(kb: Run) -> None:
    result = kb("reembed", "--embedder", "nonsense")
    assert result.status == 2
    assert "st:" in result.err


def test_reembed_needs_the_models_folder(kb: Run) -> None:
    result = kb("reembed", "--embedder", "st:./no-such-folder")
    assert result.status != 0
    assert "error:" in result.err


@pytest.mark.parametrize("words", ["", "  ", "?!…", "\x00\x07", "、。，"])
def test_a_question_without_content_is_a_usage_error(kb: Run, words: str) -> None:
    result = kb("search", words)
    assert result.status == 2
    assert "kb search" in result.err


@pytest.mark.parametrize("words", ["многопоточность медленная", "x" * 1_000_000, "注意力" * 300_000, "attention\ud800\u202e没融合"])
def test_any_other_text_has_an_answer(kb: Run, words: str) -> None:
    result = kb("search", words, "--json", "--limit", "3")
    assert result.status == 0
    assert len(json.loads(result.out)["hits"]) <= 3


def test_a_filter_that_empties_the_set_is_named(kb: Run) -> None:
    result = kb("search", "attention", "--since", "2999-01-01", "--json")
    assert result.status == 0
    answer = json.loads(result.out)
    assert answer["hits"] == []
    assert "--since 2999-01-01" in json.dumps(answer)
