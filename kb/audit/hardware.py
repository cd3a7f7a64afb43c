"""Figures against the chip they are said to come from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import prod

from kb.audit.claims import Claim, Note, Sheet
from kb.domain.catalogue import Catalogue
from kb.domain.quantity import UNITS
from kb.domain.soc import Soc, Sourced
from kb.domain.text import Text

BANDWIDTH_SLACK = 0.10
"""Relative difference between a stated peak bandwidth and the data sheet."""
ATTAINABLE = 0.80
"""Share of the peak bandwidth that kernels reach in practice (notes on seed claims, A31)."""
FLOW_SLACK = 0.10
TRAFFIC_FACTOR = 3.0
"""Bytes over time may miss a stated bandwidth by this factor before it is called a contradiction."""
LEAST_EFFICIENCY = 1e-3
"""Work that runs below this share of the cube's peak did not take that long for the work's sake."""
ROOFLINE_FACTOR = 40.0
"""Time over the cube's floor from which the time cannot be the chip's own."""
CUBE_EDGE = 16
FP32_B, FP16_B = 4, 2
THROTTLING = frozenset({"improve_cooling", "cap_clock_or_power"})
_NS = UNITS["s"][1]


class Chips:
    """The chips a sheet may mean, from the catalogue."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def of(self, sheet: Sheet) -> tuple[Soc, ...]:
        """By exact name, else every variant of the name (``910B`` is 910B1 .. 910B4), else the family's; empty when unknown."""
        if sheet.soc:
            named = self._catalogue.known_soc(sheet.soc)
            variants = (named,) if named is not None else self._variants(sheet.soc)
            if variants:
                return variants
        if sheet.soc_family == "unknown":
            return ()
        return tuple(soc for soc in self._catalogue.socs.values() if soc.family == sheet.soc_family)

    def _variants(self, name: str) -> tuple[Soc, ...]:
        wanted = re.sub(r"ascend|\s", "", name.casefold())
        pattern = re.compile(re.escape(wanted) + r"\d+\Z")
        return tuple(soc for soc in self._catalogue.socs.values() if pattern.match(soc.id.casefold()))

    def all(self) -> tuple[Soc, ...]:
        """Every chip known."""
        return tuple(self._catalogue.socs.values())


def amount(figure: Sourced) -> float:
    """A hardware figure in base units."""
    return figure.value * UNITS[figure.unit][1]


def wrong_bandwidth(sheet: Sheet, chips: Chips) -> Iterator[Note]:
    """A stated peak must be that of the named chip."""
    named = chips.of(sheet)
    for peak in sheet.all("peak_bandwidth"):
        if not named or any(_near(peak.base, amount(soc.memory_bandwidth), BANDWIDTH_SLACK) for soc in named):
            continue
        true = sorted({amount(soc.memory_bandwidth) / 1e9 for soc in named})
        owners = ", ".join(soc.name for soc in chips.all() if _near(peak.base, amount(soc.memory_bandwidth), BANDWIDTH_SLACK))
        hint = Text(zh=f"；{owners} 才是这个值", en=f"; it is that of {owners}") if owners else Text()
        shown = "-".join(f"{value:,.0f}" for value in dict.fromkeys((true[0], true[-1])))
        yield Note(
            rule="bandwidth",
            severity="high",
            formula=f"{peak} != {shown} GB/s",
            text=Text(
                zh=f"{sheet.soc or sheet.soc_family} 的显存带宽是 {shown} GB/s，文中写 {peak}{hint.zh}",
                en=f"memory bandwidth of {sheet.soc or sheet.soc_family} is {shown} GB/s, stated {peak}{hint.en}",
            ),
        )


def _near(first: float, second: float, slack: float) -> bool:
    return abs(first - second) <= slack * second


