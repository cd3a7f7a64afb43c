"""Report pages as a reader meets them: no errors, nothing executes, zoom, search and hover work, paper and phone are served."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report.samples import CATALOGUE, diagnosis, full_report, session
from report.test_archive import HOSTILE

from kb.report.formats import rendered
from kb.report.pictures.facts import session_facts
from kb.report.report import Report

pytestmark = pytest.mark.browser
_PATIENCE_S = 20
_Open = Callable[..., Any]


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> _Open:
    """Opens a report from disk, scrolls once through it and waits until every picture is alive."""

    def run(report: Report, *, interactive: bool = True) -> Any:
        page = tmp_path / "report.html"
        page.write_text(str(rendered(report, ".html", CATALOGUE, "en", interactive=interactive)), encoding="utf-8")
        chromium.get_log("browser")
        chromium.get(page.as_uri())
        if interactive:
            chromium.execute_script("document.documentElement.style.scrollBehavior = 'auto'")
            for place in range(len(chromium.find_elements("css selector", ".live"))):
                chromium.execute_script(f"document.querySelectorAll('.live')[{place}].closest('figure').scrollIntoView()")
                _until(partial(_alive, chromium, place))
        return chromium

    return run


def _until(test: Callable[[], object]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not test():
        assert time.monotonic() < end, "the page did not get there"
        time.sleep(0.05)


def _value(browser: Any, place: int, name: str) -> Any:
    return browser.execute_script(f"return document.querySelectorAll('.live')[{place}].dataset.{name}")


def _alive(browser: Any, place: int) -> bool:
    return bool(_value(browser, place, "ready") == "true")


def _range(browser: Any, figure: str) -> tuple[float, float]:
    found = browser.execute_script(f"const r = document.querySelector('#figure-{figure} .live').range; return [r.start, r.end]")
    return found[0], found[1]


def _complaints(browser: Any) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] not in ("INFO", "DEBUG")]


def test_a_page_opens_from_disk_without_a_complaint(opened: _Open) -> None:
    browser = opened(full_report())
    assert _complaints(browser) == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize("interactive", [True, False])
def test_nothing_in_the_data_executes(opened: _Open, interactive: bool) -> None:
    attack = HOSTILE + "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
    browser = opened(full_report(text=attack), interactive=interactive)
    assert browser.title != "owned"
    assert browser.execute_script("return document.querySelectorAll('img, main script:not([type]), iframe, object').length") == 0
    assert _complaints(browser) == []


def test_the_policy_stops_a_script_that_slipped_in(opened: _Open) -> None:
    browser = opened(full_report())
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = \"document.title='owned'\"; document.body.append(s)"
    )
    assert browser.title != "owned"
    assert any("Content Security Policy" in text for text in _complaints(browser))


def test_a_click_on_a_frame_zooms_and_reset_returns(opened: _Open) -> None:
    browser = opened(full_report())
    from selenium.webdriver import ActionChains

    whole = _range(browser, "flame-0")
    box = browser.find_element("css selector", "#figure-flame-0 .live > div:last-child")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", box)
    ActionChains(browser).move_to_element_with_offset(box, -box.size["width"] // 4, 0).click().perform()
    _until(lambda: _range(browser, "flame-0") != whole)
    browser.find_element("css selector", "#figure-flame-0 .tools button").click()
    _until(lambda: _range(browser, "flame-0") == whole)


def test_search_counts_what_it_finds(opened: _Open) -> None:
    browser = opened(full_report())
    browser.find_element("css selector", "#figure-flame-0 input").send_keys("add")
    output = "#figure-flame-0 output"
    _until(lambda: "2 matches" in browser.find_element("css selector", output).text)
    assert "200.0 us" in browser.find_element("css selector", output).text


def test_hovering_a_span_tells_its_name(opened: _Open) -> None:
    browser = opened(full_report())
    from selenium.webdriver import ActionChains

    box = browser.find_element("css selector", "#figure-timeline-0 .live > div:last-child")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", box)
    height = box.size["height"]
    for offset in (0, 3, 6):
        ActionChains(browser).move_to_element_with_offset(box, -box.size["width"] // 6 + offset, -height // 2 + 52).perform()
    # The tooltip hangs at the end of the body, inside shadow roots.
    seen = """
      const inside = (one) => (one.shadowRoot ? [...one.shadowRoot.children].map(all) : []);
      const all = (one) => [one.textContent, ...[...one.children].map(all), inside(one)].flat(99);
      return all(document.body).join(" ");
    """
    _until(lambda: "400.0 us" in browser.execute_script(seen))
    assert "run · 8,16;16,4" in browser.execute_script(seen)


def test_a_hundred_thousand_kernels_stay_fluid(opened: _Open) -> None:
    busy = session(np.random.default_rng(2).integers(1, 30, 100_000).tolist())
    report = Report(diagnosis=diagnosis(), facts=(session_facts(busy, CATALOGUE),))
    browser = opened(report)
    assert int(_value(browser, 0, "total")) == 100_000
    assert int(_value(browser, 0, "marks")) < 5_000
    zoom = """
      const done = arguments[0], live = document.querySelector('#figure-timeline-0 .live'), range = live.range, whole = range.end;
      let frames = 0; const begin = performance.now();
      const step = () => {
        if (frames++ === 20) { done((performance.now() - begin) / 20); return; }
        range.setv({ start: whole * frames / 50, end: whole * (1 - frames / 50) });
        requestAnimationFrame(step);
      };
      requestAnimationFrame(step);
    """
    browser.set_script_timeout(60)
    per_frame_ms = browser.execute_async_script(zoom)
    assert per_frame_ms < 400, "a slow machine draws a frame in well under 100 ms; this is not interactive"


def test_paper_gets_the_still_pictures_and_all_evidence(opened: _Open) -> None:
    browser = opened(full_report())
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        look = "return [...document.querySelectorAll(arguments[0])].map((one) => getComputedStyle(one).display)"
        assert "none" not in browser.execute_script(look, ".still")
        assert set(browser.execute_script(look, ".live, .bar, nav")) == {"none"}
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_phone_never_scrolls_sideways(opened: _Open) -> None:
    browser = opened(full_report())
    metrics = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_theme_button_changes_the_ground(opened: _Open) -> None:
    browser = opened(full_report())
    ground = "return getComputedStyle(document.body).backgroundColor"
    before = browser.execute_script(ground)
    browser.find_element("id", "theme").click()
    assert browser.execute_script(ground) != before
