"""The potential of a strategy from the outcomes of past cases, before anything is tried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median, quantiles
from typing import Final

import msgspec

from kb.domain.catalogue import Catalogue, CauseId, StrategyId
from kb.domain.potential import Potential
from kb.domain.provenance import TIERS, Provenance, rank_of
from kb.domain.record import Record
from kb.domain.soc import SocFamily
from kb.domain.text import Text
from kb.recommend.support import reported_gain, weakest_tier

LEVEL: Final = 0.8
FEW: Final = 5
"""Outcomes from which quantiles are used instead of the extremes, and below which a narrow group gives way to a wider one."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One outcome of the strategy, with what it is compared by. ``gain`` None: no figures."""

    ref: str
    cause: CauseId
    model_type: str | None
    family: SocFamily
    gain: float | None
    worked: bool
    tier: Provenance


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which cases count. None = all. A case of unknown chip counts for every chip."""

    cause: CauseId | None = None
    model_type: str | None = None
    family: SocFamily | None = None


def trials_of(ref: str, record: Record, strategy: StrategyId) -> Iterable[Trial]:
    """Reported outcomes of ``strategy`` in ``record``; a card repeats its recipe and gives none."""
    if record.kind == "card":
        return
    for case in record.cases:
        for outcome in case.outcomes:
            if outcome.strategy == strategy and outcome.reported_to_work and outcome.result != "unknown":
                yield Trial(
                    ref=ref,
                    cause=case.cause,
                    model_type=case.context.model_type,
                    family=case.context.soc_family,
                    gain=reported_gain(outcome),
                    worked=outcome.result == "improved",
                    tier=weakest_tier(outcome, record),
                )


def potential(strategy: StrategyId, trials: Sequence[Trial], wanted: Wanted, catalogue: Catalogue) -> Potential:
    """What the trials say. A wish for a model type is dropped, and said, where it leaves fewer than ``FEW`` trials; one for a chip or a
    cause never is."""
    fitting = [trial for trial in trials if wanted.cause in (None, trial.cause) and _same_chip(trial, wanted.family)]
    narrow = [trial for trial in fitting if wanted.model_type is None or trial.model_type == wanted.model_type]
    widened = wanted.model_type is not None and len(narrow) < FEW
    used = fitting if widened else narrow
    figured = [trial for trial in used if trial.gain is not None]
    tiers: list[Provenance] = [trial.tier for trial in figured or used]
    strongest: Provenance = max(tiers, key=rank_of, default="claimed")
    gains = sorted(trial.gain for trial in figured if trial.tier == strongest and trial.gain is not None)
    return Potential(
        strategy=strategy,
        median=median(gains) if gains else None,
        interval=_interval(gains) if len(gains) > 1 else None,
        level=LEVEL,
        n=len(gains),
        reported=len(used),
        worked=sum(trial.worked for trial in used),
        tiers={tier: count for tier in TIERS if (count := sum(trial.tier == tier for trial in used))},
        provenance=strongest,
        group=_group(wanted, catalogue, widened=widened),
        refs=tuple(dict.fromkeys(trial.ref for trial in used)),
    )


def _same_chip(trial: Trial, family: SocFamily | None) -> bool:
    return family is None or trial.family in (family, "unknown")


def _interval(gains: Sequence[float]) -> tuple[float, float]:
    if len(gains) < FEW:
        return gains[0], gains[-1]
    tenths = quantiles(gains, n=10, method="inclusive")
    return tenths[0], tenths[-1]


def _group(wanted: Wanted, catalogue: Catalogue, *, widened: bool) -> Text:
    zh, en = [], []
    if wanted.cause is not None:
        name = catalogue.causes[wanted.cause].name
        zh.append(f"原因为{name.zh}")
        en.append(f"cause {wanted.cause}")
    if wanted.family is not None:
        zh.append(f"芯片 {wanted.family} 或未注明")
        en.append(f"chip {wanted.family} or not stated")
    if wanted.model_type is not None:
        zh.append(f"{wanted.model_type} 类的不足 {FEW} 个，用了所有模型类型" if widened else f"模型类型 {wanted.model_type}")
        en.append(f"fewer than {FEW} of type {wanted.model_type}, so of all types" if widened else f"model type {wanted.model_type}")
    return Text(zh="；".join(zh) or "全部案例", en="; ".join(en) or "all cases")
