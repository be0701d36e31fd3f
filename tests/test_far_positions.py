"""Counting begins in front of 2^31, 2^32 and 2^40: the matches are those of a stream that begins at 0."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import ceql
import spaseq
from spaseq.core.engine import Settings
from spaseq.language.runtime.opened import stream_sources
from spaseq.rdf import Counters, StreamOptions
from tests.support import harness
from tests.support.graph_events import open_streams

FAR = (2**31 - 40, 2**32 - 40, 2**40)
TUPLES = [
    "SELECT * WHERE A ; B+ ; C WITHIN 5 EVENTS",
    "SELECT * WHERE A ; NOT C ; B PARTITION BY [k]",
    "SELECT * WHERE A ; B ; C PARTITION BY [k] WITHIN 3 EVENTS",
    "SELECT NEXT * WHERE A ; B ; C PARTITION BY [k]",
    "SELECT MAX * WHERE A ; B+ ; C WITHIN 6 EVENTS",
    "SELECT * WHERE A ; NOT B PARTITION BY [k] WITHIN 2 EVENTS",
    "SELECT * WHERE A ; B PARTITION BY [k] CONSUME BY PARTITION",
    "SELECT x[v], y[v] WHERE A AS x ; B AS y FILTER x.v < y.v WITHIN 4 EVENTS",
    "SELECT * WHERE A AS x ; B+ AS y ; C AS z FILTER SUM(y.v) >= x.v WITHIN 5 EVENTS",
]
GRAPHS = [("SEQ (A ; B+ ; C)", ""), ("SEQ (A ; B!)", "WITHIN 9 SECONDS"), ("SEQ (A , B)", "WITHIN 9 SECONDS SLIDING")]


def _tuples() -> list[dict[str, Any]]:
    rng = random.Random(5)
    return [{"type": rng.choice("ABC"), "time": i, "k": rng.randrange(4), "v": rng.randrange(4)} for i in range(80)]


def _told(matches: Any, base: int) -> list[Any]:
    return sorted(
        (m.start - base, m.end - base, tuple(p - base for p in m.positions), str(sorted(m.bindings.items())))
        for m in matches
    )


@pytest.mark.parametrize("text", TUPLES)
def test_tuples(text: str) -> None:
    events = _tuples()
    for evaluator in ("compact", "chain"):
        try:
            query = ceql.compile(text, settings=Settings(evaluator=evaluator))
        except ceql.UnsupportedFeature:
            continue
        expected = None
        for base in (0, *FAR):
            for road in ("batch", "one by one", "snapshot"):
                session = query.open(time="time")
                session._feed.position = base
                if road == "one by one":
                    found = [m for event in events for m in session.push(event)]
                else:
                    found = session.push(events[:41])
                    if road == "snapshot":
                        session = query.open(session.snapshot())
                    found += session.push(events[41:])
                shown = [
                    (m.start - base, m.end - base, [p - base for p in m.positions]) for m in found + session.close()
                ]
                expected = sorted(shown) if expected is None else expected
                assert expected and sorted(shown) == expected, (base, road, evaluator)


@pytest.mark.parametrize(("shape", "window"), GRAPHS)
def test_graphs(shape: str, window: str, tmp_path: Path) -> None:
    query = spaseq.compile(f"""PREFIX : <http://example.org/>
SELECT ?k ?x {window} PARTITION BY (?k) FROM STREAM S <http://example.org/S> WHERE {{
  {shape}
  DEFINE GPM A ON S {{ ?k :a ?x }}
  DEFINE GPM B ON S {{ ?k :b ?y }}
  DEFINE GPM C ON S {{ ?k :c ?z }}
}}""")
    rng = random.Random(5)
    graphs = [(i * 0.25, f":k{rng.randrange(6)} :{rng.choice('abc')} {rng.randrange(3)}") for i in range(90)]
    files = harness.write_streams({"S": graphs}, tmp_path)
    events = list(open_streams(stream_sources(query.checked, files), StreamOptions(), Counters())[0])
    expected = None
    for base in (0, *FAR):
        for road in ("batch", "one by one", "snapshot"):
            session = query.open()
            session._position = base
            if road == "one by one":
                found = [m for event in events for m in session.push(event)]
            else:
                found = session.push(events[:50])
                if road == "snapshot":
                    session = query.open(session.snapshot())
                found += session.push(events[50:])
            shown = _told(found + session.close(), base)
            expected = shown if expected is None else expected
            assert expected and shown == expected, (base, road)
