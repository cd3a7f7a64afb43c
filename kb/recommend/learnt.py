"""What grown outcomes say about this session: an estimate a strategy, and which would not fit the chip's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from kb.domain.catalogue import StrategyId
from kb.domain.diagnosis import Diagnosis
from kb.domain.soc import Soc, SocFamily
from kb.domain.text import Text
from kb.recommend.experience import Estimate, GainModel, estimates
from kb.recommend.outcomes import OutcomeTable
from kb.recommend.traits import Traits, traits
from kb.session.session import Session

HELD: Final = "memory.reserved"
"""The trait that says how full the memory is (share of the chip's)."""
_MARGIN: Final = 0.9
"""Runs that held a little more than this one are a warning too."""


class Learnt(msgspec.Struct, frozen=True, kw_only=True):
    """``estimates`` by strategy; empty where no past run is comparable. ``unfit`` strategies failed for memory in runs that held no
    more than this one. ``least_gain``: an expectation below is not told from noise. ``note`` says what the estimates rest on."""

    estimates: Mapping[StrategyId, Estimate] = {}
    unfit: Mapping[StrategyId, Text] = {}
    least_gain: float = 0.0
    note: Text = Text()


NOTHING: Final = Learnt()


def learn(model: GainModel, sessions: Sequence[Session], diagnosis: Diagnosis, socs: Mapping[str, Soc], family: SocFamily) -> Learnt:
    """What ``model`` says about the sessions of one input, from what they and their diagnosis show and nothing else."""
    shown = traits(sessions, diagnosis, socs)
    return learnt_of(model, shown, family)


def learnt_of(model: GainModel, shown: Traits, family: SocFamily) -> Learnt:
    """The same from traits."""
    found = estimates(model, shown, family)
    return Learnt(
        estimates=found, unfit=unfit(model.table, shown), least_gain=model.reliability.noise, note=_note(model.table, found, family)
    )


def unfit(table: OutcomeTable, shown: Traits) -> Mapping[StrategyId, Text]:
    """Strategies that did not fit the chip's memory in a past run which held a smaller or equal share of it before."""
    held = shown.get(HELD)
    if held is None or HELD not in table.traits:
        return {}
    before = table.values[:, table.traits.index(HELD)]
    found = {}
    for place, name in enumerate(table.strategies):
        failed = before[table.unfit[:, place] & np.isfinite(before)]
        if len(failed) and held >= _MARGIN * float(failed.min()):
            count = int((failed <= held / _MARGIN).sum())
            found[name] = Text(
                zh=f"已占用 {held:.0%} 的显存；同样或更少占用的 {count} 次仿真运行加上它后放不下",
                en=f"{held:.0%} of the device memory is held; {count} simulated runs that held no more did not fit with it",
            )
    return found


def _note(table: OutcomeTable, found: Mapping[StrategyId, Estimate], family: SocFamily) -> Text:
    known = sum(family in ("unknown", own) for own in table.families)
    if not known:
        return Text(
            zh=f"没有 {family} 芯片上的试验结果可比：只有案例与先验",
            en=f"no tried outcome on {family} chips to compare with: only cases and priors",
        )
    if not found:
        return Text(
            zh="没有与本次足够相似的仿真运行：收益只来自案例与先验",
            en="no simulated run is similar enough to this one: gains come from cases and priors only",
        )
    return Text(
        zh=f"收益估计来自 {known} 次仿真运行的试验结果（并非实测）",
        en=f"gains are estimated from what strategies did in {known} simulated runs (not measured)",
    )