def unattainable(sheet: Sheet, chips: Chips) -> Iterator[Note]:
    """No kernel keeps the memory busier than about four fifths of its peak, nor moves more than the peak."""
    for used in sheet.all("bandwidth_utilization", "before") + sheet.all("bandwidth_utilization", "after"):
        if used.base - used.half > ATTAINABLE:
            yield Note(
                rule="attainable_bandwidth",
                severity="high",
                formula=f"{used} > {100 * ATTAINABLE:.0f} %",
                text=Text(
                    zh=f"带宽利用 {used} 高于可达到的约 {100 * ATTAINABLE:.0f} %",
                    en=f"a bandwidth use of {used} is above the attainable {100 * ATTAINABLE:.0f} % or so",
                ),
            )
    named = chips.of(sheet)
    most = max((amount(soc.memory_bandwidth) for soc in named), default=None)
    for reached in sheet.all("bandwidth"):
        if most is not None and reached.base > most * (1 + BANDWIDTH_SLACK):
            yield Note(
                rule="attainable_bandwidth",
                severity="high",
                formula=f"{reached} > {most / 1e9:,.0f} GB/s",
                text=Text(
                    zh=f"达到 {reached}，高于该芯片的峰值 {most / 1e9:,.0f} GB/s",
                    en=f"{reached} reached is above the chip's peak of {most / 1e9:,.0f} GB/s",
                ),
            )


def cache_flow(sheet: Sheet) -> Iterator[Note]:
    """What misses the cache is what memory delivers: L2 to L1 = memory to L2 / (1 - hit rate)."""
    for subject in ("", *sheet.subjects()):
        fill, drain = sheet.one("hbm_to_l2", "before", subject), sheet.one("l2_to_l1", "before", subject)
        hit = sheet.one("hit_rate", "before", subject) or sheet.one("hit_rate", "before")
        if fill is None or drain is None or hit is None or hit.base >= 1:
            continue
        low, high = fill.base / (1 - hit.base + hit.half), fill.base / max(1 - hit.base - hit.half, 1e-9)
        if low * (1 - FLOW_SLACK) <= drain.base <= high * (1 + FLOW_SLACK):
            continue
        due = fill.base / (1 - hit.base) / fill.factor
        yield Note(
            rule="cache_flow",
            severity="high",
            formula=f"{fill.value:g} / (1 - {hit.base:.2f}) = {due:.0f} {fill.unit}",
            text=Text(
                zh=f"命中率 {hit} 时 {fill} 的填充对应 L2 到 L1 约 {due:.0f} {fill.unit}，文中写 {drain}",
                en=f"at a hit rate of {hit} a fill of {fill} goes with {due:.0f} {fill.unit} from L2 to L1, stated {drain}",
            ),
        )


def traffic(sheet: Sheet) -> Iterator[Note]:
    """Bytes over time is bandwidth; a saving of bytes is worth bytes over bandwidth."""
    speed = next(iter(sheet.all("bandwidth", "before")), None)
    if speed is None:
        return
    for subject in sheet.subjects():
        moved, time = _moved(sheet, subject), sheet.one("time", "before", subject)
        if moved is None or time is None or time.base <= 0:
            continue
        implied = moved / (time.base / _NS)
        if 1 / TRAFFIC_FACTOR <= implied / speed.base <= TRAFFIC_FACTOR:
            continue
        formula = f"{moved / 1e6:.0f} MB / {time} = {implied / 1e9:.2f} GB/s"
        worth = _worth(sheet, subject, speed)
        yield Note(
            rule="traffic",
            severity="high",
            formula=formula + worth.en,
            text=Text(
                zh=f"{subject}：{formula}，与文中的 {speed} 不符{worth.zh}",
                en=f"{subject}: {formula}, not the stated {speed}{worth.en}",
            ),
        )


def _moved(sheet: Sheet, subject: str) -> float | None:
    """Bytes moved before the change: as stated, else a stated saving over its stated share."""
    stated = sheet.one("traffic", "before", subject)
    if stated is not None:
        return stated.base
    saved = next((item for item in sheet.all("traffic", "change", subject) if item.unit not in ("%", "ratio")), None)
    share = next((item for item in sheet.all("traffic", "change", subject) if item.unit in ("%", "ratio")), None)
    return abs(saved.base) / abs(share.base) if saved is not None and share is not None and share.base else None


