"""Networks of SPAseq queries, against their definition: each query alone, over the graphs that those before it make."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from rdflib import Literal, URIRef

import spaseq
from spaseq.cli.main import main
from spaseq.core.errors import OptionError, UnsupportedFeature
from spaseq.language.network import Network
from spaseq.rdf import GraphEvent
from tests.support.sizes import some

EX = "http://example.org/"
SECOND = 10**9
HEAD = f"PREFIX : <{EX}>\n"
RISE = (
    HEAD
    + """
CONSTRUCT { [] :room ?room ; :rise ?high } WITHIN 20 SECONDS SLIDING
FROM STREAM S <http://example.org/S>
WHERE { SEQ (Low ; High)
  DEFINE GPM Low ON S { ?room :celsius ?low }
  DEFINE GPM High ON S { ?room :celsius ?high . FILTER (?high > ?low) } }"""
)
QUIET = (
    HEAD
    + """
CONSTRUCT { ?room :closed true } WITHIN 1 MINUTE
FROM STREAM S <http://example.org/S>
FROM STREAM Rises <http://example.org/rises>
WHERE { SEQ (Rise ; Open! FOR 3 SECONDS)
  DEFINE GPM Rise ON Rises { ?event :room ?room ; :rise ?high }
  DEFINE GPM Open ON S { ?room :window ?open } }"""
)
WINDOWS = (
    HEAD
    + """
CONSTRUCT { ?room :top ?high } WITHIN 10 SECONDS
FROM STREAM Rises <http://example.org/rises>
WHERE { SEQ (Rise) DEFINE GPM Rise ON Rises { ?event :room ?room ; :rise ?high } }
ORDER BY DESC(?high) ?room LIMIT 2"""
)
"""Of each window the two greatest rises, in its last nanosecond."""
BOTH = (
    HEAD
    + """
