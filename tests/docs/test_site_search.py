"""The site opened as files, in headless Chromium: its search runs in a frame (`docs/assets/iframe-worker.js`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.browser import Tab, browser, tab_of
from tests.support.site import DOCS

pytestmark = pytest.mark.browser

_WORKER = (
    "onmessage = (event) => { const list = event.data; list.push(list.length); postMessage(list); list.push('late'); }"
)
_PAGE = """<!doctype html><title>t</title><body><script src="iframe-worker.js"></script><script>
window.answers = [];
const list = [7];
const worker = new Worker(new URL("worker.js", location.href));
worker.onmessage = (event) => answers.push(event.data);
worker.addEventListener("message", (event) => answers.push(event.data.length));
worker.postMessage(list);
list.push("mine");
const missing = new Worker("missing.js");
missing.onerror = (event) => { event.preventDefault(); window.wrong = event.message; };
</script>"""


def test_what_does_for_a_worker_answers_and_shares_nothing(tmp_path: Path) -> None:
    (tmp_path / "iframe-worker.js").write_text((DOCS / "assets" / "iframe-worker.js").read_text("utf-8"), "utf-8")
    (tmp_path / "worker.js").write_text(_WORKER, "utf-8")
    (tmp_path / "page.html").write_text(_PAGE, "utf-8")
    with browser() as driver, tab_of(driver, Tab) as tab:
        tab.go((tmp_path / "page.html").as_uri())
        tab.host = "file:"
        tab.until("answers.length === 2 && window.wrong")
        assert tab.js("answers") == [[7, 1], 2]
        assert "missing.js" in tab.js("wrong")
        tab.js("(answers.length = 0, worker.postMessage([1, 2]))")
        tab.until("answers.length === 2")
        assert tab.js("answers[0]") == [1, 2, 2]
        tab.js("worker.terminate()")
        assert tab.count("iframe") == 1
        assert all("missing.js" in line for line in tab.said())
