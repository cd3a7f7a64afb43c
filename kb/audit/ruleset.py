"""The visible list of rules, and the audit over it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import resources

import msgspec

from kb.audit.arithmetic import constants_as_results, contradictions, missed_targets, wrong_percentages, wrong_quotients, wrong_shares
from kb.audit.claims import Note, Rule, Sheet
from kb.audit.composition import beyond_amdahl, gain_against_utilization, uncomposed
from kb.audit.hardware import (
    Chips,
    buffers,
    cache_flow,
    far_from_measured,
    model_memory,
    oversized_tiles,
    roofline,
    throttling,
    traffic,
    unattainable,
    work_against_time,
    wrong_bandwidth,
)
from kb.audit.queueing import capacity, off_the_grid, unstated_concurrency
from kb.domain.catalogue import Catalogue

Measured = Mapping[str, tuple[float, float, str]]


def rules(catalogue: Catalogue) -> tuple[Rule, ...]:
    """Every rule, ready for a sheet."""
    chips, measured = Chips(catalogue), load_measured()
    return (
        wrong_percentages,
        wrong_quotients,
        contradictions,
        wrong_shares,
        missed_targets,
        constants_as_results,
        uncomposed,
        beyond_amdahl,
        gain_against_utilization,
        unstated_concurrency,
        off_the_grid,
        capacity,
        cache_flow,
        traffic,
        throttling,
        lambda sheet: wrong_bandwidth(sheet, chips),
        lambda sheet: unattainable(sheet, chips),
        lambda sheet: work_against_time(sheet, chips),
        lambda sheet: oversized_tiles(sheet, chips),
        lambda sheet: buffers(sheet, chips),
        lambda sheet: model_memory(sheet, chips),
        lambda sheet: roofline(sheet, chips),
        lambda sheet: far_from_measured(sheet, measured),
    )


def audit(sheets: Iterable[Sheet], catalogue: Catalogue) -> tuple[Note, ...]:
    """Every doubt about the claims, each once, in the order of the rules."""
    checks = rules(catalogue)
    found = [note for sheet in sheets for rule in checks for note in rule(sheet)]
    return tuple(dict.fromkeys(found))


def load_measured() -> Measured:
    """Throughputs others measured, by model: least, most (1/s) and where."""
    data = resources.files("kb.audit").joinpath("measured.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, tuple[float, float, str]])
