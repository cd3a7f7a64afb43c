"""A report in the format a file name asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec.structs import replace

from kb.domain.catalogue import Catalogue
from kb.domain.text import Lang
from kb.errors import KbError, UsageError
from kb.report.archive import record_bytes
from kb.report.markdown import MarkdownRenderer
from kb.report.report import Report
from kb.report.speedscope import speedscope
from kb.report.story.telling import report_document

SUFFIXES: Final = (".md", ".html", ".pdf", ".json", ".speedscope.json")


def format_of(path: Path) -> str:
    """The entry of ``SUFFIXES`` that ``path`` ends with, longest first. Raises UsageError for another ending."""
    name = path.name.lower()
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if name.endswith(suffix):
            return suffix
    raise UsageError(f"{path.name}: no report format ends like this", allowed=", ".join(SUFFIXES), do="choose the ending you want")


def lacking(suffix: str) -> KbError | None:
    """Why this installation cannot write the format, as the error to raise; None where it can."""
    if suffix != ".pdf":
        return None
    from kb.report.pdf.renderer import pdf_absent, pdf_possible

    return None if pdf_possible() else pdf_absent()


def rendered(report: Report, suffix: str, catalogue: Catalogue, lang: Lang, *, interactive: bool = True) -> str | bytes:
    """The file's content. HTML, PDF and JSON carry the report's record, so that they can be opened again.

    Raises KbError when a flame graph is asked for and the report has none, or an extra is missing.
    """
    report = replace(report, lang=lang)
    if suffix == ".json":
        return record_bytes(report)
    if suffix == ".speedscope.json":
        return _speedscope(report)
    document = report_document(report, catalogue, lang)
    if suffix == ".md":
        return MarkdownRenderer().render(document)
    document = replace(document, record=record_bytes(report))
    if suffix == ".html":
        from kb.report.html.renderer import HtmlRenderer

        return HtmlRenderer(interactive=interactive).render(document)
    from kb.report.pdf.renderer import PdfRenderer

    return PdfRenderer().render(document)


def _speedscope(report: Report) -> bytes:
    flames = [(item.name, item.flame) for item in report.facts if item.flame is not None]
    if not flames:
        raise KbError("this report holds no flame graph", do="write it from a profile with device tasks")
    return speedscope(flames)
