"""Job: answer a question about a session from its own diagnosis and from the casebook, with citations.

No language model: the question's words, and what the glossary says they mean in the other language, are looked for in what the
diagnosis states. An answer that would rest on nothing is not given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kb.domain.case import CaseQuery
from kb.domain.catalogue import Catalogue
from kb.domain.recommendation import Constraints
from kb.domain.text import Text
from kb.report.numbers import percent
from kb.text.glossary import expand
from kb.text.script import fold
from kb.text.tokens import tokenize
from kb.workflow.ask_words import CHINESE, content, outside
from kb.workflow.casebook import Casebook
from kb.workflow.diagnose import Diagnosed
from kb.workflow.recommend import recommend_for
from kb.workflow.search import find
from kb.workflow.statements import Statement, statements

COVERED: Final = 0.34
"""Share of the question's word weight a statement must hold to be an answer."""
NEAR_BEST: Final = 0.75
"""Statements whose share is at least this part of the best one's are given beside it."""
_MOST: Final = 4
_LIMITS: Final[Mapping[str, int]] = {"part": 8}
_WHOLE: Final = 0.999
_NAMED: Final = 0.5
_CASES: Final = 3
Ways = Mapping[str, Sequence[frozenset[str]]]
_ORDER: Final = ("finding", "operator", "part", "healthy", "not_judged")


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence of the answer; ``cites`` count from 1 in the answer's list."""

    kind: str
    text: Text
    cites: tuple[int, ...] = ()


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """``answered`` is False when nothing the diagnosis or the casebook holds speaks to the question; ``note`` then says what does."""

    question: str
    answered: bool
    said: tuple[Said, ...]
    citations: tuple[str, ...]
    simulated: bool = False
    note: Text = Text()


class _Answer:
    """Sentences with a shared list of citations."""

    def __init__(self) -> None:
        self.said: list[Said] = []
        self.citations: list[str] = []

    def add(self, kind: str, text: Text, cites: Sequence[str] = ()) -> None:
        for cite in cites:
            if cite not in self.citations:
                self.citations.append(cite)
        self.said.append(Said(kind=kind, text=text, cites=tuple(self.citations.index(cite) + 1 for cite in cites)))


def ask(question: str, diagnosed: Diagnosed | None, casebook: Casebook) -> Reply:
    """The reply to ``question``; without a session the casebook alone answers, and it says so."""
    answer = _Answer()
    chosen = matching(question, statements(diagnosed), casebook.catalogue) if diagnosed is not None else ()
    for item in chosen:
        answer.add(item.kind, item.text, item.cites)
    if diagnosed is not None:
        _advise(answer, chosen, diagnosed, casebook)
    _recall(answer, question, chosen, casebook)
    return Reply(
        question=question,
        answered=bool(answer.said),
        said=tuple(answer.said),
        citations=tuple(answer.citations),
        simulated=diagnosed is not None and any(session.meta.origin == "simulated" for session in diagnosed.sessions),
        note=_note(question, answer, chosen, diagnosed, casebook.catalogue),
    )


def matching(question: str, held: Sequence[Statement], catalogue: Catalogue) -> tuple[Statement, ...]:
    """The statements that speak to the question, findings first. A question without a word of its own (why is it slow?) is
    about the largest findings, one about what no profile holds about none."""
    if outside(question) is not None:
        return ()
    documents = [(frozenset(tokenize(item.topic)), frozenset(tokenize(item.words))) for item in held]
    asked = content(question, _terms(held, catalogue), frozenset().union(*(words for _, words in documents)))
    if not asked:
        return _largest(held)
    meanings = _meanings(question, asked, catalogue)
    weights = _weights(asked, meanings, [words for _, words in documents])
    scores = [_score(item, *document, meanings, weights) for item, document in zip(held, documents, strict=True)]
    best = max(scores, default=0.0)
    if best < COVERED:
        return ()
    found = [(item, score) for item, score in zip(held, scores, strict=True) if score >= max(COVERED, NEAR_BEST * best)]
    found.sort(key=lambda pair: (_ORDER.index(pair[0].kind), -round(pair[1], 3), -pair[0].weight_ns))
    return tuple(item for kind in _ORDER for item in [item for item, _ in found if item.kind == kind][: _LIMITS.get(kind, _MOST)])


def _largest(held: Sequence[Statement]) -> tuple[Statement, ...]:
    """The findings, after the largest loss without one where that is larger than all of theirs."""
    findings = tuple(item for item in held if item.kind == "finding")
    most = max((item.weight_ns for item in findings), default=0)
    unexplained = sorted((item for item in held if item.open and item.weight_ns > most), key=lambda item: -item.weight_ns)
    return (*unexplained[:1], *findings[:_MOST])


def _terms(held: Sequence[Statement], catalogue: Catalogue) -> frozenset[str]:
    """Chinese words known to the glossary or standing in a statement's names."""
    named = {run for item in held if item.kind in ("part", "healthy", "not_judged") for run in CHINESE.findall(item.topic)}
    return frozenset({fold(term) for row in catalogue.glossary for term in row.zh} | named)


