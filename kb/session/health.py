"""Is a capture fit for a diagnosis: what is there, what contradicts itself, and which checks are impossible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec
import numpy as np

from kb.domain.provenance import Origin
from kb.domain.text import Text
from kb.session import soundness
from kb.session.meta import STEP_ORACLE, Missing, Violation
from kb.session.ranks import group_size
from kb.session.session import Session, Table

Verdict = Literal["good", "usable", "unusable"]
OVERLAP_SHARE: Final = 0.01
"""Tasks of one stream overlap by nanoseconds of clock rounding now and then (2 of 2,587 in a sound capture)."""


STEP_TOLERANCE: Final = 1e-3
"""Step totals that miss their own sum by more (design rule 1) cannot carry a diagnosis."""


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A group of checks and the tables or ``table.column`` entries it ``needs``."""

    check: str
    needs: tuple[str, ...]
    name: Text


class Disabled(msgspec.Struct, frozen=True, kw_only=True):
    """A check that cannot be made on any session of the input, what it lacks, and how to capture that ("" = unknown)."""

    check: str
    name: Text
    lacks: tuple[str, ...]
    capture: tuple[Text, ...] = ()


class SessionHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of one session. Counts are rows. ``overlapping`` counts kernels that begin before the previous one of
    their stream ends (None: streams were not recorded); ``incomplete_steps`` are named by kernels but have no totals."""

    name: str
    rank: int | None
    origin: Origin
    verdict: Verdict
    level: str | None
    soc_known: bool
    kernels: int
    steps: int
    incomplete_steps: tuple[str, ...]
    dropped_rows: int
    negative_durations: int
    overlapping: int | None
    missing: tuple[Missing, ...]
    violations: tuple[Violation, ...]
    reasons: tuple[Text, ...]
    soundness: soundness.Soundness = soundness.Soundness()


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict over all sessions. ``reasons`` say why it is not ``good``; ``world_size`` None = stated nowhere, and then
    ``group_size`` is a lower bound of it from the tasks of communication (None = they name no peer)."""

    verdict: Verdict
    sessions: tuple[SessionHealth, ...]
    captured_ranks: tuple[int, ...]
    world_size: int | None
    disabled: tuple[Disabled, ...]
    reasons: tuple[Text, ...]
    group_size: int | None = None


def assess(sessions: Sequence[Session]) -> Health:
    """The health of one input's sessions.

    ``unusable``: no session has kernels or step totals. ``good``: every session has both and complete steps, nothing
    was dropped or contradicts itself, the chip is known, and every rank of the stated world was captured. Else ``usable``.
    """
    parts = tuple(_session(session) for session in sessions)
    ranks = tuple(sorted({part.rank for part in parts if part.rank is not None}))
    sizes = {session.meta.world_size for session in sessions if session.meta.world_size is not None}
    world_size = max(sizes, default=None)
    group = max((size for session in sessions if (size := group_size(session)) is not None), default=None)
    reasons = (*_cluster_reasons(parts, ranks, world_size, len(sizes), group),)
    return Health(
        verdict=_verdict(parts, reasons),
        sessions=parts,
        captured_ranks=ranks,
        world_size=world_size,
        disabled=tuple(_disabled(sessions, parts)),
        reasons=reasons,
        group_size=group,
    )


def load_checks() -> tuple[Check, ...]:
    """The checks of the data file ``checks.json``."""
    return msgspec.json.decode(Path(__file__).with_name("checks.json").read_bytes(), type=tuple[Check, ...])


def _session(session: Session) -> SessionHealth:
    meta = session.meta
    kernels, totals = session.table("kernels"), session.table("step_trace")
    complete, incomplete = _steps(session)
    soc_known = (
        meta.soc.id is not None
        or (meta.soc.reported_name is not None and meta.soc.confidence == "high")
        or (meta.soc.family == "cpu")
        or (meta.soc.cores is not None and meta.soc.clock_mhz is not None)
    )
    negative = sum(int((table["duration_ns"] < 0).sum()) for table in session.tables.values() if "duration_ns" in table)
    overlapping = _overlapping(kernels)
    sound = soundness.examine(session)
    limit = STEP_TOLERANCE * _step_ns(totals)
    broken = any(item.oracle == STEP_ORACLE and abs(item.difference_ns) > limit for item in meta.violations)
    usable = (_rows(kernels) > 0 or _rows(totals) > 0) and not broken
    reasons = (
        *_content_reasons(_rows(kernels), _rows(totals), complete, incomplete, soc_known),
        *_damage_reasons(session, negative, overlapping or 0, _rows(kernels)),
        *soundness.reasons(sound, session),
    )
    return SessionHealth(
        name=meta.name,
        rank=meta.rank,
        origin=meta.origin,
        verdict="unusable" if not usable else "usable" if reasons else "good",
        level=meta.capture.level,
        soc_known=soc_known,
        kernels=_rows(kernels),
        steps=complete,
        incomplete_steps=incomplete,
        dropped_rows=meta.capture.dropped_rows,
        negative_durations=negative,
        overlapping=overlapping,
        missing=meta.missing,
        violations=meta.violations,
        reasons=reasons,
        soundness=sound,
    )


def _step_ns(totals: Table | None) -> int:
    """Longest step of the exporter's totals, ns; 0 without totals."""
    return int((totals["stage_ns"] + totals["bubble_ns"]).max()) if totals is not None else 0


