"""Networks: the matches of a query are events of others, in the order of time, whatever pushes or batches come."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars
import pytest

import ceql
from ceql.network import Network
from tests.support.sizes import some

RISE = "SELECT x.v AS v WHERE A AS x ; A AS y FILTER y.v > x.v WITHIN 1 EVENTS"
SILENT = "SELECT a.v AS v WHERE A AS a ; NOT A FOR 2 SECONDS"
CALM = "SELECT a.v AS v WHERE A AS a ; NOT B WITHIN 3 SECONDS"
LOGINS = "SELECT MAX user, COUNT(f) AS failures WHERE fail+ AS f ; login PARTITION BY [user] WITHIN 1 MINUTE"
THEFT = (
    "SELECT s.failures AS n, w.time - s.time AS took WHERE suspicious AS s ; wire AS w "
    "PARTITION BY [user] WITHIN 1 HOUR"
)
EVENTS: list[dict[str, Any]] = [
    {"type": kind, "user": user, "time": second}
    for kind, user, second in [
        ("fail", "ann", 1), ("fail", "ann", 2), ("login", "ann", 3), ("wire", "bob", 4), ("fail", "bob", 4),
        ("wire", "ann", 5), ("login", "bob", 6), ("wire", "bob", 6),
    ]
]  # fmt: skip


def _rows(found: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(name, match.row) for name, match in found]


def test_a_query_reads_the_matches_of_another() -> None:
    network = Network({"theft": THEFT, "suspicious": LOGINS})
    assert list(network.queries) == ["suspicious", "theft"] and network.reads["theft"] == ("suspicious",)
    assert network.given_types == ("fail", "login", "wire") and "suspicious, theft" in repr(network)
    assert _rows(network.run(EVENTS)) == [
        ("suspicious", {"user": "ann", "failures": 2, "match_start": 1, "match_end": 3}),
        ("theft", {"user": "ann", "n": 2, "took": 2, "match_start": 3, "match_end": 5}),
        ("suspicious", {"user": "bob", "failures": 1, "match_start": 4, "match_end": 6}),
        ("theft", {"user": "bob", "n": 1, "took": 0, "match_start": 6, "match_end": 6}),
    ]
    only = Network({"theft": THEFT, "suspicious": ceql.compile(LOGINS)}, report=["theft"])
    assert [name for name, _ in only.run(EVENTS)] == ["theft", "theft"]


def test_events_in_all_forms(tmp_path: Path) -> None:
    network = Network({"suspicious": LOGINS, "theft": THEFT})
    expected = [(name, match.positions) for name, match in network.run(EVENTS)]
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    dated = [{**e, "time": start + datetime.timedelta(seconds=e["time"])} for e in EVENTS]
    texts = [{**e, "time": e["time"].isoformat()} for e in dated]
    polars.DataFrame(dated).write_parquet(tmp_path / "e.parquet")
    polars.DataFrame(texts).write_csv(tmp_path / "e.csv")
    by_type = {kind: [{k: v for k, v in e.items() if k != "type"} for e in EVENTS if e["type"] == kind]
               for kind in ("fail", "login", "wire")}  # fmt: skip
    untyped = Network({"suspicious": LOGINS, "theft": THEFT.replace("w.time - s.time", "s.time")})
    assert [m.row["took"][-9:] for n, m in untyped.run(texts) if n == "theft"] == ["00:00:03Z", "00:00:06Z"]
    for source in (dated, polars.DataFrame(dated), str(tmp_path / "e.parquet"), str(tmp_path / "e.csv")):
        assert [(name, match.positions) for name, match in network.run(source)] == expected
        took = [match.row["took"] for name, match in network.run(source) if name == "theft"]
        assert took == [datetime.timedelta(seconds=2), datetime.timedelta(0)]
    assert len(list(network.run(types=by_type))) == 4
    renamed = [{"kind": e["type"], "user": e["user"], "at": e["time"]} for e in EVENTS]
    of_at = Network({"suspicious": LOGINS, "theft": THEFT.replace(".time", ".at")})
    assert [(n, m.positions) for n, m in of_at.run(renamed, type_column="kind", time="at")] == expected


def _brute(first: str, second: str, name: str, events: list[dict[str, Any]], wait: float | None) -> list[Any]:
    """The matches of the second query over the given events and an event for each match of the first."""
    placed: list[tuple[float, float, int, dict[str, Any]]] = [(i, e["time"], 0, e) for i, e in enumerate(events)]
    for match in ceql.compile(first).run(events):
        end, time = match.end, events[match.end]["time"]
        if wait is not None:
            time = events[match.start]["time"] + wait
            end = max(i for i, e in enumerate(events) if e["time"] <= time)
        placed.append((end, time, 1, {"type": name, "time": time, "v": match.row["v"]}))
    placed.sort(key=lambda one: one[:3])
    return [match.positions for match in ceql.compile(second).run([event for *_, event in placed])]


CASES = [
    ("rise", RISE, "SELECT * WHERE rise AS r ; A AS a FILTER a.v < r.v WITHIN 4 SECONDS", None),
    ("rise", RISE, "SELECT NEXT * WHERE B ; rise ; rise WITHIN 12 EVENTS", None),
    ("silent", SILENT, "SELECT * WHERE silent AS s ; A AS a FILTER a.v = s.v WITHIN 6 SECONDS", 2),
    ("silent", SILENT, "SELECT * WHERE silent : A", 2),
    ("calm", CALM, "SELECT * WHERE calm ; B WITHIN 3 SECONDS", 3),
    ("calm", CALM, "SELECT * WHERE A ; NOT calm WITHIN 4 SECONDS", 3),
]


@pytest.mark.parametrize(("name", "first", "second", "wait"), CASES)
def test_random_events_in_random_cuts_and_after_snapshots(
    name: str, first: str, second: str, wait: float | None
) -> None:
    rng = random.Random(name + second)
    network = Network({name: first, "found": second}, report=["found"])
    matched = 0
    for _ in range(8):
        time = 0.0
        events: list[dict[str, Any]] = []
        for _ in range(rng.randint(6, 24)):
            time += rng.choice((0, 0, 1, 1, 2, 5)) / 2
            events.append({"type": rng.choice("AAB"), "v": rng.randint(0, 3), "time": time})
        expected = _brute(first, second, name, events, wait)
        matched += len(expected)
        assert [match.positions for _, match in network.run(events)] == expected
        session, found, left = network.open(), [], list(events)
        while left:
            size = rng.randint(1, 4)
            found += session.push(left[:size] if size > 1 else left[0])
            left = left[size:]
            if rng.random() < 0.3:
                session = network.open(session.snapshot())
            if rng.random() < 0.2 and left:
                found += session.advance(int(left[0]["time"] * 10**9))
        found += session.close()
        assert [match.positions for _, match in found] == expected
    assert matched > 2


KINDS = ["whole", "decimal", "text", "date", "naive"]
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
VALUES = "SELECT MAX a.v AS v, COUNT(a) AS n, k WHERE A+ AS a ; B PARTITION BY [k] WITHIN 4 SECONDS"
MIXED = (
    "SELECT COLLECT(a.v) AS l, a.v + 0.5 AS v, a.k AS k, a.v > 1 AS big, b.time - a.time AS took WHERE A AS a ; B AS b"
)


def _stamp(kind: str, time: float) -> Any:
    match kind:
        case "whole":
            return int(2 * time)
        case "decimal":
            return time
        case "text":
            return (START + datetime.timedelta(seconds=time)).isoformat()
        case "naive":
            return START.replace(tzinfo=None) + datetime.timedelta(seconds=time)
    return START + datetime.timedelta(seconds=time)


FIRSTS = (RISE, SILENT, SILENT.replace("2 SECONDS", "1500 MILLISECONDS"), VALUES, MIXED)


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        pytest.param(first, kind, marks=[] if (i + j) % 2 == 0 else [pytest.mark.slow])
        for i, first in enumerate(FIRSTS)
        for j, kind in enumerate(KINDS)
    ],
)
def test_an_event_alone_is_as_one_in_columns(first: str, kind: str) -> None:
    """A dict goes the road of single events, a list of one the road of columns."""
    rng = random.Random(first + kind)
    if kind == "text":
        first = first.replace("b.time - a.time AS took", "b.time AS took")
    second = "SELECT f.v AS v, f.time AS t, a.time AS u WHERE f ; A AS a FILTER a.v < f.v OR a.v IS NULL"
    third = "SELECT NEXT * WHERE g OR f OR B WITHIN 3 SECONDS"
    network = Network({"f": first, "g": f"{second} WITHIN 6 EVENTS", "h": third})
    matched = 0
    for _ in range(4):
        time, events = 0.0, list[dict[str, Any]]()
        for _ in range(rng.randint(8, 20)):
            time += rng.choice((0, 0, 1, 1, 2, 5)) / 2 + rng.choice((0, 0, 0, 0.3))
            events.append({"type": rng.choice("AABC"), "v": rng.choice((0, 1, 2, 3, 1.5, None)), "k": rng.choice("ab")})
            events[-1]["time"] = _stamp(kind, time)
        found = []
        for wrap in (False, True):
            session = network.open()
            reported = [one for event in events for one in session.push([event] if wrap else event)] + session.close()
            found.append([(name, m.positions, m.row, m.times) for name, m in reported])
            assert session.counters.events == len(events)
        assert found[0] == found[1]
        matched += len(found[0])
    assert matched > 5


def test_an_event_alone_after_a_wrong_one() -> None:
    session = Network({"rise": RISE, "more": "SELECT * WHERE rise"}).open()
    session.push({"type": "A", "v": 1, "time": 1})
    wrong: list[dict[str, Any]] = [
        {"type": "A", "v": 1, "time": 0},
        {"type": "rise", "v": 1, "time": 2},
        {"v": 1, "time": 2},
        {"type": "A", "v": 1},
        {"type": "A", "v": 1, "time": "?"},
    ]
    for event in wrong:
        with pytest.raises(ceql.EventError):
            session.push(event)
    assert [name for name, _ in session.push({"type": "A", "v": 2, "time": 3})] == ["rise", "more"]
    given = Network({"rise": RISE, "more": "SELECT * WHERE rise"}).open(type="A")
    assert [name for v in (1, 2, 3) for name, _ in given.push({"v": v})] == ["rise", "more"] * 2


def test_matches_in_hand_and_in_tables() -> None:
    network = Network({"suspicious": LOGINS, "theft": THEFT})
    matches = network.run(EVENTS)
    assert matches and matches.count() == len(matches.collect()) == 4 and matches.count(3) == 3
    assert [name for name, _ in matches.head(2)] == [name for name, _ in matches[:2]] == ["suspicious", "theft"]
    assert matches[-1][1].row["took"] == 0 and [name for name, _ in matches.collect()[1:3]] == ["theft", "suspicious"]
    names = ["query", "user", "failures", "match_start", "match_end", "n", "took"]
    table = matches.to_arrow()
    assert table.column_names == names and table["n"].to_pylist() == [None, 2, None, 1]
    assert matches.to_polars().rows() == polars.DataFrame(matches).rows() and len(matches.to_pandas()) == 4
    assert "theft       ann" in repr(matches.collect())
    only = Network({"suspicious": LOGINS, "theft": THEFT}, report=["theft"]).run(EVENTS)
    logins = only.of("suspicious")
    assert only.to_arrow().column_names == ["query", "user", "n", "took", "match_start", "match_end"]
    assert logins.to_polars().rows() == [("ann", 2, 1, 3), ("bob", 1, 4, 6)] and logins.count() == 2 and logins
    assert [match.row["user"] for match in logins] == ["ann", "bob"] and logins[1].start == 4
    assert len(logins.collect()) == 2 and logins.head(1).to_arrow().num_rows == 1 and logins.counters.events == 8
    assert network.run(EVENTS[:1]).of("theft").to_arrow().column_names == [
        "user",
        "n",
        "took",
        "match_start",
        "match_end",
    ]
    assert not network.run(EVENTS[:1]).of("theft") and network.run(EVENTS[:1]).to_arrow().num_rows == 0
    with pytest.raises(ceql.OptionError, match=r"no query of the network is called 'thef'"):
        only.of("thef")
    with pytest.raises(ceql.OptionError, match="the name of a query cannot be a list"):
        only.of(["theft"])  # type: ignore[arg-type]


def test_matches_of_one_query_are_in_the_order_of_all() -> None:
    network = Network({"calm": CALM, "found": "SELECT * WHERE calm"})
    rng, time, events = random.Random(5), 0.0, list[dict[str, Any]]()
    for _ in range(60):
        time += rng.choice((0, 0, 1, 1, 2, 5)) / 2
        events.append({"type": rng.choice("AAB"), "v": rng.randint(0, 3), "time": time})
    matches = network.run(events)
    for name in network.queries:
        own = [match.positions for other, match in matches if other == name]
        assert own == [match.positions for match in matches.of(name)] and len(own) > 5
        rows = matches.to_arrow().to_pylist()
        assert [row["match_start"] for row in rows if row["query"] == name] == [
            row["match_start"] for row in matches.of(name).to_arrow().to_pylist()
        ]


def _on_every_road(network: Network, events: list[dict[str, Any]], end: int) -> list[tuple[str, dict[str, Any]]]:
    """The names and rows of the matches, which are the same of a table, pushed one by one, in pairs over snapshots, and
    at once."""

    def rows(found: Iterable[Any]) -> list[tuple[str, dict[str, Any]]]:
        return [(name, dict(match.row)) for name, match in found]

    def pushed(size: int) -> list[tuple[str, dict[str, Any]]]:
        session, found = network.open(), []
        for start in range(0, len(events), size):
            part = events[start : start + size]
            found += rows(session.push(part if size > 1 else part[0]))
            session = network.open(session.snapshot()) if size == 2 else session
        return found + rows(session.advance(end))

    found = rows(network.run(events))
    assert found == pushed(1) == pushed(2) == pushed(len(events))
    return found


def test_of_one_place_the_earlier_query_comes_first_whatever_names_it_first() -> None:
    network = Network(
        {
            "one": "SELECT x.v AS v WHERE A AS x",
            "two": "SELECT x.v AS v WHERE A AS x",
            "follows": "SELECT * WHERE two ; one",
            "leads": "SELECT * WHERE one ; two",
        }
    )
    assert [network.reads[name] for name in ("follows", "leads")] == [("one", "two")] * 2
    events = [{"type": "A", "v": 1, "time": 1}, {"type": "B", "time": 2}]
    assert [name for name, _ in _on_every_road(network, events, 10**10)] == ["one", "two", "leads"]


def test_a_match_that_waited_is_behind_all_else_of_its_time() -> None:
    network = Network(
        {
            "calm": "SELECT x.v AS v WHERE A AS x ; NOT B FOR 2 SECONDS",
            "seen": "SELECT x.v AS v WHERE C AS x",
            "still": "SELECT x.v AS v WHERE calm AS x",
            "follows": "SELECT * WHERE seen ; calm",
            "ends": "SELECT * WHERE seen ; still",
            "leads": "SELECT * WHERE calm ; seen",
        }
    )
    kinds = [("A", 0), ("C", 2), ("D", 3), ("A", 4), ("D", 7)]
    events = [{"type": kind, "v": time, "time": time} for kind, time in kinds]
    names = [name for name, _ in _on_every_road(network, events, 10**11)]
    assert names == ["seen", "calm", "still", "follows", "ends", "calm", "still", "follows", "ends"]


FORMS = [
    "SELECT x.v AS v WHERE {one} AS x{by}",
    "SELECT LAST x.v + 1 AS v WHERE {one} AS x : ANY{by} WITHIN 5 SECONDS",
    "SELECT y.v AS v WHERE {one} AS x ; {two} AS y{by} WITHIN 3 EVENTS",
    "SELECT x.v AS v WHERE {one} AS x ; NOT {two}{by} WITHIN 3 SECONDS",
    "SELECT x.v AS v WHERE {one} AS x ; NOT {two} FOR 2 SECONDS{by}",
]


@pytest.mark.parametrize("by", ["", " PARTITION BY [k]"])
def test_random_networks_have_one_order_on_every_road(by: str) -> None:
    matched = 0
    for seed in range(some(60)):
        rng, queries, time = random.Random(seed), dict[str, str](), 0
        for number in range(4):
            one, two = rng.choices(["A", "B", *queries, *queries], k=2)
            queries[f"q{number}"] = rng.choice(FORMS).format(one=one, two=two, by=by)
        events = []
        for _ in range(12):
            time += rng.choice((0, 1, 1, 2))
            events.append({"type": rng.choice("AAB"), "v": rng.randint(0, 3), "k": rng.randint(0, 2), "time": time})
        matched += len(_on_every_road(Network(queries), events, 10**11)) > 0
    assert matched > some(60) // 2


def test_three_levels_and_two_readers() -> None:
    network = Network(
        {
            "high": "SELECT r.v AS v WHERE rise AS r ; rise AS s FILTER s.v > r.v",
            "either": "SELECT * WHERE rise OR high",
            "rise": RISE,
        }
    )
    events = [{"type": "A", "v": v} for v in (1, 2, 3)]
    found = [(name, match.end) for name, match in network.run(events)]
    assert found == [("rise", 1), ("either", 2), ("rise", 2), ("high", 4), ("either", 4), ("either", 5)]


def test_late_events_are_put_in_order_once() -> None:
    network = Network({"suspicious": LOGINS, "theft": THEFT})
    shuffled = [EVENTS[i] for i in (1, 0, 2, 4, 3, 5, 7, 6)]
    found = list(network.run(shuffled, lateness="10s"))
    assert [name for name, _ in found].count("suspicious") == 2
    with pytest.raises(ceql.EventError, match="late"):
        list(network.run(shuffled))


TOML = """
report = ["theft"]
[queries]
theft = { file = "theft.ceql" }
suspicious = '''SELECT MAX user, COUNT(f) AS failures WHERE fail+ AS f ; login PARTITION BY [user] WITHIN 1 MINUTE'''
"""


def test_a_network_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "theft.ceql").write_text(THEFT)
    (tmp_path / "network.toml").write_text(TOML)
    network = Network.of_file(tmp_path / "network.toml")
    assert [match.row["n"] for _, match in network.run(EVENTS)] == [2, 1]


WRONG = [
    ("[queries]\na = { file = '../a.ceql' }", "../a.ceql lies outside of the folder of the network"),
    ("[queries]\na = { file = '/etc/passwd' }", "/etc/passwd lies outside of the folder of the network"),
    ("[queries", "network.toml is no TOML"),
    ("x = 1", "network.toml has x"),
    ("report = ['a']", "names no queries"),
    ("[queries]\na = 5", "a is no query"),
    ("[queries]\na = { file = 'none.ceql' }", "none.ceql cannot be read: No such file"),
    ("report = 'a'\n[queries]\na = 'SELECT * WHERE A'", "report is no list of names"),
    ("report = ['b']\n[queries]\na = 'SELECT * WHERE A'", "report names 'b', which is no query"),
    ("[queries]\na = 'SELECT * WHERE b'\nb = 'SELECT * WHERE a'", "these queries read each other: a ← b ← a"),
    ("[queries]\na = 'SELECT * FROM S WHERE A'", "a reads streams, by FROM"),
    ("[queries]\na = 'SELECT * WHERE A ; NOT B WITHIN 2 EVENTS'\nb = 'SELECT * WHERE a'", "in a window that no time"),
    ("[queries]\na = 'SELECT * WHERE'", "a:1:"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_wrong_files_are_refused_with_words(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "network.toml").write_text(text)
    with pytest.raises(ceql.SpaseqError) as caught:
        Network.of_file(tmp_path / "network.toml")
    assert message in str(caught.value)


def test_a_snapshot_of_another_network_is_refused() -> None:
    blob = Network({"rise": RISE}).open().snapshot()
    with pytest.raises(ceql.OptionError):
        Network({"rise": RISE, "more": "SELECT * WHERE rise"}).open(blob)
    with pytest.raises(ceql.OptionError, match="one of them"):
        Network({"rise": RISE}).run()


def test_the_type_of_an_event_is_no_column_of_a_row() -> None:
    network = Network({"rise": "SELECT x.type AS type WHERE A AS x", "more": "SELECT * WHERE rise"})
    with pytest.raises(ceql.OptionError, match="rise has a column type, which says the types of events"):
        list(network.run(EVENTS))
    with pytest.raises(ceql.OptionError, match="rise has a column type"):
        network.open()
    assert list(network.run([{"kind": "B"}], type_column="kind")) == []


def test_a_misspelt_attribute_is_noted() -> None:
    network = Network({"rise": RISE, "more": "SELECT * WHERE rise AS r FILTER r.w > 1"})
    matches = network.run([{"type": "A", "v": 1}, {"type": "A", "v": 2}])
    assert [name for name, _ in matches] == ["rise"]
    assert "more: no event has an attribute w, so no condition on it holds" in matches.notes
    assert not any("attribute v" in note for note in matches.notes)


def test_late_events_of_a_session_that_goes_on() -> None:
    network, late = Network({"rise": RISE}), list[int]()
    session = network.open(lateness="1s", late="drop", time="time")
    session.push([{"type": "A", "v": 1, "time": 10}])
    session = network.open(session.snapshot(), on_late=lambda event: late.append(event.time))
    session.push([{"type": "A", "v": 1, "time": 3}])
    assert late == [3 * 10**9]


def test_many_queries_in_a_row_and_side_by_side() -> None:
    queries = {"q0": "SELECT * WHERE A"}
    for i in range(1, 40):
        queries[f"q{i}"] = f"SELECT * WHERE q{i - 1} OR q{max(i - 2, 0)}"
    assert list(Network(queries).queries) == list(queries)
