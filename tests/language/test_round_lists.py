"""Lists of rounds in the kernels, and clauses over them as columns, against those of mapping sets and rdflib's algebra:
the same matches, on all roads."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest
from rdflib import Literal, URIRef

import spaseq
from spaseq import GraphEvent
from spaseq.core.engine.runs import evaluator as engine
from spaseq.core.engine.runs.coded import GuardRun
from spaseq.language.guards import round_lists
from spaseq.language.results.computing import Computation
from tests.support.sizes import some

X = "http://x/"
GPMS = """DEFINE GPM A ON S { ?a x:of ?c . ?a x:price ?p FILTER (?p > 3) }
DEFINE GPM B ON S { ?b x:of ?c . ?b x:price ?q FILTER (?q < ?p) }
DEFINE GPM E ON S { ?g x:of ?c . ?g x:price ?q }
DEFINE GPM D ON T { ?e x:of ?f OPTIONAL { ?e x:mood ?q } }
DEFINE GPM C ON S { ?d x:of ?c . ?d x:price ?r FILTER (?r >= ?p) }
DEFINE GPM F ON T { ?h x:of ?i }"""
SEQUENCES = ["A; E+; C", "A, B+, C", "E+; F", "A; D+; C", "A, (B | D)+; C", "A; (D & F)+; C", "D+; A; E+", "F; D+?; A",
             "A; E+; F!; C", "A; E+; F!", "(A | F); E+", "E+"]  # fmt: skip
HEADS = [
    ("SELECT ?q (?q+ AS ?qs)", ""),
    ("SELECT (?q+ AS ?qs)", ""),
    ("SELECT (AVG(?q) AS ?m) (COUNT(?q) AS ?n) (SUM(?q) AS ?s)", ""),
    ("SELECT (MIN(?q) AS ?m) (COUNT(?q) AS ?n) (?q+ AS ?qs)", "HAVING (COUNT(?q) > 1)"),
    ("SELECT DISTINCT (?q+ AS ?qs)", ""),
    ("SELECT (SUM(?q) AS ?s) (?q+ AS ?qs)", "ORDER BY DESC(?s) STR(?qs) LIMIT 5"),
    ("SELECT (COUNT(DISTINCT ?q) AS ?s)", "ORDER BY ?s"),
    ("SELECT ?q (?q+ AS ?qs)", "LIMIT 4 OFFSET 1"),
    ("SELECT (STRLEN(STR(?qs)) AS ?n) (?q AS ?last) (?q+ AS ?qs)", "HAVING (?q > 1) ORDER BY ?qs"),
    ("SELECT DISTINCT (SUM(?q + 1) AS ?s) (GROUP_CONCAT(?q) AS ?t)", "VALUES ?q { 1 2 3.0 }"),
]
WINDOWS = ["WITHIN 9 SECONDS", "WITHIN 7 SECONDS SLIDING"]


def compiled(head: str, tail: str, window: str, sequence: str) -> spaseq.Query:
    own = "\n".join(gpm for gpm in GPMS.splitlines() if gpm.split()[2] in sequence)
    streams = " ".join(f"FROM STREAM {name} <{X}{name}>" for name in "ST" if f" ON {name}" in own)
    return spaseq.compile(f"PREFIX x: <{X}>\n{head} {window} {streams}\nWHERE {{ SEQ ({sequence})\n{own} }} {tail}")


def instants(rng: random.Random, count: int, several: float) -> list[GraphEvent]:
    """`several`: how often an event has two subjects or three, and shares its instant."""
    events, at = [], 0
    for i in range(count):
        name = rng.choice("SST")
        triples: list[Any] = []
        for k in range(1 + (rng.random() < several) * rng.randrange(1, 3)):
            node = URIRef(f"{X}{i}-{k}")
            triples.append((node, URIRef(f"{X}of"), URIRef(f"{X}c{rng.randrange(2)}")))
            if name == "S":
                price: Any = rng.choice((rng.randrange(6), float(rng.randrange(6))))
                triples.append((node, URIRef(f"{X}price"), Literal(price)))
            elif rng.random() < 0.6:
                triples.append((node, URIRef(f"{X}mood"), Literal(rng.randrange(3))))
        at += rng.random() >= several / 2
        events.append(GraphEvent(f"{X}{name}", at * 10**9, tuple(triples), None, "a", i))
    return events


def shown(matches: Iterable[Any]) -> list[str]:
    return [f"{m.start} {m.end} {m.positions} {sorted(m.bindings.items())}" for m in matches]


def pushed(query: spaseq.Query, events: list[GraphEvent], cuts: random.Random, *, kept: bool) -> list[str]:
    """The matches of parts of a random length; `kept`: of sessions that each go on from a snapshot of the last."""
    session, found, at = query.open(), [], 0
    while at < len(events):
        size = cuts.choice((1, 1, 2, 5, 20))
        found += shown(session.push(events[at : at + size]))
        at += size
        if kept and cuts.random() < 0.3:
            session = query.open(session.snapshot())
    return found + shown(session.close())


_QUICK = ("A, B+, C", "A, (B | D)+; C", "A; (D & F)+; C", "F; D+?; A", "A; E+; F!")


@pytest.mark.parametrize(
    "sequence", [pytest.param(s, marks=() if s in _QUICK else pytest.mark.slow) for s in SEQUENCES]
)
def test_the_kernels_and_the_runs_agree(sequence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, matches = random.Random(sequence), 0
    monkeypatch.setattr(round_lists, "_ROOM", 4)
    monkeypatch.setattr(round_lists, "_LISTS", 3)
    first = SEQUENCES.index(sequence)
    for head, tail in [*HEADS[first:], *HEADS[:first]][: some(18)]:
        for window in WINDOWS:
            if "SLIDING" in window and ("SELECT DISTINCT" in head or tail):
                continue  # they range over tumbling windows
            query = compiled(head, tail, window, sequence)
            read = [X + name for name in "ST" if f"<{X}{name}>" in query.text]
            events = [e for e in instants(rng, 60, rng.choice((0.0, 0.0, 0.1, 0.4))) if e.stream in read]
            with monkeypatch.context() as context:
                context.setattr(engine, "codes_of", lambda program: None)
                context.setattr(Computation, "of", lambda clauses: None)
                expected = pushed(query, events, random.Random(1), kept=False)
            cuts = random.Random(f"{sequence}{head}")
            for kept in (False, True):
                own = pushed(query, events, cuts, kept=kept)
                assert sorted(own) == sorted(expected), (head, tail, window)
                if tail.startswith("ORDER BY DESC"):
                    assert own == expected
            matches += len(expected)
    assert matches or "&" in sequence


def test_lists_stay_in_the_kernels() -> None:
    query = compiled(*HEADS[0], WINDOWS[0], "A; E+; C")
    session = query.open()
    found = shown(session.push([e for e in instants(random.Random(3), 80, 0.0) if e.stream == f"{X}S"]))
    assert found and isinstance(getattr(session.recogniser.evaluator, "run", None), GuardRun)
