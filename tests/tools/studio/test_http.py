"""The studio's HTTP: what it answers, to whom, and that nothing that is sent to it ends it."""

from __future__ import annotations

import argparse
import html
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ceql.cli.main import main as ceql_main
from spaseq.cli.main import main as spaseq_main
from spaseq.core.measure import visible
from spaseq.tools.studio.options import add_studio_words
from spaseq.tools.studio.requests import job
from spaseq.tools.studio.setups import examples, of_command_line
from spaseq.tools.studio.workers import GRACE, MEMORY, Worker
from tests.support import harness

testing = pytest.importorskip("starlette.testclient", reason="the extra studio is not installed")
server = pytest.importorskip("spaseq.tools.studio.server", reason="the extra studio is not installed")

TOKEN = "the-token"
CEQL = "SELECT * WHERE A AS x ; B AS y FILTER y.price > x.price"
CSV = "type,price\nA,3\nB,2\nB,5\nA,4\nB,5\n"
EVENTS = {"role": "events", "name": "", "file": "events.csv", "text": CSV}


def _words(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_studio_words(parser)
    return parser.parse_args(words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("given")
    (made / "query.ceql").write_text(CEQL)
    (made / "prices.csv").write_text(CSV)
    return made


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Any]:
    own = of_command_line(_words(str(folder / "query.ceql"), "--events", str(folder / "prices.csv")), "spaseq")
    assert own is not None
    app = server.application(TOKEN, [own, *examples(lambda words: _words(*words))])
    with testing.TestClient(app, base_url="http://127.0.0.1") as found:
        found.headers[server.TOKEN] = TOKEN
        yield found
    app.state.close()


def _asked(language: str = "ceql", text: Any = CEQL, **words: Any) -> dict[str, Any]:
    files = [EVENTS] if language == "ceql" else []
    return {"version": 1, "language": language, "text": text, "files": files, "source": f"q.{language}", **words}


def _check(client: Any, **words: Any) -> dict[str, Any]:
    answer = client.post("/api/check", json=_asked(**words))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _run(client: Any, **words: Any) -> dict[str, Any]:
    answer = client.post("/api/run", json={"seconds": 300, **_asked(**words)})  # a fresh clone compiles kernels
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


# -- who is answered


def test_without_the_token_nothing_is_told(client: Any) -> None:
    for method, path in (("GET", "examples"), ("POST", "check"), ("POST", "run"), ("POST", "cancel")):
        for headers in ({server.TOKEN: ""}, {server.TOKEN: "another"}, {server.TOKEN: "thé"}):
            coded = {name: value.encode() for name, value in headers.items()}
            answer = client.request(method, f"/api/{path}", headers=coded)
            assert answer.status_code == 403 and "needs the token" in answer.json()["errors"][0]["problem"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example:80", ""])
def test_other_hosts_are_refused(client: Any, host: str) -> None:
    for path in ("/", "/studio.js", "/api/examples"):
        answer = client.get(path, headers={"host": host})
        assert answer.status_code == 400 and "not the host" in answer.json()["errors"][0]["problem"]


def test_the_page_loads_nothing_but_its_own_files(client: Any) -> None:
    for path in ("/", "/studio.css", "/studio.js", "/editor.js", "/api/examples"):
        answer = client.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert "access-control-allow-origin" not in answer.headers
        if not path.startswith("/api"):
            text = answer.text.replace("http://www.w3.org", "")
            assert "http://" not in text and "https://" not in text and TOKEN not in text
    assert sum(path.stat().st_size for path in (Path(server.__file__).parent / "page").iterdir()) < 100_000


def test_what_is_not_there_is_said_as_json(client: Any) -> None:
    assert client.get("/nothing").json()["errors"][0]["problem"] == "Not Found"
    assert client.get("/api/run").status_code == 405
    assert client.get("/studio/../../pyproject.toml").status_code == 404
    assert client.get("/api/examples?name=nothing").status_code == 404


# -- checks


def test_a_right_query_has_a_plan_and_an_automaton(client: Any) -> None:
    found = _check(client)
    assert found["version"] == 1 and found["errors"] == [] and "automaton" in found["explain"]
    assert found["automaton"]["svg"].startswith("<svg") or "spaseq[draw]" in found["automaton"]["hint"]
    assert any("grow" in note or "for ever" in note or "WITHIN" in note for note in found["notes"])
    assert found["command"] == "ceql run q.ceql --events events.csv\n"
    assert "query.run('events.csv')" in found["python"]


def test_errors_are_where_they_are_in_javascripts_counting(client: Any) -> None:
    """Before the error stands an emoji: one code point, two units of UTF-16."""
    text = "-- 😀 é\nSELECT * WHERE A AS x ; B AS y FILTER z.price > 1"
    (error,) = _check(client, text=text)["errors"]
    units = text.encode("utf-16-le")
    marked = units[2 * error["start"] : 2 * error["end"]].decode("utf-16-le")
    assert marked.startswith("z") and (error["line"], error["column"]) == (2, text.split("\n")[1].index("z.") + 1)
    assert error["kind"] == "QuerySemanticsError" and error["problem"] and error["hint"]
    query = (
        "PREFIX : <http://e.org/> SELECT ?x # 😀\nFROM STREAM S <http://e.org/s> WHERE { SEQ (A; AA) "
        "DEFINE GPM A ON S { ?x :p 1 } }"
    )
    (error,) = _check(client, language="spaseq", text=query)["errors"]
    units = query.encode("utf-16-le")
    assert units[2 * error["start"] : 2 * error["end"]].decode("utf-16-le") == "AA"
    assert "did you mean A?" in error["hint"]


def test_the_studio_says_what_the_command_says(client: Any, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "q.ceql"
    for text in ("SELECT", "SELECT * WHERE A FILTR x", "SELECT * WHERE A AS x FILTER y.a = 1", "", "\0", "é" * 10):
        path.write_text(text, encoding="utf-8")
        assert ceql_main(["check", str(path)]) == 2
        said = capsys.readouterr().err
        (error,) = _check(client, text=text)["errors"]
        assert visible(error["problem"].split("\n")[0]) in said and error["hint"] in said
        if error["line"] is not None:
            assert f":{error['line']}:{error['column']}: " in said


@pytest.mark.parametrize("language", ["ceql", "spaseq"])
@pytest.mark.parametrize(
    "text",
    ["", "\0", " " * 100_000, "(" * 20_000, "SELECT * WHERE " + "(" * 5_000, "😀" * 1_000, "SELECT ?x\n" * 5_000,
     "<script>alert(1)</script>", "\x1b[31m", "a\u2028b"],
)  # fmt: skip
def test_hostile_texts_are_answered(client: Any, language: str, text: str) -> None:
    found = _check(client, language=language, text=text)
    (error,) = found["errors"]
    assert error["problem"] and error["kind"] not in ("InternalError", "Failure"), error
    assert error["start"] is None or 0 <= error["start"] <= error["end"] <= len(text.encode("utf-16-le")) // 2


def test_what_takes_too_long_is_ended_with_its_process() -> None:
    worker = Worker()
    asked = {"do": "check", **_asked(), "files": [], "shown": [], "groups": {}, "reading": {}, "valuations": False,
             "seconds": 60.0, "memory": MEMORY}  # fmt: skip
    try:
        answer = worker.ask(asked, -GRACE)  # no time at all
        assert "stopped after" in answer["errors"][0]["problem"]
        answer = worker.ask(asked, 100.0)
        assert answer["errors"] == [] and "explain" in answer
    finally:
        worker.close()


def test_what_is_cancelled_while_its_process_starts_waits_no_longer() -> None:
    worker = Worker()
    asked = {"do": "check", **_asked(), "files": [], "shown": [], "groups": {}, "reading": {}, "valuations": False,
             "seconds": 60.0, "memory": MEMORY}  # fmt: skip
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(worker.ask(asked, 1e6)))
    thread.start()
    try:
        while worker._process is None:
            time.sleep(0.001)
        worker.cancel()
        thread.join(100.0)
        assert [error["kind"] for error in answers[0]["errors"]] == ["Cancelled"]
    finally:
        worker.close()


def test_a_process_that_starts_is_not_ended_by_a_cancel() -> None:
    """It is what the next request waits for."""
    worker = Worker()
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(worker.ask({"do": "warm"}, 100.0)))
    thread.start()
    try:
        while (process := worker._process) is None:
            time.sleep(0.001)
        worker.cancel()
        assert worker.ask({"do": "warm"}, 100.0)["errors"] == [] and worker._process is process
        late = worker.ask({"do": "warm"}, 100.0, worker.cancels - 1)
        assert [error["kind"] for error in late["errors"]] == ["Cancelled"], "cancelled before it was asked"
        thread.join(100.0)
        assert [error["kind"] for error in answers[0]["errors"]] == ["Cancelled"]
    finally:
        worker.close()


# -- requests that are none


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"[]", "a JSON object"),
        (b"{}", "language is a text"),
        (json.dumps(_asked(version=2)).encode(), "version 2"),
        (json.dumps(_asked(language="sql")).encode(), "there is no language 'sql'"),
        (json.dumps(_asked(text=3)).encode(), "text is a text"),
        (json.dumps(_asked(text="x" * 1_000_001)).encode(), "1,000,001 characters"),
        (json.dumps(_asked(text="\ud800")).encode(), "half a character (U+D800)"),
        (json.dumps(_asked(source="../q")).encode(), "no name for a file"),
        (json.dumps(_asked(limit=501)).encode(), "limit is a number from 0 to 500"),
        (json.dumps(_asked(seconds=-1)).encode(), "seconds is a number"),
        (b'{"language": "ceql", "text": "x", "seconds": NaN}', "seconds is a number"),
        (json.dumps(_asked(reading={"schema": "x"})).encode(), "reading has no 'schema'"),
        (json.dumps(_asked(reading={"time": 3})).encode(), "time is a text"),
        (json.dumps(_asked(files=3)).encode(), "files is a list"),
        (json.dumps(_asked(files=[EVENTS, {**EVENTS, "text": "type\n"}])).encode(), "two files are called events.csv"),
        (json.dumps(_asked(files=[EVENTS, {**EVENTS, "file": "Events.CSV"}])).encode(), "are called Events.CSV"),
    ],
)
def test_what_is_no_request_is_refused(client: Any, body: bytes, part: str) -> None:
    for path in ("check", "run"):
        answer = client.post(f"/api/{path}", content=body)
        assert answer.status_code == 400
        assert part in answer.json()["errors"][0]["problem"]