SELECT ?room ?high WITHIN 30 SECONDS SLIDING
FROM STREAM Closed <http://example.org/closed>
FROM STREAM S <http://example.org/S>
FROM STREAM Tops <http://example.org/tops>
WHERE { SEQ (Top ; Shut : Any)
  DEFINE GPM Top ON Tops { ?room :top ?high }
  DEFINE GPM Shut ON Closed { ?room :closed true }
  DEFINE GPM Any ON S { ?room ?p ?o } }"""
)

QUERIES = {"http://example.org/rises": RISE, "Closed": QUIET, "Tops": WINDOWS, "both": BOTH}
"""By the names of streams, and by an IRI."""
Plain = tuple[str, int, tuple[tuple[str, str], ...]]


def events_of(rng: random.Random, count: int) -> list[GraphEvent]:
    """Events of rooms that get warmer and are aired; some of one time."""
    found, time = [], 0
    for _ in range(count):
        time += rng.choice((0, 1, 1, 2, 5)) * SECOND
        room = URIRef(EX + rng.choice("ab"))
        said = (URIRef(EX + "celsius"), Literal(rng.randint(1, 4)))
        if rng.random() < 0.2:
            said = (URIRef(EX + "window"), Literal("open"))
        found.append(GraphEvent(EX + "S", time, ((room, *said),)))
    return found


def plain(name: str, match: Any) -> Plain:
    """A match without positions, which count instants, and without the names of blank nodes."""
    own = ((key, term.n3()) for key, term in match.bindings.items() if key != "event")
    return name, match.time, tuple(sorted(own))


def told(name: str, match: Any) -> int:
    """The time at which a match is known, written out for each of `QUERIES`."""
    if name == "Closed":
        return match.time + 3 * SECOND
    return match.time // (10 * SECOND) * 10 * SECOND + 10 * SECOND - 1 if name == "Tops" else match.time


def by_definition(events: list[GraphEvent]) -> list[Plain]:
    """The matches of each query alone, over the given events and the graphs of those before it."""
    streams: dict[str, list[GraphEvent]] = {EX + "S": events}
    found: list[Plain] = []
    outputs = {"http://example.org/rises": EX + "rises", "Closed": EX + "closed", "Tops": EX + "tops"}
    for name, text in QUERIES.items():
        query = spaseq.compile(text)
        matches = list(query.run({iri: streams[iri] for _, iri in query.streams}))
        found += (plain(name, match) for match in matches)
        if name in outputs:
            made = [(told(name, match), query.construct(match)) for match in matches]
            iri = outputs[name]
            streams[iri] = [GraphEvent(iri, time, graph) for time, graph in sorted(made, key=lambda one: one[0])]
    return sorted(found)


@pytest.mark.parametrize("seed", range(some(12)))
def test_a_network_is_its_queries_one_after_another(seed: int) -> None:
    rng = random.Random(seed)
    network, events = Network(QUERIES), events_of(rng, 40)
    expected = by_definition(events)
    assert sorted(plain(*found) for found in network.run({"S": events})) == expected
    session, pushed = network.open(), []
    for event in events:
        pushed += session.push(event)
        if rng.random() < 0.2:
            pushed += session.advance(event.time)
        if rng.random() < 0.1:
            session = network.open(session.snapshot())
    pushed += session.close()
    assert sorted(plain(*found) for found in pushed) == expected
    session, cut = network.open(), []
    while events:
        size = rng.randint(1, 30)
        cut += session.push(events[:size])
        events = events[size:]
    assert sorted(plain(*found) for found in [*cut, *session.close()]) == expected


def test_queries_of_these_tests_have_matches() -> None:
    found = {name for seed in range(some(12)) for name, _, _ in by_definition(events_of(random.Random(seed), 40))}
    assert found == set(QUERIES)


def test_the_order_of_matches_is_the_same_for_any_cut() -> None:
    network, events = Network(QUERIES), events_of(random.Random(7), 200)
    whole = [plain(*found) for found in network.run({"S": events})]
    assert len(whole) > 50
    with network.open() as session:
        one_by_one = [plain(*found) for event in events for found in session.push(event)]
    one_by_one += [plain(*found) for found in session.rest]
    assert [found[:2] for found in one_by_one] == [found[:2] for found in whole]  # those of one end are in any order
    assert sorted(one_by_one) == sorted(whole)


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ({}, "a network of no queries"),
        ({"rises": BOTH.replace("SELECT ?room ?high", "ASK")}, "rises is an ASK, which has one answer"),
        ({"Rises": BOTH, "closed": QUIET}, "Rises constructs no graph, and other queries read it"),
        ({"Rises": RISE.replace("STREAM S ", "STREAM Closed ").replace("ON S", "ON Closed"), "Closed": QUIET},
         "these queries read each other"),
        ({"Rises": RISE, "one": QUIET, "two": WINDOWS.replace("example.org/rises", "example.org/other")},
         "the graphs of Rises are read as"),
    ],
)  # fmt: skip
def test_a_network_that_cannot_be(queries: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Network(queries)


def test_what_is_reported_is_a_list_of_names() -> None:
    for report, message in ((3, "report cannot be"), (["nix"], "report names 'nix', which is no query")):
        with pytest.raises(OptionError, match=message):
            Network({"Rises": RISE}, report=report)  # type: ignore[arg-type]


def test_what_waits_for_no_time_feeds_no_query() -> None:
    sliding = QUIET.replace("1 MINUTE", "1 MINUTE SLIDING").replace(" FOR 3 SECONDS", "")
    with pytest.raises(UnsupportedFeature, match="the matches of Closed wait for a window that slides"):
        Network({"Closed": sliding, "both": BOTH})
    Network({"Closed": sliding})


def test_given_events_are_of_streams_that_no_query_feeds() -> None:
    network = Network(QUERIES)
    assert network.streams == (("S", EX + "S"),)
    assert network.outputs == {EX + "rises": EX + "rises", "Closed": EX + "closed", "Tops": EX + "tops"}
    assert network.reads["both"] == ("Closed", "Tops")
    for call in (network.run, network.follow):
        for name in ("Closed", EX + "closed"):
            with pytest.raises(OptionError, match=f"stream {name} are the graphs that Closed constructs"):
                call({"S": "a.nq", name: "b.nq"})
    with pytest.raises(OptionError, match="streams are given by name, not as a list"):
        network.run(["a.nq"])  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="the query has no stream Closed"):
        network.open().push("<urn:a> <urn:b> <urn:c> .", time=1, stream="Closed")


def test_matches_of_a_construct_are_a_stream() -> None:
    events = events_of(random.Random(5), 60)
    rises, tops = spaseq.compile(RISE), spaseq.compile(WINDOWS)
    found = rises.run({"S": events})
    over = tops.run({"Rises": found})
    expected = sorted(one[1:] for one in by_definition(events) if one[0] == "Tops")
    assert expected and sorted(plain("", match)[1:] for match in over) == expected
    assert [plain("", match) for match in over] == [plain("", match) for match in tops.run({"Rises": found.graphs()})]
    with pytest.raises(OptionError, match="the query constructs no graph"):
        spaseq.compile(BOTH).run({name: [] for name in ("Closed", "S", "Tops")}).graphs()


def test_the_command_runs_a_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rise.rq").write_text(RISE)
    (tmp_path / "net.toml").write_text(
        f"report = ['Closed', 'Tops']\n[queries]\n'http://example.org/rises' = {{ file = 'rise.rq' }}\n"
        f"Closed = '''{QUIET}'''\nTops = '''{WINDOWS}'''\n"
    )
    events = [(0, "celsius", 1), (1, "celsius", 3), (2, "celsius", 4), (9, "celsius", 1)]
    xsd, generated = "http://www.w3.org/2001/XMLSchema#", "<http://www.w3.org/ns/prov#generatedAtTime>"
    (tmp_path / "s.nq").write_text("".join(
        f'<{EX}a> <{EX}{name}> "{value}"^^<{xsd}integer> <urn:{i}> .\n'
        f'<urn:{i}> {generated} "2026-01-01T00:00:0{second}Z"^^<{xsd}dateTime> .\n'
        for i, (second, name, value) in enumerate(events)))  # fmt: skip
    words = ["run", str(tmp_path / "net.toml"), "--stream", f"S={tmp_path / 's.nq'}"]
    assert main([*words, "--format", "jsonl"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["query"], row["time"]) for row in found] == [
        ("Closed", "2026-01-01T00:00:01Z"), ("Closed", "2026-01-01T00:00:02Z"),
        ("Tops", "2026-01-01T00:00:02Z"), ("Tops", "2026-01-01T00:00:01Z"),
    ]  # fmt: skip
    assert found[0]["graph"] == [f'<{EX}a> <{EX}closed> "true"^^<http://www.w3.org/2001/XMLSchema#boolean>']
    assert main(words) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == ["query", "time", "match"] and table[-1] == "4 matches"
    assert main(["check", words[1]]) == 0 and "ok" in capsys.readouterr().out
    assert main([*words, "--stream", f"Rises={words[1]}"]) == 2
    assert "stream Rises are the graphs that http://example.org/rises constructs" in capsys.readouterr().err
    (tmp_path / "s.nq").write_text(f'<{EX}a> <{EX}celsius> "cold" <urn:1> .\n<urn:1> {generated} "2026-01-01" .\n')
    assert main([*words, "--format", "jsonl"]) == 0
    told = capsys.readouterr()
    assert not told.out and "Closed: stream Rises <http://example.org/rises> had no event" in told.err
    for refused in (["explain", words[1]], [*words, "--engine", "spark"], [*words, "--format", "nquads"]):
        assert main(refused) == 2
        assert "Traceback" not in capsys.readouterr().err


def test_a_followed_network_finds_matches_as_they_come(tmp_path: Path) -> None:
    events = events_of(random.Random(3), 30)
    path = tmp_path / "s.nq"
    path.write_text("".join(
        f"{s.n3()} {p.n3()} {o.n3()} <urn:{i}> .\n<urn:{i}> <urn:at> \"{event.time // SECOND}\" .\n"
        for i, event in enumerate(events) for s, p, o in event.triples))  # fmt: skip
    network = Network(QUERIES)
    expected = by_definition(events)
    assert expected and sorted(plain(*found) for found in network.run({"S": path}, time="urn:at")) == expected
    followed = network.follow({"S": path}, time="urn:at")
    found = []
    for each in followed:
        found.append(plain(*each))
        if len(found) == 3:
            break
    assert found and all(one in expected for one in found)
