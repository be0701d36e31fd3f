"""Partitions of graphs whose window has passed are forgotten; no match is gained or lost by that, on any road."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import spaseq
from spaseq.core.engine import Partitions
from spaseq.language.runtime.opened import stream_sources
from spaseq.rdf import Counters, StreamOptions
from tests.support import harness
from tests.support.graph_events import open_streams
from tests.support.harness import Case
from tests.support.roads import ROADS, Ride

SHAPES = [
    "SEQ (A ; B)",
    "SEQ (A ; B+ ; C)",
    "SEQ (A , B)",
    "SEQ (A ; C! ; B)",
    "SEQ (A ; B!)",
    "SEQ (C! ; A)",
    "SEQ (A : B)",
]
WINDOWS = ["WITHIN 3 SECONDS SLIDING", "WITHIN 3 SECONDS"]


_QUICK = {(1, 0), (3, 0), (4, 1)}
"""Rounds, an absence inside, and one at the end."""


def _query(shape: str, window: str) -> str:
    return f"""PREFIX : <http://example.org/>
SELECT ?k ?x {window} PARTITION BY (?k) FROM STREAM S <http://example.org/S> WHERE {{
  {shape}
  DEFINE GPM A ON S {{ ?k :a ?x }}
  DEFINE GPM B ON S {{ ?k :b ?y }}
  DEFINE GPM C ON S {{ ?k :c ?z }}
}}"""


def _graphs(seed: int) -> list[tuple[float, str]]:
    """Each key is used for some seconds, and some come again later."""
    rng = random.Random(seed)
    graphs = []
    for number in range(160):
        key = number // 20 * 3 + rng.randrange(4) if rng.random() < 0.9 else rng.randrange(6)
        graphs.append((number * 0.25, f":k{key} :{rng.choice('abc')} {rng.randrange(3)}"))
    return graphs


@pytest.mark.parametrize(("shape", "window"), [
    pytest.param(shape, window, marks=[] if (i, j) in _QUICK else [pytest.mark.slow])
    for i, shape in enumerate(SHAPES) for j, window in enumerate(WINDOWS)
    if not ("C! ;" in shape[:9] and "SLIDING" in window)
])  # fmt: skip
def test_every_road_finds_what_is_found_without_forgetting(
    shape: str, window: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case("forgotten keys", _query(shape, window), graphs={"S": _graphs(len(shape))})
    monkeypatch.setattr(Partitions, "worth", 1 << 40)
    roads = {road.name: road for road in ROADS if road.language == "spaseq" and not road.spark}
    expected = sorted(map(str, roads["batch"].take(case, Ride(random.Random(1), tmp_path))))
    assert expected
    monkeypatch.setattr(Partitions, "worth", 0)
    walked = 0
    for road in roads.values():
        if not road.leaves(case):
            found = road.take(case, Ride(random.Random(1), tmp_path, anew=False))
            assert sorted(map(str, found)) == expected, road.name
            walked += 1
    assert walked >= 7


@pytest.mark.parametrize("at_once", [1, 30])
def test_the_partitions_held_are_those_of_the_windows(
    at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is a budget for them: with `worth` beyond all keys it is used up, else it is enough."""
    graphs = [(number * 0.5, f":k{number // 2} :{'ab'[number % 2]} 1") for number in range(400)]
    files = harness.write_streams({"S": graphs}, tmp_path)
    query = spaseq.compile(_query(SHAPES[0], WINDOWS[0]), settings=spaseq.Settings(partitions=100))
    for worth, enough in ((0, True), (1 << 40, False)):
        monkeypatch.setattr(Partitions, "worth", worth)
        events = list(open_streams(stream_sources(query.checked, files), StreamOptions(), Counters())[0])
        with query.open() as session:
            found = 0
            for at in range(0, len(events), at_once):
                try:
                    found += len(session.push(events[at : at + at_once]))
                except spaseq.BudgetExceeded:
                    break
        assert (found >= 199) == enough
