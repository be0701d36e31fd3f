"""`ceql run NETWORK.toml` and `ceql check NETWORK.toml`."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ceql.cli.main import main

QUERIES = """
[queries]
burst = "SELECT user, MATCH_END - MATCH_START AS took WHERE fail ; login PARTITION BY [user] WITHIN 1 MINUTE"
again = { file = "again.ceql" }
"""
AGAIN = "SELECT b.took AS took WHERE burst AS a ; burst AS b FILTER a.user = b.user"
EVENTS = "time,type,user\n" + "".join(
    f"2026-01-01T00:00:0{second}Z,{kind},{user}\n"
    for second, (kind, user) in enumerate(
        [("fail", "ann"), ("login", "ann"), ("fail", "bob"), ("fail", "eve"), ("login", "eve"), ("login", "ann")]
    )
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.toml").write_text(QUERIES)
    (tmp_path / "again.ceql").write_text(AGAIN)
    (tmp_path / "e.csv").write_text(EVENTS)
    return tmp_path


def _run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["run", "net.toml", "--events", "e.csv", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_each_match_has_the_name_of_its_query(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, "--format", "jsonl")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and [row["query"] for row in rows] == ["burst", "burst", "burst", "again"]
    assert rows[0]["took"] == "PT1S" and rows[3] == {
        "query": "again", "user": "ann", "took": "PT5S",
        "match_start": "2026-01-01T00:00:01Z", "match_end": "2026-01-01T00:00:05Z",
    }  # fmt: skip
    assert json.loads(_run(capsys, "--format", "json")[1]) == rows
    assert (
        _run(capsys, "--format", "count")[1] == "4\n" and _run(capsys, "--format", "count", "--limit", "2")[1] == "2\n"
    )
    table = _run(capsys)[1].splitlines()
    assert table[0].split() == ["query", "match_start", "match_end", "row"] and table[-1] == "4 matches"
    assert _run(capsys, "--output", "out.csv")[0] == 0
    assert (folder / "out.csv").read_text().splitlines()[0] == "query,match_start,match_end,row"
    for limit in (4, 2):
        assert _run(capsys, "--output", "out.parquet", "--limit", str(limit))[0] == 0
        found = pq.read_table(folder / "out.parquet").to_pylist()
        assert [row["query"] for row in found] == [row["query"] for row in rows[:limit]]
        assert found[0]["took"] == datetime.timedelta(seconds=1) and found[0]["user"] == "ann"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--valuations"], "--valuations is for one query"),
        (["--timed-out", "t.csv"], "--timed-out is for one query"),
        (["--memory"], "--memory is for one query"),
    ],
)
def test_what_is_for_one_query_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    code, out, err = _run(capsys, *words)
    assert (code, out) == (2, "") and message in err


def test_a_network_is_checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "net.toml"]) == 0
    assert main(["explain", "net.toml"]) == 2 and "no plan of its own" in capsys.readouterr().err
    (folder / "again.ceql").write_text("SELECT * WHERE")
    assert main(["check", "net.toml"]) == 2 and "again.ceql:1:" in capsys.readouterr().err
    (folder / "net.toml").unlink()
    assert main(["check", "net.toml"]) == 2 and "net.toml cannot be read: No such file" in capsys.readouterr().err


def test_files_may_begin_with_a_byte_order_mark(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("net.toml", "again.ceql"):
        (folder / name).write_text((folder / name).read_text(), encoding="utf-8-sig")
    assert main(["check", "net.toml"]) == 0
