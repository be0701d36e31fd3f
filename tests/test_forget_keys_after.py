"""`forget_keys_after`: behind a pause a key is another one, on every road, as the naive evaluators have it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from rdflib import URIRef

import ceql
import spaseq
from ceql.results.history import Past
from ceql.runtime import batch, run, single_events
from spaseq.core.engine import Partitions, Settings, Window
from spaseq.core.errors import OptionError
from tests.support import harness, oracle, oracle_ceql_text, oracle_spaseq, oracle_spaseq_text, roads, strategies
from tests.support.harness import Case
from tests.support.roads import ROADS, Ride, Road
from tests.support.sizes import some

TUPLES = [
    "SELECT * WHERE A ; B PARTITION BY [k]",
    "SELECT * WHERE A ; B+ ; A PARTITION BY [k] WITHIN 9 SECONDS",
    "SELECT * WHERE A : B PARTITION BY [k]",
    "SELECT STRICT * WHERE A ; B PARTITION BY [k]",
    "SELECT NEXT * WHERE A ; B ; C PARTITION BY [k]",
    "SELECT LAST * WHERE A ; B ; C PARTITION BY [k] WITHIN 4 EVENTS",
    "SELECT MAX * WHERE A+ ; B PARTITION BY [k] WITHIN 3 EVENTS",
    "SELECT * WHERE A ; B PARTITION BY [k] CONSUME BY PARTITION",
    "SELECT * WHERE A ; B PARTITION BY [k] CONSUME BY ANY",
    "SELECT * WHERE A ; NOT C ; B PARTITION BY [k]",
    "SELECT * WHERE A ; NOT B PARTITION BY [k] WITHIN 9 SECONDS",
    "SELECT * WHERE A ; NOT B PARTITION BY [k] WITHIN 4 EVENTS",
    "SELECT * WHERE A ; NOT B PARTITION BY [k]",
    "SELECT * WHERE (A AS x ; B AS y) FILTER x.v < y.v PARTITION BY [k]",
    "SELECT * WHERE (A AS x ; B AS y+ ; C AS z) FILTER x.v < y.v AND z.v = x.v PARTITION BY [k]",
    "SELECT * WHERE (A AS x ; B AS y) FILTER SUM(y.v) >= x.v PARTITION BY [k]",
    "SELECT * WHERE A ; B ; C PARTITION BY [k], [l]",
    "SELECT * WHERE A ; B PARTITION BY [k] WITHIN 90 [n]",
]
GRAPHS = [
    "SEQ (A ; B)",
    "SEQ (A ; B+ ; C)",
    "SEQ (A , B)",
    "SEQ (A ; C! ; B)",
    "SEQ (A ; B!)",
    "SEQ (C! ; A)",
    "SEQ (A : B)",
]
WINDOWS = ["", "WITHIN 9 SECONDS SLIDING", "WITHIN 9 SECONDS"]
PAUSE = 2.5
_HERE = [road for road in ROADS if not road.spark]


@pytest.fixture(autouse=True)
def keys_are_forgotten_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partitions, "worth", 0)
    monkeypatch.setattr(single_events, "_BLOCK", 8)
    monkeypatch.setattr(batch, "_ROWS", 16)
    monkeypatch.setattr(run, "_PART", 32)


def _tuples(seed: int, count: int = 160) -> list[dict[str, Any]]:
    """An event each tenth of a second; some keys are used for some seconds, some come again and again."""
    rng = random.Random(seed)
    events = []
    for number in range(count):
        key = number // 40 * 3 + rng.randrange(5) if rng.random() < 0.6 else rng.randrange(20)
        event = {"type": rng.choice("ABC"), "time": round(number * 0.1, 1), "n": number}
        event |= {"l": rng.randrange(2), "v": rng.randrange(4)}
        events.append(event | {"k": key} if rng.random() < 0.95 else event)
    return events


def _ceql_expected(query: oracle.Query, pause: float, events: list[dict[str, Any]]) -> list[oracle.Match]:
    return oracle.evaluate(replace(query, pause=Fraction(pause) * 10**9), events)


def _walk(case: Case, expected: Any, folder: Path, told: Any = None) -> Iterator[Road]:
    """Compares the answers of each road."""
    language = "spaseq" if case.is_spaseq else "ceql"
    for road in _HERE:
        if road.language == language and not road.leaves(case):
            found = road.take(case, Ride(random.Random(1), folder, anew=False))
            if case.is_spaseq:
                assert Counter(map(roads.plain, found)) == Counter(map(roads.plain, expected)), (road.name, told)
            else:
                wanted = sorted({end for _, end, _ in expected}) if road.ends else expected
                assert sorted(found) == wanted, (road.name, told)
            yield road


@pytest.mark.parametrize(
    "text", [pytest.param(text, marks=[pytest.mark.slow] if i % 2 else []) for i, text in enumerate(TUPLES)]
)
def test_every_road_of_tuples(text: str, tmp_path: Path) -> None:
    events = _tuples(len(text))
    expected = _ceql_expected(oracle_ceql_text.read(text), PAUSE, events)
    assert expected
    case = Case("forgotten keys", text, events, forget=PAUSE)
    assert len(list(_walk(case, expected, tmp_path))) >= 7
    whole = sorted((m.start, m.end, tuple(m.positions)) for m in ceql.compile(text).run(events, time="time"))
    assert expected != whole or "BY ANY" in text


def _graphs(seed: int) -> list[tuple[float, str]]:
    rng = random.Random(seed)
    graphs = []
    for number in range(100):
        key = number // 20 * 3 + rng.randrange(4) if rng.random() < 0.6 else rng.randrange(9)
        graphs.append((number * 0.25, f":k{key} :{rng.choice('abc')} {rng.randrange(3)}"))
    return graphs


@pytest.mark.parametrize(("shape", "window"), [
    pytest.param(shape, window, marks=[] if (i + j) % 4 == 1 else [pytest.mark.slow])
    for i, shape in enumerate(GRAPHS) for j, window in enumerate(WINDOWS)
    if not ("C! ;" in shape[:9] and "SLIDING" in window)
])  # fmt: skip
def test_every_road_of_graphs(shape: str, window: str, tmp_path: Path) -> None:
    case = _graph_case(shape, window)
    expected = _spaseq_expected(case)
    assert expected
    assert expected != harness.spaseq_oracle(case.query, case.graphs, {}) or "B+" in shape
    assert len(list(_walk(case, expected, tmp_path))) >= 7


def _graph_case(shape: str, window: str) -> Case:
    text = f"""PREFIX : <http://example.org/>
