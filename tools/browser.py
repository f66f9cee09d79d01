"""A real browser without a window, for tests and for pictures of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1280,900"
)


def installed() -> tuple[str, str] | None:
    """The browser and its driver, if both are here."""
    chromium, driver = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    return (chromium, driver) if chromium and driver else None


@contextmanager
def opened(profile: Path) -> Iterator[Any]:
    """The browser, with a folder for what it keeps; its console and its requests are logged."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    found = installed()
    if found is None:
        raise SystemExit("no browser: install Debian's chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = found[0]
    for flag in (*FLAGS.split(), f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(found[1]))
    try:
        yield browser
    finally:
        browser.quit()


def emulate(browser: Any, width: int, *, height: int = 900, mobile: bool = False, scale: float = 1) -> None:
    """Give the page another screen."""
    size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def prefer(browser: Any, scheme: str) -> None:
    """Let the reader prefer "light" or "dark"."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
