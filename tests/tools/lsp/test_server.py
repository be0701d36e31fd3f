"""The language server, as an editor talks to it: JSON-RPC over standard input and output."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from spaseq.core.errors import LimitReached
from spaseq.core.words import LANGUAGES, keywords
from spaseq.tools.lsp.editing import SECONDS, Word, meaning, remarks, words_at
from spaseq.tools.studio.replies import failure
from spaseq.tools.studio.workers import QUERY
from tests.support import hovers

pytest.importorskip("pygls", reason="the extra lsp is not installed")

CEQL = "-- 😀\nSELECT * WHERE A AS first ; B AS second FILTER"
SPASEQ = """PREFIX e: <http://e.org/>
SELECT ?x FROM STREAM S1 <http://e.org/s> WHERE {
  SEQ (On ; Off)
  DEFINE GPM On ON S1 { ?x e:state "on; |" }
  DEFINE GPM Off ON S1 { ?x e:state "off" ; e:by ?who }
}
"""


class Editor:
    """An editor that knows UTF-16 positions only, as most do."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "spaseq", "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.number = 0
        self.said: list[dict[str, Any]] = []
        self.capabilities = self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        self.tell("initialized", {})

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def _next(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        length = 0
        while line := self.process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        assert length, "the server has ended"
        found: dict[str, Any] = json.loads(self.process.stdout.read(length))
        return found

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self.number += 1
        self._send({"id": self.number, "method": method, "params": params})
        while (message := self._next()).get("id") != self.number:
            self.said.append(message)
        assert "error" not in message, message
        return message["result"]

    def tell(self, method: str, params: dict[str, Any]) -> None:
        self._send({"method": method, "params": params})

    def open(self, uri: str, language: str, text: str) -> list[dict[str, Any]]:
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})
        return self.diagnostics(uri, 1)

    def change(self, uri: str, version: int, text: str) -> list[dict[str, Any]]:
        changes = [{"text": text}]
        self.tell(
            "textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": changes}
        )
        return self.diagnostics(uri, version)

    def diagnostics(self, uri: str, version: int) -> list[dict[str, Any]]:
        while True:
            message = self.said.pop(0) if self.said else self._next()
            params = message.get("params", {})
            about = message.get("method"), params.get("uri"), params.get("version")
            if about == ("textDocument/publishDiagnostics", uri, version):
                found: list[dict[str, Any]] = params["diagnostics"]
                return found

    def at(self, method: str, uri: str, line: int, character: int) -> Any:
        position = {"line": line, "character": character}
        return self.ask(f"textDocument/{method}", {"textDocument": {"uri": uri}, "position": position})


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    found = Editor()
    yield found
    found.ask("shutdown", {})
    found.tell("exit", {})
    assert found.process.wait(30) == 0


def test_what_is_wrong_is_underlined_until_it_is_right(editor: Editor) -> None:
    uri = "file:///folder/q.ceql"
    text = "/* 😀 */ SELECT * WHERE A AS x ; B AS y FILTER z.price > 1 WITHIN 9 EVENTS"
    (found,) = editor.open(uri, "ceql", text)
    units = text.encode("utf-16-le")
    start, end = found["range"]["start"]["character"], found["range"]["end"]["character"]
    assert units[2 * start : 2 * end].decode("utf-16-le").startswith("z") and found["severity"] == 1
    assert "hint: " in found["message"] and found["source"] == "ceql"
    assert [one["severity"] for one in editor.change(uri, 2, text.replace("z.", "y."))] in ([], [3], [3, 3])
    (found,) = [one for one in editor.change(uri, 3, "SELECT * WHERE A AS x\r\nFILTR x.v > 1") if one["severity"] == 1]
    assert found["range"]["start"]["line"] == 1


def test_what_can_be_read_in_two_ways_is_underlined(editor: Editor) -> None:
    uri = "file:///folder/two.ceql"
    found = editor.open(uri, "ceql", "SELECT NEXT *\nWHERE B ; NOT (S) ; B WITHIN 9 EVENTS")
    (warning,) = [one for one in found if one["severity"] == 2]
    assert warning["range"] == {"start": {"line": 1, "character": 10}, "end": {"line": 1, "character": 13}}
    assert warning["message"].startswith("NOT (S) says that no S comes here")


