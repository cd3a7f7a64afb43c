"""Figures found in sentences, Chinese or English. Only forms that leave no doubt about what is stated are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kb.audit.claims import Bound, Claim, When, decimals_step

_NUMBER: Final = r"\d[\d,]*(?:\.\d+)?"
_UNITS: Final[dict[str, str]] = {
    "ns": "ns", "us": "us", "µs": "us", "微秒": "us", "ms": "ms", "毫秒": "ms", "s": "s", "秒": "s", "min": "min", "h": "h",
    "gb/s": "GB/s", "tb/s": "TB/s", "mb/s": "MB/s", "gb": "GB", "mb": "MB", "kb": "KB", "gib": "GiB", "mib": "MiB", "kib": "KiB",
    "qps": "/s", "/s": "/s", "img/s": "/s", "images/s": "/s", "samples/s": "/s", "tokens/s": "/s", "tok/s": "/s", "req/s": "/s",
    "requests/s": "/s", "fps": "/s", "%": "%",
}  # fmt: skip
_UNIT: Final = "|".join(re.escape(unit) for unit in sorted(_UNITS, key=len, reverse=True))
_FIGURE: Final = rf"({_NUMBER})\s*({_UNIT})(?![A-Za-z/])"
_ARROW: Final = r"\s*(?:→|->|=>|down to|up to|to|降到|降至|降为|减到|减至|升到|升至|提升到|提高到|增到|变为|变成|到)\s*"
_TRANSITION: Final = re.compile(rf"({_NUMBER})\s*({_UNIT})?{_ARROW}{_FIGURE}", re.IGNORECASE)
_SIGNED: Final = rf"([-+−↓↑])\s*({_NUMBER})\s*%"
_SAVING: Final = "下降|降低|降幅|减少|缩短|提升|提高|增加|快了|saves?|saving|reduced by|reduction of|cut by|down|up|faster by"
_SPOKEN: Final = rf"(?:{_SAVING})\s*(?:了|约)?\s*({_NUMBER})\s*%"
_FACTOR: Final = rf"({_NUMBER})\s*(?:x\b|×|倍)"
_COMPARED: Final = rf"({_NUMBER})\s*%\s*(?:less|lower|faster|higher|more|reduction)"
_CHANGE: Final = re.compile(rf"{_SIGNED}|{_SPOKEN}|{_COMPARED}|{_FACTOR}", re.IGNORECASE)
_QUOTIENT: Final = re.compile(rf"({_NUMBER})\s*(?:/|of|out of)\s*({_NUMBER})\b[^.;。；\n]{{0,40}}?({_NUMBER})\s*%", re.IGNORECASE)
_TARGET: Final = re.compile(
    rf"(<=|>=|≤|≥|<|>|below|under|at most|at least|above|不超过|小于|低于|不低于|大于|高于|至少)\s*{_FIGURE}", re.IGNORECASE
)
_UPWARD: Final = frozenset({">=", "≥", ">", "at least", "above", "不低于", "大于", "高于", "至少"})
_PEAK: Final = re.compile(
    rf"(?:peak|峰值)[^.;。；\n]{{0,24}}?({_NUMBER})\s*(GB/s|TB/s)|(?:of|/)\s*(?:a\s+)?peak\s*({_NUMBER})\s*(GB/s|TB/s)", re.IGNORECASE
)
_TILE: Final = re.compile(
    r"\btile(?:[_ ]?size)?\s*(?:of|=|:|is|为|设为|改为|to)?\s*(\d{2,4})(?:\s*(?:→|->|to|改为|改成|到)\s*(\d{2,4}))?", re.IGNORECASE
)
_HIT: Final = re.compile(rf"L2[^.;。；\n]{{0,16}}?(?:hit rate|hit|命中率|命中)[^.;。；\n\d]{{0,8}}({_NUMBER})\s*%", re.IGNORECASE)
_FLOW: Final = re.compile(rf"(HBM|L2)\s*(?:→|->|to|到)\s*(L2|L1)[^.;。；\n\d]{{0,12}}({_NUMBER})\s*(MB|GB|KB)", re.IGNORECASE)
_BUFFER: Final = re.compile(rf"\b(L0A|L0B|L0C|UB)\b[^.;。；\n\d]{{0,20}}({_NUMBER})\s*(KB|KiB|MB|MiB)", re.IGNORECASE)
_CONSTANT: Final = re.compile(rf"[\"']?confidence[\"']?\s*[:=]\s*({_NUMBER})", re.IGNORECASE)
_SHARE: Final = re.compile(rf"([A-Za-z][A-Za-z_0-9]*)\s*(?:accounts for|takes up|takes|占比?)\s*({_NUMBER})\s*%", re.IGNORECASE)
_SENTENCE: Final = re.compile(r"[。；;\n]|\.(?=\s|$)")
_WHOLE: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("latency", re.compile(r"\blatency\b|时延|延迟|(?<!\w)推理耗时", re.IGNORECASE)),
    ("throughput", re.compile(r"\bthroughput\b|\bQPS\b|吞吐", re.IGNORECASE)),
    ("memory", re.compile(r"\bmemory\b|显存|内存", re.IGNORECASE)),
)
_DIMENSIONS: Final[dict[str, tuple[str, ...]]] = {
    "latency": ("ns", "us", "ms", "s", "min", "h"),
    "throughput": ("/s",),
    "memory": ("GB", "MB", "KB", "GiB", "MiB", "KiB"),
    "bandwidth": ("GB/s", "MB/s", "TB/s"),
    "share": ("%",),
}
_DIMENSION: Final[dict[str, str]] = {unit: metric for metric, units in _DIMENSIONS.items() for unit in units}


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text."""
    yield from (part.strip() for part in _SENTENCE.split(text) if part.strip())


