"""Chromium for tests: one browser for many of them, and a tab for each.

It needs Selenium, Chromium and its driver (Debian: `chromium`, `chromium-driver`); CHROMIUM and CHROMEDRIVER name them
if they are not on the PATH.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

try:
    from selenium import webdriver
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait as Wait
except ImportError:
    webdriver = Keys = Wait = None  # type: ignore[assignment, misc]

__all__ = ["Keys", "Tab", "browser", "tab_of"]

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver")
SECONDS = 120
"""That a wait may take: the first run after an installation compiles kernels."""


class Tab:
    """A tab, as someone uses it; `host` is the beginning of all that it may ask."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        self.host = ""

    def go(self, address: str) -> None:
        """Asks this server from now on."""
        self.host = address.split("#")[0]
        self.driver.get(address)

    def js(self, expression: str, *arguments: Any) -> Any:
        return self.driver.execute_script(f"return {expression}", *arguments)

    def until(self, holds: str) -> None:
        Wait(self.driver, SECONDS, poll_frequency=0.03).until(lambda _: self.js(holds), holds)

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def count(self, selector: str) -> int:
        return int(self.js("document.querySelectorAll(arguments[0]).length", selector))

    def text(self, selector: str) -> str:
        return str(self.js("document.querySelector(arguments[0]).innerText", selector))

    def press(self, *keys: str) -> None:
        """Keys at once, the last of them held no longer than the others."""
        actions = webdriver.ActionChains(self.driver, duration=0)
        for key in keys[:-1]:
            actions.key_down(key)
        actions.send_keys(keys[-1])
        for key in keys[:-1]:
            actions.key_up(key)
        actions.perform()

    def write(self, text: str, into: str) -> None:
        """As if it were pasted in place of all."""
        self.js(
            "(([area, text]) => { area.focus(); area.select(); document.execCommand('insertText', false, text); })"
            "([document.querySelector(arguments[0]), arguments[1]])", into, text,
        )  # fmt: skip

    def size(self, width: int, height: int, scheme: str) -> None:
        sizes = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", sizes)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def asked(self) -> list[str]:
        """The addresses that were asked since the last time."""
        logged = [json.loads(line["message"])["message"] for line in self.driver.get_log("performance")]
        return [m["params"]["request"]["url"] for m in logged if m["method"] == "Network.requestWillBeSent"]

    def said(self) -> list[str]:
        """The lines of the console since the last time."""
        return [line["message"] for line in self.driver.get_log("browser")]


T = TypeVar("T", bound=Tab)


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium, until the end of the block. Skips the test if there is none."""
    if webdriver is None:
        pytest.skip("Selenium is not installed")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("there is no Chromium, or no chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in ("headless=new", "disable-gpu", "disable-dev-shm-usage", "no-first-run",
                 "disable-background-networking", "window-size=1400,900"):  # fmt: skip
        options.add_argument(f"--{word}")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium's is not for root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield found
    finally:
        found.quit()


@contextmanager
def tab_of(driver: Any, kind: type[T]) -> Iterator[T]:
    """An empty tab. Fails if the page requests anything but its own server, or the console has a line: an error, or
    something that its policy forbids."""
    first = driver.current_window_handle
    driver.switch_to.new_window("tab")
    page = kind(driver)
    page.size(1400, 900, "light")
    page.asked(), page.said()
    yield page
    foreign = [url for url in page.asked() if not url.startswith((page.host, "data:", "about:"))]
    said = page.said()
    driver.close()
    driver.switch_to.window(first)
    assert foreign == [], "only its own server is asked"
    assert said == [], "the console is empty"