def _score(item: Statement, topic: frozenset[str], words: frozenset[str], meanings: Ways, weights: Mapping[str, float]) -> float:
    """How much of the question the statement speaks to, 0..1. What only its definition says counts half; that a check found
    nothing or was not made is an answer only to a question that asks for all it is about."""
    named, every = _share(topic, meanings, weights), _share(words, meanings, weights)
    if item.kind in ("healthy", "not_judged"):
        return named if named >= _NAMED and every >= _WHOLE else 0.0
    return (named + every) / 2


def _meanings(question: str, asked: Sequence[str], catalogue: Catalogue) -> Ways:
    """For each asked token the ways to say it: itself, or all words of a term of a glossary row that the question fires."""
    fired = set(expand(question, catalogue.glossary).rows)
    meanings = {token: [frozenset({token})] for token in asked}
    for row in catalogue.glossary:
        if row.id in fired:
            ways = [frozenset(tokenize(term)) for term in (*row.zh, *row.en)]
            said = frozenset().union(*ways)
            for token in asked:
                meanings[token] += ways if token in said else []
    return meanings


def _says(document: frozenset[str], ways: Sequence[frozenset[str]]) -> bool:
    return any(way <= document for way in ways)


def _weights(asked: Sequence[str], meanings: Ways, documents: Sequence[frozenset[str]]) -> Mapping[str, float]:
    """How rare each asked token is among the statements, in any of the words that mean it."""
    held = {token: sum(_says(document, meanings[token]) for document in documents) for token in asked}
    return {token: math.log(1 + (len(documents) - held[token] + 0.5) / (held[token] + 0.5)) for token in asked}


def _share(document: frozenset[str], meanings: Ways, weights: Mapping[str, float]) -> float:
    total = sum(weights.values())
    return sum(weight for token, weight in weights.items() if _says(document, meanings[token])) / total if total else 0.0


def _advise(answer: _Answer, chosen: Sequence[Statement], diagnosed: Diagnosed, casebook: Casebook) -> None:
    """What is recommended for the causes the answer names."""
    causes = {item.cause for item in chosen if item.kind == "finding"}
    if not causes:
        return
    ranked = recommend_for(casebook, diagnosed, Constraints()).strategies
    for item in [item for item in ranked if item.cause in causes][:_MOST]:
        name = casebook.catalogue.strategy(item.id).name
        low, high = (percent(value) for value in item.interval)
        gain, tier = percent(item.gain_fraction), item.provenance
        part = Text(zh="单步", en="the step") if item.per == "step" else Text(zh="每个样本的时间", en="the time of a sample")
        text = Text(
            zh=f"可尝试：{name.zh}（{item.id}），预计{part.zh}节省 {gain}（{low} 至 {high}，{tier}）",
            en=f"try: {name.en} ({item.id}), expected to save {gain} of {part.en} ({low} to {high}, {tier})",
        )
        answer.add("strategy", text, [case.ref for case in item.cases[:_CASES]])


def _recall(answer: _Answer, question: str, chosen: Sequence[Statement], casebook: Casebook) -> None:
    """Similar past cases: by the question's words, and by the causes the answer names."""
    causes = tuple(dict.fromkeys(item.cause for item in chosen if item.kind == "finding" and item.cause is not None))
    query = CaseQuery(text=question, causes=causes, kinds=("recipe", "card"), limit=_CASES)
    found = find(casebook, query)
    # Without a finding to hold on to, meaning and words must both speak for the cases: a far cosine is no answer.
    if not causes and (found.abstained or find(casebook, query, text_only=True).abstained):
        return
    for hit in found.hits[:_CASES]:
        text = Text(zh=f"相似案例：{hit.title.zh or hit.title.en}", en=f"similar case: {hit.title.en or hit.title.zh}")
        answer.add("case", text, [f"{hit.origin}:{hit.slug}@{hit.version} ({hit.provenance})"])


def _note(question: str, answer: _Answer, chosen: Sequence[Statement], diagnosed: Diagnosed | None, catalogue: Catalogue) -> Text:
    topic = outside(question)
    if topic is not None and diagnosed is not None:
        return topic.say
    if diagnosed is None:
        return Text(zh="没有采集：仅由案例库回答", en="no session was looked at: the casebook alone answers")
    if chosen:
        return Text()
    causes = dict.fromkeys(finding.cause for finding in diagnosed.diagnosis.all_findings())
    zh, en = ("、".join(catalogue.cause(cause).name.zh for cause in causes), ", ".join(catalogue.cause(cause).name.en for cause in causes))
    if answer.said:
        return Text(zh="这次采集的诊断没有提到它", en="the diagnosis of this session says nothing about it")
    return Text(
        zh=f"无法回答：这次采集的诊断和案例库都没有提到它；可以问：{zh or '健康项'}",
        en=f"cannot answer: neither this session's diagnosis nor the casebook speaks about it; ask about: {en or 'its healthy parts'}",
    )
