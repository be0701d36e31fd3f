"""Sources to batches: types, times, order, merging, and columns."""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events import (
    EventBatch,
    EventFeed,
    EventOptions,
    EventStream,
    NumberColumn,
    TextColumn,
    TimeColumn,
    TruthColumn,
)
from tests.support.snapshots import rewritten

S = 10**9


def batches(sources: dict[str, Any] | list[dict[str, Any]], **options: Any) -> list[EventBatch]:
    return list(EventStream(sources if isinstance(sources, dict) else {"S": sources}, EventOptions(**options)))


def times(events: list[dict[str, Any]], **options: Any) -> list[int]:
    return [int(t) for b in batches(events, **options) for t in b.times]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("typ,time\nA,3\n", "2.csv: no column 'type'"),
        ("type,tim\nA,3\n", "2.csv: no column 'time'"),
        ("type,time\nA,3\nB,\n", "2.csv, event 2: this event has no time"),
        ("type,time\nA,3\nB,x\n", "2.csv, event 2: 'x'"),
        ("type,time\nA,3\nB,1\n", "2.csv, event 2: .* goes back in time by 2 s: .* \\(2.csv, event 1\\)"),
        ("type,time\nA,1\n", "2.csv, event 1: .* goes back in time by 1 s: .* \\(1.csv, event 2\\)"),
    ],
)
@pytest.mark.parametrize("glob", [False, True])
def test_errors_name_the_file_of_the_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: str, message: str, glob: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("1.csv").write_text("type,time\nA,1\nA,2\n")
    Path("2.csv").write_text(second)
    with pytest.raises(EventError, match=f"^{message}"):
        batches({"S": "?.csv" if glob else ["1.csv", "2.csv"]})


