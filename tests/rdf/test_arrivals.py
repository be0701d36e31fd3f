"""Streams that go on are read as columns, however their bytes arrive: the same events, errors and counts as a file's.

Standard input gives random pieces of a random stream; whether something more stands in the pipe is random, too. What
comes out is compared with the events of the whole text, read event by event.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.core.errors import EventError
from spaseq.core.events.reorder import SingleReorderer
from spaseq.rdf import Counters, Followed, GraphEvent, StreamOptions, StreamSource, settle
from spaseq.rdf.columns import BatchLimits, GraphBatch, follow
from spaseq.rdf.columns.arrivals import ArrivedBatches
from spaseq.rdf.options import ARRIVAL
from tests.support.drawn_streams import AT, graphs, linked, options, triples
from tests.support.graph_events_by_definition import described, open_streams
from tests.support.sizes import some

S, T = "http://example.org/S", "http://example.org/T"
STDIN = StreamSource(S, ("-",))
Outcome = tuple[list[GraphEvent], str | None, Counters]


class Pieces:
    """Standard input that gives a text in pieces that end at `cuts`."""

    def __init__(self, text: bytes, cuts: list[int]) -> None:
        ends = sorted({*(cut % (len(text) + 1) for cut in cuts), len(text)})
        self._pieces = [text[a:b] for a, b in zip([0, *ends], ends, strict=False) if b > a]

    @property
    def buffer(self) -> Pieces:
        return self

    def read1(self, size: int = -1) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


def _outcome(events: Iterator[GraphEvent | None], counters: Any, *, timed: bool) -> Outcome:
    found, problem = [], None
    try:
        for event in events:
            if event is not None:
                found.append(event if timed else replace(event, time=0))
    except EventError as error:
        problem = f"{error} {error.source} {error.record}"
    return found, problem, counters()


def _whole(text: bytes, given_options: StreamOptions) -> Outcome:
    counters = Counters()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", Pieces(text, []))
        events, settled = open_streams([STDIN], given_options, counters)
        return _outcome(events, lambda: counters, timed=settled.time != ARRIVAL)


def _arriving(text: bytes, cuts: list[int], seed: int, given_options: StreamOptions) -> Outcome:
    coin = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", Pieces(text, cuts))
        patch.setattr(follow, "readable", lambda file, seconds=0.0: coin.random() < 0.5)
        followed = Followed([STDIN], given_options, poll=0.01)
        return _outcome(iter(followed), lambda: followed.counters, timed=followed.options.time != ARRIVAL)


def agree(text: str, cuts: list[int], seed: int, given_options: StreamOptions) -> Outcome:
    encoded = text.encode()
    if settle(given_options, [STDIN]).time == ARRIVAL:  # by the clock nothing waits for its order
        given_options = replace(given_options, lateness=0)
    found, problem, counters = _whole(encoded, given_options)
    again, other, counted = _arriving(encoded, cuts, seed, given_options)
    assert (again, other) == (found, problem)
    if problem is None:
        assert counted == counters
    return found, problem, counters


cuts = st.lists(st.integers(0, 1 << 16), max_size=12)
seeds = st.integers(0, 1 << 30)
texts = st.one_of(graphs(odd=True), graphs(odd=False), triples(), linked())


@given(texts, cuts, seeds, options)
@settings(max_examples=some(120))
def test_any_cut_gives_the_events_of_the_whole(text: str, at: list[int], seed: int, given: StreamOptions) -> None:
    agree(text, at, seed, given)


@pytest.mark.random
@given(texts, cuts, seeds, options)
@settings(max_examples=5_000)
def test_many_cuts(text: str, at: list[int], seed: int, given: StreamOptions) -> None:
    agree(text, at, seed, given)


LINES = f"""\ufeff<a:g> {AT} "1" .
<a:s> <a:p> "é\\u00e9\\n"@de-CH <a:g> .
# a comment

