"""Questions are answered from what the diagnosis states, with citations, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.program import Run


@pytest.fixture
def asked(kb: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """``kb ask`` beside a simulated SD3 capture with unfused attention."""
    monkeypatch.chdir(tmp_path)
    assert kb("simulate", "model", "bert-base", "--output", "bert.prof").status == 0
    return lambda *words: kb("ask", *words, "--session", "bert")


@pytest.mark.parametrize("question", ["为什么 Attention 耗时高？", "why is attention slow?", "注意力为什么慢"])
def test_the_finding_a_question_names_comes_first_and_cites_cells(question: str, asked: Run) -> None:
    reply = asked(question, "--json").json()
    assert reply["answered"]
    assert reply["simulated"]
    first = reply["said"][0]
    assert first["kind"] == "finding"
    assert "attention" in first["text"]["en"]
    assert first["cites"]
    assert all(1 <= mark <= len(reply["citations"]) for item in reply["said"] for mark in item["cites"])


def test_the_answer_is_in_the_language_of_the_question(asked: Run) -> None:
    assert "注意力没有融合" in asked("为什么 Attention 耗时高？").out
    assert "attention is not fused" in asked("why is attention slow?").out


def test_a_question_nothing_speaks_to_is_not_answered(asked: Run) -> None:
    reply = asked("what about the weather in Paris?")
    assert reply.status == 1
    assert "cannot answer" in reply.out


def test_a_question_without_words_of_its_own_is_about_the_largest_findings(asked: Run, kb: Run) -> None:
    reply = asked("why is it so slow?", "--json").json()
    found = kb("diagnose", "bert.prof", "--json").json()["sessions"][0]["findings"]
    assert reply["said"][0]["text"]["en"] == found[0]["message"]["en"]


def test_parts_of_the_step_and_operators_can_be_asked_for(asked: Run) -> None:
    kinds = {item["kind"] for item in asked("where does the idle time come from?", "--json").json()["said"]}
    assert "part" in kinds
    operators = asked("softmax", "--json").json()["said"]
    assert any("Softmax" in item["text"]["en"] or "softmax" in item["text"]["en"] for item in operators)


def test_without_a_session_the_casebook_answers_and_that_is_said(kb: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reply = kb("ask", "attention is not fused")
    assert reply.status == 0
    assert "casebook alone" in reply.out


def test_an_empty_or_endless_question_is_refused(kb: Run) -> None:
    assert kb("ask", " ").status == 2
    assert kb("ask", "x" * 5000).status == 2
