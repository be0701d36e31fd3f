"""Order and lateness, held to their definition: in batches of rows, one by one, and on every road in one error."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ceql
import spaseq
from spaseq.core.errors import EventError, OptionError
from spaseq.core.events import EventFeed, EventOptions, TimeOptions
from spaseq.core.events.reorder import Released, Reorderer, SingleReorderer
from spaseq.rdf import Counters, GraphEvent, StreamOptions, StreamSource
from spaseq.rdf.columns.reader import open_batches
from tests.support.graph_events_by_definition import open_streams

S = 10**9
MOST = (1 << 63) - 1
Step = tuple[str, int]  # ("event", its time) or ("advance", to where)


def by_definition(steps: list[Step], lateness: int) -> tuple[list[int], list[int], list[list[int]]]:
    """The numbers of the events kept, in order; those of the late ones; and what is out after each step."""
    came: list[tuple[int, int]] = []  # all that came, late or not
    kept: list[tuple[int, int]] = []
    late, out = [], []
    floor = -MOST
    number = 0
    for kind, time in steps:
        if kind == "advance":
            floor = max(floor, time)
        else:
            if time < floor or any(time < earlier - lateness for earlier, _ in came):
                late.append(number)
            else:
                kept.append((time, number))
            came.append((time, number))
            number += 1
        high = max((t for t, _ in came), default=-(10**30))
        out.append([n for t, n in sorted(kept) if t < floor or t <= high - lateness])
    return [n for _, n in sorted(kept)], late, out


def in_batches(steps: list[Step], options: TimeOptions, size: int) -> tuple[list[int], int]:
    """By arrays, up to `size` events at once."""
    order = Reorderer(options)
    held, found, number = np.zeros((0, 2), np.int64), list[int](), 0

    def take(released: Released) -> None:
        nonlocal held
        assert released.error is None
        found.extend(held[released.ready, 1].tolist())
        held = held[released.waiting]

    fresh: list[tuple[int, int]] = []

    def flush(last: bool = False) -> None:
        nonlocal held
        held = np.concatenate([held, np.array(fresh, np.int64).reshape(-1, 2)])
        fresh.clear()
        take(order.push(held[:, 0].copy(), lambda row: ("", row), last=last))
        copy = Reorderer(options)
        copy.restore(order.snapshot())
        order.mark, copy.held = copy.mark, order.held

    for kind, time in steps:
        if kind == "advance":
            flush()
            order.advance(time)
            flush()
        else:
            fresh.append((time, number))
            number += 1
            if len(fresh) == size:
                flush()
    flush(last=True)
    return found, order.dropped


STEPS = st.lists(st.tuples(st.sampled_from(["event"] * 5 + ["advance"]), st.integers(-3, 12)), max_size=14)


@given(STEPS, st.integers(0, 5), st.integers(1, 4))
def test_rows_and_objects_are_ordered_by_the_definition(steps: list[Step], lateness: int, size: int) -> None:
    options = TimeOptions(lateness=lateness, late="drop")
    kept, late, out = by_definition(steps, lateness)
    order = SingleReorderer[int](options, lambda number: ("S", ("", number)))
    found: list[int] = []
    number = 0
    for step, (kind, time) in enumerate(steps):
        if kind == "advance":
            order.advance(time)
            found += order.due()
        else:
            found += order.push(time, number)
            number += 1
        assert found == out[step]
        copy = SingleReorderer[int](options, lambda number: ("S", ("", number)))
        copy.restore(order.snapshot())
        waiting = order.waiting
        copy.wait_again([([t for k, t in steps if k == "event"][n], n) for n in waiting])
        order = copy
    assert (found + order.due(last=True), order.dropped) == (kept, len(late))
    assert in_batches(steps, options, size) == (kept, len(late))


@given(STEPS, st.integers(0, 5))
def test_the_first_late_event_is_the_error(steps: list[Step], lateness: int) -> None:
    times = [time for kind, time in steps if kind == "event"]
    _, late, _ = by_definition([("event", time) for time in times], lateness)
    released = Reorderer(TimeOptions(lateness=lateness)).push(np.array(times, np.int64), lambda row: ("f", row))
    one = SingleReorderer[int](TimeOptions(lateness=lateness), lambda number: ("the stream", ("f", number)))
    error = expected = None
    before = one.snapshot()
    try:
        one.expect_order([(time, number) for number, time in enumerate(times)])
    except EventError as raised:
        expected = raised
    assert one.snapshot() == before
    try:
        for number, time in enumerate(times):
            one.push(time, number)
    except EventError as raised:
        error = raised
    assert str(error) == str(expected)
    assert (error is None) == (released.error is None) == (not late)
    if error is not None and released.error is not None:
        assert str(error) == str(released.error) and error.record == late[0]
        assert one.seen == late[0] + 1


def test_equal_times_keep_their_order_and_extremes_are_times() -> None:
    times = np.array([5, 3, 4, 9, 6, 9, 7])
    released = Reorderer(TimeOptions(lateness=3)).push(times, last=True)
    assert times[released.ready].tolist() == [3, 4, 5, 6, 7, 9, 9] and len(times[released.waiting]) == 0
    assert np.arange(7)[released.ready].tolist() == [1, 2, 0, 4, 6, 3, 5]
    extremes = np.array([MOST, -MOST])
    released = Reorderer(TimeOptions(lateness=1 << 63)).push(extremes, lambda row: ("f", row))
    assert released.error is not None and "by 18446744073.709551614 s" in str(released.error)
    kept = Reorderer(TimeOptions(lateness=1 << 64)).push(extremes, lambda row: ("f", row), last=True)
    assert extremes[kept.ready].tolist() == [-MOST, MOST]
    assert len(extremes[:0][Reorderer(TimeOptions()).push(extremes[:0]).ready]) == 0


@pytest.mark.parametrize("options", [TimeOptions, StreamOptions, EventOptions])
@pytest.mark.parametrize("wrong", [{"late": "keep"}, {"lateness": -1}, {"interval": -1}, {"time_unit": "h"}])
def test_wrong_options_are_refused_whoever_makes_them(options: Any, wrong: dict[str, Any]) -> None:
    """`StreamOptions(late="keep")` was an error policy, and a unit that there is not a KeyError later."""
    with pytest.raises(OptionError, match=f"^{next(iter(wrong))} "):
        options(**wrong)


# -- one meaning on every road

E = "http://example.org/"
GRAPHS = f"PREFIX : <{E}> SELECT ?x FROM STREAM S <urn:s> WHERE {{ SEQ (A) DEFINE GPM A ON S {{ ?a :p ?x }} }}"


def graph(time: int, source: str = "s.nq", record: int = 1) -> GraphEvent:
    node = spaseq_term("a")
    return GraphEvent("urn:s", time * S, ((node, spaseq_term("p"), spaseq_term(f"x{time}")),), None, source, record)


def spaseq_term(name: str) -> Any:
    from rdflib import URIRef

    return URIRef(E + name)


def stream_file(folder: Path, times: list[int]) -> str:
    lines = []
    for number, time in enumerate(times):
        name = f"<urn:g{number}>"
        lines.append(
            f'{name} <http://www.w3.org/ns/prov#generatedAtTime> "{time}" .\n<urn:a> <urn:p> "{time}" {name} .\n'
        )
    path = folder / "s.nq"
    path.write_text("".join(lines))
    return str(path)


@pytest.mark.parametrize("lateness", [0, 2 * S])
def test_one_error_on_every_road(lateness: int, tmp_path: Path) -> None:
    times = [5, 10, 7]
    allowed = f", more than the lateness of {lateness // S} s" if lateness else ""
    expected = re.escape(f"goes back in time by 3 s{allowed}: 1970-01-01T00:00:07Z comes after 1970-01-01T00:00:10Z")
    hint = re.escape('hint: a lateness (lateness="5s") puts in order what comes late by no more than that; late="drop"')
    text = f"{expected}.*\n{hint}"
    path, graphs = stream_file(tmp_path, times), StreamOptions(lateness=lateness)
    with pytest.raises(EventError, match=text):
        list(open_streams([StreamSource("urn:s", (path,))], graphs, Counters())[0])
    with pytest.raises(EventError, match=text):
        for _, batches in open_batches([StreamSource("urn:s", (path,))], graphs)[0]:
            list(batches)
    with pytest.raises(EventError, match=text):
        spaseq.compile(GRAPHS).open(options=graphs).push(map(graph, times))
    events = [{"type": "A", "time": time} for time in times]
    with pytest.raises(EventError, match=text):
        ceql.compile("SELECT * WHERE A").run(events, lateness=lateness).count()
    with pytest.raises(EventError, match=text):
        list(EventFeed(("",), EventOptions(lateness=lateness)).push(events))


def test_a_session_of_graphs_heeds_the_lateness() -> None:
    """It took the option and raised an error for every graph that went back."""
    session = spaseq.compile(GRAPHS).open(lateness="3s", late="drop")
    found = session.push([graph(5), graph(3), graph(8)])
    assert [match.time // S for match in found] == [3]  # 5 is in order, its instant not complete
    session = spaseq.compile(GRAPHS).open(session.snapshot(), lateness="3s", late="drop")
    found = session.push([graph(4), graph(7), graph(5), graph(20)])
    assert [match.time // S for match in found] == [5, 7]
    assert session.counters.late == 1 and session.counters.events == 7
    assert [match.time // S for match in session.close()] == [8, 20]


def test_after_advance_an_earlier_graph_is_late() -> None:
    """As a tuple is: what was reported because nothing would come any more stays true."""
    session = spaseq.compile(GRAPHS).open(lateness="5s")
    assert session.push([graph(3), graph(2)]) == []
    assert [match.time // S for match in session.advance(3 * S)] == [2]
    with pytest.raises(EventError, match="behind the time that it was advanced to: 1970-01-01T00:00:02Z comes after"):
        session.push(graph(2))
    assert session.push(graph(3)) == []
    assert [match.time // S for match in session.close()] == [3]


def test_advance_of_graphs_survives_a_snapshot() -> None:
    query = spaseq.compile(GRAPHS)
    session = query.open(late="drop")
    session.advance(4 * S)
    again = query.open(session.snapshot(), late="drop")
    again.push(graph(3))
    assert again.counters.late == 1
