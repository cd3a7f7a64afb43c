"""The claims of a record: its figures and its sentences, as sheets the rules read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kb.audit.claims import Claim, Note, Sheet, claim_of, decimals_step
from kb.audit.prose import facts, quotients, sentences, shares, targets, transitions
from kb.audit.ruleset import audit
from kb.domain.case import Case, Outcome
from kb.domain.catalogue import Catalogue
from kb.domain.record import Record
from kb.domain.text import Text

_NAMES: Final[dict[str, tuple[str, str]]] = {
    "latency": ("", "latency"),
    "step_time": ("", "latency"),
    "throughput": ("", "throughput"),
    "tokens_per_second": ("", "throughput"),
    "memory_peak": ("", "memory"),
    "l2_hit_rate": ("", "hit_rate"),
    "hbm_bandwidth": ("", "bandwidth"),
    "scaling_efficiency": ("", "scaling_efficiency"),
}
_SUFFIXES: Final = ("share", "time", "utilization")
_PARAMETERS: Final = re.compile(r"(?<![\d.])(\d+(?:\.\d+)?)\s?[bB]\b")
_OUT_OF_PLACE: Final = 0.0


def audit_record(record: Record, catalogue: Catalogue) -> tuple[Note, ...]:
    """Every doubt about what a record states, each once. Its own cautions are not read: they state doubts already."""
    own = [note for case in record.cases for outcome in case.outcomes for note in _outcome_notes(outcome)]
    return tuple(dict.fromkeys((*own, *audit(sheets(record), catalogue))))


def sheets(record: Record) -> Iterator[Sheet]:
    """A sheet for each case, one for all cases of a model and chip together, and those of the text."""
    singles = [_case_sheet(case) for case in record.cases]
    yield from singles
    groups: dict[tuple[str, str, str], list[Sheet]] = {}
    for single in singles:
        groups.setdefault((single.model, single.soc, single.soc_family), []).append(single)
    for members in groups.values():
        if len(members) > 1:
            yield _joined(members)
    frame = _joined(singles) if singles else Sheet(claims=())
    yield from _text_sheets(record, frame)


def _case_sheet(case: Case) -> Sheet:
    context = case.context
    claims = [_metric(name, quantity, "before") for name, quantity in context.metrics.items()]
    for outcome in case.outcomes:
        claims += _outcome(outcome, case.cause)
    for text in case.constraints:
        claims += [claim for side in (text.zh, text.en) for claim in targets(side)]
    size = _PARAMETERS.search(context.model or "")
    if size is not None:
        claims.append(Claim(metric="parameters", value=float(size[1]) * 1e9))
    return Sheet(
        claims=tuple(dict.fromkeys(claims)),
        soc=context.soc or "",
        soc_family=context.soc_family,
        model=context.model or "",
        devices=context.devices,
        strategies=tuple(outcome.strategy for outcome in case.outcomes),
    )


def _metric(name: str, quantity: object, when: str) -> Claim:
    subject, metric = _named(name)
    return claim_of(metric, quantity, subject=subject, when=when)  # type: ignore[arg-type]  # a Quantity each


def _named(name: str) -> tuple[str, str]:
    if name in _NAMES:
        return _NAMES[name]
    subject, _, suffix = name.rpartition("_")
    return (subject, suffix) if subject and suffix in _SUFFIXES else (name, name)


def _outcome(outcome: Outcome, cause: str) -> Iterator[Claim]:
    subject, metric = _named(outcome.metric)
    # A metric of one operator says nothing about whose it is: the cause does.
    subject = cause if subject == "op" else subject
    for when, quantity in (("before", outcome.before), ("after", outcome.after)):
        if quantity is not None:
            yield claim_of(metric, quantity, subject=subject, when=when)
    if outcome.share is not None and subject:
        yield Claim(metric="share", value=outcome.share, unit="ratio", step=_step(outcome.share), subject=subject, when="before")


def _step(value: float) -> float:
    return decimals_step(f"{value:.12g}")


def _joined(members: Sequence[Sheet]) -> Sheet:
    first = members[0]
    return Sheet(
        claims=tuple(dict.fromkeys(claim for member in members for claim in member.claims)),
        soc=next((member.soc for member in members if member.soc), ""),
        soc_family=next((member.soc_family for member in members if member.soc_family != "unknown"), "unknown"),
        model=first.model,
        devices=next((member.devices for member in members if member.devices), None),
        strategies=tuple(dict.fromkeys(name for member in members for name in member.strategies)),
        merged=True,
    )


def _text_sheets(record: Record, frame: Sheet) -> Iterator[Sheet]:
    """Self-contained sentences are scenarios of their own; statements about the chip and the whole are read together."""
    for text in _texts(record):
        for side in dict.fromkeys((text.zh, text.en)):
            groups = [group for sentence in sentences(side) for group in (*transitions(sentence), *quotients(sentence))]
            yield from (Sheet(claims=group) for group in groups)
            stated = [claim for group in groups for claim in group if not claim.subject and claim.when != "change"]
            limits = targets(side) if _limits_are_meant(side) else ()
            claims = (*facts(side), *shares(side), *_unambiguous(stated), *limits, *frame.all("hit_rate", "before", ""))
            soc = frame.soc or _chip_in(record)
            yield Sheet(claims=tuple(dict.fromkeys(claims)), soc=soc, soc_family=frame.soc_family, merged=True)


def _unambiguous(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Figures of the whole, of which the text tells only one story: with two of them nobody knows which belong together."""
    told: dict[tuple[str, str], set[float]] = {}
    for claim in claims:
        told.setdefault((claim.metric, claim.when), set()).add(claim.base)
    unclear = {metric for (metric, _), values in told.items() if len(values) > 1}
    return tuple(claim for claim in claims if claim.metric not in unclear)


