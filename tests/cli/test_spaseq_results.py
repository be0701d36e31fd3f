"""Results in every format, pictures, and queries that feed each other as processes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rdflib import Literal, URIRef
from rdflib.query import Result

from spaseq.cli.main import main
from tests.cli.test_spaseq import QUERY, E, S
from tests.support.drawn import drawn

STREAM = f"""<{E}u> <{E}p> "one" .
<{E}v> <{E}p> "2"^^<http://www.w3.org/2001/XMLSchema#integer> .
<{E}u> <{E}q> "a\\"b\\r\\nc"@en .
<{E}v> <{E}q> <{E}v?a&b> .
<{E}v> <{E}n> "<tab\\there>" .
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "ask.rq").write_text(QUERY.replace("SELECT ?a ?x ?y ?n", "ASK"))
    (tmp_path / "s.nt").write_text(STREAM)
    (tmp_path / "none.nt").write_text(STREAM.splitlines()[0])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command that succeeds without a word on stderr prints."""
    code = main(words)
    captured = capsys.readouterr()
    err = [line for line in captured.err.splitlines() if not line.startswith("note: ")]  # those of no match
    assert (code, err) == (0, [])
    return captured.out


@pytest.mark.parametrize("form", ["xml", "json"])
def test_what_a_sparql_library_reads(form: str, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """rdflib reads back the very terms, line ends and angle brackets too."""
    out = run(capsys, "run", "q.rq", *S, "--format", form)
    result = Result.parse(io.BytesIO(out.encode()), format=form)
    assert [str(name) for name in result.vars or ()] == ["time", "a", "x", "y", "n"]
    first, second = ({str(name): term for name, term in row.items()} for row in result.bindings)
    assert [str(row["time"]) for row in (first, second)] == ["0.002", "0.003"]
    assert (first["y"], first.get("n")) == (Literal('a"b\r\nc', lang="en"), None)
    assert (second["y"], str(second["n"])) == (URIRef(f"{E}v?a&b"), "<tab\there>")
    assert second["x"] == Literal(2)


def test_xml_refuses_what_it_cannot_hold(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "s.nt").write_text(STREAM.replace("one", "bell \\u0007"))
    assert main(["run", "q.rq", *S, "--format", "xml"]) == 2
    assert "the character U+0007, which XML cannot" in capsys.readouterr().err


@pytest.mark.parametrize(("stream", "answer"), [("s.nt", True), ("none.nt", False)])
def test_ask(stream: str, answer: bool, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("run", "ask.rq", "--stream", f"S={stream}", *S[2:], "--format")
    for form in ("xml", "json"):
        read = Result.parse(io.BytesIO(run(capsys, *words, form).encode()), format=form)
        assert (read.type, bool(read.askAnswer)) == ("ASK", answer)
    for form in ("table", "csv", "tsv"):
        assert run(capsys, *words, form) == ("true\n" if answer else "false\n")
    lines = run(capsys, *words, "jsonl").splitlines()
    assert [json.loads(line)["positions"] for line in lines] == ([[0, 2]] if answer else [])


def test_explain_as_pictures_and_data(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "long.rq").write_text(QUERY.replace("(A; B)", "(A+; (A | B)!, B?, A; B)"))
    for query in ("q.rq", "long.rq"):
        data = json.loads(run(capsys, "explain", query, "--format", "json"))
        transitions = data["automaton"]["transitions"]
        assert data["streams"] == {"S": E + "S"} and data["gpms"]["B"]["binds"] == ["a", "n", "y"]
        assert {t["target"] for t in transitions} >= {"accept"} and data["window"]["kind"] == "tumbling"
        picture = drawn(run(capsys, "explain", query, "--format", "svg"))
        assert len(picture.nodes) == data["automaton"]["states"] + 2, "accepting, and where it begins"
        dot = run(capsys, "explain", query, "--format", "dot")
        drawn_once = {(t["source"], t["target"], t["marks"] or t["source"] == t["target"]) for t in transitions}
        assert dot.startswith("digraph {") and dot.count(" -> ") == len(drawn_once) + 1


def test_plot(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("plot", "q.rq", *S, "--output")
    assert run(capsys, *words, "m.svg") == ""
    text = (files / "m.svg").read_text("utf-8")
    assert "q.rq: 2 matches" in text and "?a :u  ?x one" in text and "<title>A: position 0</title>" in text
    run(capsys, *words, "again.svg")
    assert (files / "again.svg").read_text("utf-8") == text
    run(capsys, *words, "m.html", "--limit", "1")
    assert (files / "m.html").read_text("utf-8").startswith("<!doctype html>")
    run(capsys, "plot", "q.rq", "--stream", "S=none.nt", *S[2:], "--output", "none.svg")
    assert "0 matches" in (files / "none.svg").read_text("utf-8")
    assert main([*words, "m.png"]) == 2
    assert "cannot tell from m.png what picture to make\nhint: name it with .svg or .html" in capsys.readouterr().err


def test_the_reference_evaluator_gives_the_same(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("run", "q.rq", *S, "--format", "jsonl")
    assert run(capsys, *words, "--gpm", "rdflib") == run(capsys, *words)


def test_entailment(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rdfs = "http://www.w3.org/2000/01/rdf-schema#"
    (files / "schema-a.ttl").write_text(f"<{E}first> <{rdfs}subPropertyOf> <{E}p> .")
    (files / "schema-b.nt").write_text(f"<{E}second> <{rdfs}subPropertyOf> <{E}q> .")
    (files / "s.nt").write_text(STREAM.replace(f"{E}p>", f"{E}first>").replace(f"{E}q>", f"{E}second>"))
    words = ("run", "q.rq", *S, "--format", "csv")
    assert len(run(capsys, *words).splitlines()) == 1
    found = run(capsys, *words, "--kb", f"{E}schema=schema-*", "--entailment", "rdfs")
    assert [line.split(",")[1] for line in found.splitlines() if line.startswith("0.")] == [f"{E}u", f"{E}v"]


def test_one_query_feeds_the_next(files: Path) -> None:
    """As two processes, through a pipe: what the first finds and constructs is the stream of the second."""
    (files / "a.rq").write_text(QUERY.replace("SELECT ?a ?x ?y ?n", "CONSTRUCT { ?a :pair [ :from ?x ; :to ?y ] }"))
    (files / "b.rq").write_text(
        f"PREFIX : <{E}> SELECT ?first ?second ?y FROM STREAM S <{E}S> WHERE {{ SEQ (A, B) "
        "DEFINE GPM A ON S { ?first :pair [ :from ?x ] } DEFINE GPM B ON S { ?second :pair [ :to ?y ] } }"
    )
    command = [sys.executable, "-m", "spaseq.cli.main", "run"]
    first = subprocess.Popen(
        [*command, "a.rq", *S, "--format", "nquads"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    second = subprocess.run(
        [*command, "b.rq", "--stream", "S=-", "--format", "csv"],
        stdin=first.stdout,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert first.wait(timeout=60) == 0 and first.stderr is not None and first.stderr.read() == b""
    assert (second.returncode, second.stderr) == (0, "")
    assert second.stdout.replace("\r", "") == f"time,first,second,y\n0.003,{E}u,{E}v,{E}v?a&b\n"
