"""A diagnosis in sentences short enough to be heard."""

from __future__ import annotations

from collections.abc import Iterator

from kb.domain.catalogue import Catalogue
from kb.domain.diagnosis import Diagnosis
from kb.domain.finding import Finding
from kb.domain.text import Lang
from kb.report.numbers import duration, percent


def alerts(diagnosis: Diagnosis, catalogue: Catalogue, lang: Lang, *, most: int = 3) -> tuple[str, ...]:
    """One sentence for each of the first ``most`` causes, most important first, then how many more there are.

    A simulated session is named as such first, so that nobody who only listens takes it for hardware.
    """
    return tuple(_sentences(diagnosis, catalogue, lang, most))


def _sentences(diagnosis: Diagnosis, catalogue: Catalogue, lang: Lang, most: int) -> Iterator[str]:
    chinese = lang == "zh"
    if any(session.origin == "simulated" for session in diagnosis.sessions):
        yield "以下为仿真结果。" if chinese else "These are simulated results."
    by_cause = {finding.cause: finding for finding in reversed(diagnosis.all_findings())}
    findings = list(by_cause.values())[::-1]
    skipped = len({item.cause for session in diagnosis.sessions for item in session.not_judged})
    if not findings and skipped:
        yield f"没有发现问题，但有 {skipped} 项未能判断。" if chinese else f"No bottleneck found, but {skipped} checks could not be judged."
    elif not findings:
        yield "没有发现问题。" if chinese else "No bottleneck found."
    yield from (_sentence(finding, catalogue, lang) for finding in findings[:most])
    left = len(findings) - most
    if left > 0:
        yield f"另有 {left} 项。" if chinese else f"{left} more."


def _sentence(finding: Finding, catalogue: Catalogue, lang: Lang) -> str:
    name = catalogue.cause(finding.cause).name.pick(lang)
    lost, share = duration(finding.exposed_ns), percent(finding.share)
    advice = catalogue.strategy(finding.strategies[0]).name.pick(lang) if finding.strategies else ""
    if lang == "zh":
        return f"{finding.priority}：检测到{name}，暴露 {lost}，占单步 {share}" + (f"，建议{advice}。" if advice else "。")
    return f"{finding.priority}: {name}, {lost} exposed, {share} of the step" + (f"; try {advice}." if advice else ".")
