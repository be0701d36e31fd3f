"""`ceql alert` and `ceql forecast`, and forecasts batch by batch."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest

import ceql
from ceql.cli import main as cli
from spaseq.core.automata import rma
from spaseq.core.forecast import Forecaster, learn

QUERY = "SELECT * WHERE A AS x ; B AS y FILTER y.v > x.v WITHIN 2 EVENTS"
FORECAST = ["forecast", "cycle.ceql", "--train", "past.csv", "--events", "now.csv"]
CYCLE = "SELECT * WHERE A : B : C"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = random.Random(1)
    lines = [f"{rng.choice('AB')},{rng.randrange(5)},{i}" for i in range(40)]
    (tmp_path / "events.csv").write_text("type,v,time\n" + "\n".join(lines) + "\n")
    (tmp_path / "query.ceql").write_text(QUERY)
    (tmp_path / "cycle.ceql").write_text(CYCLE)
    for name, word in (("past.csv", "ABCX" * 30), ("now.csv", "XABCXAB")):
        (tmp_path / name).write_text("type,time\n" + "".join(f"{kind},{i}\n" for i, kind in enumerate(word)))
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    code = cli.main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    return out


def test_an_alert_for_each_event_that_completes_a_match(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "alert", folder / "query.ceql", "--events", folder / "events.csv"
    ends = sorted({m.end for m in ceql.compile(QUERY).run(str(folder / "events.csv"))})
    assert len(ends) > 3
    lines = [json.loads(line) for line in said(capsys, *arguments, "--format", "jsonl").splitlines()]
    assert lines == [{"position": end, "time": end, "type": "B"} for end in ends]
    text = said(capsys, *arguments).splitlines()
    assert [line.split() for line in text] == [[str(end), str(end), "B"] for end in ends]
    table = said(capsys, *arguments, "--format", "csv", "--limit", 2)
    assert table == "position,time,type\n" + "".join(f"{end},{end},B\n" for end in ends[:2])
    assert said(capsys, *arguments, "--format", "count") == f"{len(ends)}\n"
    assert said(capsys, *arguments, "--format", "count", "--limit", 1) == "1\n"
    said(capsys, *arguments, "--output", folder / "out.txt")
    assert (folder / "out.txt").read_text().splitlines() == text


def test_a_forecast_for_each_event(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["forecast", folder / "cycle.ceql", "--train", folder / "past.csv", "--events", folder / "now.csv"]
    arguments += ["--threshold", 0.9]
    text = said(capsys, *arguments).splitlines()
    assert text[:4] == [
        "        0  0  in 3 to 3 events, p = 1.00",
        "        1  1  in 2 to 2 events, p = 1.00",
        "        2  2  in 1 to 1 events, p = 1.00",
        "        3  3  in 4 to 4 events, p = 1.00  <- a match",
    ]
    lines = [json.loads(line) for line in said(capsys, *arguments, "--format", "jsonl").splitlines()]
    assert lines[3] == {"position": 3, "time": 3, "first": 4, "last": 4, "probability": 1.0, "match": True}
    assert len(lines) == 7
    table = said(capsys, *arguments, "--format", "csv", "--limit", 1)
    assert table == "position,time,first,last,probability,match\n0,0,3,3,1.0,false\n"
    short = said(capsys, *arguments, "--horizon", 2, "--format", "jsonl", "--limit", 1)
    assert json.loads(short)["first"] is None
    assert cli.main([*map(str, arguments), "--evaluate"]) == 0
    assert "precision 1.00" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["forecast", "and.ceql", "--train", "past.csv", "--events", "now.csv"], 2, "a conjunction (AND) has no"),
        (["alert", "cycle.ceql"], 2, "no events to run over"),
        (["alert", "cycle.ceql", "--events", "none.csv"], 3, "none.csv"),
        (["forecast", "time.ceql", "--train", "past.csv", "--events", "now.csv"], 2, "a window of time"),
        (["forecast", "cycle.ceql", "--train", "none.csv", "--events", "now.csv"], 3, "none.csv"),
        (["forecast", "cycle.ceql", "--train", "empty.csv", "--events", "now.csv"], 2, "no events to learn from"),
        ([*FORECAST, "--threshold", "2"], 2, "probability"),
        ([*FORECAST, "--horizon", "0"], 2, "counts events"),
        ([*FORECAST, "--order", "-1"], 2, "order"),
        (["forecast", "cycle.ceql", "--train", "past.csv", "--stream", "S=now.csv", "--stream", "T=now.csv"], 2,
         "one stream"),
    ],
)  # fmt: skip
def test_errors(
    arguments: list[str], code: int, message: str, folder: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(folder)
    (folder / "and.ceql").write_text("SELECT * WHERE AND(A, B)")
    (folder / "time.ceql").write_text("SELECT * WHERE A : B WITHIN 3 SECONDS")
    (folder / "empty.csv").write_text("type,time\n")
    assert cli.main(arguments) == code
    out, err = capsys.readouterr()
    assert out == "" and message in err and "Traceback" not in err


def test_forecasts_batch_by_batch_are_those_of_the_whole() -> None:
    """Contexts reach over the ends of batches, and partitions do not mix."""
    rng = random.Random(2)
    for order in (0, 1, 3):
        query = ceql.compile("SELECT * WHERE A : B : C PARTITION BY [k] WITHIN 4 EVENTS")
        alerts = query.alerts()
        events = [{"type": rng.choice("ABCX"), "k": rng.randrange(3)} for _ in range(300)]
        model = learn(rma.SingleRun(alerts.deterministic()), alerts.rows(events), order=order, least=2)
        forecaster = Forecaster(model, threshold=0.4, horizon=30)
        (rows,) = alerts.rows(events)
        whole = forecaster.run([rows])
        cuts = [0, 1, 2, 50, 51, 200, 300]
        parts = list(forecaster.follow(rows.part(a, b) for a, b in itertools.pairwise(cuts)))
        assert rows.keys is not None
        for key, expected in enumerate(whole):
            for name in ("first", "last", "probability", "accepted"):
                found = np.concatenate([getattr(part, name) for part in parts])[rows.keys == key]
                assert np.array_equal(found, getattr(expected, name)), (order, key, name)


@pytest.fixture
def growing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that gets two pieces while it is followed; then Ctrl-C."""
    path = folder / "growing.csv"
    path.write_text("type,v,time\nA,1,0\n")
    pieces = iter(["B,2,1\nA,5", ",2\nB,7,3\n"])

    def sleep(seconds: float) -> None:
        piece = next(pieces, None)
        if piece is None:
            raise KeyboardInterrupt
        with path.open("a") as file:
            file.write(piece)

    monkeypatch.setattr("spaseq.core.events.growing.time.sleep", sleep)
    return path