def transitions(sentence: str) -> Iterator[tuple[Claim, ...]]:
    """Before, after and, where stated close behind, the change: each group is a scenario of its own."""
    found = list(_TRANSITION.finditer(sentence))
    for at, match in enumerate(found):
        unit = _unit(match[4])
        if match[2] and _DIMENSION[_unit(match[2])] != _DIMENSION[unit]:
            continue
        end = found[at + 1].start() if at + 1 < len(found) else len(sentence)
        change = _CHANGE.search(sentence, match.end(), min(end, match.end() + 40))
        subject = "" if _whole_metric(sentence[: match.start()][-40:]) else sentence[:40]
        metric = _DIMENSION[unit]
        first = _claim(metric, match[1], _unit(match[2]) if match[2] else unit, "before", subject)
        last = _claim(metric, match[3], unit, "after", subject)
        yield (first, last) if change is None else (first, last, _change(metric, change, subject))


def _whole_metric(words: str) -> str | None:
    return next((metric for metric, pattern in _WHOLE if pattern.search(words)), None)


def _change(metric: str, match: re.Match[str], subject: str) -> Claim:
    factor = match[5]
    number = factor or match[2] or match[3] or match[4]
    return _claim(metric, number, "x" if factor else "%", "change", subject)


def quotients(sentence: str) -> Iterator[tuple[Claim, ...]]:
    """``217 of 218 ... 99.8 %``: a part, a whole, and the stated share."""
    for match in _QUOTIENT.finditer(sentence):
        part, whole = _number(match[1]), _number(match[2])
        if 0 < part <= whole:
            subject = sentence[:40]
            yield (
                _claim("count", match[1], "", "part", subject),
                _claim("count", match[2], "", "whole", subject),
                _claim("count", match[3], "%", "share", subject),
            )


def targets(text: str) -> Iterator[Claim]:
    """Limits an author sets: ``latency < 100 ms``, ``throughput at least 150/s``."""
    for sentence in sentences(text):
        for match in _TARGET.finditer(sentence):
            unit = _unit(match[3])
            if unit == "%":
                continue
            bound: Bound = "min" if match[1].lower() in _UPWARD else "max"
            yield _claim(_DIMENSION[unit], match[2], unit, "target", "", bound=bound)


def facts(text: str) -> Iterator[Claim]:
    """Statements about the chip and its caches that need no partner in the same sentence."""
    for match in _PEAK.finditer(text):
        number, unit = (match[1], match[2]) if match[1] else (match[3], match[4])
        yield _claim("peak_bandwidth", number, _unit(unit), "any", "")
    for match in _TILE.finditer(text):
        yield _claim("tile", match[2] or match[1], "", "after", "")
    for match in _HIT.finditer(text):
        yield _claim("hit_rate", match[1], "%", "before", "")
    for match in _FLOW.finditer(text):
        name = {("HBM", "L2"): "hbm_to_l2", ("L2", "L1"): "l2_to_l1"}.get((match[1].upper(), match[2].upper()))
        if name is not None:
            yield _claim(name, match[3], _unit(match[4]), "before", "")
    for match in _BUFFER.finditer(text):
        # Buffers are counted in binary units, however they are spelled.
        unit = {"kb": "KiB", "kib": "KiB", "mb": "MiB", "mib": "MiB"}[match[3].lower()]
        yield _claim(f"{match[1].lower()}_used", match[2], unit, "any", "")
    for match in _CONSTANT.finditer(text):
        yield Claim(metric="confidence", value=_number(match[1]), step=decimals_step(match[1]), constant=True)


def shares(text: str) -> Iterator[Claim]:
    """``attention takes 38 %``: parts of the whole."""
    for match in _SHARE.finditer(text):
        yield _claim("share", match[2], "%", "before", match[1].lower())


def _claim(metric: str, number: str, unit: str, when: When, subject: str, *, bound: Bound = "") -> Claim:
    return Claim(metric=metric, value=_number(number), unit=unit, step=decimals_step(number), when=when, subject=subject, bound=bound)


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _unit(text: str) -> str:
    return _UNITS[text.lower()]