def _rows(table: Table | None) -> int:
    return len(table) if table is not None else 0


def _steps(session: Session) -> tuple[int, tuple[str, ...]]:
    """How many steps are complete (exporter's totals, or a marker with begin and end), and the names of the others."""
    steps, totals = session.table("steps"), session.table("step_trace")
    if steps is None:
        return _rows(totals), ()
    named = steps["step_id"]
    complete = np.isin(named, totals["step_id"]) if totals is not None else np.zeros(len(steps), dtype=bool)
    if "start_ns" in steps and "end_ns" in steps:
        complete |= (steps["start_ns"] >= 0) & (steps["end_ns"] > steps["start_ns"])
    others = (session.text(int(code)) or "" for code in named[~complete])
    return int(complete.sum()), tuple(others)


def _overlapping(kernels: Table | None) -> int | None:
    if kernels is None or "stream" not in kernels:
        return None
    streamed = kernels.where(kernels["stream"] >= 0)
    order = np.lexsort((streamed["start_ns"], streamed["stream"]))
    start, stream = streamed["start_ns"][order], streamed["stream"][order]
    end = start + streamed["duration_ns"][order]
    return int(((stream[1:] == stream[:-1]) & (start[1:] < end[:-1])).sum())


def _content_reasons(kernels: int, totals: int, complete: int, incomplete: Sequence[str], soc_known: bool) -> Iterator[Text]:
    if not kernels and not totals:
        yield Text("没有算子记录，也没有每步总量", "no kernels and no step totals")
    elif not kernels:
        yield Text("没有算子记录，只能看每步总量", "no kernels, only step totals")
    elif not totals and not complete:
        yield Text("没有完整的步", "no complete step")
    if incomplete:
        yield Text(
            f"{len(incomplete)} 步不完整：{'、'.join(incomplete[:5])}", f"{len(incomplete)} incomplete steps: {', '.join(incomplete[:5])}"
        )
    if not soc_known:
        yield Text("芯片未知", "the chip is unknown")


def _damage_reasons(session: Session, negative: int, overlapping: int, kernels: int) -> Iterator[Text]:
    dropped, violations = session.meta.capture.dropped_rows, session.meta.violations
    if dropped:
        yield Text(f"{dropped} 行残缺，已丢弃", f"{dropped} damaged rows were dropped")
    if violations:
        yield Text(f"{len(violations)} 处自相矛盾：{violations[0].oracle}", f"{len(violations)} contradictions: {violations[0].oracle}")
    if negative:
        yield Text(f"{negative} 个时长为负", f"{negative} negative durations")
    if overlapping > OVERLAP_SHARE * kernels:
        yield Text(f"同一流上有 {overlapping} 个算子重叠", f"{overlapping} kernels overlap on their stream")


def _cluster_reasons(
    parts: Sequence[SessionHealth], ranks: Sequence[int], world_size: int | None, sizes: int, group: int | None
) -> Iterator[Text]:
    if not parts:
        yield Text("没有会话", "no session")
        return
    for part in parts:
        yield from (Text(f"{part.name}：{reason.zh}", f"{part.name}: {reason.en}") for reason in part.reasons)
    twice = [str(rank) for rank, count in Counter(part.rank for part in parts).items() if rank is not None and count > 1]
    if twice:
        yield Text(f"重复的卡：{'、'.join(twice)}", f"ranks captured more than once: {', '.join(twice)}")
    if sizes > 1:
        yield Text("各卡给出的总卡数不一致", "the ranks state different world sizes")
    if world_size is None and group is not None and len(ranks) < group:
        yield Text(
            f"总卡数没有写明；通信任务涉及 {group} 张卡，只采集了 {len(ranks)} 卡",
            f"the world size is stated nowhere; its communication names {group} ranks, {len(ranks)} of them captured",
        )
    elif world_size is None:
        yield Text("总卡数未知，不能确认各卡齐全", "the world size is unknown, so missing ranks cannot be excluded")
    elif len(ranks) < world_size:
        yield Text(f"{world_size} 卡中只采集了 {len(ranks)} 卡", f"{len(ranks)} of {world_size} ranks captured")


def _verdict(parts: Sequence[SessionHealth], reasons: Sequence[Text]) -> Verdict:
    if all(part.verdict == "unusable" for part in parts):
        return "unusable"
    return "usable" if reasons else "good"


def _disabled(sessions: Sequence[Session], parts: Sequence[SessionHealth]) -> Iterator[Disabled]:
    recipes = {missing.what: missing.capture for part in parts for missing in part.missing if missing.capture != Text()}
    for check in load_checks():
        lacks = tuple(need for need in check.needs if not any(_has(session, need) for session in sessions))
        if lacks:
            capture = tuple(dict.fromkeys(recipes[need] for need in lacks if need in recipes))
            yield Disabled(check=check.check, name=check.name, lacks=lacks, capture=capture)


def _has(session: Session, need: str) -> bool:
    name, _, column = need.partition(".")
    table = session.table(name)
    if table is None or not len(table):
        return False
    if not column:
        return True
    if column not in table:
        return False
    values = table[column]
    return not bool(np.all(np.isnan(values) if values.dtype.kind == "f" else values == -1))
