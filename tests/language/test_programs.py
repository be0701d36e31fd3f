"""Programs of a researcher of the semantic web, written from the pages. Plain Python says what each must find."""

from __future__ import annotations

import itertools
import json
import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyoxigraph as ox
from rdflib import Graph, Literal, Namespace

import ceql
import spaseq

E = Namespace("http://example.org/")
SOSA = Namespace("http://www.w3.org/ns/sosa/")
SECOND = 1_000_000_000
Triple = tuple[Any, Any, Any]


def graph_event(time: int, *triples: Triple, stream: str = "S") -> spaseq.GraphEvent:
    return spaseq.GraphEvent(f"http://example.org/{stream}", time * SECOND, triples)


def push_all(query: spaseq.Query, events: list[spaseq.GraphEvent], **words: Any) -> list[Any]:
    with query.open(**words) as session:
        found = [match for one in events for match in session.push(one)]
    return found + session.rest


def test_jam_and_rain_in_any_order_pushed_and_from_files(tmp_path: Path) -> None:
    rng = random.Random(1)
    log = [
        (t, stream, f"r{rng.randrange(3)}", rng.randrange(40, 90) if stream == "S" else rng.randrange(9))
        for t in range(1, 90)
        for stream in [rng.choice("ST")]
    ]
    query = spaseq.compile("""PREFIX : <http://example.org/>
        SELECT ?road ?cars ?mm WITHIN 10 SECONDS SLIDING
        FROM STREAM S <http://example.org/S> FROM STREAM T <http://example.org/T>
        WHERE { SEQ (AND(JAM, RAIN))
          DEFINE GPM JAM ON S { ?road :cars ?cars . FILTER (?cars > 50) }
          DEFINE GPM RAIN ON T { ?road :rain ?mm } }""")
    expected = sorted(
        (max(t, u), road, cars, mm)
        for t, s, road, cars in log
        for u, other, same, mm in log
        if (s, other) == ("S", "T") and road == same and cars > 50 and abs(t - u) <= 10
    )

    of = {"S": E.cars, "T": E.rain}
    events = [graph_event(t, (E[road], of[s], Literal(value)), stream=s) for t, s, road, value in log]
    pushed = [
        (m.time // SECOND, *(m.bindings[name] for name in ("road", "cars", "mm"))) for m in push_all(query, events)
    ]
    assert sorted((t, road[-2:], cars.toPython(), mm.toPython()) for t, road, cars, mm in pushed) == expected

    front = "@prefix prov: <http://www.w3.org/ns/prov#> .\n"
    for stream in "ST":
        lines = [
            f"<urn:{t}> {{ <{E[road]}> <{of[s]}> {value} }} <urn:{t}> prov:generatedAtTime {t} .\n"
            for t, s, road, value in log
            if s == stream
        ]
        (tmp_path / f"{stream}.trig").write_text(front + "".join(lines))
    files = {stream: tmp_path / f"{stream}.trig" for stream in "ST"}
    frame = query.run(files, time_unit="s").to_pandas(typed=True)
    rows = [(t // SECOND, road[-2:], cars, mm) for t, road, cars, mm in frame[["time", "road", "cars", "mm"]].values]
    assert expected and sorted(rows) == expected


def test_an_alarm_that_nobody_sees_for_ten_seconds() -> None:
    rng, now, log = random.Random(2), 0, []
    for _ in range(80):
        now += rng.randrange(1, 6)
        log.append((now, rng.choice("ab"), rng.choice(["raised", "seen"])))
    query = spaseq.compile("""PREFIX : <http://example.org/> SELECT ?a FROM STREAM S <http://example.org/S>
        WHERE { SEQ (ALARM ; ACK! FOR 10 SECONDS)
          DEFINE GPM ALARM ON S { ?a :is :raised } DEFINE GPM ACK ON S { ?a :is :seen } }""")
    found = push_all(query, [graph_event(t, (E[a], E["is"], E[kind])) for t, a, kind in log])

    expected = [
        (t, a)
        for t, a, kind in log
        if kind == "raised" and not any(b == a and other == "seen" and t < u <= t + 10 for u, b, other in log)
    ]
    assert expected and sorted((m.times[0] // SECOND, m.bindings["a"][-1]) for m in found) == sorted(expected)


def test_two_sensors_of_one_room_by_knowledge() -> None:
    rng = random.Random(3)
    knowledge = Graph()
    for i in range(6):
        knowledge.add((E[f"s{i}"], E["in"], E[f"room{i % 3}"]))
    query = spaseq.compile("""PREFIX : <http://example.org/>
        SELECT ?room ?t ?u FROM STREAM S <http://example.org/S> WHERE { SEQ (A , B)
          DEFINE GPM A ON S { ?x :temp ?t . GRAPH <http://example.org/rooms> { ?x :in ?room } }
          DEFINE GPM B ON S { ?y :temp ?u . FILTER (?u > ?t && ?x != ?y)
            GRAPH <http://example.org/rooms> { ?y :in ?room } } }""")
    log = [(t, rng.randrange(7), rng.randrange(10, 30)) for t in range(200)]
    events = [graph_event(t, (E[f"s{s}"], E.temp, Literal(value))) for t, s, value in log]
    found = push_all(query, events, kb={"http://example.org/rooms": knowledge})

    expected = [
        (u, str(y % 3), v, w)
        for (_, x, v), (u, y, w) in itertools.pairwise(log)
        if x < 6 and y < 6 and x % 3 == y % 3 and x != y and w > v
    ]
    rows = [
        (m.time // SECOND, m.bindings["room"][-1], m.bindings["t"].toPython(), m.bindings["u"].toPython())
        for m in found
    ]
    assert expected and sorted(rows) == sorted(expected)


def test_rounds_of_each_device_with_their_mean() -> None:
    rng = random.Random(4)
    log = [(t, rng.choice("ab"), rng.choice(["go", "v", "v", "v", "stop"]), rng.randrange(9)) for t in range(250)]
    query = spaseq.compile("""PREFIX : <http://example.org/>
        SELECT ?x (COUNT(?v) AS ?n) (AVG(?v) AS ?mean) FROM STREAM S <http://example.org/S> PARTITION BY (?x)
        WHERE { SEQ (A , B{2,3} , C) DEFINE GPM A ON S { ?x :go true }
          DEFINE GPM B ON S { ?x :v ?v } DEFINE GPM C ON S { ?x :stop true } }""")
    events = [graph_event(t, (E[x], E[kind], Literal(v if kind == "v" else True))) for t, x, kind, v in log]
    rows = [(m.time // SECOND, m.bindings["n"].toPython(), float(m.bindings["mean"])) for m in push_all(query, events)]

    expected, own = [], defaultdict(list)
    for t, x, kind, v in log:
        own[x].append((kind, v))
        for n in (2, 3):
            if [k for k, _ in own[x][-n - 2 :]] == ["go", *["v"] * n, "stop"]:
                expected.append((t, n, sum(v for _, v in own[x][-n - 1 : -1]) / n))
    assert expected and len(rows) == len(expected)
    for (t, n, mean), (at, count, average) in zip(sorted(rows), sorted(expected), strict=True):
        assert (t, n) == (at, count) and abs(mean - average) < 1e-9


def test_matches_of_spaseq_are_events_of_ceql(tmp_path: Path) -> None:
    graphs = (
        f"<urn:{t}> {{ <{E[f's{t % 3}']}> <{E.temp}> {t}.5 }} <urn:{t}> prov:generatedAtTime {t} ." for t in range(30)
    )
    (tmp_path / "s.trig").write_text("@prefix prov: <http://www.w3.org/ns/prov#> .\n" + "\n".join(graphs))
    query = spaseq.compile("""PREFIX : <http://example.org/> SELECT ?x ?t FROM STREAM S <http://example.org/S>
        WHERE { SEQ (A) DEFINE GPM A ON S { ?x :temp ?t FILTER (?t > 20) } }""")
    hot = query.run({"S": tmp_path / "s.trig"}, time_unit="s").to_arrow(typed=True)
    pairs = ceql.compile("SELECT x, a.t AS low, b.t AS high WHERE ANY AS a : ANY AS b PARTITION BY [x]")
    found = pa.table(pairs.run(hot, time_unit="ns")).to_pylist()
    assert found == [{"x": str(E[f"s{t % 3}"]), "low": t - 2.5, "high": t + 0.5} for t in range(23, 30)]


def test_alarms_of_quads_are_kept_in_a_store_and_asked_there() -> None:
    """Readings are named graphs of pyoxigraph, plans of the building knowledge in a store, alarms quads of a third."""
    rng, plan, readings = random.Random(21), ox.Store(), ox.Dataset()
    stated = ox.NamedNode("http://www.w3.org/ns/prov#generatedAtTime")
    building, floor = ox.NamedNode(f"{E}building"), ox.NamedNode(f"{E}floor")
    for number in range(6):
        plan.add(ox.Quad(ox.NamedNode(f"{E}r{number}"), floor, ox.Literal(number // 2), building))
    log = [(t, f"r{rng.randrange(6)}", rng.choice([18, 20, 31, 35])) for t in range(1, 120)]
    for t, room, value in log:
        graph = ox.NamedNode(f"{E}g{t}")
        readings.add(ox.Quad(ox.NamedNode(f"{E}{room}"), ox.NamedNode(f"{E}celsius"), ox.Literal(value), graph))
        readings.add(ox.Quad(graph, stated, ox.Literal(t), ox.DefaultGraph()))

    query = spaseq.compile("""PREFIX : <http://example.org/>
        CONSTRUCT { [] a :Alarm ; :on ?floor ; :first ?x ; :second ?y }
        WITHIN 15 SECONDS SLIDING FROM STREAM S <http://example.org/S>
        WHERE { SEQ (Hot; Hotter)
          DEFINE GPM Hot ON S { ?x :celsius ?t FILTER (?t > 30) GRAPH :building { ?x :floor ?floor } }
          DEFINE GPM Hotter ON S { ?y :celsius ?u FILTER (?u > 34 && ?x != ?y)
            GRAPH :building { ?y :floor ?floor } } }""")
    alarms = ox.Store()
    for match in query.run({"S": readings}, kb=plan):
        alarms.extend(query.construct(match, as_="pyoxigraph"))

    expected: dict[int, int] = defaultdict(int)
    for t, x, value in log:
        if value > 30:
            later = next(
                ((u, y) for u, y, other in log if u > t and other > 34 and y != x and y[1] in _beside(x)), None
            )
            if later is not None and later[0] - t <= 15:
                expected[int(x[1]) // 2] += 1
    asked = alarms.query(f"SELECT ?floor (COUNT(*) AS ?n) {{ [] a <{E}Alarm> ; <{E}on> ?floor }} GROUP BY ?floor")
    assert isinstance(asked, ox.QuerySolutions)
    assert expected and {int(row["floor"].value): int(row["n"].value) for row in asked} == expected


def _beside(room: str) -> str:
    """The rooms of the same floor."""
    return {"0": "01", "1": "01", "2": "23", "3": "23"}.get(room[1], "45")


def test_observations_as_json_ld_and_typed_frames(tmp_path: Path) -> None:
    """SOSA observations arrive as JSON-LD, one or several in a message; what is found is a frame of Polars."""
    rng, base = random.Random(22), datetime(2026, 6, 15, 8, tzinfo=UTC)
    context = {
        "sosa": "http://www.w3.org/ns/sosa/", "ex": str(E), "xsd": "http://www.w3.org/2001/XMLSchema#",
        "by": {"@id": "sosa:madeBySensor", "@type": "@id"}, "value": "sosa:hasSimpleResult",
        "at": {"@id": "sosa:resultTime", "@type": "xsd:dateTime"},
    }  # fmt: skip
    log = [(7 * i, rng.choice(["p", "q"]), rng.choice([1.5, 4.0, 9.25])) for i in range(80)]
    query = spaseq.compile("""PREFIX sosa: <http://www.w3.org/ns/sosa/>
        SELECT ?s ?low ?high ((?high - ?low) AS ?rise) WITHIN 1 MINUTES SLIDING
        FROM STREAM S <http://example.org/S>
        WHERE { SEQ (Low, High)
          DEFINE GPM Low ON S { ?a sosa:madeBySensor ?s ; sosa:hasSimpleResult ?low FILTER (?low < 2) }
          DEFINE GPM High ON S { ?b sosa:madeBySensor ?s ; sosa:hasSimpleResult ?high FILTER (?high > 9) } }""")
    with query.open(time="sosa:resultTime") as session:
        found = []
        for t, sensor, value in log:
            at = (base + timedelta(seconds=t)).isoformat()
            seen = {"@type": "sosa:Observation", "by": f"ex:{sensor}", "value": value, "at": at}
            found += session.push(json.dumps({"@context": context, **seen}))
    found += session.rest
    rows = [(m.bindings["s"][-1], m.bindings["rise"].toPython(), m.time) for m in found]

    expected = []
    for i, (_, sensor, value) in enumerate(log[:-1]):
        u, other, high = log[i + 1]
        if sensor == other and value < 2 and high > 9:
            expected.append((sensor, high - value, int((base + timedelta(seconds=u)).timestamp()) * SECOND))
    assert expected and [(s, float(rise), t) for s, rise, t in rows] == expected

    graphs = []
    for t, sensor, value in log:
        graph = Graph()
        node = E[f"o{t}"]
        graph.add((node, SOSA.madeBySensor, E[sensor]))
        graph.add((node, SOSA.hasSimpleResult, Literal(value)))
        graphs.append((base + timedelta(seconds=t), graph))
    frame = query.run({"S": graphs}).to_polars(typed=True)
    assert frame["rise"].to_list() == [rise for _, rise, _ in expected]
    assert frame["s"].str.slice(-1).to_list() == [sensor for sensor, *_ in expected]