def test_a_request_that_is_too_large_is_refused(client: Any) -> None:
    answer = client.post("/api/run", content=b" " * 10_000_000)
    assert answer.status_code == 413 and "8,000,000" in answer.json()["errors"][0]["problem"]


@pytest.mark.parametrize(
    "file", ["../prices.csv", "/etc/passwd", "-", "*.csv", "a/b.csv", "events.parquet", "x.csv\0", "", "C:x.csv"]
)
def test_no_path_comes_from_the_browser(client: Any, file: str) -> None:
    for text in (None, CSV):
        answer = client.post("/api/run", json=_asked(files=[{**EVENTS, "file": file, "text": text}]))
        assert answer.status_code == 400, answer.text


def test_files_of_any_name_are_sent_back_as_they_were_named(tmp_path: Path) -> None:
    """What the page is told of files it may say again: names with spaces and letters of other alphabets, two files of
    one name in two folders, one file for two streams, knowledge in RDF/XML; the text of a query has no file."""
    names = ("a/my power.nq", "b/my power.nq", "b/données 1 (b).ttl", "kb.rdf", "list[1].nq", "odd.txt")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    query = tmp_path / "my query.rq"
    query.write_text("SELECT")
    words = [f"--stream=S{i}={tmp_path / name}" for i, name in enumerate((*names, names[0]))]
    for given, source in ((str(query), "my query.rq"), ("SELECT * FROM STREAM S <http://e/s>", "query.rq")):
        own = of_command_line(_words(given, *words, f"--kb=http://e/kb={tmp_path / 'kb.rdf'}"), "spaseq")
        assert own is not None
        page = own.form(whole=True)
        assert page["source"] == source
        assert [f["file"] for f in page["files"]] == [
            *("my power.nq", "2-my power.nq", "données 1 (b).ttl", "kb.rdf", "list[1].nq", "odd.txt"),
            *("my power.nq", "kb.rdf"),
        ]
        asked = {**page, "text": page["query"], "setup": own.name}
        done = job(asked, "run", {own.name: own})
        (tmp_path / source[:5]).mkdir()
        written = done.written(str(tmp_path / source[:5]))
        read = [(tmp_path / source[:5] / path).read_text() for _, _, path in written["files"]]
        assert read == [*names, names[0], "kb.rdf"]