SELECT ?k ?x {window} PARTITION BY (?k) FROM STREAM S <http://example.org/S> WHERE {{
  {shape}
  DEFINE GPM A ON S {{ ?k :a ?x }}
  DEFINE GPM B ON S {{ ?k :b ?y }}
  DEFINE GPM C ON S {{ ?k :c ?z }}
}}"""
    return Case("forgotten keys", text, graphs={"S": _graphs(len(shape))}, forget=PAUSE)


def _spaseq_expected(case: Case) -> set[oracle_spaseq.Answer]:
    assert case.forget is not None
    query = replace(oracle_spaseq_text.read(case.query), pause=round(case.forget * 10**9))
    return oracle_spaseq.evaluate(query, harness.streamset(case.graphs), harness.knowledge(case.kb))


def _of_tuples(seeds: range, folder: Path) -> int:
    compared = 0
    for seed in seeds:
        rng = random.Random(seed)
        drawn = strategies.ceql_case(rng)
        query = replace(drawn.query, partition=drawn.query.partition or (("k",),), limit=None)
        if query.strategy == "ANY":
            query = replace(query, strategy="ALL")
        pause = rng.choice((0, 0.001, 0.5, 1, 2, 3))
        timed = all("time" in dict(event) for event in drawn.events)
        drawn = strategies.CeqlCase(query, drawn.events if timed else strategies.draw_stream(rng, timed=True))
        case = Case("a random query", drawn.text, drawn.stream, forget=pause)
        try:
            expected = _ceql_expected(query, pause, drawn.stream)
            if ceql.compile(drawn.text).compiled.lowered.keys:
                continue  # those of conditions are forgotten too
            compared += len(list(_walk(case, expected, folder, (seed, pause, drawn.text, drawn.stream))))
        except (oracle.TooBig, ceql.UnsupportedFeature):
            continue
    return compared


def _of_graphs(seeds: range, folder: Path) -> int:
    compared = 0
    for seed in seeds:
        rng = random.Random(seed)
        drawn = strategies.spaseq_case(rng)
        if "PARTITION" not in drawn.clauses:
            continue
        case = Case("a random query", drawn.text, graphs=drawn.graphs, kb=strategies.BACKGROUND,
                    forget=rng.choice((0, 0.5, 1, 2)))  # fmt: skip
        compared += len(list(_walk(case, _spaseq_expected(case), folder, (seed, case))))
    return compared


def test_random_queries_of_tuples(tmp_path: Path) -> None:
    assert _of_tuples(range(some(30)), tmp_path) > some(150)


def test_random_queries_of_graphs(tmp_path: Path) -> None:
    assert _of_graphs(range(some(60)), tmp_path) > some(40)


@pytest.mark.random
@pytest.mark.parametrize("block", range(40))
def test_many_random_queries(block: int, tmp_path: Path) -> None:
    assert _of_tuples(range(1_000 + 50 * block, 1_050 + 50 * block), tmp_path)
    assert _of_graphs(range(1_000 + 50 * block, 1_050 + 50 * block), tmp_path)


@pytest.mark.parametrize("at_once", [1, 50])
def test_numbers_of_forgotten_keys_go_to_others(at_once: int) -> None:
    """There is a budget for them, which 500 keys that come one after another would use up."""
    text = "SELECT * WHERE A AS x ; B AS y ; A PARTITION BY [k]"
    events = [{"type": "AB"[i % 2], "time": i, "k": i // 2} for i in range(1_000)]
    for query in (text, text.replace("PARTITION", "FILTER x.time < y.time PARTITION")):
        for forget in (5, None):
            session = ceql.compile(query, settings=Settings(partitions=120, forget_keys_after=forget)).open(time="time")
            try:
                for start in range(0, len(events), at_once):
                    session.push(events[start : start + at_once])
            except ceql.BudgetExceeded:
                assert forget is None
            else:
                assert forget is not None
                assert (session.counters.forgotten_keys, session.counters.lost_runs) >= (470, 470)


def test_what_a_session_holds_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither nodes of the structure nor events."""
    monkeypatch.setattr(Past, "worth", 100)
    query = ceql.compile("SELECT * WHERE A ; B ; A PARTITION BY [k]", settings=Settings(forget_keys_after=20))
    for at_once in (1, 100):
        with query.open(time="time") as session:
            for start in range(0, 40_000, at_once):
                session.push([{"type": "A", "time": i, "k": i // 2} for i in range(start, start + at_once)])
            figures, past = session._run.statistics, session._run.past
            assert figures["keys"] < 200 and figures["arena_bytes"] < 1_000_000, figures
            assert figures["live_nodes"] < 20_000 and sum(map(len, past.blocks)) < 1_000


def test_a_key_that_paused_between_single_graphs_is_another_in_the_next_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partitions, "worth", 1 << 40)
    query = spaseq.compile(_graph_case("SEQ (A ; B)", "").query, settings=Settings(forget_keys_after=5))
    a, b = (URIRef(f"http://example.org/{name}") for name in "ab")

    def graph(time: int, key: int, predicate: URIRef) -> spaseq.GraphEvent:
        triple = (URIRef(f"http://example.org/k{key}"), predicate, URIRef("http://example.org/x"))
        return spaseq.GraphEvent("http://example.org/S", time * 10**9, (triple,))

    with query.open() as session:
        found = session.push([graph(time, 9 * bool(time), a) for time in range(20)])
        found += session.push(graph(20, 0, a))
        found += session.push(graph(21, 7, a))
        found += session.push([graph(22 + i, 0 if i == 2 else 20 + i, b) for i in range(20)])
        found += session.close()
        assert [tuple(t // 10**9 for t in m.times) for m in found] == [(20, 24)]
        assert session.counters.forgotten_keys > 4


def test_counts_are_told(tmp_path: Path) -> None:
    query = ceql.compile("SELECT * WHERE A ; B PARTITION BY [k]", settings=Settings(forget_keys_after=2))
    events = [{"type": kind, "time": time, "k": key} for time, kind, key in
              [(0, "A", 1), (1, "A", 2), (2, "B", 1), (3, "C", 3), (4, "B", 2), (9, "C", 4)]]  # fmt: skip
    matches = query.run(events, time="time")
    assert [(m.start, m.end) for m in matches] == [(0, 2)]
    assert (matches.counters.forgotten_keys, matches.counters.lost_runs) == (4, 2)
    assert matches.counters.warnings() == [
        "2 run(s) ended with keys that were silent for longer than forget_keys_after"
    ]
    session = query.open(time="time")
    for event in events:
        session.push(event)
    session.close()


def test_of_a_query_without_keys_it_is_an_error() -> None:
    settings = Settings(forget_keys_after=3600)
    graphs = "SELECT ?x FROM STREAM S <http://e.org/S> WHERE { SEQ (A) DEFINE GPM A ON S { ?x ?y ?z } }"
    for compiled in (lambda: ceql.compile("SELECT * WHERE A ; B", settings=settings),
                     lambda: spaseq.compile(graphs, settings=settings)):  # fmt: skip
        with pytest.raises(OptionError, match="the query has no keys"):
            compiled()
    with pytest.raises(OptionError, match="forget_keys_after"):
        Settings(forget_keys_after=-1)


def test_growth_names_it() -> None:
    for text in ("SELECT * WHERE A ; B PARTITION BY [k]", "SELECT * WHERE A ; B PARTITION BY [k] WITHIN 5 EVENTS"):
        assert "--forget-keys-after 1h" in "".join(ceql.compile(text).growth)
        told = "".join(ceql.compile(text, settings=Settings(forget_keys_after=60)).growth)
        assert "distinct" not in told and ("never silent" in told) == ("EVENTS" not in text)
    assert not ceql.compile("SELECT * WHERE A ; B PARTITION BY [k] WITHIN 5 SECONDS").growth


def test_a_snapshot_is_of_its_pause() -> None:
    text = "SELECT * WHERE A ; B PARTITION BY [k]"
    state = ceql.compile(text, settings=Settings(forget_keys_after=60)).open(time="time").snapshot()
    with pytest.raises(OptionError, match="forget_keys_after"):
        ceql.compile(text).open(state)


@pytest.mark.parametrize("wrong", [
    None, ([], [5], [], 0, 0, 0), ([7], [5], [3], 0, 0, 0), ([7], [5], ["x"], 0, 0, 0), ([7], [5], [], -1, 0, 0),
    ([7], ["x"], [], 0, 0, 0),
])  # fmt: skip
def test_pauses_of_a_snapshot_are_checked(wrong: Any) -> None:
    with pytest.raises(OptionError):
        Partitions(Window("none"), 1.0).restore((["a"], [3], [True], None, 0, wrong), 100)


def test_forecasts_are_refused() -> None:
    query = ceql.compile("SELECT * WHERE A ; B PARTITION BY [k]", settings=Settings(forget_keys_after=60))
    with pytest.raises(OptionError, match="forecasts"):
        query.alerts().rows([{"type": "A", "k": 1}])


@pytest.mark.spark
@pytest.mark.parametrize("text", [TUPLES[0], TUPLES[5], TUPLES[11]])
def test_tuples_on_spark(text: str, tmp_path: Path, spark_session: Any) -> None:
    case = Case("forgotten keys", text, _tuples(7), forget=PAUSE)
    road = next(road for road in ROADS if road.spark and road.language == "ceql")
    found = road.take(case, Ride(random.Random(1), tmp_path, spark_session))
    assert sorted(found) == _ceql_expected(oracle_ceql_text.read(text), PAUSE, case.events) != []


@pytest.mark.spark
@pytest.mark.parametrize(("shape", "window"), [
    pytest.param(GRAPHS[1], "", marks=pytest.mark.slow),
    pytest.param(GRAPHS[4], WINDOWS[1], marks=pytest.mark.slow),
    pytest.param(GRAPHS[5], WINDOWS[2], marks=pytest.mark.slow),
])  # fmt: skip
def test_graphs_on_spark(shape: str, window: str, tmp_path: Path, spark_session: Any) -> None:
    case = _graph_case(shape, window)
    expected = Counter(map(roads.plain, _spaseq_expected(case)))
    for road in (road for road in roads.roads(case) if road.spark and not road.leaves(case)):
        found = road.take(case, Ride(random.Random(5), tmp_path, spark_session))  # 5: few micro-batches
        assert Counter(map(roads.plain, found)) == expected, road.name
