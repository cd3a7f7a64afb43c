"""What the findings are worth: latency, throughput and device memory traffic, each with its assumption."""

from __future__ import annotations

from collections.abc import Iterator

from kb.domain.recommendation import RankedStrategy
from kb.report.document import Block, Bullets, Heading, Note, TableBlock
from kb.report.labels import Labels
from kb.report.numbers import amount, duration, percent, rate, signed_percent
from kb.report.report import Report
from kb.report.story.headline import slowest_session, total_bound_ns


def impact_blocks(report: Report, words: Labels) -> Iterator[Block]:
    """Predicted latency and throughput; nothing when there is no step or nothing to gain."""
    slowest = slowest_session(report.diagnosis) if report.diagnosis else None
    bound = total_bound_ns(report, slowest)
    if slowest is None or not slowest.accounting.step_ns or not bound:
        return
    step, batch = slowest.accounting.step_ns, _batch(report)
    yield Heading(2, words("report.impact"))
    rows = [_row(words("now"), step, step, step, batch)]
    best = report.recommendation.strategies[0] if report.recommendation and report.recommendation.strategies else None
    if best is not None:
        rows.append(_expected(best, step, batch, words))
    rows.append(_row(words("bound_after"), step, step - bound, step - bound, batch))
    unit = words("items_per_second") if batch else words("steps_per_second")
    yield TableBlock(("", words("latency"), words("interval"), f"{words('throughput')} ({unit})", ""), tuple(rows), right=(1, 2, 3, 4))
    yield Bullets(tuple(_assumptions(report, words)))


def _batch(report: Report) -> int | None:
    return next((item.model.batch for item in report.facts if item.model.batch), None)


def _expected(best: RankedStrategy, step: int, batch: int | None, words: Labels) -> tuple[str, ...]:
    low, high = best.interval
    title = f"{words('expected_after')} ({best.id}, {words(f'provenance.{best.provenance}')})"
    after = round(step * (1 - best.gain_fraction))
    return _row(title, step, after, round(step * (1 - high)), batch, longest=round(step * (1 - low)))


def _row(title: str, step: int, after: int, shortest: int, batch: int | None, *, longest: int | None = None) -> tuple[str, ...]:
    through = (batch or 1) * 1e9 / after if after > 0 else 0.0
    interval = "" if longest is None else f"{duration(shortest)} – {duration(longest)}"
    change = "" if after == step or after <= 0 else signed_percent(step / after - 1)
    return (title, duration(after), interval, rate(through) if after > 0 else "–", change)


def _assumptions(report: Report, words: Labels) -> Iterator[str]:
    yield words.either(
        "吞吐按 Little 定律计算：在途请求数 = 吞吐 × 延迟；假设同时在途的步数不变（一步接一步），且没有出现新的瓶颈。",
        "Throughput by Little's law (in flight = throughput x latency): the number of steps in flight stays as it is, "
        "one after the other, and no new bottleneck appears.",
    )
    yield words.either(
        "收益上限假设所列原因全部消除；实际收益要用第二次采集验证。",
        "The upper bound supposes that every cause listed is removed; only a second capture shows the gain.",
    )
    moved = _moved(report)
    if moved:
        total, operators = moved
        yield words.either(
            f"HBM 流量：{operators} 每步读写 {amount(total)}；消除该原因最多省下其中重复读写中间结果的部分。",
            f"HBM traffic: {operators} move {amount(total)} a step; removing the cause saves at most the intermediate results among it.",
        )


def _moved(report: Report) -> tuple[float, str] | None:
    """Device memory traffic of the operators of the first finding, where the capture counts it."""
    names = set(report.findings[0].where.operators) if report.findings else set()
    for item in report.facts:
        hit = [row for row in item.operators if row.name in names and row.hbm_bytes]
        if hit:
            return sum(row.hbm_bytes or 0.0 for row in hit), ", ".join(dict.fromkeys(row.name for row in hit))
    return None


def simulated_note(report: Report, words: Labels) -> Iterator[Block]:
    """The banner every simulated report carries."""
    if report.simulated:
        yield Note("simulated", words("simulated"))


def expected_line(best: RankedStrategy) -> str:
    """The gain of a strategy with its interval."""
    low, high = best.interval
    return f"{percent(best.gain_fraction)} [{percent(low)}, {percent(high)}] @ {best.interval_level:.0%}"