def test_ctrl_c_does_not_wait_for_a_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ceql", "studio", "--no-browser"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=harness.hear_interrupts,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address, _, token = process.stdout.readline().split()[1].partition("/#token=")
        body = json.dumps(_asked(**SLOW, seconds=600)).encode()
        asked = urllib.request.Request(f"{address}/api/run", body, {server.TOKEN: token})
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.append(json.load(urllib.request.urlopen(asked))))
        thread.start()
        while not list(tmp_path.glob("spaseq-studio-*/*")):  # the run begins with its files
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=300)
        thread.join()
        assert (process.returncode, said) == (130, "interrupted\n")
        assert [error["kind"] for error in answers[0]["errors"]] == ["Cancelled"]
    finally:
        process.kill()


def test_other_users_do_not_see_the_token_in_the_words_of_the_browser(tmp_path: Path) -> None:
    said = tmp_path / "said"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {said}.part\nmv {said}.part {said}\n')
    browser.chmod(0o755)
    environment = {**os.environ, "TMPDIR": str(tmp_path), "BROWSER": f"{browser} %s"}
    process = subprocess.Popen(
        [sys.executable, "-m", "ceql", "studio"], stdout=subprocess.PIPE, text=True, env=environment,
        preexec_fn=harness.hear_interrupts,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[1]
        while not said.exists() and process.poll() is None:
            time.sleep(0.05)
        page = Path(said.read_text().strip().removeprefix("file://"))
        assert page.stat().st_mode & 0o777 == 0o600 and page.parent.stat().st_mode & 0o777 == 0o700
        assert f"url={address}" in page.read_text() and address.partition("token=")[2] not in said.read_text()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
        assert not page.parent.exists()
    finally:
        process.kill()


# -- runs


def test_a_run_gives_typed_columns_and_steps(client: Any) -> None:
    found = _run(client)
    assert found["errors"] == [] and found["events"] == 5 and not found["truncated"]
    assert [column["name"] for column in found["columns"]][:3] == ["start", "end", "positions"]
    assert [row[:3] for row in found["rows"]] == [["0", "2", "0 2"], ["0", "4", "0 4"], ["3", "4", "3 4"]]
    assert found["steps"][0][0][:2] == ["A", 0] and "price=3" in found["steps"][0][0][3]
    assert found["timeline"].count('<g class="match"') == found["drawn"] == 3
    assert found["matches"] == [0, 1, 2]
    named = _run(client, valuations=True)
    assert {"x", "y", "x.price"} <= {column["name"] for column in named["columns"]}


def test_a_run_of_what_the_command_line_named(client: Any, folder: Path) -> None:
    listed = client.get("/api/examples").json()
    assert listed["examples"][0]["name"] == "" and set(listed["patterns"]) == {"ceql", "spaseq"}
    own = client.get("/api/examples?name=").json()
    assert own["query"] == CEQL and own["language"] == "ceql" and own["source"] == "query.ceql"
    assert own["files"] == [{"role": "events", "name": "", "file": "prices.csv", "text": CSV}]
    files = [{**own["files"][0], "text": None}]
    assert len(_run(client, files=files, setup="")["rows"]) == 3
    assert str(folder / "prices.csv") in _check(client, files=files, setup="")["command"]
    wrong = client.post("/api/run", json=_asked(files=[{**files[0], "file": "other.csv"}]))
    assert wrong.status_code == 400 and "was named" in wrong.json()["errors"][0]["problem"]


@pytest.mark.parametrize(
    "name", ["smart-grid", *(pytest.param(n, marks=pytest.mark.slow) for n in ("stock", "v-shape", "traffic-networks"))]
)
def test_examples_run_as_their_commands_do(client: Any, name: str, tmp_path: Path, capsys: Any) -> None:
    setup = client.get(f"/api/examples?name={name}").json()
    asked = {"language": setup["language"], "text": setup["query"], "source": setup["source"], "setup": name,
             "reading": setup["reading"]}  # fmt: skip
    texts = _run(client, **asked, files=setup["files"])
    unread = [{**file, "text": None} for file in setup["files"]]
    assert texts["errors"] == [] and texts["rows"] == _run(client, **asked, files=unread)["rows"]
    words = shlex.split(_check(client, **asked, files=unread)["command"])
    (tmp_path / setup["source"]).write_text(setup["query"], encoding="utf-8")
    words[words.index(setup["source"])] = str(tmp_path / setup["source"])
    main = {"ceql": ceql_main, "spaseq": spaseq_main}[words[0]]
    assert main([*words[1:], "--format", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(texts["rows"]) == min(500, len(lines) - 1) and len(texts["steps"]) >= len(texts["rows"])
    assert all(row[0] in line for row, line in zip(texts["rows"], lines[1:], strict=False))


def test_the_run_as_python_runs(client: Any, tmp_path: Path) -> None:
    setup = client.get("/api/examples?name=traffic-networks").json()
    (tmp_path / setup["source"]).write_text(setup["query"], encoding="utf-8")
    for file in setup["files"]:
        (tmp_path / file["file"]).write_text(file["text"], encoding="utf-8")
    asked = {"language": "spaseq", "text": setup["query"], "source": setup["source"], "setup": "traffic-networks"}
    form = _check(client, **asked, reading=setup["reading"], files=setup["files"])
    assert "spaseq.Grouped(" in form["python"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    done = subprocess.run(
        [sys.executable, "-c", form["python"]], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    rows = _run(client, **asked, reading=setup["reading"], files=setup["files"])["rows"]
    assert len(done.stdout.splitlines()) >= len(rows) > 0


def test_errors_of_events_name_the_file_that_people_see(client: Any) -> None:
    (error,) = _run(client, files=[{**EVENTS, "text": "type,price\nA,1\nB\n"}], seconds=20)["errors"]
    assert error["kind"] == "EventError" and error["problem"].startswith("events.csv") and "/" not in error["problem"]
    (error,) = _run(client, files=[])["errors"]
    assert "no events" in error["problem"]


def test_of_several_files_the_wrong_one_is_named(client: Any) -> None:
    wrong = {"role": "events", "name": "", "file": "other.csv", "text": CSV.replace("type", "typ")}
    found = _run(client, files=[EVENTS, wrong])
    assert len(found["rows"]) == 3 and found["errors"][0]["problem"].startswith("other.csv: no column 'type'")


def test_an_ask_that_an_error_ends_has_no_answer(client: Any) -> None:
    text = "ASK FROM STREAM S1 <http://s/1> WHERE { SEQ (A) DEFINE GPM A ON S1 { ?s <http://p> 2 } }"
    stream = {"role": "stream", "name": "S1", "file": "s.nt", "text": '<http://a> <http://p> "1" .\nbroken\n'}
    found = _run(client, language="spaseq", text=text, files=[stream])
    assert found["rows"] == [] and found["errors"][0]["problem"].startswith("s.nt:2: not N-Triples")


def test_a_run_without_matches_says_what_was_read(client: Any) -> None:
    found = _run(client, text="SELECT * WHERE A AS x ; C AS y")
    assert found["rows"] == [] and found["timeline"] == ""
    assert any("5 events" in note for note in found["notes"]) and any("C" in note for note in found["notes"])


def test_of_many_matches_the_first_are_shown(client: Any) -> None:
    many = {**EVENTS, "text": "type\n" + "A\n" * 3_000}
    found = _run(client, text="SELECT * WHERE A ; A ; A", files=[many])
    assert len(found["rows"]) == 500 and found["truncated"] and found["drawn"] == 200 and found["errors"] == []


SLOW: dict[str, Any] = {
    "text": "SELECT * WHERE (A+) AS x ; B FILTER SUM(x.v) > 1000000",
    "files": [{**EVENTS, "text": "type,v\n" + "A,1\n" * 100_000}],
}


def test_a_run_has_a_limit_of_time(client: Any) -> None:
    (error,) = _run(client, **SLOW, seconds=1)["errors"]
    assert error["problem"].startswith(("stopped at time_limit", "stopped after 1 seconds")) and error["hint"]


def test_a_run_is_cancelled_and_there_is_one_at_a_time(client: Any) -> None:
    answers: list[Any] = []

    def run_slowly() -> None:
        while (answer := client.post("/api/run", json=_asked(**SLOW, seconds=300))).status_code == 409:
            time.sleep(0.01)  # the quick one below came first
        answers.append(answer)

    thread = threading.Thread(target=run_slowly)
    thread.start()
    while (second := client.post("/api/run", json=_asked())).status_code == 200 and thread.is_alive():
        time.sleep(0.05)  # the slow one has not begun
    assert second.status_code == 409 and "a run is going on" in second.json()["errors"][0]["problem"]
    assert _check(client)["errors"] == [], "checks go on meanwhile"
    while not client.post("/api/cancel", json={}).json()["stopped"] and thread.is_alive():
        time.sleep(0.05)
    thread.join()
    assert [error["kind"] for error in answers[0].json()["errors"]] == ["Cancelled"]
    assert len(_run(client)["rows"]) == 3, "in a new process"
    assert client.post("/api/cancel", json={}).json()["stopped"] is False


def test_text_in_events_is_text(client: Any) -> None:
    text = '<http://e.org/a> <http://e.org/p> "<script>alert(1)</script>" <http://e.org/g1> .\n'
    query = "SELECT ?v FROM STREAM S <http://e.org/s> WHERE { SEQ (A) DEFINE GPM A ON S { ?x <http://e.org/p> ?v } }"
    file = {"role": "stream", "name": "S", "file": "s.nq", "text": text}
    found = _run(client, language="spaseq", text=query, files=[file], reading={"time_from": "arrival"})
    assert found["rows"][0][1] == "<script>alert(1)</script>" and found["columns"][1]["kind"] == "text"
    assert "<script" not in found["timeline"]


def test_every_form_of_query_has_its_table(client: Any) -> None:
    lines = [f'<http://e.org/x{i % 3}> <http://e.org/p> "{i}" <http://e.org/g{i}> .\n' for i in range(6)]
    file = {"role": "stream", "name": "S", "file": "s.nq", "text": "".join(lines)}
    rest = " FROM STREAM S <http://e.org/s> WHERE { SEQ (A) DEFINE GPM A ON S { ?x <http://e.org/p> ?v } }"

    def found(head: str, tail: str = "", **words: Any) -> dict[str, Any]:
        asked = {"reading": {"time_from": "arrival"}, "files": [file], **words}
        return _run(client, language="spaseq", text=head + rest + tail, **asked)

    assert found("ASK")["rows"] == [["true"]]
    made = found("CONSTRUCT { ?x <http://e.org/q> ?v }")
    assert made["columns"][0]["kind"] == "graph" and len(made["rows"]) == 2 * len(made["steps"]) == 12
    grouped = found("SELECT ?x (COUNT(*) AS ?n)", " GROUP BY ?x ORDER BY DESC(?x)")
    assert [row[1:] for row in grouped["rows"]] == [[f"<http://e.org/x{i}>", "2"] for i in (2, 1, 0)]
    assert [column["kind"] for column in grouped["columns"]] == ["time", "IRI", "integer"]
    none = found("SELECT ?x", limit=0)
    assert none["rows"] == [] and none["truncated"] and none["notes"] == [], "that there is none is not said"


@pytest.mark.parametrize("language", ["ceql", "spaseq"])
def test_a_run_lights_the_automaton_and_the_way_of_each_match(client: Any, language: str) -> None:
    text, files = CEQL, [EVENTS]
    if language == "spaseq":
        text = (
            "PREFIX : <urn:e#> SELECT ?v FROM STREAM S <urn:s> WHERE { SEQ (A ; B)\n"
            "DEFINE GPM A ON S { ?x :a ?v } DEFINE GPM B ON S { ?x :b ?w } }"
        )
        lines = [f'<urn:x> <urn:e#{kind}> "1" <urn:g{i}> .\n' for i, kind in enumerate("aabb")]
        files = [{"role": "stream", "name": "S", "file": "s.nq", "text": "".join(lines)}]
    reading = {"time_from": "arrival"} if language == "spaseq" else {}
    found = _run(client, language=language, text=text, files=files, reading=reading)
    assert found["errors"] == [] and len(found["ways"]) == len(found["steps"]) > 0
    svg = html.unescape(found["automaton"]["svg"])
    for way in found["ways"]:
        assert {"state-0", "state-1", "state-accept", "move-0-1", "move-1-accept"} <= set(way)
        assert all(f' {name}"' in svg for name in way)
    assert f"{len(found['steps'])}×" in svg and "blue: the ways of" in svg
