"""The way of a match through its automaton, and the automaton lit by a run (`query.picture(run)`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import ceql
import spaseq
from ceql.runtime.ways import are_valuations, ways_of
from spaseq.core.automata import ACCEPT, CEA, INITIAL, Transition
from spaseq.core.drawing import Diagram
from spaseq.core.errors import OptionError
from tests.support import harness
from tests.support.drawn import drawn
from tests.support.sizes import share, some

CASES = [case for case in harness.load_all() if case.error is None]
ROOT = Path(__file__).resolve().parent.parent


def _check(way: Sequence[Transition], positions: Sequence[int], start: int, end: int, hidden: bool) -> None:
    """It leads from the beginning to acceptance, takes as many events as the match, and passes over none where none
    lies between."""
    assert way, "no way is found"
    at, events = INITIAL, 0
    for t in way:
        assert t.source == at
        at = t.target
        events += t.marks
    assert at == ACCEPT
    assert events == len(positions)
    if not hidden and len(positions) == end - start + 1:
        assert all(t.marks for t in way)


def _hides(automaton: CEA) -> bool:
    """Whether a match need not tell all events that it took."""
    return any(not t.marks and t.target != t.source for out in automaton.transitions for t in out)


def test_every_match_of_the_cases_of_ceql_has_a_way() -> None:
    found = 0
    for case in share([case for case in CASES if not case.is_spaseq]):
        streams = harness.streams_of(case.events)
        given: dict[str, Any] = {"events": case.events} if streams is None else {"streams": streams}
        query = ceql.compile(case.query)
        for valuations in (False, True):
            run = query.run(**given, valuations=valuations)
            matches = list(run)[:20]
            program = query.compiled.program(are_valuations(run))
            for match, way in zip(matches, ways_of(program, matches), strict=True):
                if match.positions:
                    _check(way, match.positions, match.start, match.end, _hides(program.cea))
                    found += 1
                labels = program.labels
                if labels is not None:
                    took = [labels[t.label] for t in way if t.marks]
                    assert took == [{v for v, at in match.bindings.items() if p in at} for p in match.positions]
    assert found > some(1_000)


def test_every_match_of_the_cases_of_spaseq_has_a_way(tmp_path: Path) -> None:
    found = 0
    for number, case in enumerate(share([case for case in CASES if case.is_spaseq])):
        folder = tmp_path / str(number)
        folder.mkdir()
        streams = harness.write_streams(case.graphs, folder)
        run = spaseq.compile(case.query).run(streams, harness.write_knowledge(case.kb, folder))
        for match in list(run)[:10]:
            _check(match.way, match.positions, match.start, match.end, False)
            found += 1
    assert found > some(200)


EVENTS = [
    {"type": "A", "v": 1}, {"type": "X"}, {"type": "B", "v": 2}, {"type": "B", "v": 9}, {"type": "A", "v": 5},
    {"type": "B", "v": 7},
]  # fmt: skip
EITHER = "SELECT * WHERE A AS x ; (B AS y OR C AS y) FILTER y.v > x.v AND x.v < 5"


def _counts(diagram: Diagram) -> dict[tuple[str, str, str], tuple[str, int]]:
    return {(e.source, e.target, " & ".join(sorted(e.label.split(" & ")))): (e.lit, e.count) for e in diagram.edges}


def test_a_run_lights_its_automaton() -> None:
    query = ceql.compile(EITHER)
    diagram = query.picture(query.run(EVENTS)).diagram
    assert [(node.name, node.lit, node.count) for node in diagram.nodes] == [
        ("0", "taken", 3), ("1", "taken", 3), ("accept", "taken", 3),
    ]  # fmt: skip
    assert _counts(diagram) == {
        ("0", "1", "type = A & v < 5"): ("taken", 3),
        ("1", "1", "true"): ("taken", 3),
        ("1", "accept", "type = B"): ("taken", 3),
        ("1", "accept", "type = C"): ("never", 0),
    }
    assert diagram.legend[0] == "blue: the ways of 3 matches, and of how many (×)"
    assert "dotted grey" in diagram.legend[1]


def test_what_no_run_came_to_is_seen_without_a_match() -> None:
    query = ceql.compile("SELECT * WHERE A ; B ; Missing ; B")
    nodes = query.picture(query.run(EVENTS)).diagram.nodes
    assert [(node.name, node.lit) for node in nodes] == [
        ("0", "open"), ("1", "open"), ("2", "open"), ("3", "never"), ("accept", "never"),
    ]  # fmt: skip


def test_matches_tell_their_own_ways_alone() -> None:
    query = ceql.compile(EITHER)
    matches = list(query.run(EVENTS))
    assert _counts(query.picture(matches).diagram)["1", "accept", "type = C"] == ("open", 0)
    alone = query.picture(matches[0]).diagram
    assert _counts(alone)["1", "accept", "type = B"] == ("taken", 1)
    assert query.picture(iter(matches)).diagram == query.picture(matches).diagram
    assert query.picture([]).diagram.legend == ("no match",)
    with query.open() as session:
        pushed = [match for event in EVENTS for match in session.push(event)]
    assert query.picture(pushed).diagram == query.picture(matches).diagram


def test_guards_tell_which_branch_was_taken() -> None:
    query = ceql.compile("SELECT * WHERE A AS x ; (B AS y ; B AS z OR B AS u ; B AS w) FILTER y.v > x.v AND u.v < x.v")
    for first, other in ((2, 0), (0, 2)):
        events = [{"type": "A", "v": 1}, {"type": "B", "v": first}, {"type": "B", "v": other}]
        (match,) = query.run(events)
        taken = [edge for edge in query.picture(match).diagram.edges if edge.lit == "taken"]
        assert [edge.notes for edge in taken if edge.notes] and len([e for e in taken if not e.dashed]) == 3
        noted = " ".join(note for edge in taken for note in edge.notes)
        assert ("y: y.v > x.v" in noted) == (first == 2) and ("u: u.v < x.v" in noted) == (first == 0)


def test_a_picture_while_a_run_goes_on_changes_nothing() -> None:
    query = ceql.compile("SELECT * WHERE A AS x ; B AS y FILTER SUM(y.v) > x.v")
    alone = [match.positions for match in query.run(EVENTS)]
    looked = []
    for match in query.run(EVENTS):
        query.picture(match)
        looked.append(match.positions)
    assert looked == alone and len(alone) == 4


def test_many_matches_are_counted_and_the_first_drawn() -> None:
    query = ceql.compile("SELECT * WHERE A ; B WITHIN 100 EVENTS")
    diagram = query.picture(query.run([{"type": kind} for kind in "AB" * 30])).diagram
    assert diagram.legend[0] == "blue: the ways of 200 of 465 matches, and of how many (×)"
    assert diagram.nodes[0].count == 200


def test_what_is_no_run_is_refused() -> None:
    query = ceql.compile(EITHER)
    for wrong in (3, "matches", [1]):
        with pytest.raises(OptionError, match="is no run of a query"):
            query.picture(wrong)
    once = query.run(iter([EVENTS]))
    list(once)
    with pytest.raises(OptionError, match="only once"):
        query.picture(once)


def test_what_is_lit_can_be_read() -> None:
    place = ROOT / "examples" / "smart-grid"
    query = spaseq.compile((place / "query.rq").read_text())
    streams = {"S1": place / "power.nq", "S2": place / "weather.nq", "S3": place / "storage.nq"}
    run = query.run({k: str(v) for k, v in streams.items()}, {"http://smartgrid.org/db": str(place / "kb.ttl")})
    lit = query.picture(run)
    assert [node.count for node in lit.diagram.nodes if node.name in ("0", "accept")] == [23, 23]
    dark = ceql.compile("SELECT * WHERE (A OR C AS y) ; NOT D ; E AS z FILTER z.v > 3 AND y.w LIKE 'a long text'")
    for picture in (lit, dark.picture(dark.run(EVENTS))):
        shown = drawn(picture.svg())
        for (one, here), (other, there) in combinations(shown.boxes, 2):
            assert not here.meets(there), (one, other)
        for text, box in shown.boxes:
            assert shown.canvas.left <= box.left and box.right <= shown.canvas.right, text
