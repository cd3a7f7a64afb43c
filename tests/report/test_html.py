"""The page: self-contained, inert, readable, whatever the data holds."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report.samples import CATALOGUE, diagnosis, finding, full_report
from report.test_archive import HOSTILE

from kb.domain.text import LANGS, Lang, Text
from kb.report.document import Document, Heading, Prose
from kb.report.formats import rendered
from kb.report.html.renderer import HtmlRenderer
from kb.report.html.scripts import asset, chart_library
from kb.report.report import Report

_LOADING = {"src", "href", "action", "data", "poster", "srcset", "xlink:href"}


class _Page(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self._script: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag == "script":
            self._script = dict(attrs).get("type") or "javascript"

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._script = None

    def handle_data(self, data: str) -> None:
        if self._script == "javascript":
            self.scripts.append(data)
        elif self._script is None:
            self.words.append(data)


def _page(text: str, lang: Lang = "en") -> _Page:
    return _Page(str(rendered(full_report(text=text), ".html", CATALOGUE, lang, interactive=False)))


def _inert(page: _Page) -> bool:
    quiet = not any(name.startswith("on") for name, _ in page.attributes)
    local = all(value.startswith("#") for name, value in page.attributes if name in _LOADING)
    return quiet and local and page.scripts == [asset("page.js")]


@pytest.mark.parametrize("lang", LANGS)
def test_a_hostile_name_stays_text_everywhere(lang: Lang) -> None:
    page = _page(HOSTILE, lang)
    assert _inert(page)
    assert "alert(1)" in "".join(page.words)


@settings(max_examples=15, deadline=None)
@given(st.text(max_size=30))
def test_no_text_becomes_an_element(text: str) -> None:
    assert set(_page(text).tags) == set(_page("run").tags)


def test_the_page_loads_nothing_and_runs_only_its_own_scripts() -> None:
    text = str(rendered(full_report(), ".html", CATALOGUE, "en"))
    page = _Page(text)
    assert [value for name, value in page.attributes if name in _LOADING and not value.startswith("#")] == []
    policy = next(value for name, value in page.attributes if name == "content" and "script-src" in value)
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1]
    assert policy.count("sha256-") == len(page.scripts)


def test_authors_markdown_keeps_its_form_and_loses_its_teeth() -> None:
    markdown = "# Title\n\n<img src=x onerror=alert(1)> [a](javascript:alert(1)) [b](https://e.org) ![c](http://e.org/c.png)"
    markdown += "\n\n| h |\n| - |\n| c |"
    page = _Page(HtmlRenderer(interactive=False).render(Document((Heading(1, "t"), Prose(markdown)))))
    assert "img" not in page.tags
    assert [value for name, value in page.attributes if name == "href" and not value.startswith("#")] == ["https://e.org"]
    assert {"table", "h3"} <= set(page.tags)


def test_a_field_of_ten_megabytes_is_cut_with_its_size_said() -> None:
    report = Report(diagnosis=diagnosis((finding(Text("字" * 10_000_000, "x" * 10_000_000)),)))
    page = _Page(str(rendered(report, ".html", CATALOGUE, "en", interactive=False)))
    assert sum(map(len, page.words)) < 1_000_000
    assert "(cut; 10,000,000 characters in all)" in "".join(page.words)


def test_without_the_chart_library_pictures_stay_and_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kb.report.html.renderer.chart_library", tuple)
    text = str(rendered(full_report(), ".html", CATALOGUE, "en"))
    assert ".[charts]" in text
    assert text.count("<svg") >= 8
    assert len(text) < 400_000


def test_the_chart_library_cannot_close_its_own_script() -> None:
    assert not any("</script" in script for script in chart_library())


def test_tables_have_headers_and_pictures_have_names() -> None:
    page = _page("run")
    assert page.tags.count("table") == page.tags.count("thead")
    assert page.tags.count("svg") == sum(name == "aria-label" and bool(value) for name, value in page.attributes) - 2
    assert ("lang", "en") in page.attributes
