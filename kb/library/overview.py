"""The catalogue as one page of tables, for docs/catalogue.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kb.domain.catalogue import EFFORTS, Catalogue, Cause, Metric, Strategy
from kb.domain.soc import Soc

HEAD = """# Catalogue · 目录

Made from `recipes/catalogue/`; a test fails when this page is not current, `make golden` writes it anew.
Commands come from public documentation of the named version; none has been run on hardware by us.
"""


def catalogue_page(catalogue: Catalogue) -> str:
    """Causes, strategies with their commands, metrics and chips, in both languages, as Markdown."""
    causes, strategies = _by_layer(catalogue), _by_effort(catalogue)
    parts = [
        HEAD,
        f"{len(catalogue.causes)} causes, {len(catalogue.strategies)} strategies, {len(catalogue.metrics)} metrics, "
        f"{len(catalogue.socs)} chips, {len(catalogue.glossary)} glossary rows.\n",
        "## Causes · 原因\n",
        _table(("layer", "id", "cause", "原因", "healthy", "健康", "strategies"), map(_cause_row, causes)),
        "## Strategies · 策略\n",
        _table(("effort", "id", "strategy", "策略", "precision risk", "applies to", "conflicts"), map(_strategy_row, strategies)),
        "## Commands · 命令\n",
        _table(("strategy", "tool", "command", "documented for"), (row for strategy in strategies for row in _commands(strategy))),
        "## Metrics · 指标\n",
        _table(("id", "metric", "指标", "unit", "better", "healthy"), map(_metric_row, catalogue.metrics.values())),
        "## Chips · 芯片\n",
        _table(("id", "family", "cube / vector cores", "clock", "memory", "confidence", "source"), map(_soc_row, catalogue.socs.values())),
    ]
    return "\n".join(parts)


def _by_layer(catalogue: Catalogue) -> list[Cause]:
    return sorted(catalogue.causes.values(), key=lambda cause: (cause.layer, cause.id))


def _by_effort(catalogue: Catalogue) -> list[Strategy]:
    return sorted(catalogue.strategies.values(), key=lambda strategy: (EFFORTS.index(strategy.effort), strategy.id))


def _cause_row(cause: Cause) -> Sequence[str]:
    names = ", ".join(cause.strategies)
    return (cause.layer, cause.id, cause.name.en, cause.name.zh, cause.healthy.en, cause.healthy.zh, names)


def _strategy_row(strategy: Strategy) -> Sequence[str]:
    reach = ", ".join((*strategy.families, *strategy.phases, *strategy.model_types, *strategy.frameworks)) or "any"
    conflicts = ", ".join(strategy.conflicts)
    return (strategy.effort, strategy.id, strategy.name.en, strategy.name.zh, strategy.precision_risk, reach, conflicts)


def _commands(strategy: Strategy) -> Iterator[Sequence[str]]:
    for command in strategy.commands:
        yield strategy.id, command.tool, f"`{command.text}`", command.documented_for


def _metric_row(metric: Metric) -> Sequence[str]:
    return (metric.id, metric.name.en, metric.name.zh, metric.unit, metric.better, _healthy(metric))


def _healthy(metric: Metric) -> str:
    low, high = metric.healthy or (None, None)
    if low is None:
        return "" if high is None else f"up to {high:g}"
    return f"{low:g} and more" if high is None else f"{low:g} to {high:g}"


def _soc_row(soc: Soc) -> Sequence[str]:
    clock, bandwidth = soc.clock, soc.memory_bandwidth
    cores = f"{soc.cube_cores.value:g} / {soc.vector_cores.value:g}"
    speed, rate = f"{clock.value:g} {clock.unit}", f"{bandwidth.value:g} {bandwidth.unit}"
    return (soc.id, soc.family, cores, speed, rate, bandwidth.confidence, bandwidth.source)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + "\n"
