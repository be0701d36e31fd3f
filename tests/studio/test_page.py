"""The studio's page, in Chromium: `pytest -m browser`. It needs Playwright's Python package and a Chromium, whose path
CHROMIUM names where it is not on the PATH; no test of it is run without the marker."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.browser
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytest.importorskip("starlette", reason="the extra studio is not installed")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--no-zygote", "--disable-gpu", "--single-process"]
EDITOR = "#query textarea"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    command = [sys.executable, "-m", "spaseq", "studio", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[1]
        process.terminate()


@pytest.fixture
def page(address: str, request: Any) -> Iterator[Any]:
    """A page that has begun with the first example. It fails where anything else than this server is asked, or the
    console has a line."""
    if CHROMIUM is None:
        pytest.skip("no Chromium: install it, or name it in CHROMIUM")
    words = getattr(request, "param", {})
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        found = browser.new_context(**words).new_page()
        asked: list[str] = []
        said: list[str] = []
        found.on("request", lambda request: asked.append(request.url))
        found.on("console", lambda message: said.append(message.text))
        found.on("pageerror", lambda error: said.append(str(error)))
        found.goto(address)
        found.wait_for_selector("#messages .valid", timeout=60_000)
        yield found
        host = address.split("#")[0]
        assert [url for url in asked if not url.startswith(host)] == []
        assert said == []
        browser.close()


def _until(page: Any, holds: str) -> None:
    """Waits. Playwright's own way makes a function of a text in the page, which its policy forbids."""
    end = time.monotonic() + 120
    while not page.evaluate(holds):
        assert time.monotonic() < end, holds
        page.wait_for_timeout(50)


def _run(page: Any) -> int:
    page.keyboard.press("Control+Enter")
    _until(page, "!document.getElementById('run').disabled")
    return int(page.locator("#table tbody tr").count())


def test_a_query_is_run_changed_and_mended(page: Any) -> None:
    assert "token" not in page.url
    assert _run(page) == 23
    assert page.locator("#timeline g.match").count() == 23
    text = page.input_value(EDITOR)
    page.fill(EDITOR, "# 😀\n" + text.replace("B+, C", "BB+, C"))
    page.wait_for_selector(".wrong")
    assert page.inner_text(".wrong") == "BB"
    assert re.match(r"13:11: SEQ names the unknown GPM BB\s+hint: did you mean B", page.inner_text("#messages"))
    assert "old" in page.get_attribute("#results", "class") and page.locator("#table tbody tr").count() == 23
    page.click("#messages .problem")
    assert page.evaluate("document.activeElement.value.slice(document.activeElement.selectionStart, "
                         "document.activeElement.selectionEnd)") == "BB"  # fmt: skip
    page.fill(EDITOR, text)
    page.wait_for_selector("#messages .valid")
    assert "old" not in page.get_attribute("#results", "class") and page.locator(".wrong").count() == 0


def test_the_layer_lies_under_the_text(page: Any) -> None:
    """The same letters in the same place, so that colours and waves are where they should be."""
    page.fill(EDITOR, "SELECT ?x # é 😀\n\t<x> 'y' \n" + "x" * 300 + "\n" * 100)
    page.wait_for_timeout(300)
    sizes = page.evaluate("""() => { const area = document.querySelector('#query textarea');
        const layer = document.querySelector('#query .layer');
        return [area.scrollWidth - layer.scrollWidth, area.scrollHeight - layer.scrollHeight,
                area.value + '\\n' === layer.textContent]; }""")
    assert abs(sizes[0]) <= 12 and abs(sizes[1]) <= 24 and sizes[2]
    page.evaluate("document.querySelector('#query textarea').scrollTop = 500")
    page.wait_for_timeout(100)
    assert "-500px" in page.evaluate("document.querySelector('#query .layer').style.transform")


def test_by_keyboard_alone(page: Any) -> None:
    """Tab comes to everything; Ctrl+Enter runs; the steps of a match show when its row has the focus."""
    assert _run(page) == 23
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                "(e => e.id || e.dataset.view || e.getAttribute('aria-label') || e.localName)(document.activeElement)"
            )
        )
        if reached[-1] == "python" and reached.count("python") == 2:
            break
    wanted = {"setup", "language", "run", "share", "Query", "add", "events", "table", "tr", "timeline", "automaton",
              "explain", "command", "python"}  # fmt: skip
    assert wanted <= set(reached), wanted - set(reached)
    page.focus("#table")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    assert page.locator("#table tr.lit").count() == 1 and page.locator("#steps tr").count() > 2
    assert page.locator("#timeline g.match.lit").count() == 1


def test_every_view_and_example_shows_something(page: Any) -> None:
    for name in ("automaton", "explain", "command", "python", "timeline"):
        page.click(f"[data-view={name}]")
        _until(page, f"document.getElementById('{name}').childNodes.length > 0")
    page.select_option("#setup", "stock")
    _until(page, "document.getElementById('language').value === 'ceql'")
    page.wait_for_selector("#messages .valid")
    assert _run(page) > 0
    page.select_option("#language", "spaseq")
    page.wait_for_selector("#messages .problem")


def test_a_shared_address_has_it_all(page: Any, address: str) -> None:
    page.select_option("#setup", "stock")
    _until(page, "document.getElementById('language').value === 'ceql'")
    page.fill(EDITOR, "SELECT * WHERE A AS x -- 😀 é")
    page.click("#add")
    page.fill("#events", "type\nA\n")
    page.click("#share")
    _until(page, "location.hash.startsWith('#share=')")
    shared = page.url
    page.goto("about:blank")
    page.goto(shared)
    _until(page, f"document.querySelector('{EDITOR}').value.includes('😀 é')")
    assert page.locator("#files button").count() == 2
    page.click("#files button >> nth=1")
    assert page.input_value("#events") == "type\nA\n"


@pytest.mark.parametrize(
    "page", [{"viewport": {"width": 640, "height": 900}, "color_scheme": "dark"}], indirect=True, ids=["narrow"]
)
def test_a_narrow_dark_screen_scrolls_one_way(page: Any) -> None:
    assert _run(page) == 23
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
