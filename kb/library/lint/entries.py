"""Checks of the catalogue beyond its loader: every entry is filled in, every command says where it is documented."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kb.domain.catalogue import Catalogue
from kb.library.crosslinks import faults
from kb.library.lint.places import Places
from kb.library.lint.problem import Problem, problem
from kb.library.schema import steps_of


def check_catalogue_entries(catalogue: Catalogue, folder: Path, shown: str) -> Iterator[Problem]:
    """Faults of ``catalogue``, read from ``folder`` and shown as ``shown``/…"""
    for fault in faults(catalogue):
        line = Places((folder / fault.file).read_text(encoding="utf-8")).line_of(steps_of(fault.path))
        yield problem(
            f"{shown}/{fault.file}", line, "catalogue", zh=f"{fault.wrong}（应为 {fault.allowed}）", en=f"{fault.wrong}; {fault.allowed}"
        )
    for cause in catalogue.causes.values():
        yield from _filled(f"{shown}/causes/{cause.id}.json", {"healthy": cause.healthy.zh})
    for strategy in catalogue.strategies.values():
        file = f"{shown}/strategies/{strategy.id}.json"
        yield from _filled(
            file,
            {
                "evidence": strategy.evidence.zh, "healthy": strategy.healthy.zh, "verify": strategy.verify.zh,
                "roll_back": strategy.roll_back.zh, "precision_risk": strategy.precision_risk.replace("unknown", ""),
                "documented_for": all(command.documented_for for command in strategy.commands),
                "prerequisites": all(text.zh and text.en for text in strategy.prerequisites),
            },
        )  # fmt: skip
    for metric in catalogue.metrics.values():
        yield from _filled(f"{shown}/metrics/{metric.id}.json", {"definition": metric.definition.zh})


def _filled(file: str, fields: dict[str, str | bool]) -> Iterator[Problem]:
    for name, value in fields.items():
        if not value:
            yield problem(file, 1, "catalogue", zh=f"{name} 没有填", en=f"{name} is not filled in")
