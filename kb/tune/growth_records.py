"""Grown runs as ``case`` records: one a run, a case for each cause its strategies answer, no gain and worse included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kb.domain.case import Case, CaseContext, Outcome, Result
from kb.domain.catalogue import Catalogue, CauseId, StrategyId
from kb.domain.quantity import Quantity
from kb.domain.record import Record
from kb.domain.text import Text
from kb.recommend.outcomes import GROUP, TRAIT
from kb.tune.growth_runs import GrownRun
from kb.tune.growth_trials import Trial

METRIC: Final = "device_time_per_sample"
NOISE: Final = 0.01
"""Gains and losses below this fraction are no gain."""
_IN_PLACE: Final = Text("已经在用，或对这种模型没有意义", "in place already, or without meaning for this model")
_NO_ROOM: Final = Text("加上它后超出芯片内存", "with it the run does not fit the chip's memory")


def record_of(run: GrownRun, catalogue: Catalogue) -> Record:
    """The record of a run. Everything in it is simulated and says so."""
    context = CaseContext(
        model=run.model, model_type=run.model_type, phase=run.phase, soc=run.soc, soc_family=run.soc_family, devices=run.devices,
        causes=tuple(run.causes), software={"simulator": run.simulator},
        metrics={TRAIT + name: Quantity(value, "ratio") for name, value in run.traits.items()},
    )  # fmt: skip
    outcomes: dict[CauseId, list[Outcome]] = {}
    for trial in run.trials:
        if len(trial.strategies) == 1:
            outcomes.setdefault(_cause(trial.strategies[0], run.causes, catalogue), []).append(_outcome(trial))
    for name in run.idle:
        outcomes.setdefault(_cause(name, run.causes, catalogue), []).append(_idle(name))
    best = max((trial.gain for trial in run.trials if trial.gain is not None), default=0.0)
    found = ", ".join(run.causes) or "-"
    return Record(
        kind="case", slug=_slug(run), provenance="simulated", tags=(f"{GROUP}{run.group}", f"soc:{run.soc}", "grown", f"key:{run.key}"),
        title=Text(f"{run.model} 在 {run.soc} 上（仿真）", f"{run.model} on {run.soc} (simulated)"),
        summary=Text(f"发现：{found}；试过 {len(run.trials)} 种策略，最好的收益 {best:.1%}",
                     f"found: {found}; {len(run.trials)} strategies tried, the best gains {best:.1%}"),
        body=Text(f"由种子 {run.seed} 第 {run.number} 次抽取的仿真运行。", f"Simulated run {run.number} of seed {run.seed}."),
        cases=tuple(Case(cause=cause, context=context, outcomes=tuple(own)) for cause, own in outcomes.items()),
    )  # fmt: skip


def _slug(run: GrownRun) -> str:
    return "grown-" + run.name.lower().replace(".", "-").replace("_", "-")


def _cause(strategy: StrategyId, found: Mapping[CauseId, float], catalogue: Catalogue) -> CauseId:
    """The found cause it answers that costs most; else the first it is meant for."""
    meant = catalogue.strategies[strategy].addresses
    return next((cause for cause in found if cause in meant), meant[0])


def _outcome(trial: Trial) -> Outcome:
    before = Quantity(float(trial.before_ns), "ns")
    if trial.gain is None:
        return Outcome(strategy=trial.strategies[0], result="worse", metric=METRIC, before=before, provenance="simulated", note=_NO_ROOM)
    after = Quantity(round(trial.before_ns * (1.0 - trial.gain), 3), "ns")
    return Outcome(
        strategy=trial.strategies[0], result=_result(trial.gain), metric=METRIC, before=before, after=after, provenance="simulated"
    )


def _idle(strategy: StrategyId) -> Outcome:
    same = Quantity(1.0, "ratio")
    return Outcome(
        strategy=strategy, result="no_gain", metric=METRIC, before=same, after=same, provenance="simulated", reported_to_work=False,
        note=_IN_PLACE,
    )  # fmt: skip


def _result(gain: float) -> Result:
    if abs(gain) < NOISE:
        return "no_gain"
    return "improved" if gain > 0 else "worse"