def test_lines_end_as_the_protocol_has_it(editor: Editor) -> None:
    """Python ends lines at U+2028 and form feeds, too, which texts may have: places behind them were wrong, and edits
    of a part went there. So documents come whole."""
    assert editor.capabilities["capabilities"]["textDocumentSync"]["change"] == 1
    uri = "file:///folder/lines.rq"
    text = SPASEQ.replace("on; |", "\u2028 \x0c \x85 😀").replace('e:state "off', 'f:state "off')
    (found,) = [one for one in editor.open(uri, "spaseq", text) if one["severity"] == 1]
    assert found["range"]["start"] == {"line": 4, "character": 28}
    assert editor.at("hover", uri, 4, 3)["range"] == {
        "start": {"line": 4, "character": 2}, "end": {"line": 4, "character": 8}
    }  # fmt: skip
    offered = editor.at("completion", uri, 4, 24)["items"][0]["textEdit"]["range"]
    assert offered == {"start": {"line": 4, "character": 24}, "end": {"line": 4, "character": 24}}
    text = text.replace("\n", "\r\n")
    (found,) = [one for one in editor.change(uri, 2, text) if one["severity"] == 1]
    assert found["range"]["start"] == {"line": 4, "character": 28}
    assert editor.at("hover", "file:///folder/never-opened.rq", 0, 0) is None
    editor.change(uri, 3, "SELECT ?x # 😀\n")
    assert [item["label"] for item in editor.at("completion", uri, 1, 0)["items"]], "behind the last line's end"


def test_a_misspelt_gpm_is_underlined(editor: Editor) -> None:
    uri = "file:///folder/q.rq"
    (found,) = editor.open(uri, "sparql", SPASEQ.replace("On ;", "Onn ;"))
    assert found["range"] == {"start": {"line": 2, "character": 7}, "end": {"line": 2, "character": 10}}
    assert "did you mean On?" in found["message"]


def test_a_file_of_another_language_is_left_alone(editor: Editor) -> None:
    uri = "file:///folder/a.txt"
    document = {"uri": uri, "languageId": "plaintext", "version": 1, "text": "SELECT"}
    editor.tell("textDocument/didOpen", {"textDocument": document})
    assert editor.at("hover", uri, 0, 1) is None
    assert editor.at("completion", uri, 0, 1)["items"] == []


def test_hover_says_what_a_word_means(editor: Editor) -> None:
    uri = "file:///folder/h.spaseq"
    editor.open(uri, "spaseq", "# 😀\n" + SPASEQ)
    found = editor.at("hover", uri, 3, 3)
    assert found["range"]["start"] == {"line": 3, "character": 2} and "**A query**" in found["contents"]["value"]
    assert "**Then, first**" in editor.at("hover", uri, 3, 10)["contents"]["value"]
    assert "**DEFINE GPM**" in editor.at("hover", uri, 4, 10)["contents"]["value"]
    assert editor.at("hover", uri, 5, 41) is None, "a ; of SPARQL"


def test_completion_knows_what_the_text_has_named(editor: Editor) -> None:
    uri = "file:///folder/c.spaseq"
    editor.open(uri, "spaseq", SPASEQ.replace("SELECT ?x", "SELECT ?x ?w"))
    items = editor.at("completion", uri, 1, 12)["items"]
    assert [item["label"] for item in items] == ["?x", "?who"]
    assert items[1]["textEdit"]["range"]["start"] == {"line": 1, "character": 10}
    labels = [item["label"] for item in editor.at("completion", uri, 2, 7)["items"]]
    assert labels[:2] == ["?x", "?w"] and {"On", "Off", "S1", "e:", "SEQ", "DEFINE"} <= set(labels)