@pytest.mark.parametrize("events", [[{"type": [1.0]}], [{"type": "A"}, {"type": [2.0]}]])
def test_a_list_is_no_type(events: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(events) if len(events) == 1 else None
    for source in (events, table):
        if source is not None:
            with pytest.raises(EventError, match="<events>: attribute type holds lists, and says the type"):
                batches({"S": source})
            with pytest.raises(EventError, match="attribute type holds lists, and says the type"):
                list(EventFeed(("S",), EventOptions()).push(source))


def test_late_events_are_counted_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, times in (("1.csv", "5 6"), ("2.csv", "1 7 2"), ("3.csv", "8 3")):
        Path(name).write_text("\n".join(["type,time", *(f"A,{time}" for time in times.split())]))
    stream = EventStream({"": ["1.csv", "2.csv", "3.csv"]}, EventOptions(late="drop"))
    assert [int(t) // S for b in stream for t in b.times] == [5, 6, 7, 8]
    assert stream.counters.dropped == {"2.csv": 2, "3.csv": 1}


def test_times_from_columns() -> None:
    assert times([{"type": "A", "time": 1}, {"type": "A", "time": 2}]) == [S, 2 * S]
    assert times([{"type": "A", "timestamp": 1.25}]) == [1_250_000_000]
    assert times([{"type": "A", "time": 5, "timestamp": 1}]) == [5 * S]
    assert times([{"type": "A", "at": "1970-01-01T00:00:01Z"}], time="at") == [S]
    assert times([{"type": "A", "at": "3"}], time="at", time_unit="ms") == [3_000_000]
    assert times([{"type": "A", "time": datetime.datetime(1970, 1, 2)}]) == [86_400 * S]
    assert times([{"type": "A", "time": datetime.date(1970, 1, 2)}]) == [86_400 * S]
    assert times([{"type": "A", "time": 1_700_000_000.1}]) == [1_700_000_000_100_000_000]  # as written, not as stored
    assert times([{"type": "A", "time": 1e18}], time_unit="ns") == [10**18]


def test_times_from_arrival() -> None:
    assert times([{"type": "A"}] * 3) == [0, 1_000_000, 2_000_000]
    assert times([{"type": "A", "time": 9}] * 2, from_arrival=True, interval=S) == [0, S]


@pytest.mark.parametrize(
    ("events", "options", "message", "record"),
    [
        ([{"kind": "A", "event_type": "B"}], {}, "no column 'type'.*there are: kind, event_type", None),
        ([{"type": "A"}], {"type_column": "kind"}, "no column 'kind'", None),
        ([{"kind": "A"}], {"type_column": "knd"}, "hint: did you mean 'kind'", None),
        ([{"type": "A", "tme": 1}], {"time": "time"}, "no column 'time'", None),
        ([{"type": "A", "time": 1}, {"type": "A"}], {}, "has no time", 2),
        ([{"type": "A", "time": None}], {}, "has no time", 1),
        ([{"type": "A", "time": "1"}, {"type": "A", "time": "noon"}], {}, "'noon' is not a time", 2),
        ([{"type": "A", "time": True}], {}, "true or false, not times", 1),
        ([{"type": "A", "time": 1}, {"type": "A", "time": 2**62}], {}, "outside those that can be held", 2),
        ([{"type": "A", "time": 2}, {"type": "A", "time": 1}], {}, "goes back in time by 1 s", 2),
        (
            [{"type": "A", "time": 9}, {"type": "A", "time": 1}],
            {"lateness": S},
            "8 s, more than the lateness of 1 s",
            2,
        ),
    ],
)
def test_wrong_events(events: list[dict[str, Any]], options: dict[str, Any], message: str, record: int | None) -> None:
    with pytest.raises(EventError, match=message) as caught:
        batches(events, **options)
    assert caught.value.record == record


@pytest.mark.parametrize(
    "options", [{"time_unit": "m"}, {"late": "keep"}, {"lateness": -1}, {"from_arrival": True, "time": "t"}]
)
def test_wrong_options(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        EventOptions(**options)


def test_columns() -> None:
    (batch,) = batches([
        {"type": "A", "i": 1, "f": 1.5, "t": "x", "b": True, "at": datetime.datetime(1970, 1, 1)},
        {"type": None, "i": None, "f": math.nan, "t": None, "b": None, "at": None},
        {"type": "B", "i": 3, "f": 2.5, "t": "x", "b": False, "at": datetime.datetime(1970, 1, 2)},
    ])  # fmt: skip
    kinds = {n: type(batch.column(n)) for n in ("i", "f", "t", "b", "at")}
    assert kinds == {"i": NumberColumn, "f": NumberColumn, "t": TextColumn, "b": TruthColumn, "at": TimeColumn}
    known = {n: batch.column(n).known.tolist() for n in ("i", "f", "b", "at")}  # type: ignore[union-attr]
    assert set(map(tuple, known.values())) == {(True, False, True)}
    text, types = batch.column("t"), batch.types
    assert isinstance(text, TextColumn) and text.codes.tolist() == [0, -1, 0] and text.texts.to_pylist() == ["x"]
    assert types is not None and types.texts.to_pylist() == ["A", "B"] and types.codes.tolist() == [0, -1, 1]
    assert batch.column("missing") is None
    assert [batch.getter("f")(row) for row in range(3)] == [1.5, None, 2.5]
    assert batch.event(2)["t"] == "x" and "t" not in batch.event(1)
    with pytest.raises(EventError, match=r"^S: .* no meaning in a query"):
        batches([{"type": "A", "nested": [["text"]]}])[0].column("nested")
    with pytest.raises(EventError, match=r"^S: attribute b holds bytes that are not UTF-8 text"):
        batches([{"type": "A", "b": b"\xff"}])[0].column("b")


@given(
    st.lists(st.none() | st.sampled_from("abcdefghijklmnopqrst"), min_size=1, max_size=30),
    st.sets(st.sampled_from("abcdefghijklmnopqrst")),
)
def test_truth_per_text_is_gathered(values: list[str | None], wanted: set[str]) -> None:
    (batch,) = batches([{"type": "A", "t": v} for v in values])
    column = batch.column("t")
    if column is None:
        return
    assert isinstance(column, TextColumn)
    answers = np.array([t in wanted for t in column.texts.to_pylist()])
    assert column.where(answers).tolist() == [v in wanted for v in values]


def test_types_may_be_numbers() -> None:
    (batch,) = batches([{"type": 1}, {"type": 2}])
    assert batch.types is not None and batch.types.texts.to_pylist() == ["1", "2"]


stream = st.lists(st.integers(0, 8), max_size=8).map(sorted)


@given(st.lists(stream, min_size=2, max_size=3), st.integers(1, 3))
def test_merging(streams: list[list[int]], size: int) -> None:
    """By time, then in the order of the streams, then as in the source; however the sources are cut."""
    names = [f"S{k}" for k in range(len(streams))]
    events = {n: [{"type": n, "time": t, "k": k} for k, t in enumerate(s)] for n, s in zip(names, streams, strict=True)}
    cut = {n: [e[i : i + size] for i in range(0, len(e), size)] for n, e in events.items()}
    expected = sorted(((t, i, k) for i, s in enumerate(streams) for k, t in enumerate(s)))
    found, position = [], 0
    for batch in batches(cut):
        assert batch.positions.tolist() == list(range(position, position + len(batch)))
        position += len(batch)
        assert batch.stream_codes is not None
        found += list(
            zip((batch.times // S).tolist(), batch.stream_codes.tolist(), batch.table["k"].to_pylist(), strict=True)
        )
    assert found == expected


def test_streams_that_disagree_about_an_attribute() -> None:
    merged = batches({"S": [{"type": "A", "p": 1}], "T": [{"type": "A", "p": "x"}, {"type": "A", "p": [1.5]}]})
    assert [p for batch in merged for p in batch.table["p"].to_pylist()] == [1, "x", [1.5]]
    merged = batches({"S": [{"type": "A", "p": 1}], "T": [{"type": "A", "p": 1.5, "q": "x"}]})
    found = merged[0].table.select(["p", "q"]).to_pylist()
    assert found == [{"p": 1, "q": None}, {"p": 1.5, "q": "x"}] and type(found[0]["p"]) is int


@given(st.lists(st.integers(0, 12), max_size=12), st.integers(0, 4), st.integers(1, 4))
def test_a_feed_orders_as_a_stream_does(order: list[int], lateness: int, size: int) -> None:
    events = [{"type": "A", "time": t, "k": k} for k, t in enumerate(order)]
    options = EventOptions(lateness=lateness * S, late="drop")
    whole = [k for b in EventStream({"S": events}, options) for k in b.table["k"].to_pylist()]
    found: list[int] = []
    feed = EventFeed(("S",), options)
    for start in range(0, len(events), size):
        for batch in feed.push(events[start : start + size]):
            found += batch.table["k"].to_pylist()
        copy = EventFeed(("S",), options)
        copy.restore(rewritten(feed.snapshot()))
        feed = copy
    found += [k for b in feed.finish() for k in b.table["k"].to_pylist()]
    assert found == whole
    high, kept = -1, []
    for k, t in enumerate(order):
        high = max(high, t)
        if high - t <= lateness:
            kept.append((t, k))
    assert whole == [k for _, k in sorted(kept)]
    assert feed.counters.dropped.get("<events>", 0) == len(order) - len(kept)


def test_a_large_table_is_one_batch_and_texts_are_encoded_once() -> None:
    table = pa.table({"type": ["A", "B"] * 5000, "p": list(range(10000))})
    (batch,) = batches({"S": table})
    assert pa.types.is_dictionary(batch.table["type"].type) and batch.column("type") is batch.column("type")
