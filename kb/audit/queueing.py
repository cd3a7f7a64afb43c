"""Throughput, latency and how many requests are in flight."""

from __future__ import annotations

from collections.abc import Iterator

from kb.audit.claims import Claim, Note, Sheet
from kb.domain.quantity import UNITS
from kb.domain.text import Text

CONCURRENCY_SLACK = 0.05
"""Relative growth of requests in flight that nobody need explain."""
CAPACITY_SLACK = 0.05
"""Difference between possible and stated saving of machines that nobody need explain, as a fraction of all."""
_S = UNITS["s"][1]


def unstated_concurrency(sheet: Sheet) -> Iterator[Note]:
    """Little's law: throughput x latency requests are in flight; more of them than before must be stated."""
    moments = _in_flight(sheet)
    if moments is None or sheet.all("concurrency") or sheet.all("batch_grid"):
        return
    first, last, latency, rate = moments
    if last[0] - last[1] > first[0] * (1 + CONCURRENCY_SLACK) + first[1]:
        growth = 100 * (last[0] / first[0] - 1)
        yield Note(
            rule="little",
            severity="medium",
            formula=f"{rate[0]} x {latency[0]} = {first[0]:.1f}; {rate[1]} x {latency[1]} = {last[0]:.1f}",
            text=Text(
                zh=f"在途请求须从 {first[0]:.1f} 增到 {last[0]:.1f}（+{growth:.0f} %）才能同时达到两个数，文中没有说",
                en=f"both figures need {last[0]:.1f} requests in flight instead of {first[0]:.1f} (+{growth:.0f} %), which is not stated",
            ),
        )


def off_the_grid(sheet: Sheet) -> Iterator[Note]:
    """Little's law against the batch sizes that were searched."""
    moments = _in_flight(sheet)
    grid = next(iter(sheet.all("batch_grid")), None)
    if moments is None or grid is None or not grid.values:
        return
    first, last, latency, rate = moments
    nearest = min(grid.values, key=lambda value: abs(value - last[0]))
    if abs(nearest - last[0]) <= 0.5 + last[1]:
        return
    steps = ", ".join(f"{value:g}" for value in sorted(grid.values)[:4])
    less = " and fewer than before" if last[0] < first[0] else ""
    yield Note(
        rule="little_grid",
        severity="medium",
        formula=f"{rate[1]} x {latency[1]} = {last[0]:.1f}",
        text=Text(
            zh=f"在途请求 {last[0]:.1f}（之前 {first[0]:.1f}）不在搜索网格 {{{steps}, ..}} 上",
            en=f"{last[0]:.1f} requests in flight (before: {first[0]:.1f}) are not on the searched grid {{{steps}, ..}}{less}",
        ),
    )


def _in_flight(
    sheet: Sheet,
) -> tuple[tuple[float, float], tuple[float, float], tuple[Claim, Claim], tuple[Claim, Claim]] | None:
    """(count, rounding) before and after, and the claims they come from."""
    latency = sheet.one("latency", "before"), sheet.one("latency", "after")
    rate = sheet.one("throughput", "before"), sheet.one("throughput", "after")
    if latency[0] is None or latency[1] is None or rate[0] is None or rate[1] is None:
        return None
    if any(item.upper is not None for item in (*latency, *rate) if item is not None):
        return None
    counts = [
        (many.base * long.base / _S, (many.half * long.base + many.base * long.half) / _S)
        for many, long in ((rate[0], latency[0]), (rate[1], latency[1]))
    ]
    return counts[0], counts[1], (latency[0], latency[1]), (rate[0], rate[1])


def capacity(sheet: Sheet) -> Iterator[Note]:
    """Machines saved against the growth of throughput of one machine."""
    before, after = sheet.one("throughput", "before"), sheet.one("throughput", "after")
    saved = sheet.one("cluster_size", "change")
    if before is None or after is None or saved is None or sheet.all("load"):
        return
    ratio = after.base / before.base
    possible = 1 - 1 / ratio
    if abs(possible - abs(saved.base)) <= CAPACITY_SLACK + saved.half:
        return
    yield Note(
        rule="capacity",
        severity="medium",
        formula=f"1 - 1 / {ratio:.2f} = {100 * possible:.0f} %",
        text=Text(
            zh=f"单机吞吐 {ratio:.2f} 倍可省 {100 * possible:.0f} % 的机器，文中写 {abs(saved.value):g} %（除非负载增长）",
            en=f"{ratio:.2f}x per node would save {100 * possible:.0f} % of the nodes, stated {abs(saved.value):g} % (unless load grew)",
        ),
    )