_:b <a:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> <a:g> .
_:b <a:q> _:c <a:g> .\r
<a:h> {AT} "2" <a:h> .
<a:s> <a:p> "\U0001f600" <a:h> .
_:b <a:p> "x" <a:i> .
<a:i> {AT} "3" .
<a:s> <a:p> <a:o> .
<a:s> <a:p> nothing <a:i> .
_:k {AT} "4" _:k .
<a:s> <a:p> "never ends" <a:l> ."""
TERMS = [
    '<< <a:s> <a:p> <a:o> >> <a:q> <a:r> <a:g> .\n',
    '<a:s> <a:p> <<( <a:s> <a:p> <a:o> )>> <a:g> .\n',
    '<a:s> <a:p> "left"@ar--rtl <a:g> .\n',
    'VERSION "1.2"\n',
]  # fmt: skip


@pytest.mark.parametrize("malformed", ["drop", "error"])
@pytest.mark.parametrize("late", [None, *TERMS], ids=["plain", "reified", "triple term", "direction", "version"])
def test_every_cut_in_two(malformed: Any, late: str | None) -> None:
    """Inside of a character, an escape, a line's end, the mark at the beginning; in and around what RDF 1.2 brought."""
    text = LINES if late is None else LINES.replace("<a:h> ", late + "<a:h> ", 1)
    given_options = StreamOptions(malformed=malformed)
    whole = _whole(text.encode(), given_options)
    assert len(whole[0]) + (whole[1] is not None) > 0
    size, first = len(text.encode()), len(LINES.partition("<a:h> ")[0].encode())
    step = 2 // some(2)  # in the quick suite, each of the two takes every other one
    every = range((malformed == "error") * (step - 1), size, step)
    near = range(first - 20, first + len((late or "").encode()) + 20)
    for cut in every if late is None else near:
        found, problem, counters = _arriving(text.encode(), [cut], cut, given_options)
        assert (found, problem) == whole[:2], cut
        assert problem is not None or counters == whole[2]


@pytest.mark.parametrize("form", ["trig", "ttl", "nt"])
def test_every_syntax(form: str) -> None:
    text = "@prefix a: <a:> .\n" + "".join(
        f'<a:g{n}> {{ <a:g{n}> {AT} "{n}" . a:s a:p [ a:q "{n}" ] }}\n' for n in range(9)
    )
    if form == "ttl":
        text = "@prefix a: <a:> .\n" + "".join(f'a:s{n} {AT} "7" ; a:p [ a:q "{n}" ] .\n' for n in range(9))
    elif form == "nt":
        text = "".join(f'<a:s{n}> {AT} "{n}" .\n<a:s{n}> <a:p> _:b .\n' for n in range(9))
    rng = random.Random(form)
    for seed in range(40):
        words: dict[str, Any] = {"event_by": "subject"} if form == "nt" else {}
        found, problem, _ = agree(
            text,
            [rng.randrange(1000) for _ in range(rng.randrange(20))],
            seed,
            StreamOptions.parse(format=form, time=AT, **words),
        )
        assert problem is None and len(found) == (1 if form == "ttl" else 9)


def test_an_event_of_a_document_comes_as_the_next_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    end, begin = os.pipe()

    class Input:
        buffer = os.fdopen(end, "rb")

    monkeypatch.setattr("sys.stdin", Input())
    events = (event for event in Followed([STDIN], StreamOptions(format="trig"), poll=0.01) if event is not None)
    for n in range(4):
        os.write(begin, f'<a:g{n}> {{ <a:g{n}> {AT} "{n}" }}\n'.encode())
        assert n == 0 or next(events).time == (n - 1) * 10**9
    os.close(begin)
    assert next(events).time == 3 * 10**9


# Order over several streams -------------------------------------------------------------------------------------------


def _event(stream: str, time: int, record: int) -> GraphEvent:
    return GraphEvent(stream, time, (), None, "f" + stream[-1], record)