def test_every_word_has_a_meaning_from_the_reference() -> None:
    assert hovers.PLACE.read_text("utf-8") == hovers.hovers(), "python -m tests.support.hovers makes it"
    for language in LANGUAGES:
        for word in keywords(language):
            found = meaning(language, f" {word.upper()} ", 2 if len(word) > 1 else 1)
            assert found is not None and len(found[2]) > 100, word
    assert meaning("ceql", "SELECT * WHERE A ; B", 17) == (17, 18, meaning("ceql", ";", 0)[2])  # type: ignore[index]
    day = "SELECT * WHERE A AS x FILTER x[DAY(day) = 1] WITHIN 1 DAY"
    assert "**DAY**" in meaning("ceql", day, day.index("DAY("))[2]  # type: ignore[index]
    assert "**DAY**" not in meaning("ceql", day, len(day) - 2)[2]  # type: ignore[index]
    assert meaning("ceql", "-- SELECT", 4) is None and meaning("spaseq", "<http://e.org/select>", 15) is None
    assert meaning("spaseq", "SELECT * { SEQ (A{2} ; B)", 21) is not None


def test_words_of_comments_and_texts_are_not_offered() -> None:
    assert {Word("LOWER", "function"), Word("BETWEEN", "keyword")} <= {*words_at("ceql", CEQL, len(CEQL))}
    assert Word("first", "variable") in words_at("ceql", CEQL, len(CEQL))
    text = "-- AS wrong\nSELECT * WHERE A AS x FILTER x.v = 'AS text' "
    assert {word.text for word in words_at("ceql", text, len(text)) if word.kind == "variable"} == {"x"}


class _Busy:
    """A worker whose checks last until they are cancelled."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._ended = threading.Event()

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        self.asked.append(request["text"])
        if request["text"] == "slow":
            self._ended.wait()
        return failure("checked " + request["text"])

    def cancel(self) -> None:
        self._ended.set()


def test_a_newer_text_ends_the_check_of_the_older() -> None:
    """Before, it waited for that check, which might take twenty seconds."""
    from pygls.workspace import TextDocument

    from spaseq.tools.lsp.server import _Checks

    worker, said = _Busy(), []
    document = TextDocument("file:///q.ceql", "slow", 1, "ceql")
    server: Any = SimpleNamespace(
        workspace=SimpleNamespace(get_text_document=lambda uri: document),
        text_document_publish_diagnostics=lambda params: said.append((params.version, params.diagnostics)),
    )

    async def write() -> None:
        checks = _Checks(server, worker)  # type: ignore[arg-type]
        first = asyncio.ensure_future(checks.check(document.uri))
        while not worker.asked:
            await asyncio.sleep(0.01)
        document._source, document.version = "quick", 2
        await asyncio.gather(first, checks.check(document.uri))

    asyncio.run(write())
    assert worker.asked == ["slow", "quick"]
    assert [(version, [one.message for one in found]) for version, found in said] == [(2, ["checked quick"])]


def test_a_large_text_is_not_checked_and_says_so(editor: Editor) -> None:
    uri = "file:///folder/large.ceql"
    (found,) = editor.open(uri, "ceql", "SELECT * WHERE A AS x\n" + "-- more\n" * (QUERY // 8))
    assert found["severity"] == 2 and found["message"].startswith("not checked: this text has 1,000,0")
    assert editor.at("hover", uri, 0, 2) is None and editor.at("completion", uri, 0, 2)["items"] == []


def test_a_check_that_takes_too_long_says_so() -> None:
    stopped = failure(f"stopped after {SECONDS:g} seconds", "take fewer events", LimitReached.__name__)
    worker: Any = SimpleNamespace(ask=lambda request, seconds: stopped)
    (found,) = remarks(worker, "ceql", "SELECT * WHERE A\n", "q.ceql")
    assert (found.kind, found.start, found.end) == ("warning", 0, 16)
    assert found.text == ("not checked: the check was stopped after 10 seconds\nhint: `ceql check` has no such limit")


def test_of_many_words_those_that_begin_so_are_offered(editor: Editor) -> None:
    uri = "file:///folder/many.ceql"
    text = "SELECT xx9 FROM S WHERE " + " ; ".join(f"A AS xx{i}" for i in range(1_000))
    editor.open(uri, "ceql", text)
    found = editor.at("completion", uri, 0, 10)
    assert found["isIncomplete"]
    assert {item["label"] for item in found["items"]} == {f"xx{i}" for i in (9, *range(90, 100), *range(900, 1_000))}


def test_the_server_loads_no_language() -> None:
    """The first completion waited for rdflib to be imported."""
    code = (
        "import sys; from spaseq.tools.lsp import server\n"
        "server.words_at('spaseq', '', 0); sys.exit('rdflib' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
