"""Questions are answered from what the diagnosis states, with citations, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cli.program import Run
from hypothesis import given
from hypothesis import strategies as st

from kb.workflow.ask import matching
from kb.workflow.ask_words import content
from kb.workflow.diagnose import diagnose_paths
from kb.workflow.statements import statements


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


Stated = Callable[..., list[str]]


@pytest.fixture(scope="module")
def qwen(shared: Path) -> Stated:
    """What the diagnosis of four real ranks of a pipeline, or of one of them alone, says to a question."""
    folder = shared / "data" / "profiles" / "ascend" / "qwen3-0.6b-train-pp2-dp2"
    held = {}
    for place in ("", "rank_0_ascend_pt", "rank_1_ascend_pt"):
        diagnosed = diagnose_paths([folder / place])
        held[place] = (statements(diagnosed), diagnosed.catalogue)
    return lambda question, place="": [item.text.en for item in matching(question, *held[place])]


@pytest.mark.parametrize(
    ("chinese", "english", "expected"),
    [
        ("空闲时间从哪里来？", "where does the idle time come from?", "idle: cause unknown"),
        ("设备空闲的原因是什么", "why is the device idle?", "idle: cause unknown"),
        ("为什么设备总是闲着", "why does the device idle so much?", "idle: cause unknown"),
        ("瓶颈在哪里", "where is the bottleneck?", "filling and draining the pipeline"),
        ("先做什么", "what should I do first?", "filling and draining the pipeline"),
        ("为什么通信这么慢", "why is communication so slow?", "exposed communication"),
        ("通信占多少", "how much time does communication take?", "exposed communication"),
        ("流水级均衡吗", "is the pipeline imbalance large?", "the pipeline stages are unequal"),
        ("链路正常吗", "is the link healthy?", "Slow link or rank: healthy"),
        ("数据加载慢吗", "is the data loader slow?", "Data loading too slow: not judged"),
        ("有没有垃圾回收停顿", "is there a garbage collection pause?", "Garbage-collection pause: not judged"),
        ("MatMulV3 用了多少时间", "how long does MatMulV3 take?", "MatMulV3: 280 calls"),
    ],
)
def test_a_question_means_the_same_in_both_languages(chinese: str, english: str, expected: str, qwen: Stated) -> None:
    for question in (chinese, english):
        assert any(expected in line for line in qwen(question)), (question, qwen(question))


def test_of_several_ranks_every_line_says_whose_it_is(qwen: Stated) -> None:
    lines = [line for line in qwen("where does the idle time come from?") if "cause unknown" in line]
    assert sorted(line.split(" · ")[0] for line in lines) == ["rank 0", "rank 1", "rank 2", "rank 3"]
    (alone,) = qwen("idle time", "rank_1_ascend_pt")
    assert alone.startswith("idle: cause unknown")


def test_a_finding_keeps_its_caveats(qwen: Stated) -> None:
    (line,) = [line for line in qwen("is the host too slow to launch?", "rank_0_ascend_pt") if "cannot keep up" in line]
    assert "no host events: inferred" in line


@pytest.mark.parametrize(
    "question",
    [
        "is the memory full?",
        "显存够不够",
        "Is there any loss of precision?",
        "精度损失大吗",
        "loss 为什么不收敛",
        "天气怎么样",
        "speed of light",
    ],
)
def test_the_diagnosis_does_not_answer_with_another_topic(question: str, qwen: Stated) -> None:
    assert qwen(question) == []
    assert qwen(question, "rank_0_ascend_pt") == []


def test_what_no_profile_holds_is_said_with_the_way_to_find_it(asked: Run) -> None:
    assert "not numerical accuracy" in asked("Is there any loss of precision?").out
    assert "不判断内存占用" in asked("显存满了吗").out


def test_captured_communication_is_not_said_to_be_absent(qwen: Stated) -> None:
    (line,) = qwen("is the link healthy?", "rank_0_ascend_pt")
    assert "not judged (communication was captured (420.2 ms exposed)" in line


@pytest.mark.parametrize("question", ["瓶颈在哪里", "why is it so slow?"])
@pytest.mark.parametrize(
    ("name", "expected"), [("a100_busy36", "no captured event explains it"), ("cpu_only", "nothing on the device can be judged")]
)
def test_an_open_loss_is_named_before_smaller_findings(name: str, expected: str, question: str, shared: Path) -> None:
    (path,) = (shared / "data" / "profiles" / "kineto").glob(f"{name}*")
    diagnosed = diagnose_paths([path])
    first = matching(question, statements(diagnosed), diagnosed.catalogue)[0]
    assert "idle: cause unknown" in first.text.en
    assert expected in first.text.en


@given(st.lists(st.sampled_from(["空闲", "通信", "时间", "慢", "吗", "为什么", "设备", "哪里"]), max_size=8))
def test_no_pair_of_characters_reaches_over_the_border_of_a_word(words: list[str]) -> None:
    found = content("".join(words), {"空闲", "通信"}, {"空闲", "通信"})
    assert sorted(found) == sorted({"空闲", "通信"} & set(words))
