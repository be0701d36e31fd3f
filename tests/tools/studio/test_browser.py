"""The studio's page in headless Chromium (`pytest -m browser`): one browser and one studio, a tab for each test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Keys, Tab, browser, tab_of

pytestmark = pytest.mark.browser
pytest.importorskip("starlette", reason="the extra studio is not installed")

EDITOR = "#query textarea"
ROWS = "#table tbody tr"


class Studio:
    """The command, until it is closed; `words` are its words."""

    def __init__(self, *words: str) -> None:
        root = str(Path(__file__).resolve().parents[3])
        path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
        command = [sys.executable, "-m", "spaseq", "studio", "--no-browser", *words]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().split()[1]

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


_OBSERVED = """(() => { window.ran = false; const run = document.getElementById('run');
    new MutationObserver((_, self) => { if (run.getAttribute('aria-disabled') === 'false') {
        self.disconnect(); window.ran = true; } }).observe(run, {attributeFilter: ['aria-disabled']}); })()"""
"""From now on `window.ran` is true once a run has begun and ended."""


class Page(Tab):
    """The page of the studio."""

    def go(self, address: str, *, valid: bool = True) -> None:
        super().go(address)
        if valid:
            self.checked()

    def checked(self, said: str = "valid") -> None:
        """Waits until the page says so (`valid`, `problem`) of what stands there now."""
        self.until(f"document.querySelector('#messages[aria-busy=false] .{said}')")

    def write(self, text: str, into: str = EDITOR) -> None:
        super().write(text, into)

    def choose(self, select: str, value: str) -> None:
        self.find(f"#{select} option[value='{value}']").click()

    def run(self) -> int:
        """How many rows there are then."""
        self.js(_OBSERVED)
        self.press(Keys.CONTROL, Keys.ENTER)
        self.until("window.ran")
        return self.count(ROWS)


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def studio() -> Iterator[str]:
    """The address of one that begins with the examples."""
    found = Studio()
    yield found.address
    found.close()


@pytest.fixture
def tab(driver: Any) -> Iterator[Page]:
    """An empty tab."""
    with tab_of(driver, Page) as found:
        yield found


@pytest.fixture
def page(tab: Page, studio: str) -> Page:
    """A page that has begun with the first example."""
    tab.go(studio)
    return tab


def test_a_query_is_run_changed_and_mended(page: Page) -> None:
    assert "token" not in page.driver.current_url
    assert page.run() == 23 and page.count("#timeline g.match") == 23
    assert page.text("#status").startswith("23 matches in ")
    text = page.js(f"document.querySelector('{EDITOR}').value")
    page.write("# 😀\n" + text.replace("B+, C", "BB+, C"))
    page.until("document.querySelector('.wrong')")
    assert page.text(".wrong") == "BB"
    assert re.match(r"13:11: SEQ names the unknown GPM BB\s+hint: did you mean B", page.text("#messages"))
    assert page.js("document.getElementById('results').classList.contains('old')") and page.count(ROWS) == 23
    assert "of the query before" in page.text(".said")
    page.find("#messages .problem").click()
    assert page.js("(a => a.value.slice(a.selectionStart, a.selectionEnd))(document.activeElement)") == "BB"
    assert page.run() == 23 and page.text("#status") == "failed"
    page.write(text)
    page.checked()
    assert not page.js("document.getElementById('results').classList.contains('old')") and page.count(".wrong") == 0


def test_the_layer_lies_under_the_text(page: Page) -> None:
    """The same letters in the same place, so that colours and waves are where they should be."""
    page.write("SELECT ?x # é 😀\n\t<x> 'y' \n" + "x" * 300 + "\n" * 100)
    width, height, same = page.js(
        """(() => { const area = document.querySelector('#query textarea');
        const layer = document.querySelector('#query .layer');
        return [area.scrollWidth - layer.scrollWidth, area.scrollHeight - layer.scrollHeight,
                area.value + '\\n' === layer.textContent]; })()"""
    )
    assert abs(width) <= 12 and abs(height) <= 24 and same
    page.js(f"(document.querySelector('{EDITOR}').scrollTop = 500)")
    page.until("document.querySelector('#query .layer').style.transform.includes('-500px')")


def test_the_line_where_one_writes_stays_in_sight(page: Page) -> None:
    """What is said below the editor takes room from it."""
    page.write("SELECT *\n" * 100)
    page.checked("problem")
    page.until(f"(a => a.scrollTop + a.clientHeight >= a.scrollHeight - 12)(document.querySelector('{EDITOR}'))")


def test_by_keyboard_alone(page: Page) -> None:
    """Tab comes to everything once, and to one match, from which the arrow keys go on; the focus is seen."""
    assert page.run() == 23
    reached: list[str] = []
    page.js("document.getElementById('setup').focus()")
    for _ in range(60):
        name, outline = page.js(
            "(e => [e.id || e.dataset.view || e.getAttribute('aria-label') || e.localName,"
            " getComputedStyle(e).outlineStyle])(document.activeElement)"
        )
        if name == "body":
            break
        assert outline != "none", f"{name} shows that it has the focus"
        reached.append(name)
        page.press(Keys.TAB)
    wanted = ["setup", "language", "run", "share", "Query", "add", "events", "table", "tr", "steps", "timeline"]
    assert [name for name in reached if name in wanted] == [*wanted, "timeline"], "the view and what is in it"
    assert {"automaton", "explain", "command", "python"} <= set(reached), "the views"
    page.js(f"document.querySelector('{ROWS}').focus()")
    page.press(Keys.ARROW_DOWN)
    assert page.js(f"[...document.querySelectorAll('{ROWS}')].findIndex(row => row.classList.contains('lit'))") == 1
    assert page.count("#steps tr") > 2 and page.count("#timeline g.match.lit") == 1
    assert "id:H3 :loc" in page.text("#steps"), "IRIs are shortened by the query's prefixes"
    page.press(Keys.END)
    assert page.js(f"document.activeElement === [...document.querySelectorAll('{ROWS}')].at(-1)")


def test_every_view_and_example_shows_something(page: Page) -> None:
    for name in ("automaton", "explain", "command", "python", "timeline"):
        page.find(f"[data-view={name}]").click()
        page.until(f"document.getElementById('{name}').childNodes.length > 0")
        assert page.count(".view:not([hidden])") == 1
    setups = page.js("[...document.querySelectorAll('#setup option')].map(option => option.value)")
    assert len(setups) > 5
    for name in setups:
        page.choose("setup", name)
        page.until(f"JSON.parse(sessionStorage.getItem('spaseq-studio')).setup === '{name}'")
        page.checked()
        assert name != "v-shape" or "run v.rq" in page.js("document.getElementById('command').textContent"), (
            "not of before"
        )
        assert page.run() > 0, name
        assert page.count("#automaton .edge.lit, #automaton svg") > 0
    page.choose("language", "spaseq")
    page.checked("problem")


def test_what_was_written_outlives_a_reload_and_another_example(page: Page) -> None:
    assert page.js("document.getElementById('reset').hidden")
    page.write("# mine")
    page.find("#add").click()
    page.write("<urn:a> <urn:b> <urn:c> <urn:g> .\n", "#events")
    page.driver.refresh()  # at once, before the pause of a check
    page.until(f"document.querySelector('{EDITOR}').value === '# mine'")
    assert page.count("#files button") == 5
    page.find("#files button:nth-child(5)").click()
    assert page.js("document.getElementById('events').value").startswith("<urn:a>")
    page.choose("setup", "stock")
    page.checked()
    page.choose("setup", "smart-grid")
    page.until(f"document.querySelector('{EDITOR}').value === '# mine'")
    page.find("#reset").click()
    page.checked()
    assert page.count("#files button") == 4 and page.js("document.activeElement.id") == "setup"


def test_a_shared_address_has_it_all(page: Page) -> None:
    page.choose("setup", "stock")
    page.until("document.getElementById('language').value === 'ceql'")
    page.write("SELECT * WHERE A AS x -- 😀 é")
    page.find("#add").click()
    page.write("type\nA\n", "#events")
    page.find("#share").click()
    page.until("location.hash.startsWith('#share=')")
    address = page.driver.current_url
    page.js("sessionStorage.setItem('spaseq-studio', JSON.stringify({token: JSON.parse("
            "sessionStorage.getItem('spaseq-studio')).token, setup: '', drafts: {}}))")  # fmt: skip
    page.driver.get("about:blank")
    page.driver.get(address)
    page.until(f"document.querySelector('{EDITOR}').value.includes('😀 é')")
    assert page.count("#files button") == 2
    page.find("#files button:nth-child(2)").click()
    assert page.js("document.getElementById('events').value") == "type\nA\n"
    page.write("SELECT * WHERE A AS y")
    page.until("location.hash === ''")  # the address has it no more
    page.driver.get(page.host + "#share=zzz")
    page.driver.refresh()
    page.until("document.getElementById('status').textContent.includes('the shared address cannot be read')")


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[str]:
    """The address of a studio whose query takes minutes."""
    (tmp_path / "slow.csv").write_text("type,v\n" + "A,1\n" * 100_000, encoding="utf-8")
    (tmp_path / "slow.ceql").write_text("SELECT * WHERE (A+) AS x ; B FILTER SUM(x.v) > 1000000", encoding="utf-8")
    found = Studio(str(tmp_path / "slow.ceql"), "--events", str(tmp_path / "slow.csv"))
    yield found.address
    found.close()


def test_a_run_is_stopped(slow: str, tab: Page) -> None:
    tab.go(slow)
    tab.press(Keys.CONTROL, Keys.ENTER)
    tab.press(Keys.ESCAPE)  # before the server has the run
    tab.until("document.getElementById('status').textContent === 'stopped'")
    tab.press(Keys.CONTROL, Keys.ENTER)
    tab.until("!document.getElementById('cancel').hidden")
    tab.js("document.getElementById('cancel').focus()")
    tab.press(Keys.ESCAPE)
    tab.until("document.getElementById('run').getAttribute('aria-disabled') === 'false'")
    assert tab.text("#status") == "stopped" and tab.count("#messages .valid") == 1
    assert tab.js("document.activeElement.id") == "run", "the focus is not lost with the button"
    tab.write("SELECT * WHERE A ; A ; A")
    tab.checked()
    assert tab.run() == 500 and tab.text("#count").startswith("first 500 matches")
    assert "first 200 matches" in tab.text("#timeline")
    tab.js("document.querySelector('#file button').click()")  # no events are left
    tab.run()
    assert "no events" in tab.text("#messages") and tab.count(ROWS) == 500
    tab.checked("problem")
    assert "no events" in tab.text("#messages"), "a check that ends later leaves it there"


def test_a_run_of_what_is_there_no_more_is_stopped_and_not_shown(slow: str, tab: Page) -> None:
    tab.go(slow)
    tab.write("SELECT * WHERE (A+) AS y ; B FILTER SUM(y.v) > 1000000")
    tab.until("!document.getElementById('reset').hidden")
    tab.press(Keys.CONTROL, Keys.ENTER)
    tab.until("!document.getElementById('cancel').hidden")
    tab.find("#reset").click()
    tab.until("document.getElementById('cancel').hidden")
    tab.checked()
    assert tab.text("#status") == "" and "Ctrl+Enter runs the query" in tab.text("#table")
    assert "AS x" in tab.js(f"document.querySelector('{EDITOR}').value")


def test_without_the_token_it_says_where_it_is(tab: Page, studio: str) -> None:
    for address in (studio.split("#")[0], studio[:-3]):
        tab.go(address, valid=False)
        tab.until("document.querySelector('#messages .problem')")
        assert "needs the token" in tab.text("#messages") and "address that the command printed" in tab.text(
            "#messages"
        )
        assert all("403" in line for line in tab.said())
    tab.go(studio)  # in the same tab: only what is behind # is another


def test_texts_of_events_are_texts(page: Page) -> None:
    page.choose("setup", "stock")
    page.until("document.getElementById('language').value === 'ceql'")
    page.write("SELECT * WHERE A AS x")
    page.write("event_type,v\nA,<img src=x onerror=alert(1)>\n", "#events")
    page.checked()
    assert page.run() == 1
    page.js(f"document.querySelector('{ROWS}').focus()")
    assert "<img src=x onerror=alert(1)>" in page.text("#steps") and page.count("img") == 0


def test_a_narrow_dark_screen_scrolls_one_way(page: Page) -> None:
    page.size(400, 900, "dark")
    assert page.run() == 23
    assert page.js("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.js("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"


def test_letters_are_dark_enough(page: Page) -> None:
    """Each text has 4.5 times the light of what is behind it, or the other way round (WCAG 2, contrast), also where the
    results are those of the query before."""
    assert page.run() == 23
    page.js(f"document.querySelector('{ROWS}').focus()")
    page.find("[data-view=explain]").click()
    page.write("SELECT ?x # 1 'a'\n<x>")
    page.until("document.querySelector('.wrong')")
    for scheme in ("light", "dark"):
        page.size(1400, 900, scheme)
        assert page.js(_CONTRAST) == [], scheme


_CONTRAST = """(() => {
  const parse = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => {
    const part = c[i] / 255;
    return sum + weight * (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  }, 0);
  const mix = (over, under, part) => over.slice(0, 3).map((c, i) => c * part + under[i] * (1 - part));
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const part = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !part.offsetParent) continue;
    if (part.closest("svg, option, noscript, textarea")) continue;
    const above = [];
    for (let at = part; at; at = at.parentElement) above.unshift(at);
    let back = [255, 255, 255], opacity = 1;
    for (const at of above) {
      const style = getComputedStyle(at);
      const colour = parse(style.backgroundColor);
      opacity *= Number(style.opacity);
      back = mix(colour, back, (colour[3] ?? 1) * opacity);
    }
    const front = mix(parse(getComputedStyle(part).color), back, opacity);
    const [more, less] = [light(front), light(back)].sort((a, b) => b - a);
    const ratio = (more + 0.05) / (less + 0.05);
    if (ratio < 4.5) found.push([part.className || part.localName, walk.currentNode.data.slice(0, 30), ratio]);
  }
  return found;
})()"""