def _worth(sheet: Sheet, subject: str, speed: Claim) -> Text:
    saved = next((item for item in sheet.all("traffic", "change", subject) if item.unit not in ("%", "ratio")), None)
    if saved is None:
        return Text()
    amount_ms = abs(saved.base) / speed.base * 1e3
    shown = f"{abs(saved.value):g} {saved.unit}"
    return Text(
        zh=f"；{speed.value:g} {speed.unit} 下 {shown} 只值 {amount_ms:.2f} ms",
        en=f"; at {speed.value:g} {speed.unit} {shown} are worth {amount_ms:.2f} ms",
    )


def work_against_time(sheet: Sheet, chips: Chips) -> Iterator[Note]:
    """Floating-point work of a stated shape or count against the time it is said to take."""
    peak = max((soc.peak_fp16_flops for soc in chips.of(sheet) or chips.all()), default=0.0)
    for subject in ("", *sheet.subjects()):
        time = sheet.one("time", "before", subject) or (sheet.one("latency", "after") if not subject else None)
        work = _work(sheet, subject)
        if time is None or work is None or not peak or time.base <= 0:
            continue
        rate = work / (time.base / _NS)
        if rate >= LEAST_EFFICIENCY * peak:
            continue
        yield Note(
            rule="work_against_time",
            severity="high",
            formula=f"{work / 1e6:.4g} MFLOP / {time} = {rate / 1e12:.1g} TFLOPS",
            text=Text(
                zh=f"{work / 1e6:.3g} MFLOP 用 {time} 只有 {rate / 1e12:.1g} TFLOPS，形状或时间有误",
                en=f"{work / 1e6:.3g} MFLOP in {time} is {rate / 1e12:.1g} TFLOPS: the shape or the time is wrong",
            ),
        )


def _work(sheet: Sheet, subject: str) -> float | None:
    shape = next((item.values for item in sheet.all("attention_shape", None, subject) if len(item.values) == 4), None)
    if shape is not None:
        batch, heads, tokens, width = shape
        return 2.0 * batch * heads * tokens * tokens * width
    product = next((item.values for item in sheet.all("matmul_shape", None, subject) if len(item.values) == 3), None)
    if product is not None:
        return 2.0 * prod(product)
    return None


def oversized_tiles(sheet: Sheet, chips: Chips) -> Iterator[Note]:
    """A square tile's FP32 accumulator must fit L0C; 16 divides what the cube likes."""
    named = chips.of(sheet)
    room = max((amount(soc.l0c) for soc in named), default=None)
    for tile in sheet.all("tile", "after"):
        need = tile.value**2 * FP32_B
        if room is not None and need > room:
            yield Note(
                rule="tile",
                severity="high",
                formula=f"{tile.value:g}^2 x {FP32_B} B = {need:,.0f} > {room:,.0f} B",
                text=Text(
                    zh=f"{tile.value:g} x {tile.value:g} 的 FP32 累加块要 {need:,.0f} 字节，L0C 只有 {room:,.0f}",
                    en=f"a {tile.value:g} x {tile.value:g} FP32 accumulator needs {need:,.0f} bytes, L0C has {room:,.0f}",
                ),
            )
    for tile in sheet.all("tile_misfit"):
        if tile.value % CUBE_EDGE == 0:
            yield Note(
                rule="tile",
                severity="high",
                formula=f"{tile.value:g} mod {CUBE_EDGE} = 0",
                text=Text(
                    zh=f"{tile.value:g} 是 {CUBE_EDGE} 的倍数，不存在与 Cube 粒度不匹配",
                    en=f"{tile.value:g} is a multiple of {CUBE_EDGE}: it does match the cube",
                ),
            )


def buffers(sheet: Sheet, chips: Chips) -> Iterator[Note]:
    """A buffer said to be used must fit the chip's buffer of that name."""
    named = chips.of(sheet)
    for name in ("l0a", "l0b", "l0c", "l1", "ub", "l2"):
        room = max((amount(getattr(soc, name)) for soc in named), default=None)
        for used in sheet.all(f"{name}_used"):
            if room is not None and used.base - used.half > room:
                yield Note(
                    rule="buffer",
                    severity="high",
                    formula=f"{used} > {room / 1024:,.0f} KiB",
                    text=Text(
                        zh=f"{name.upper()} 用量 {used} 超过 {room / 1024:,.0f} KiB",
                        en=f"{used} in {name.upper()} overflow its {room / 1024:,.0f} KiB",
                    ),
                )