def _chip_in(record: Record) -> str:
    words = f"{record.title.en} {record.title.zh} {record.summary.en} {record.summary.zh}"
    found = re.search(r"\b(?:Ascend\s*)?(310P\d?|310B\d?|910[A-C]\d?)\b", words, re.IGNORECASE)
    return found[1] if found else ""


def _limits_are_meant(text: str) -> bool:
    return (
        re.search(r"\b(?:must|require[ds]?|target|goal|limit|constraint|SLA)\b|要求|目标|约束|上限|下限", text, re.IGNORECASE) is not None
    )


def _texts(record: Record) -> Iterator[Text]:
    yield record.summary
    yield record.body
    for case in record.cases:
        yield case.finding
        yield from (outcome.note for outcome in case.outcomes)


def _outcome_notes(outcome: Outcome) -> Iterator[Note]:
    """An outcome against itself: the result named, and the share that bounds its gain."""
    gain = outcome.gain_fraction
    if gain is None:
        return
    shown = f"{outcome.before} -> {outcome.after}: {100 * gain:+.1f} %"
    if (outcome.result == "improved" and gain <= _OUT_OF_PLACE) or (outcome.result == "worse" and gain >= _OUT_OF_PLACE):
        yield Note(
            rule="result",
            severity="high",
            formula=shown,
            text=Text(zh=f"结果写 {outcome.result}，数值却是 {shown}", en=f"the result says {outcome.result}, the figures {shown}"),
        )
    subject, metric = _named(outcome.metric)
    if not subject and metric == "latency" and outcome.share is not None and gain > outcome.share + _step(outcome.share):
        yield Note(
            rule="amdahl",
            severity="high",
            formula=f"{100 * gain:.1f} % > {100 * outcome.share:.1f} %",
            text=Text(
                zh=f"整步收益 {100 * gain:.1f} % 超过所改部分的占比 {100 * outcome.share:.1f} %",
                en=f"a gain of {100 * gain:.1f} % of the whole exceeds the changed part's share of {100 * outcome.share:.1f} %",
            ),
        )
