"""Alerts by thresholds: `at_least`, `timeframe` and `realert`, against their definition, on every road."""

from __future__ import annotations

import datetime
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ceql
from ceql.cli import main as cli
from spaseq.core.errors import BudgetExceeded, OptionError

SECOND = 1_000_000_000
QUERIES = (
    "SELECT * WHERE A PARTITION BY [k]",
    "SELECT * WHERE A ; B PARTITION BY [k] WITHIN 6 SECONDS",
    "SELECT * WHERE A ; B WITHIN 3 SECONDS",
    "SELECT * WHERE A ; B ; NOT C PARTITION BY [k] WITHIN 4 SECONDS",
    "SELECT * WHERE A PARTITION BY [k, m]",
    "SELECT * WHERE A PARTITION BY [k], [m]",
)


def reported(alerts: list[tuple[int, Any, int]], least: int, frame: int, realert: int) -> list[int]:
    """The positions of the alerts that are reported, of (position, key, time in seconds), by definition."""
    found: list[tuple[int, Any, int]] = []
    for at, (position, key, time) in enumerate(alerts):
        near = [t for _, other, t in alerts[: at + 1] if other == key and t >= time - frame]
        before = [t for _, other, t in found if other == key and time - t < realert]
        if len(near) >= least and not before:
            found.append((position, key, time))
    return [position for position, _, _ in found]


def keys_of(text: str, event: dict[str, Any]) -> Any:
    """The key of an event, by the text of the query."""
    values = [event.get("k", event.get("m"))] if "[k, m]" in text else [event.get(n) for n in "km" if f"[{n}]" in text]
    return [(type(value), value) for value in values]


def drawn_events(draw: random.Random) -> list[dict[str, Any]]:
    time, events = 0, []
    for _ in range(draw.randrange(0, 40)):
        time += draw.choice((0, 0, 1, 1, 2, 5))
        event = {"type": draw.choice("AAABBC"), "k": draw.choice((1, 2, "x", True, None)), "m": draw.choice((1, None)),
                 "time": time}  # fmt: skip
        events.append({name: value for name, value in event.items() if value is not None})
    return events


def pushed(alerts: Any, pieces: list[Any]) -> list[int]:
    with alerts.open() as stream:
        found = [end for piece in pieces for end in stream.push(piece)]
    return found + stream.rest


@pytest.mark.parametrize("count", [25, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "text", [*QUERIES[:2], *(pytest.param(text, marks=pytest.mark.slow) for text in QUERIES[2:4]), *QUERIES[4:]]
)
def test_random_alerts_on_every_road(text: str, count: int) -> None:
    draw, query, several = random.Random(37), ceql.compile(text), 0
    for _ in range(count):
        events = drawn_events(draw)
        least, frame, realert = draw.choice((1, 2, 3)), draw.choice((0, 2, 9)), draw.choice((None, 0, 1, 4, 20))
        ends = list(query.alerts().run(events)) if events else []
        alerts = [(end, keys_of(text, events[end]), events[end]["time"]) for end in ends]
        expected = reported(alerts, least, frame, frame if realert is None else realert)
        several += len(expected) > 1
        words: dict[str, Any] = {
            "at_least": least,
            "timeframe": f"{frame}s",
            "realert": None if realert is None else f"{realert}s",
        }
        asked = query.alerts(**words)
        cut = draw.randrange(len(events) + 1)
        assert pushed(asked, events) == expected
        assert pushed(asked, [events[:cut], events[cut:]]) == expected
        if events:
            assert list(asked.run(events)) == expected
            assert asked.count(events) == len(expected) and asked.ask(events) is bool(expected)
            left = len(ends) - len(expected)
            assert any(f"{left} alert" in note for note in (list(asked.run(events)), asked.notes)[1]) is (left > 0)
    assert several > count / 12


def test_an_alert_alone_may_be_hushed() -> None:
    query = ceql.compile("SELECT * WHERE A")
    events = [{"type": "A", "time": time} for time in (0, 4, 5, 9, 10)]
    assert list(query.alerts(realert=datetime.timedelta(seconds=5)).run(events)) == [0, 2, 4]
    assert list(query.alerts(realert=5 * SECOND).run(events)) == [0, 2, 4]


def test_true_is_another_key_than_one() -> None:
    events = [{"type": "A", "k": k, "time": 0} for k in (1, True, 1.0, "1")]
    query = ceql.compile("SELECT * WHERE A PARTITION BY [k]")
    assert list(query.alerts(realert="1s").run(events)) == [0, 1, 3]


def test_keys_are_forgotten_and_have_a_budget() -> None:
    text = "SELECT * WHERE A PARTITION BY [k] WITHIN 5 SECONDS"
    query = ceql.compile(text)
    apart = [{"type": "A", "k": k, "time": k} for k in range(1_000)]
    with query.alerts(at_least=1, timeframe="5s").open() as stream:
        assert sum(len(stream.push(event)) for event in apart) == 1_000
        assert stream._reports is not None and len(stream._reports._kept) <= 6
    every = ceql.compile("SELECT * WHERE A", settings=ceql.Settings(partitions=20))
    with pytest.raises(BudgetExceeded, match="partitions is 20 keys") as caught:
        every.alerts(at_least=5_000, timeframe="1h").count([{"type": "A", "time": 0} for _ in range(1_100)])
    assert caught.value.setting == "partitions"


@pytest.mark.parametrize(("words", "said"), [
    ({"at_least": 0, "timeframe": "1s"}, "no number of alerts"), ({"at_least": 2}, "timeframe is missing"),
    ({"timeframe": "1s"}, "at_least is missing"), ({"at_least": 2, "timeframe": "soon"}, "not a duration"),
    ({"realert": -1}, "less than nothing"), ({"at_least": True, "timeframe": "1s"}, "no number of alerts"),
])  # fmt: skip
def test_words_that_are_no_thresholds(words: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        ceql.compile("SELECT * WHERE A").alerts(**words)


def test_times_are_needed() -> None:
    with pytest.raises(OptionError, match="the timeframe of alerts needs the times of the events"):
        list(ceql.compile("SELECT * WHERE A").alerts(realert="1s").run(pa.table({"type": ["A"], "n": [1]})))


def test_the_command_names_the_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, text = tmp_path / "events.csv", "SELECT * WHERE A PARTITION BY [k]"
    path.write_text("type,k,time\n" + "".join(f"A,{k},{time}\n" for time, k in enumerate("xyxxyx")))
    arguments = ["alert", text, "--events", str(path), "--time", "time", "--time-unit", "s", "--at-least", "2",
                 "--timeframe", "3s"]  # fmt: skip
    assert cli.main([*arguments, "--format", "jsonl"]) == 0
    out, err = capsys.readouterr()
    assert list(map(json.loads, out.splitlines())) == [
        {"position": 2, "time": 2, "type": "A", "key.k": "x"}, {"position": 4, "time": 4, "type": "A", "key.k": "y"},
        {"position": 5, "time": 5, "type": "A", "key.k": "x"}]  # fmt: skip
    assert "3 alerts not reported" in err
    assert cli.main([*arguments, "--realert", "1h"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["2", "2", "A", "k=x"], ["4", "4", "A", "k=y"]]  # fmt: skip
    assert cli.main([*arguments[:-2]]) == 2
    assert "--timeframe is missing" in capsys.readouterr().err