def model_memory(sheet: Sheet, chips: Chips) -> Iterator[Note]:
    """FP16 weights must fit the memory of the stated cards; more than one card must be stated."""
    size = next(iter(sheet.all("parameters")), None)
    named = chips.of(sheet) or chips.all()
    room = max((amount(soc.memory) for soc in named), default=None)
    if size is None or room is None:
        return
    weights = size.value * FP16_B
    cards = sheet.devices or 1
    if weights <= room * cards:
        return
    yield Note(
        rule="model_memory",
        severity="high",
        formula=f"{size.value / 1e9:g}B x {FP16_B} B = {weights / 1e9:.0f} GB > {cards} x {room / 1e9:.0f} GB",
        text=Text(
            zh=f"FP16 权重 {weights / 1e9:.0f} GB 放不进 {cards} 张 {room / 1e9:.0f} GB 的卡，文中没有说明并行度",
            en=f"{weights / 1e9:.0f} GB of FP16 weights do not fit {cards} card(s) of {room / 1e9:.0f} GB; the parallelism is not stated",
        ),
    )


def throttling(sheet: Sheet) -> Iterator[Note]:
    """Removing throttling restores the best unthrottled time at most."""
    before, after = sheet.one("latency", "before"), sheet.one("latency", "after")
    if before is None or after is None or before.upper is None or not THROTTLING & set(sheet.strategies):
        return
    best = min(before.base, before.upper * before.factor)
    if after.base + after.half < best - before.half:
        yield Note(
            rule="throttling",
            severity="high",
            formula=f"{after} < {best / before.factor:g} {before.unit}",
            text=Text(
                zh=f"散热与调频最多回到最好的 {best / before.factor:g} {before.unit}，文中写 {after}",
                en=f"cooling and clocks restore the best {best / before.factor:g} {before.unit} at most, stated {after}",
            ),
        )


def roofline(sheet: Sheet, chips: Chips) -> Iterator[Note]:
    """A time far above the floor of the stated work is not the chip's own."""
    work, time = sheet.one("work", "any"), sheet.one("latency", "after")
    peak = max((soc.peak_fp16_flops for soc in chips.of(sheet)), default=None)
    if work is None or time is None or peak is None:
        return
    floor_ms = work.value / peak * 1e3
    factor = time.base / 1e6 / floor_ms
    if factor > ROOFLINE_FACTOR:
        yield Note(
            rule="roofline",
            severity="high",
            formula=f"{work.value / 1e9:.0f} GFLOP / {peak / 1e12:.1f} TFLOPS = {floor_ms:.1f} ms",
            text=Text(
                zh=f"Cube 只需 {floor_ms:.1f} ms，{time} 是它的 {factor:.0f} 倍：瓶颈在主机或前后处理",
                en=f"the cube needs {floor_ms:.1f} ms; {time} is {factor:.0f} times that: host or pre- and post-processing bound",
            ),
        )


def far_from_measured(sheet: Sheet, measured: Mapping[str, tuple[float, float, str]]) -> Iterator[Note]:
    """Throughput far below what others measured on the oldest chip: a remark, as framework and batch may differ."""
    known = measured.get(re.sub(r"[^a-z0-9]", "", sheet.model.casefold()))
    if known is None:
        return
    least, most, where = known
    low = [item for item in sheet.all("throughput", None, "") if item.when in ("before", "after") and item.base < least]
    if low:
        shown = ", ".join(str(item) for item in low)
        yield Note(
            rule="measured_hardware",
            severity="low",
            formula=f"{shown} < {least:g}-{most:g} /s",
            text=Text(
                zh=f"{shown} 低于 {where} 上测得的 {least:g}-{most:g} /s（框架与批大小可能不同）",
                en=f"{shown} is below the {least:g}-{most:g} /s measured on {where} (framework and batch may differ)",
            ),
        )
