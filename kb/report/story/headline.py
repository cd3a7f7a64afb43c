"""The first screen: one sentence that says what is wrong and what it is worth."""

from __future__ import annotations

from kb.domain.catalogue import Catalogue
from kb.domain.comparison import Comparison, Verdict
from kb.domain.diagnosis import Diagnosis, SessionDiagnosis
from kb.domain.finding import Finding
from kb.report.document import Headline, Tile, Tone
from kb.report.labels import Labels
from kb.report.numbers import duration, percent, signed_percent
from kb.report.report import Report
from kb.report.story.names import cause_name, session_name

_LARGE = 0.15
"""Share of the step from which one finding counts as a clear bottleneck."""


def headline(report: Report, diagnosis: Diagnosis, catalogue: Catalogue, words: Labels) -> Headline:
    """The verdict of a diagnosis."""
    slowest = slowest_session(diagnosis)
    findings = report.findings
    tone = _tone(findings, slowest)
    return Headline(words("report.verdict"), _text(findings, slowest, catalogue, words), _lead(findings, slowest, catalogue, words), tone,
                    _tiles(report, diagnosis, slowest, words))  # fmt: skip


_TONES: dict[Verdict, Tone] = {"improved": "good", "regressed": "bad", "no_change": "unknown"}


def comparison_headline(comparison: Comparison, words: Labels) -> Headline:
    """The verdict of a comparison."""
    low, high = comparison.interval
    n_before, n_after = comparison.n
    text = f"{words(f'verdict.{comparison.verdict}')}: {duration(comparison.before_step_ns)} → {duration(comparison.after_step_ns)}"
    tiles = (
        Tile(
            words("saved"), signed_percent(comparison.gain_fraction), f"[{percent(low)}, {percent(high)}] @ {comparison.interval_level:.0%}"
        ),
        Tile(words("noise"), f"±{percent(comparison.noise_fraction)}", f"n = {n_before} / {n_after}"),
    )
    return Headline(words("comparison"), text, f"{comparison.before} → {comparison.after}", _TONES.get(comparison.verdict, "warn"), tiles)


def slowest_session(diagnosis: Diagnosis) -> SessionDiagnosis | None:
    """The session of the longest step; None for a diagnosis without sessions."""
    return max(diagnosis.sessions, key=lambda session: session.accounting.step_ns, default=None)


def total_bound_ns(report: Report, slowest: SessionDiagnosis | None) -> int:
    """What removing the findings of the slowest session and of the cluster can save at most, never more than its step."""
    if slowest is None or report.diagnosis is None:
        return 0
    across = sum(finding.gain_bound_ns for finding in report.diagnosis.cluster.findings)
    return min(across + sum(finding.gain_bound_ns for finding in slowest.findings), slowest.accounting.step_ns)


def _tone(findings: tuple[Finding, ...], slowest: SessionDiagnosis | None) -> Tone:
    if slowest is None or not slowest.accounting.step_ns or not slowest.saw_device():
        return "unknown"
    if slowest.leaves_open(findings):
        return "warn"
    if not findings:
        return "good" if slowest.healthy else "unknown"
    return "bad" if max(finding.share for finding in findings) >= _LARGE else "warn"


def _text(findings: tuple[Finding, ...], slowest: SessionDiagnosis | None, catalogue: Catalogue, words: Labels) -> str:
    if slowest is None or not slowest.accounting.step_ns:
        return words.either("采集中没有完整的一步，无法核算", "The capture holds no complete step to account for")
    if not slowest.saw_device():
        return words.either(
            "没有采集到设备活动，无法判断设备上的瓶颈", "No device activity was captured: nothing on the device can be judged"
        )
    if slowest.leaves_open(findings):
        share = percent(slowest.unexplained_ns / slowest.accounting.step_ns)
        return words.either(f"原因未知的空闲，占单步的 {share}", f"Idle, cause unknown: {share} of the step")
    if not findings:
        return words.either("已检查的项中没有发现瓶颈", "No bottleneck among the checks that could be made")
    top = findings[0]
    name, share = cause_name(top.cause, catalogue, words), percent(top.share)
    return words.either(f"{name}，占单步的 {share}", f"{name}: {share} of the step")


def _lead(findings: tuple[Finding, ...], slowest: SessionDiagnosis | None, catalogue: Catalogue, words: Labels) -> str:
    if slowest is not None and slowest.leaves_open(findings) and slowest.saw_device():
        return _open_loss(findings, slowest, catalogue, words)
    text = findings[0].message.pick(words.lang) if findings else words("no_findings")
    return text[:1].upper() + text[1:]


def _open_loss(findings: tuple[Finding, ...], slowest: SessionDiagnosis, catalogue: Catalogue, words: Labels) -> str:
    """The unexplained idle time is the largest loss: what is known, and where the reader goes on."""
    spent = duration(slowest.unexplained_ns)
    if not findings:
        known_zh, known_en = "没有其他发现", "nothing else was found"
    else:
        name, share = cause_name(findings[0].cause, catalogue, words), percent(findings[0].share)
        known_zh, known_en = f"已知最大的损失是{name}（{share}）", f"the largest known loss is {name} ({share})"
    return words.either(
        f"设备每步空闲 {spent}，采集中没有事件能解释；{known_zh}。怎样采集见“未能判断”",
        f"The device idles {spent} a step and no captured event explains it; {known_en}. What could not be judged says how to capture it",
    )


def _tiles(report: Report, diagnosis: Diagnosis, slowest: SessionDiagnosis | None, words: Labels) -> tuple[Tile, ...]:
    if slowest is None:
        return ()
    books = slowest.accounting
    bound = total_bound_ns(report, slowest)
    tiles = [Tile(words("step"), duration(books.step_ns), session_name(slowest, words))]
    if books.step_ns:
        idle = sum(books.share(part) for part in books.parts if part.startswith("idle"))
        tiles.append(Tile(words("part.compute"), percent(books.share("compute")), f"{words('role.idle')} {percent(idle)}"))
        tiles.append(Tile(words("gain_bound"), duration(bound), f"{percent(bound / books.step_ns)} · {_counted(report, words)}"))
    best = report.recommendation.strategies[0] if report.recommendation and report.recommendation.strategies else None
    if best is not None:
        low, high = best.interval
        note = f"[{percent(low)}, {percent(high)}] · {words(f'provenance.{best.provenance}')}"
        tiles.append(Tile(words("expected"), percent(best.gain_fraction), note))
    if report.health is not None:
        captured = words.either(f"{len(diagnosis.sessions)} 份采集", f"{len(diagnosis.sessions)} captured")
        tiles.append(Tile(words("capture_health"), words(f"health.{report.health.verdict}"), captured))
    return tuple(tiles)


def _counted(report: Report, words: Labels) -> str:
    number = len(report.findings)
    return words.either(f"{number} 项发现", f"{number} finding" if number == 1 else f"{number} findings")
