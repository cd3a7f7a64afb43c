"""A headless Chromium for the tests of this folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest


def _absent(reason: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}: .ci/browser installs it")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A selenium driver without network. Skips where selenium or the browser is absent; in CI that is a failure."""
    try:
        from selenium import webdriver
    except ImportError:
        _absent("selenium is not installed")
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        _absent("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = str(browser)
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900", "--host-resolver-rules=MAP * ~NOTFOUND"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield opened
    finally:
        opened.quit()
