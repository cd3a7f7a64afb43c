"""What a report says, and in which order."""

from __future__ import annotations

import pytest
from report.samples import CATALOGUE, MS, diagnosis, finding, full_report, session

from kb.domain.finding import Finding
from kb.domain.text import LANGS, Lang
from kb.report.diagnosis import diagnosis_document
from kb.report.document import Document, Figure, FindingBlock, Heading, Headline, Note
from kb.report.labels import labels
from kb.report.markdown import MarkdownRenderer
from kb.report.pictures.facts import session_facts
from kb.report.report import Report
from kb.report.story.telling import report_document


def _headings(document: Document) -> list[str]:
    return [block.text for block in document.blocks if isinstance(block, Heading) and block.level == 2]


@pytest.mark.parametrize("lang", LANGS)
def test_the_verdict_comes_before_every_chapter(lang: Lang) -> None:
    document = report_document(full_report(), CATALOGUE, lang)
    kinds = [type(block) for block in document.blocks]
    assert kinds.index(Headline) < min(
        place for place, block in enumerate(document.blocks) if isinstance(block, Heading) and block.level == 2
    )


@pytest.mark.parametrize("lang", LANGS)
def test_every_chapter_is_there_in_both_languages(lang: Lang) -> None:
    words = labels(lang)
    chapters = ("comparison", "where", "findings", "next", "impact", "pictures", "operators", "cases", "limits", "capture")
    assert [words(f"report.{chapter}") for chapter in chapters] == _headings(report_document(full_report(), CATALOGUE, lang))


def test_every_finding_is_shown_with_its_evidence_and_expected_gain() -> None:
    shown = [block for block in report_document(full_report(), CATALOGUE, "en").blocks if isinstance(block, FindingBlock)]
    assert [(block.code, block.evidence.rows[0][:2], block.remedies[0].tier) for block in shown] == [
        ("slow_thing", ("kernel_details.csv", "7"), "measured")
    ]


@pytest.mark.parametrize("origin", ["simulated", "measured"])
def test_a_simulated_report_says_so_before_anything_else(origin: str) -> None:
    report = full_report(origin="simulated" if origin == "simulated" else "measured")
    second = report_document(report, CATALOGUE, "en").blocks[1]
    assert (isinstance(second, Note) and second.kind == "simulated") is (origin == "simulated")


def test_figures_have_names_of_their_own() -> None:
    names = [block.name for block in report_document(full_report(), CATALOGUE, "en").blocks if isinstance(block, Figure)]
    assert len(names) == len(set(names))
    pictures = {"breakdown", "causes", "timeline-0", "flame-0", "curves-0-0", "heat", "path", "pairs", "versions-0", "reliability"}
    assert pictures == set(names)


def test_without_findings_the_report_says_what_was_checked() -> None:
    document = report_document(Report(diagnosis=diagnosis(())), CATALOGUE, "en")
    headline = next(block for block in document.blocks if isinstance(block, Headline))
    assert (headline.tone, headline.text) == ("good", "No bottleneck among the checks that could be made")


@pytest.mark.parametrize("share", [0.0, 0.04, 0.06, 0.19, 0.2])
@pytest.mark.parametrize("findings", [(), (finding(share=0.1),)])
def test_idle_time_of_unknown_cause_leads_when_it_is_the_largest_loss(share: float, findings: tuple[Finding, ...]) -> None:
    told = diagnosis(findings, unexplained_ns=round(share * 10 * MS))
    largest = max([0.05, *(item.share for item in findings)])
    document = report_document(Report(diagnosis=told), CATALOGUE, "en")
    found = next(block for block in document.blocks if isinstance(block, Headline))
    leads = share >= largest
    assert (f"Idle, cause unknown: {100 * share:.1f} % of the step" == found.text) is leads
    if leads:
        assert found.tone == "warn"
        assert "no captured event explains it" in found.lead
        assert ("Slow thing" in found.lead) is bool(findings)
    plain = MarkdownRenderer().render(diagnosis_document(told, CATALOGUE, "en"))
    assert ("not explained" in plain) is leads


def test_a_capture_of_the_host_alone_is_no_all_clear() -> None:
    document = report_document(Report(diagnosis=diagnosis((), compute=False, unexplained_ns=10 * MS)), CATALOGUE, "en")
    found = next(block for block in document.blocks if isinstance(block, Headline))
    assert (found.tone, found.text) == ("unknown", "No device activity was captured: nothing on the device can be judged")


def test_without_a_step_the_report_does_not_judge() -> None:
    document = report_document(Report(diagnosis=diagnosis((), step_ns=0)), CATALOGUE, "en")
    headline = next(block for block in document.blocks if isinstance(block, Headline))
    assert headline.tone == "unknown"
    assert "%" not in "".join(tile.value for tile in headline.tiles)


def test_one_kernel_makes_a_report() -> None:
    facts = (session_facts(session((50,)), CATALOGUE),)
    text = MarkdownRenderer().render(report_document(Report(diagnosis=diagnosis(), facts=facts), CATALOGUE, "en"))
    assert "1 task" in text


def test_predicted_throughput_follows_littles_law() -> None:
    text = MarkdownRenderer().render(report_document(full_report(), CATALOGUE, "en"))
    # 2 samples a step of 10 ms; the first recommendation saves 20 %, the bound is 40 %.
    assert "| now | 10.0 ms |  | 200 |" in text
    assert "8.00 ms | 7.00 ms – 9.00 ms | 250 | +25.0 % |" in text
    assert "| upper bound | 6.00 ms |  | 333.3 | +66.7 % |" in text


def test_gain_bounds_never_promise_more_than_the_step() -> None:
    report = Report(diagnosis=diagnosis(tuple(finding(share=0.9) for _ in range(3))))
    text = MarkdownRenderer().render(report_document(report, CATALOGUE, "en"))
    assert "gain bound: 10.0 ms (100.0 % · 3 findings)" in text
