"""Parts and wholes: what removing parts can save at most."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kb.audit.arithmetic import CHAIN
from kb.audit.claims import Claim, Note, Sheet
from kb.domain.text import Text


class Part(msgspec.Struct, frozen=True):
    """A part of the whole: its time before, its relative cut and the time saved, ns; ``slack`` is what rounding may add."""

    name: str
    time: float
    cut: float
    slack: float

    @property
    def saved(self) -> float:
        """Time saved, ns."""
        return self.time * self.cut


def uncomposed(sheet: Sheet) -> Iterator[Note]:
    """Stated cuts of stated parts must add up to the stated saving of the whole.

    Where a share is stated twice the larger one counts. Only a whole that improves by more than its parts is in doubt.
    """
    before, after = sheet.one("latency", "before"), sheet.one("latency", "after")
    if before is None or after is None or before.upper is not None:
        return
    parts = tuple(part for subject in sheet.subjects() if (part := _part(sheet, subject, before)) is not None)
    if not parts:
        return
    saved = sum(part.saved for part in parts)
    slack = sum(part.slack for part in parts) + CHAIN * (before.half + after.half)
    predicted = before.base - saved
    if predicted - slack <= after.base:
        return
    scale = before.factor
    listed = " + ".join(f"{part.saved / scale:.1f} ({part.name})" for part in parts)
    gain = 100 * (predicted / before.base - 1)
    formula = f"{before} - ({listed}) = {predicted / scale:,.0f} {before.unit}"
    yield Note(
        rule="composition",
        severity="high",
        formula=formula,
        text=Text(
            zh=f"各部分的改进合计只能到 {predicted / scale:,.0f} {before.unit}（{gain:.1f} %），到不了 {after}：{formula}",
            en=f"the parts lead to {predicted / scale:,.0f} {before.unit} ({gain:.1f} %), not to {after}: {formula}",
        ),
    )


def _part(sheet: Sheet, subject: str, whole: Claim) -> Part | None:
    cut = _cut(sheet, subject)
    time = sheet.one("time", "before", subject)
    shares = sheet.all("share", "before", subject)
    if cut is None or (time is None and not shares):
        return None
    fraction, rounding = cut
    if time is not None:
        return Part(subject, time.base, fraction, time.base * rounding + time.half)
    share = max(shares, key=lambda item: item.base)
    return Part(subject, share.base * whole.base, fraction, whole.base * (share.base * rounding + share.half * fraction))


def _cut(sheet: Sheet, subject: str) -> tuple[float, float] | None:
    """The largest stated reduction of a part's time or share, as a positive fraction, with its rounding."""
    found = []
    for metric in ("time", "share"):
        stated = sheet.one(metric, "change", subject)
        if stated is not None and stated.unit in ("%", "ratio"):
            found.append((abs(stated.base), stated.half))
        first, last = sheet.one(metric, "before", subject), sheet.one(metric, "after", subject)
        if first is not None and last is not None and first.base > 0:
            found.append((1 - last.base / first.base, (first.half + last.half) / first.base))
    return max(found, default=None)


def beyond_amdahl(sheet: Sheet) -> Iterator[Note]:
    """Removing the named bottlenecks altogether bounds what their removal can reach.

    Speaks only where no part has a cut of its own: then ``uncomposed`` says more.
    """
    before, after = sheet.one("latency", "before"), sheet.one("latency", "after")
    if before is None or after is None or before.upper is not None:
        return
    shares = {item.subject: item for item in reversed(sheet.all("share", "before")) if item.subject}
    if not shares or any(_cut(sheet, subject) is not None for subject in shares):
        return
    kept = 1.0 - sum(item.base for item in shares.values())
    slack = sum(item.half for item in shares.values())
    floor = before.base * kept
    if after.base + after.half >= floor - before.base * slack:
        return
    listed = " - ".join(f"{item.base:.2f}" for item in shares.values())
    formula = f"{before} x (1 - {listed}) = {floor / before.factor:,.0f} {before.unit}"
    yield Note(
        rule="amdahl",
        severity="high",
        formula=formula,
        text=Text(
            zh=f"即使完全消除所列瓶颈也只能到 {floor / before.factor:,.0f} {before.unit}，文中写 {after}",
            en=f"removing the named bottlenecks altogether leaves {floor / before.factor:,.0f} {before.unit}, stated {after}",
        ),
    )


def gain_against_utilization(sheet: Sheet) -> Iterator[Note]:
    """At equal work, time goes with the inverse of utilisation and of efficiency: stated cuts of time must agree."""
    for subject in ("", *sheet.subjects()):
        stated = sheet.one("time", "change", subject)
        if stated is None or stated.unit not in ("%", "ratio"):
            continue
        claimed = abs(stated.base)
        for reason, low, high in _ratios(sheet, subject):
            implied = _cuts(low, high)
            if implied[0] - CHAIN * stated.half <= claimed <= implied[1] + CHAIN * stated.half:
                continue
            shown = f"{-100 * (implied[0] + implied[1]) / 2:.1f} %"
            yield Note(
                rule="gain_against_utilization",
                severity="high",
                formula=f"{reason} = {shown}",
                text=Text(
                    zh=f"{subject}：{reason} 相当于时间 {shown}，文中写 {stated}",
                    en=f"{subject}: {reason} means {shown} time, stated {stated}",
                ),
            )


def _ratios(sheet: Sheet, subject: str) -> Iterator[tuple[str, float, float]]:
    """(formula, least, most) of time after over time before, from each statement that implies one."""
    after = sheet.one("utilization", "after", subject)
    for before in sheet.all("utilization", "before", subject):
        # Of two contradicting values the nearer one is the one compared; the contradiction has a rule of its own.
        if after is not None and before == max(sheet.all("utilization", "before", subject), key=lambda item: item.base):
            yield (
                f"{before.value:g} / {after.value:g}",
                (before.base - before.half) / (after.base + after.half),
                (before.base + before.half) / (after.base - after.half),
            )
    better = sheet.one("efficiency", "change", subject)
    if better is not None:
        yield f"1 / (1 + {better.base:.2f})", 1 / (1 + better.base + better.half), 1 / (1 + better.base - better.half)


def _cuts(low: float, high: float) -> tuple[float, float]:
    return max(0.0, 1 - high), max(0.0, 1 - low)
