"""`NOT … FOR EVERY`: rows as time goes on, in parts, in tables and in the command; what has no meaning with it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import ceql
from ceql.cli.main import main
from spaseq.core.engine import Settings, repeating
from spaseq.core.errors import BudgetExceeded, QuerySemanticsError, UnsupportedFeature
from spaseq.live.names import match_id

ALARM = "SELECT * WHERE A ; NOT B FOR EVERY 10 SECONDS"
SECOND = 10**9
FEW = [{"type": "A", "time": 0, "k": 1}, {"type": "A", "time": 5, "k": 2}, {"type": "X", "time": 25, "k": 1}]


def _rows(matches: Any) -> list[tuple[int, int]]:
    return [(match.end, match.silence) for match in matches]


def test_rows_come_as_time_goes_on() -> None:
    with ceql.compile(ALARM).open() as session:
        assert not session.push({"type": "A", "time": 0})
        assert not session.advance(10 * SECOND)  # an event at this time may still come
        assert _rows(session.advance(10 * SECOND + 1)) == [(0, 1)]
        assert _rows(session.advance(35 * SECOND)) == [(0, 2), (0, 3)]
        assert _rows(session.push({"type": "X", "time": 41})) == [(0, 4)]
        assert _rows(session.push({"type": "B", "time": 60})) == [(0, 5)]
        assert not session.advance(1_000 * SECOND)
    assert not session.rest


def test_rows_are_in_the_order_of_their_moments() -> None:
    found = _rows(ceql.compile(ALARM).run(FEW))
    assert found == [(0, 1), (1, 1), (0, 2), (1, 2)]


def test_a_snapshot_has_the_number_of_silences() -> None:
    query = ceql.compile(ALARM + " WITHIN 45 SECONDS")
    session = query.open()
    session.push([{"type": "A", "time": 0}, {"type": "X", "time": 21}])
    again = query.open(session.snapshot())
    assert _rows(again.push({"type": "X", "time": 99})) == [(0, 3), (0, 4)]
    assert not again.close() and again.counters.memory.events_held


@pytest.mark.parametrize("part", [1, 2, 7])
def test_many_rows_come_in_parts_of_the_same_order(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(part)
    times = sorted(rng.randrange(200) for _ in range(30))
    events = [{"type": rng.choice("AAXXB"), "time": time, "k": rng.randrange(3)} for time in times]
    query = ceql.compile("SELECT * WHERE A ; NOT B FOR EVERY 3 SECONDS PARTITION BY [k] WITHIN 1 MINUTE")
    expected = _rows(query.run(events))
    monkeypatch.setattr(repeating, "_PART", part)
    assert _rows(query.run(events)) == expected and len(expected) > 50
    assert query.run(events).count() == len(expected) and query.run(events).count(9) == 9


def test_alerts_name_an_event_once_at_its_first_silence() -> None:
    alerts = ceql.compile(ALARM).alerts()
    assert list(alerts.run(FEW)) == [0, 1] and alerts.ask(FEW)
    with alerts.open() as stream:
        assert stream.push(FEW[0]) == [] and stream.advance(11 * SECOND) == [0] and stream.advance(31 * SECOND) == []
    assert stream.rest == []


def test_columns_of_tables() -> None:
    table = ceql.compile(ALARM).run(FEW).to_arrow()
    assert table.column_names == ["start", "end", "positions", "start_time", "end_time", "silence"]
    assert table.column("silence").to_pylist() == [1, 1, 2, 2]
    assert ceql.compile(ALARM).run([]).to_arrow().column_names == table.column_names
    assert "silence" not in ceql.compile("SELECT * WHERE A ; NOT B FOR 10 SECONDS").run(FEW).to_arrow().column_names


def test_select_computes_with_the_silence() -> None:
    query = "SELECT k, silence, MATCH_END + 10 * SILENCE AS told WHERE A ; NOT B FOR EVERY 10 SECONDS PARTITION BY [k]"
    rows = [tuple(match.row.values()) for match in ceql.compile(query).run(FEW)]
    assert rows == [(1, 1, 10), (2, 1, 15), (1, 2, 20), (2, 2, 25)]
    own = "SELECT A.SILENCE AS own, SILENCE WHERE A ; NOT B FOR EVERY 10 SECONDS PARTITION BY [SILENCE]"
    events = [{**event, "SILENCE": "key"} for event in FEW]
    assert {tuple(m.row.values()) for m in ceql.compile(own).run(events)} == {("key", "key")}


def test_silence_is_of_every_alone() -> None:
    with pytest.raises(QuerySemanticsError, match="whose SILENCE"):
        ceql.compile("SELECT A.k, SILENCE WHERE A ; NOT B FOR 10 SECONDS")


@pytest.mark.parametrize("form", ["jsonl", "csv", "table", "parquet"])
def test_the_command(form: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text("".join(json.dumps(event) + "\n" for event in FEW), "utf-8")
    query = tmp_path / "alarm.ceql"
    query.write_text(ALARM, "utf-8")
    output = ["--output", str(tmp_path / "out.parquet")] if form == "parquet" else []
    assert main(["run", str(query), "--events", str(file), "--format", form, *output]) == 0
    shown = capfd.readouterr().out
    if form == "jsonl":
        assert [json.loads(line)["silence"] for line in shown.splitlines()] == [1, 1, 2, 2]
    elif form == "csv":
        assert shown.splitlines()[:2] == ["start,end,positions,start_time,end_time,silence", "0,0,0,0,0,1"]
    elif form == "table":
        assert shown.split()[:6] == ["silence", "from", "to", "start", "end", "positions"]
    else:
        import pyarrow.parquet as pq

        assert pq.read_table(tmp_path / "out.parquet").column("silence").to_pylist() == [1, 1, 2, 2]


def test_rows_of_a_match_have_different_names() -> None:
    query = ceql.compile(ALARM)
    names = [match_id(query, match) for match in query.run(FEW)]
    assert len(set(names)) == 4 == len(set(query.run(FEW)))
    assert names == [match_id(query, match) for match in query.run(FEW)]


def test_a_silence_without_end_is_within_the_budgets() -> None:
    events = [{"type": "A", "time": 0}, {"type": "X", "time": 10**7}]
    with pytest.raises(BudgetExceeded, match="output_bytes"):
        ceql.compile(ALARM, settings=Settings(output_bytes=100_000)).open().push(events)
    assert ceql.compile(ALARM).run(events).count(10) == 10  # and no more are made
    short = ceql.compile("SELECT * WHERE A ; NOT B FOR EVERY 0.000001 SECONDS")
    assert short.run(events).count(10) == 10 and list(short.alerts().run(events)) == [0]
    assert short.alerts().open().push(events) == [0]


def test_times_at_the_ends_of_what_times_can_be() -> None:
    low, high = 1 - 2**63, 2**63 - 1
    query = ceql.compile("SELECT * WHERE A ; NOT B FOR EVERY 53375 DAYS")  # half of them all
    events = [{"type": "A", "time": low}, {"type": "X", "time": high}]
    assert _rows(query.run(events, time_unit="ns")) == [(0, 1), (0, 2), (0, 3), (0, 4)]


def test_it_explains_itself() -> None:
    assert "a match is reported again after each 10 s without one" in ceql.compile(ALARM).explain()
    short = ceql.compile(ALARM + " WITHIN 5 SECONDS")
    assert any("WITHIN is shorter than the time of FOR EVERY" in line for line in short.warnings)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT * WHERE NOT B FOR EVERY 10 SECONDS ; A", "anywhere but at the end"),
        ("SELECT * WHERE A ; NOT B FOR EVERY 10 SECONDS ; C", "anywhere but at the end"),
        ("SELECT * WHERE A ; (C OR NOT B FOR EVERY 10 SECONDS)", "anywhere but at the end"),
        ("SELECT * WHERE AND(A, NOT B FOR EVERY 10 SECONDS)", "anywhere but at the end"),
        ("SELECT * WHERE (A ; NOT B FOR EVERY 10 SECONDS)+", "anywhere but at the end"),
        ("SELECT * WHERE A ; NOT B FOR 3 SECONDS ; NOT C FOR EVERY 9 SECONDS", "beside another NOT at the end"),
        ("SELECT * WHERE A ; NOT B ; NOT C FOR EVERY 10 SECONDS", "beside another NOT at the end"),
        ("SELECT FIRST * WHERE A ; NOT C FOR EVERY 10 SECONDS", "and SELECT FIRST do not go together"),
        ("SELECT * WHERE A ; NOT C FOR EVERY 10 SECONDS CONSUME BY ANY", "and CONSUME BY do not go together"),
        ("SELECT * WHERE A ; NOT C FOR EVERY 9 SECONDS AFTER MATCH SKIP TO NEXT ROW", "and AFTER MATCH do not go"),
        ("SELECT * WHERE A AS a ; NOT (B AS b FILTER b.k = a.k) FOR EVERY 9 SECONDS", "a condition on other events"),
        ("SELECT * WHERE A ; NOT C FOR EVERY 10 SECONDS WITHIN 10 EVENTS", "with WITHIN … EVENTS"),
        ("SELECT * WHERE A ; NOT C FOR EVERY 10 SECONDS WITHIN 10 [k]", "in a window over an attribute"),
        ("SELECT * WHERE A ; NOT C FOR EVERY 0 SECONDS", "no time at all"),
        ("SELECT COUNT(*) AS n WHERE A ; NOT C FOR EVERY 10 SECONDS GROUP BY EVENT", "GROUP BY beside NOT at the end"),
    ],
)
def test_what_has_no_meaning_with_it(query: str, problem: str) -> None:
    with pytest.raises(UnsupportedFeature) as error:
        ceql.compile(query)
    assert problem in error.value.problem


def test_uses_that_count_a_match_once() -> None:
    with pytest.raises(UnsupportedFeature, match="forget_keys_after"):
        ceql.compile(ALARM + " WITHIN 1 HOUR", settings=Settings(forget_keys_after=60))
    with pytest.raises(UnsupportedFeature, match="in a network of queries"):
        ceql.Network({"silent": ALARM, "all": "SELECT * WHERE silent ; silent"})
    with pytest.raises(UnsupportedFeature, match="compared"):
        ceql.compare(ALARM, ALARM)
