"""The gallery as a visitor walks it from disk: search, filters, sorting, every link, both languages, no complaint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kb.workflow.casebook import open_casebook
from kb.workflow.gallery import Wanted
from kb.workflow.gallery_site import build_site
from kb.workflow.workspace import Workspace

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped library as a site."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KB_EMBEDDER", "hashing")
        home = Workspace(tmp_path_factory.mktemp("home"))
        with open_casebook(home, lambda *_: None) as casebook:
            folder = tmp_path_factory.mktemp("site")
            build_site(casebook, folder, Wanted(audience="public"), lambda *_: None)
    return folder


def _shown(browser: Any) -> list[str]:
    found = browser.execute_script(
        "return [...document.querySelectorAll('.card:not([hidden]) h2 a')].map((link) => link.getAttribute('href'))"
    )
    return [str(link) for link in found]


def _type(browser: Any, words: str) -> None:
    box = browser.find_element("id", "words")
    box.clear()
    box.send_keys(words or " ")


def _complaints(browser: Any) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] not in ("INFO", "DEBUG")]


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize("words", ["attention", "注意力融合", "l2 命中率"])
def test_words_of_either_language_find_records_without_a_network(site: Path, chromium: Any, lang: str, words: str) -> None:
    chromium.get_log("browser")
    chromium.get((site / lang / "index.html").as_uri())
    everything = _shown(chromium)
    assert len(everything) > 150
    _type(chromium, words)
    found = _shown(chromium)
    assert 0 < len(found) < len(everything)
    assert all((site / lang / link).is_file() for link in found)
    assert _complaints(chromium) == []
    assert chromium.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_filters_and_sorting_change_what_is_shown(site: Path, chromium: Any) -> None:
    chromium.get((site / "en" / "index.html").as_uri())
    chromium.execute_script(
        "const s = document.querySelector('[data-filter=kind]'); s.value = 'card'; s.dispatchEvent(new Event('change'))"
    )
    cards = _shown(chromium)
    assert 0 < len(cards) < 150
    assert f"{len(cards)} " in chromium.find_element("id", "count").text
    chromium.execute_script("const s = document.getElementById('sort'); s.value = '4'; s.dispatchEvent(new Event('change'))")
    assert set(_shown(chromium)) == set(cards)


def test_a_record_page_leads_to_the_other_language_and_back(site: Path, chromium: Any) -> None:
    chromium.get((site / "index.html").as_uri())
    chromium.find_element("link text", "Gallery (English)").click()
    chromium.get((site / "en" / "sd3-attention-unfused.html").as_uri())
    chromium.find_element("link text", "中文").click()
    assert chromium.current_url.endswith("/zh/sd3-attention-unfused.html")
    assert "注意力" in chromium.title
    chromium.find_element("link text", "返回全部记录").click()
    assert chromium.current_url.endswith("/zh/index.html")
    assert _complaints(chromium) == []
