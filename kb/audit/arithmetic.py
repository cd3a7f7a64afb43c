"""Numbers that can be recomputed from other numbers of the same text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kb.audit.claims import Claim, Note, Sheet
from kb.domain.text import Text

HIGHER_IS_BETTER: Final = frozenset({"throughput", "utilization", "bandwidth", "scaling_efficiency", "efficiency", "hit_rate"})
CHAIN: Final = 2.0
"""A figure computed from rounded figures may be off by twice the rounding of its own last digit."""
MEDIUM_DIGIT: Final = 5.0
"""A percentage off by more than this many of its last digits is no slip of rounding."""


def wrong_percentages(sheet: Sheet) -> Iterator[Note]:
    """A stated change must follow from the stated values before and after; one that holds for an end of a range only must say so."""
    for change in sheet.claims:
        if change.when != "change" or change.unit not in ("%", "ratio", "x"):
            continue
        before, after = sheet.one(change.metric, "before", change.subject), sheet.one(change.metric, "after", change.subject)
        if before is None or after is None or before.value <= 0:
            continue
        if before.upper is not None:
            yield from _range_base(change, before, after)
        elif not any(_agrees(change, first, after) for first in _others(sheet, before)):
            yield _recomputed(change, before, after)


def _others(sheet: Sheet, before: Claim) -> tuple[Claim, ...]:
    return sheet.all(before.metric, "before", before.subject)


def _agrees(change: Claim, before: Claim, after: Claim) -> bool:
    """Whether the change, as a fraction or as a factor, follows within rounding; the sign is the author's to leave out."""
    low = (after.base - after.half) / (before.base + before.half)
    high = (after.base + after.half) / max(before.base - before.half, 1e-300)
    slack = CHAIN * change.half
    stated = abs(change.base)
    candidates = ((low, high), (1 / high, 1 / low)) if change.unit == "x" else (_absolute(low - 1, high - 1),)
    return any(least - slack <= stated <= most + slack for least, most in candidates)


def _absolute(low: float, high: float) -> tuple[float, float]:
    return (0.0, max(-low, high)) if low <= 0 <= high else (min(abs(low), abs(high)), max(abs(low), abs(high)))


def _recomputed(change: Claim, before: Claim, after: Claim) -> Note:
    ratio = after.base / before.base
    right = f"{ratio:.4g} x" if change.unit == "x" else f"{100 * (ratio - 1):+.2f} %"
    off = abs(abs(change.base) - (ratio if change.unit == "x" else abs(ratio - 1)))
    return Note(
        rule="percentage",
        severity="medium" if off > MEDIUM_DIGIT * 2 * change.half else "low",
        formula=f"{after} / {before} = {right}",
        text=Text(
            zh=f"由 {before} 到 {after} 是 {right}，文中写 {change}",
            en=f"from {before} to {after} is {right}, stated {change}",
        ),
    )


def _range_base(change: Claim, before: Claim, after: Claim) -> Iterator[Note]:
    ends = (before.value, (before.value + (before.upper or 0)) / 2, before.upper or 0)
    shown = [f"{100 * (after.value / end - 1):+.0f} % vs {end:g}" for end in ends]
    formula = f"{after} / {before}: {', '.join(shown)}"
    yield Note(
        rule="range_base",
        severity="medium",
        formula=formula,
        text=Text(
            zh=f"百分比没有说明以哪个值为基准：{'，'.join(shown)}（依次为最小、平均、最大），文中写 {change}",
            en=f"the percentage does not name its base: {', '.join(shown)} (least, mean, greatest), stated {change}",
        ),
    )


def wrong_quotients(sheet: Sheet) -> Iterator[Note]:
    """A stated share of two counts must be their quotient."""
    for share in sheet.claims:
        if share.when != "share":
            continue
        part, whole = sheet.one(share.metric, "part", share.subject), sheet.one(share.metric, "whole", share.subject)
        if part is None or whole is None or whole.base <= 0:
            continue
        quotient = part.base / whole.base
        if abs(quotient - share.base) > CHAIN * share.half:
            yield Note(
                rule="percentage",
                severity="low",
                formula=f"{part} / {whole} = {100 * quotient:.2f} %",
                text=Text(
                    zh=f"{part} / {whole} 是 {100 * quotient:.2f} %，文中写 {share}",
                    en=f"{part} of {whole} is {100 * quotient:.2f} %, stated {share}",
                ),
            )


def contradictions(sheet: Sheet) -> Iterator[Note]:
    """One quantity of one subject at one moment has one value."""
    if sheet.merged:
        return
    groups: dict[tuple[str, str, str], list[Claim]] = {}
    for claim in sheet.claims:
        if claim.when in ("before", "after", "part", "whole") and not claim.values and claim.upper is None:
            groups.setdefault((claim.metric, claim.subject, claim.when), []).append(claim)
    for (metric, subject, _), claims in groups.items():
        first = claims[0]
        other = next((item for item in claims[1:] if abs(item.base - first.base) > CHAIN * (item.half + first.half)), None)
        if other is not None:
            name = f"{subject} {metric}".strip()
            yield Note(
                rule="one_value",
                severity="medium" if metric == "share" else "high",
                formula=f"{first} != {other}",
                text=Text(zh=f"{name} 写了两个值：{first} 与 {other}", en=f"{name} is stated twice: {first} and {other}"),
            )


def wrong_shares(sheet: Sheet) -> Iterator[Note]:
    """A share stated beside the time of its part and of the whole must be their quotient."""
    shares: Mapping[str, Claim] = {item.subject: item for item in reversed(sheet.all("share", "before")) if item.subject}
    whole = sheet.one("latency", "before")
    for subject, share in shares.items():
        time = sheet.one("time", "before", subject)
        if whole is None or time is None or whole.base <= 0:
            continue
        quotient = time.base / whole.base
        if abs(quotient - share.base) > CHAIN * (share.half + time.half / whole.base):
            yield Note(
                rule="shares",
                severity="medium",
                formula=f"{time} / {whole} = {100 * quotient:.1f} %",
                text=Text(
                    zh=f"{subject} 占 {100 * quotient:.1f} %，文中写 {share}",
                    en=f"{subject} is {100 * quotient:.1f} % of the whole, stated {share}",
                ),
            )


def missed_targets(sheet: Sheet) -> Iterator[Note]:
    """A result must meet the limit its own author set."""
    for target in sheet.claims:
        if target.when != "target" or not target.bound:
            continue
        reached = sheet.one(target.metric, "after", target.subject)
        if reached is None:
            continue
        missed = reached.base > target.base if target.bound == "max" else reached.base < target.base
        if missed:
            sign = "<" if target.bound == "max" else ">"
            yield Note(
                rule="own_target",
                severity="high",
                formula=f"{reached} {'>' if sign == '<' else '<'} {target}",
                text=Text(
                    zh=f"结果 {reached} 没有达到自己的要求 {sign} {target}（{target.metric}）",
                    en=f"the result {reached} misses its own limit {sign} {target} ({target.metric})",
                ),
            )


def constants_as_results(sheet: Sheet) -> Iterator[Note]:
    """A number written into the source code is not a measurement."""
    for claim in sheet.all("confidence"):
        if claim.constant:
            yield Note(
                rule="constant",
                severity="low",
                formula=f"confidence = {claim.value:g} in the code",
                text=Text(
                    zh=f"置信度 {claim.value:g} 是代码里写死的常数，不是测得的结果",
                    en=f"the confidence {claim.value:g} is a constant in the code, not a result",
                ),
            )
