"""The field recommender: what it learns, what it forgets, and how its probabilities are calibrated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from recommend.samples import CATALOGUE, outcome, record

from kb.domain.case import Case
from kb.domain.field import FieldQuestion
from kb.domain.record import Record, Source
from kb.domain.text import Text
from kb.embed.hashing import HashingEmbedder
from kb.errors import ContentError, UsageError
from kb.recommend.field.answering import field_answer
from kb.recommend.field.calibration import (
    Calibration,
    breakpoints,
    calibration_error,
    crossed,
    read_calibration,
    reliability,
    shipped_calibration,
)
from kb.recommend.field.documents import CaseDocument, Lessons, case_documents, cause_document, cause_texts, is_field_case
from kb.recommend.field.model import AskedField, fit_field, judge, left_out
from kb.recommend.field.question import read_field_question
from kb.recommend.field.trial import Asked, calibrated, questions_of
from kb.recommend.field.weights import load_field_weights

_W = load_field_weights()
_EMBEDDER = HashingEmbedder()


def _case(slug: str, cause: str, told: str, *, strategy: str = "bind", worked: bool = True) -> Record:
    own = record(slug, outcome(strategy, "step_time", "10 ms", "5 ms" if worked else "20 ms"), cause=cause)
    case = replace(own.cases[0], finding=Text("", told), symptoms=(Text("", told),))
    return replace(own, cases=(case,), title=Text("", told), summary=Text(), body=Text())


def _document(own: Record) -> CaseDocument:
    text = own.cases[0].finding.en
    return next(case_documents(own, ("title.en", "strategy.en"), _EMBEDDER.encode_documents([text, "unrelated"]), CATALOGUE))


def _lessons(*records: Record) -> Lessons:
    definitions = tuple(
        cause_document(cause, CATALOGUE, _EMBEDDER.encode_documents(list(cause_texts(cause)))) for cause in CATALOGUE.causes.values()
    )
    return Lessons(definitions, tuple(_document(own) for own in records))


_RECORDS = (
    _case("a", "waits", "host threads jump between cores"),
    _case("b", "waits", "threads on far cores"),
    _case("c", "slow", "softmax between two products", strategy="use_fused_attention"),
    _case("d", "slow", "score matrix travels to memory", strategy="retile", worked=False),
)


_MODEL = fit_field(_lessons(*_RECORDS), CATALOGUE, _W)


def _ask(text: str) -> AskedField:
    return read_field_question(FieldQuestion(symptom=text), _EMBEDDER, CATALOGUE, _W)


def test_words_of_past_cases_find_their_cause_and_its_answer() -> None:
    model = _MODEL
    found = judge(model, _ask("cores and threads"), _W)
    assert model.causes[int(found.probability.argmax())] == "waits"
    assert model.strategies[int(found.strategies.argmax())] == "bind"
    assert set(found.spoken[model.causes.index("waits")]) <= {"cores", "and", "threads"}
    assert found.speakers[model.strategies.index("bind")] == "waits"


@settings(deadline=None)
@given(st.text(max_size=60))
def test_probabilities_are_probabilities(text: str) -> None:
    found = judge(_MODEL, AskedField(dict.fromkeys(text.split(), 1.0), _EMBEDDER.encode_documents([text])), _W)
    assert found.probability.sum() == pytest.approx(1)
    assert (found.probability >= 0).all()
    assert found.strategies.sum() <= 1 + 1e-9


def test_a_question_without_anything_known_leaves_all_causes_equal() -> None:
    model = _MODEL
    found = judge(model, AskedField({"zzz": 1.0}, np.zeros((0, _EMBEDDER.dim), np.float32)), _W)
    assert found.probability == pytest.approx(np.full(len(model.causes), 1 / len(model.causes)))


@pytest.mark.parametrize("group", [(0,), (2, 3), (0, 1, 2, 3), ()])
def test_what_is_left_out_leaves_no_trace(group: tuple[int, ...]) -> None:
    """Oracle: counts, answers and outcomes as if the case had never been there."""
    whole = _lessons(*_RECORDS)
    rest = Lessons(whole.definitions, tuple(case for place, case in enumerate(whole.cases) if place not in group))
    left, fresh = next(left_out(whole, [group], CATALOGUE, _W)), fit_field(rest, CATALOGUE, _W)
    assert left.answers == pytest.approx(fresh.answers)
    assert left.outcomes == pytest.approx(fresh.outcomes)
    assert left.cases == fresh.cases
    for word, column in fresh.words.columns.items():
        assert left.words.counts[:, left.words.columns[word]] == pytest.approx(fresh.words.counts[:, column])
    unknown = [column for word, column in left.words.columns.items() if word not in fresh.words.columns]
    assert not left.words.counts[:, unknown].any()


def test_labels_of_what_is_left_out_do_not_reach_the_vectors() -> None:
    """The same case with the other label gives the same model once it is left out."""
    other = replace(_RECORDS[0], cases=(replace(_RECORDS[0].cases[0], cause="slow"),))
    one, two = (next(left_out(_lessons(own, *_RECORDS[1:]), [(0,)], CATALOGUE, replace(_W, ridge=10.0))) for own in (_RECORDS[0], other))
    # The prior of the causes, which every model of one run shares, is all that may differ.
    assert (one.coefficients - one.coefficients.mean(axis=1, keepdims=True)) == pytest.approx(
        two.coefficients - two.coefficients.mean(axis=1, keepdims=True), abs=0.05
    )


def test_a_change_that_made_it_worse_is_no_answer_but_is_counted() -> None:
    model = _MODEL
    row = model.causes.index("slow")
    assert model.answers[row, model.strategies.index("retile")] == 0
    assert model.outcomes[model.strategies.index("retile")].tolist() == [1, 0]


def test_simulated_records_and_cards_teach_nothing() -> None:
    assert not is_field_case(record("s", tier="simulated"))
    assert not is_field_case(record("c", kind="card"))
    assert is_field_case(record("r"))


def test_a_record_of_several_cases_lends_them_neither_prose_nor_vectors() -> None:
    own = replace(_RECORDS[0], cases=(_RECORDS[0].cases[0], Case(cause="slow", context=_RECORDS[0].cases[0].context)))
    first, second = case_documents(own, ("title.en",), _EMBEDDER.encode_documents(["x"]), CATALOGUE)
    assert len(first.vectors) == 0
    assert second.tokens == frozenset()
    assert (first.key, second.key) == ("a#0", "a#1")


@pytest.mark.parametrize("text", ["", "  ", "!!! ---", "\x00\x01"])
def test_a_question_without_a_word_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no word"):
        _ask(text)


def test_a_very_long_question_is_cut_and_answered() -> None:
    tokens = _ask("cores " * 100_000).tokens
    assert set(_ask("cores").tokens) <= set(tokens)
    assert len(tokens) <= 3  # the cut falls inside a word


def test_an_answer_says_when_it_knows_no_case_and_is_not_calibrated() -> None:
    model = fit_field(_lessons(), CATALOGUE, _W)
    answer = field_answer(model, judge(model, _ask("cores"), _W), CATALOGUE, None, (), excluded={"bind"})
    assert answer.cases == 0
    assert "definitions" in answer.notes[0].en
    assert "not calibrated" in answer.notes[1].en
    assert "bind" not in [item.id for item in answer.strategies]


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60))
def test_breakpoints_rise_and_never_promise_certainty(points: list[tuple[float, bool]]) -> None:
    scores, rates = breakpoints([score for score, _ in points], [hit for _, hit in points])
    assert list(scores) == sorted(scores)
    assert list(rates) == sorted(rates)
    assert all(0 < rate < 1 for rate in rates)


def test_breakpoints_are_isotonic_regression() -> None:
    """Oracle: the best rising steps in least squares, found by trying every way to cut five answers into pools."""
    scores, right = [0.1, 0.2, 0.3, 0.4, 0.5], [False, True, False, True, True]
    knots, rates = breakpoints(scores, right)
    assert knots == pytest.approx([0.1, 0.25, 0.45])
    assert rates == pytest.approx([1 / 3, 2 / 4, 3 / 4])


def test_equal_scores_are_one_point_whatever_their_order() -> None:
    right = [True, False, False, True, False]
    scores, rates = breakpoints([0.3] * 5, right)
    assert (scores, rates) == breakpoints([0.3] * 5, right[::-1])
    assert scores == (0.3,)
    assert rates == pytest.approx([3 / 7])


def test_calibrating_with_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no answers"):
        breakpoints([], [])


def test_the_diagram_counts_every_answer_once() -> None:
    diagram = reliability([0.05, 0.05, 0.95, 1.0], [False, True, True, True])
    assert [(point.n, point.observed) for point in diagram] == [(2, 0.5), (2, 1.0)]
    assert calibration_error(diagram) == pytest.approx((0.45 * 2 + 0.025 * 2) / 4)
    assert calibration_error(()) == 0.0


def test_a_calibrated_score_never_saw_its_own_fold() -> None:
    scores, folds = [0.1, 0.2, 0.8, 0.9] * 5, [number // 4 for number in range(20)]
    right = [score > 0.5 for score in scores]
    before = crossed(scores, right, folds)
    flipped = [not hit if fold == 0 else hit for hit, fold in zip(right, folds, strict=True)]
    assert crossed(scores, flipped, folds)[:4] == before[:4]


def test_the_trial_leaves_out_all_cases_of_a_source() -> None:
    """Two cases of one source with words nobody else has: the trial must not recognise them."""
    source = (Source(title="x", url="https://example.org/1"),)
    twins = [replace(_case(slug, "waits", "zebra crossing quagga"), sources=source) for slug in ("x", "y")]
    lessons = _lessons(*twins, *_RECORDS)
    asked = [Asked("https://example.org/1", "waits", _ask("zebra quagga"))]
    seen: list[int] = []
    found = calibrated(lessons, asked, CATALOGUE, _W, lambda _stage, done, _total: seen.append(done), _EMBEDDER)
    assert seen == [0, 1]
    assert (found.groups, found.cases, found.embedder) == (1, 6, _EMBEDDER.name)
    alone = judge(next(left_out(lessons, [(0, 1)], CATALOGUE, _W)), asked[0].question, _W)
    assert max(found.scores) <= float(alone.probability.max()) + 1e-9


def test_questions_of_a_case_tell_what_was_seen_and_not_why() -> None:
    told = " ".join(question.words() for question in questions_of(_RECORDS[0].cases[0]))
    assert "threads" in told
    assert "waits" not in told
    assert "bind" not in told


def test_a_damaged_calibration_is_named(tmp_path: Path) -> None:
    path = tmp_path / "field-calibration.json"
    path.write_text('{"scores": [0.1')
    with pytest.raises(ContentError, match=r"field-calibration\.json"):
        read_calibration(path)


def test_the_shipped_calibration_is_sound() -> None:
    shipped: Calibration = shipped_calibration()
    assert shipped.cases >= 131
    assert shipped.error < 0.1
    assert shipped(0.0) < shipped(0.5) < shipped(1.0)