def test_alerts_follow_a_file(folder: Path, growing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["alert", str(folder / "query.ceql"), "--events", str(growing), "--follow", "--format", "csv"]
    assert cli.main(arguments) == 130
    assert capsys.readouterr() == (
        "position,time,type\n1,1,B\n3,3,B\n",
        "interrupted: 4 events read, 2 lines written\n",
    )


def test_following_ends_with_the_limit(folder: Path, growing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "alert", folder / "query.ceql", "--events", growing, "--follow", "--limit", 1, "--format", "csv"
    assert said(capsys, *arguments) == "position,time,type\n1,1,B\n"
    assert growing.read_text().endswith("A,5")  # nothing was waited for behind it


def test_forecasts_follow_a_file(folder: Path, growing: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(folder / a) if "." in a else a for a in FORECAST[:4]]
    assert cli.main([*arguments, "--events", str(growing), "--follow", "--format", "jsonl"]) == 130
    out, err = capsys.readouterr()
    lines = [json.loads(line) for line in out.splitlines()]
    assert err == "interrupted: 4 events read, 4 lines written\n"
    assert [line["position"] for line in lines] == [0, 1, 2, 3]
    whole = said(capsys, *arguments, "--events", growing, "--format", "jsonl")
    assert out == whole


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["alert", "query.ceql", "--stream", "S=events.csv,past.csv"], "one file is followed, or one for each stream"),
        (
            ["alert", "query.ceql", "--events", "events.csv", "--events", "past.csv"],
            "one file is followed, or one for each stream",
        ),
        (["alert", "query.ceql", "--events", "events.parquet"], "only text can be read as it grows"),
        (["alert", "query.ceql", "--events", "events.csv", "--format", "count"], "can be read only once"),
        ([*FORECAST, "--evaluate"], "judged at the end"),
    ],
)
def test_what_cannot_be_followed(
    arguments: list[str],
    message: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    assert cli.main([*arguments, "--follow"]) == 2
    assert message in capsys.readouterr().err