@pytest.mark.parametrize("late", ["drop", "error"])
def test_batches_come_in_the_order_that_events_do(late: Any) -> None:
    """`ArrivedBatches` beside `SingleReorderer`, which takes the events of both streams in the same order of arrival.
    What has come out behind each push is the same."""
    rng = random.Random(17)
    reordered, problems, cases = 0, 0, some(400)
    for _ in range(cases):
        lateness = rng.choice([0, 2, 5, 40])
        given_options = StreamOptions(lateness=lateness, late=late)
        arrived, single = ArrivedBatches(given_options), SingleReorderer(given_options, described)
        clock = record = 0
        wrong: list[str | None] = [None, None]
        for _ in range(rng.randrange(1, 6)):
            lists: dict[str, list[GraphEvent]] = {S: [], T: []}
            came: list[tuple[str, int]] = []
            for _ in range(rng.randrange(1, 9)):
                clock += rng.choice([0, 1, 2, 5])
                record += 1
                stream, back = rng.choice([S, T]), rng.choice([0, 0, 1, 3, 6])
                came.append((stream, len(lists[stream])))
                lists[stream].append(_event(stream, clock - back, record))
            batches = [GraphBatch.of(events) for events in lists.values() if events]
            begins = {batches[0].stream: 0, batches[-1].stream: 0} | ({T: len(lists[S])} if len(batches) == 2 else {})
            order = np.array([begins[stream] + place for stream, place in came], np.int64)
            expected: list[GraphEvent] = []
            try:
                for stream, place in came:
                    expected += single.push(lists[stream][place].time, lists[stream][place])
            except EventError as error:
                wrong[0] = str(error)
            found, problem = arrived.push(batches, order)
            wrong[1] = None if problem is None else str(problem)
            assert _by_stream(found) == _streams(expected)
            reordered += bool((np.diff([e.time for e in expected]) > 0).any())
            assert wrong[0] == wrong[1]
            assert arrived.take_dropped() == single.take_dropped()
            if wrong[0]:
                problems += 1
                break
        else:
            assert _by_stream(arrived.close()) == _streams(single.due(last=True))
    assert reordered > cases // 4 and (problems > cases // 8) == (late == "error")


def _by_stream(batches: list[GraphBatch]) -> dict[str, list[GraphEvent]]:
    """Each batch is in order of time; merged by time, equal ones in the order of the batches, they are the stream."""
    for batch in batches:
        assert (batch.times[1:] >= batch.times[:-1]).all()
    return _streams(sorted((b.event(i) for b in batches for i in range(len(b))), key=lambda event: event.time))


def _streams(events: list[GraphEvent]) -> dict[str, list[GraphEvent]]:
    found: dict[str, list[GraphEvent]] = {}
    for event in events:
        found.setdefault(event.stream, []).append(event)
    return found


def test_streams_that_are_there_are_merged_by_time() -> None:
    """What `_merged` says is what taking always the earliest of the next events gives."""
    rng = random.Random(3)
    for _ in range(300):
        streams = []
        for stream in (S, T, S + "2")[: rng.randrange(1, 4)]:
            times, clock = [], 0
            for _ in range(rng.randrange(1, 8)):
                clock += rng.choice([-2, 0, 1, 2])
                times.append(clock)
            events = [_event(stream, time, i + 1) for i, time in enumerate(times)]
            cut = rng.randrange(len(events) + 1)
            streams.append([part for part in (events[:cut], events[cut:]) if part])
        batches = [GraphBatch.of(part) for parts in streams for part in parts]
        every = [event for parts in streams for part in parts for event in part]
        queues = [[event for part in parts for event in part] for parts in streams]
        expected = []
        while any(queues):
            first = min((queue for queue in queues if queue), key=lambda queue: queue[0].time)
            expected.append(first.pop(0))
        assert [every[i] for i in follow._merge(batches).tolist()] == expected


def test_a_dictionary_is_not_much_larger_than_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ever-new terms in small pieces: what a batch costs does not grow, nor does what it holds."""
    from spaseq.rdf.columns import reader

    lines = [f'<a:s{n}> <a:p{n % 7}> "{n}" .\n'.encode() for n in range(20_000)]
    source = StreamSource(S, ("x.nt",))
    given_options = StreamOptions.parse(time_from="arrival", event_by="size:1")
    files = reader.ColumnFiles(source, given_options, Counters(), None, BatchLimits(), ordered=False)
    pieces = (b"".join(lines[at : at + 20]) for at in range(0, len(lines), 20))
    sizes = [len(batch.terms) for batch in files.read("x.nt", pieces, last=False, has_more=lambda: False)]
    assert len(sizes) == 1_000 and max(sizes) < 5_000
