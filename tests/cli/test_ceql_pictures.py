"""`ceql explain` as pictures and data, and `ceql plot`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ceql.cli.main import main
from tests.support.drawn import drawn

QUERY = "SELECT * WHERE A AS x ; (B AS y OR C)+ FILTER y[price > 1] AND y.price > x.price WITHIN 9 EVENTS"
EVENTS = "type,price\nA,1\nB,2\nC,3\nA,3\nB,1\nB,5\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "q.ceql").write_text(QUERY)
    (tmp_path / "e.csv").write_text(EVENTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    code = main(list(words))
    captured = capsys.readouterr()
    assert (code, captured.err) == (0, "")
    return captured.out


def test_explain_as_pictures_and_data(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(_run(capsys, "explain", "q.ceql", "--format", "json"))
    transitions = data["automaton"]["transitions"]
    assert any("y.price > x.price" in action for t in transitions for action in t["actions"]) and data["plan"]
    dot = _run(capsys, "explain", "q.ceql", "--format", "dot")
    assert (
        dot.count(" -> ")
        == len({(t["source"], t["target"], t["marks"] or t["source"] == t["target"]) for t in transitions}) + 1
    )
    picture = drawn(_run(capsys, "explain", "q.ceql", "--format", "svg"))
    assert len(picture.nodes) == data["automaton"]["states"] + 2, "accepting, and where it begins"


def test_plot(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(_run(capsys, "run", "q.ceql", "--events", "e.csv", "--format", "json"))
    assert _run(capsys, "plot", "q.ceql", "--events", "e.csv", "--output", "m.svg") == ""
    text = (folder / "m.svg").read_text("utf-8")
    assert (
        f"q.ceql: {len(found)} matches" in text
        and "position in the stream" in text
        and "<title>positions 0 to 5</title>" in text
        and ">match 1<" in text
    )
    (folder / "dated.csv").write_text("type,price,time\nA,1,2026-01-01T00:00:00Z\nB,2,2026-01-01T00:00:05Z\n")
    assert _run(capsys, "plot", "q.ceql", "--events", "dated.csv", "--output", "dated.svg") == ""
    assert "time (UTC)" in (folder / "dated.svg").read_text("utf-8")
    assert main(["plot", "q.ceql", "--events", "e.csv", "--output", "m.gif"]) == 2
    assert "cannot tell from m.gif what picture" in capsys.readouterr().err
