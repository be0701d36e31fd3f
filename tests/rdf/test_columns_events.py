"""Columns and objects: batches hold the events that the oracle gives, in its order, with its errors and counts.

Streams are random: graphs, runs of a subject and sizes; times inside, about the graph in the default graph, missing,
twice, late; blank nodes, duplicates, names that come again. Each is read event by event and by columns, with blocks and
batches of several sizes.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events.ahead import Ahead
from spaseq.rdf import Counters, GraphEvent, StreamOptions, StreamSource, files
from spaseq.rdf.columns import BatchLimits, GraphBatch
from spaseq.rdf.columns.reader import open_batches, read_batches
from spaseq.rdf.options import GENERATED_AT, EventBy, EventKind
from tests.support.drawn_streams import AT, TYPE, graphs, linked, options, triples
from tests.support.graph_events_by_definition import open_streams
from tests.support.sizes import some

QUAD = re.compile(r'^(\S+ \S+ (?:"[^"]*"\S*|\S+))[ ](<[^>]*>|_:\w+) \.')
"""A line of N-Quads with a graph: its triple, and the name of the graph."""
S, T = "http://example.org/S", "http://example.org/T"
Outcome = tuple[dict[str, list[GraphEvent]], str | None, Counters]


def by_events(sources: Sequence[StreamSource], options: StreamOptions) -> Outcome:
    """Each stream apart, as columns are read."""
    found: dict[str, list[GraphEvent]] = {source.iri: [] for source in sources}
    counters = Counters()
    problem = None
    _, settled = open_streams(sources, options)
    for source in sources:
        try:
            for event in open_streams([source], settled, counters)[0]:
                found[source.iri].append(event)
        except EventError as error:
            problem = str(error)
            break
    return found, problem, counters


def by_batches(
    sources: Sequence[StreamSource], options: StreamOptions, limits: BatchLimits, ahead: Ahead | None
) -> Outcome:
    """Looked at when all has been read: what comes later must not change a batch."""
    kept: dict[str, list[GraphBatch]] = {source.iri: [] for source in sources}
    counters, problem = Counters(), None
    _, settled = open_batches(sources, options, counters, limits=limits)
    streams = [(each.iri, read_batches(each, settled, counters, limits=limits, ahead=ahead)) for each in sources]
    try:
        for iri, batches in streams:
            for batch in batches:
                kept[iri].append(batch)
    except EventError as error:
        problem = str(error)
    for batch in (batch for batches in kept.values() for batch in batches):
        check_batch(batch)
    events = {iri: [batch.event(i) for batch in batches for i in range(len(batch))] for iri, batches in kept.items()}
    return events, problem, counters


def check_batch(batch: GraphBatch) -> None:
    assert len(batch) > 0
    assert batch.triples.dtype == "int32" and batch.triples.shape == (batch.offsets[-1], 3)
    assert batch.offsets[0] == 0 and (batch.offsets[1:] >= batch.offsets[:-1]).all()
    assert (batch.times[1:] >= batch.times[:-1]).all()
    assert (batch.triples >= 0).all() and (batch.triples < len(batch.terms)).all()
    for number in set(batch.triples.ravel().tolist()):
        assert batch.terms.id_of(batch.terms.term(number)) == number


def agree(sources: Sequence[StreamSource], options: StreamOptions, limits: Sequence[int] = (1 << 16, 1)) -> Outcome:
    found, problem, counters = by_events(sources, options)
    for limit, ahead in product(limits, (None, map)):
        again, other, counted = by_batches(sources, options, BatchLimits(limit, 1 << 24 if limit > 1 else 1), ahead)
        assert (again, other) == (found, problem)
        if problem is None:
            assert counted == counters
    return found, problem, counters


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("columns")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_CHUNK", 200)


def stream(folder: Path, text: str, iri: str = S, name: str = "a.nq", **more: object) -> StreamSource:
    path = folder / name
    path.write_text(text, "utf-8")
    return StreamSource(iri, (str(path),), **more)  # type: ignore[arg-type]


# Random streams -------------------------------------------------------------------------------------------------------


@given(graphs(odd=False), options)
@settings(max_examples=some(50))
def test_graphs(folder: Path, text: str, given_options: StreamOptions) -> None:
    agree([stream(folder, text)], given_options)


@given(graphs(odd=True), options)
@settings(max_examples=some(120))
def test_odd_graphs(folder: Path, text: str, given_options: StreamOptions) -> None:
    agree([stream(folder, text)], given_options)


@given(triples(), options)
@settings(max_examples=some(70))
def test_records(folder: Path, text: str, given_options: StreamOptions) -> None:
    agree([stream(folder, text, name="a.nt")], given_options)


@given(linked(), options)
@settings(max_examples=some(200))
def test_nodes_of_subjects(folder: Path, text: str, given_options: StreamOptions) -> None:
    options = replace(given_options, event_by=EventBy("subject"))
    if draws_no_time := given_options.time is None:
        options = replace(options, time="arrival")
    agree([stream(folder, text)], options, (1 << 16, 1) if draws_no_time else (7, 1))


@given(st.one_of(graphs(odd=False), graphs(odd=True), triples(), linked()), options, st.booleans())
@settings(max_examples=some(200))
def test_documents(folder: Path, text: str, given_options: StreamOptions, empty: bool) -> None:
    """Lines as TriG, each its own block: what the parser gives, or refuses, is cut by the same rules."""
    blocks = [QUAD.sub(r"\2 { \1 }", line) for line in text.splitlines()]
    blocks = [block + (f" <a:e{number}> {{ }} <a:e{number}> {AT} \"{number}\" ." if empty and number % 3 == 0 else "")
              for number, block in enumerate(blocks)]  # fmt: skip
    agree([stream(folder, "\n".join(blocks), name="a.trig")], given_options)


@given(st.one_of(triples(), linked()), options, st.sampled_from(["file", "graph", "subject"]))
@settings(max_examples=some(70))
def test_turtle(folder: Path, text: str, given_options: StreamOptions, by: EventKind) -> None:
    agree([stream(folder, text, name="a.ttl")], replace(given_options, event_by=EventBy(by)))


@given(graphs(odd=True), options)
@settings(max_examples=some(50))
def test_whole_files_of_quads(folder: Path, text: str, given_options: StreamOptions) -> None:
    agree([stream(folder, text)], replace(given_options, event_by=EventBy("file")))


def test_nodes_whose_links_no_pattern_needs_are_in_their_events(folder: Path) -> None:
    text = '_:b <a:v> "1" .\n<a:o> <a:r> _:b .\n<a:o> <a:t> "5" .\n'
    text += '<a:u> <a:r> _:c .\n_:c <a:v> "2" .\n<a:u> <a:t> "6" .\n'
    options = StreamOptions(event_by=EventBy("subject"), time="a:t")
    streams, _ = open_batches([stream(folder, text, name="a.nt")], options, wanted=["a:v"])
    (batch,) = list(streams[0][1])
    assert batch.times.tolist() == [5 * 10**9, 6 * 10**9]
    assert [[str(o) for _, _, o in batch.event(i).triples] for i in range(2)] == [["1"], ["2"]]


@given(st.lists(st.one_of(graphs(odd=True), triples()), min_size=2, max_size=3), options)
@settings(max_examples=some(40))
def test_several_files(folder: Path, texts: list[str], given_options: StreamOptions) -> None:
    paths = []
    for number, text in enumerate(texts):
        paths.append(str(folder / f"{number}.nq"))
        Path(paths[-1]).write_text(text, "utf-8")
    agree([StreamSource(S, tuple(paths))], given_options)


@pytest.mark.random
@given(st.one_of(graphs(odd=True), graphs(odd=False), triples()), options, st.sampled_from([60, 200, 1000]))
@settings(max_examples=5_000)
def test_many_streams(folder: Path, text: str, given_options: StreamOptions, chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_CHUNK", chunk)
        agree([stream(folder, text)], given_options)


# By hand --------------------------------------------------------------------------------------------------------------


def test_compressed_files_globs_and_a_document(folder: Path) -> None:
    text = "".join(f'<a:n{n}> {AT} "{n}" <a:n{n}> .\n<a:s> <a:p> "{n}" <a:n{n}> .\n' for n in range(40))
    (folder / "z1.nq.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "z2.nq.zst").write_bytes(zstandard.compress(text.replace(' "', ' "9').encode()))
    found, problem, _ = agree([StreamSource(S, (str(folder / "z?.nq*"),))], StreamOptions())
    assert problem is None and len(found[S]) == 80
    trig = f'<a:g> {{ <a:g> {AT} "7" . <a:s> <a:p> [ <a:q> <a:o> ] }} <a:h> {{ <a:h> {AT} "8" }}'
    found, problem, _ = agree(
        [stream(folder, trig, name="b.trig"), StreamSource(T, (str(folder / "z1.nq.gz"),))], StreamOptions()
    )
    assert problem is None and len(found[S]) == 2 and len(found[T]) == 40


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f'<a:n{n}> {AT} "{n}" <a:n{n}> .\n' for n in range(40)).encode()

    class Input:
        buffer = io.BufferedReader(io.BytesIO(text))

    monkeypatch.setattr("sys.stdin", Input())
    _, batches = open_batches([StreamSource(S, ("-",))], StreamOptions())[0][0]
    events = [batch.event(i) for batch in batches for i in range(len(batch))]
    assert [event.time for event in events] == [n * 10**9 for n in range(40)]
    assert {event.source for event in events} == {"<stdin>"}


def test_what_stands_in_a_pipe_is_not_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    end, begin = os.pipe()

    class Input:
        buffer = os.fdopen(end, "rb")

    monkeypatch.setattr("sys.stdin", Input())
    _, batches = open_batches([StreamSource(S, ("-",))], StreamOptions(event_by=EventBy("size", 2)))[0][0]
    os.write(begin, b"<a:s> <a:p> <a:o> .\n<a:s> <a:p> <a:q> .\n<a:t> <a:p> <a:o> .\n<a:t")
    assert len(next(batches)) == 1
    os.write(begin, b"> <a:p> <a:q> .\n")
    again = next(batches)
    assert [str(s) for s, _, _ in again.event(0).triples] == ["a:t", "a:t"] and again.records.tolist() == [3]
    os.close(begin)
    assert list(batches) == []


def test_a_pipe_with_a_name(folder: Path) -> None:
    path = folder / "pipe.nt"
    os.mkfifo(path)
    written = threading.Event()

    def write() -> None:
        with path.open("wb", buffering=0) as pipe:
            pipe.write(b"<a:s> <a:p> <a:o> .\n<a:s> <a:p> <a:q> .\n")
            written.wait(10)

    writer = threading.Thread(target=write)
    writer.start()
    _, batches = open_batches([StreamSource(S, (str(path),))], StreamOptions(event_by=EventBy("size", 1)))[0][0]
    assert len(next(batches)) == 2
    written.set()
    assert list(batches) == []
    writer.join()


def test_streams_of_one_name_and_clocks_that_do_not_compare(folder: Path) -> None:
    a = stream(folder, "")
    with pytest.raises(OptionError, match="given twice"):
        open_batches([a, a], StreamOptions())
    with pytest.raises(OptionError, match="their order is unknown"):
        open_batches([a, stream(folder, "", T, "b.nt")], StreamOptions())


def test_events_wait_for_times_over_many_batches(folder: Path) -> None:
    """All graphs first, then all times; and the other way round."""
    count = some(300)
    inside = [f'<a:n{n}> <a:p> "{n}" <a:g{n}> .\n_:b <a:q> _:b <a:g{n}> .\n' for n in range(count)]
    about = [f'<a:g{n}> {AT} "{n}" .\n' for n in range(count)]
    for lines in ([*inside, *about], [*about, *inside], [*inside, *about[::-1]], [*about[::-1], *inside]):
        found, problem, counters = agree([stream(folder, "".join(lines))], StreamOptions(), (1 << 16, 50, 1))
        assert problem is None and len(found[S]) == count and counters.ignored == 0


def test_a_large_lateness_over_many_batches(folder: Path) -> None:
    times = [(n * 37) % 101 + n for n in range(400)]
    text = "".join(f'<a:g{n}> {AT} "{time}" <a:g{n}> .\n<a:s> <a:p> _:b <a:g{n}> .\n' for n, time in enumerate(times))
    for lateness in (20, 60, 101):
        options = StreamOptions(lateness=lateness * 10**9, late="drop")
        found, problem, counters = agree([stream(folder, text)], options, (1 << 16, 100, 1))
        assert problem is None and len(found[S]) == 400 - counters.late


def test_times_far_apart(folder: Path) -> None:
    text = "".join(f'<a:g{n}> {AT} "{time}" <a:g{n}> .\n' for n, time in enumerate([9 * 10**9, -9 * 10**9, 9 * 10**9]))
    for lateness in (0, 10**9, 18 * 10**18):
        agree([stream(folder, text)], StreamOptions(lateness=lateness, late="drop"))


def test_an_event_of_many_triples_keeps_each_once(folder: Path) -> None:
    lines = [f'<a:s> <a:p> "{(n * n) % 97}" <a:g> .\n' for n in range(500)]
    found, _, _ = agree([stream(folder, "".join([f'<a:g> {AT} "1" <a:g> .\n', *lines]))], StreamOptions())
    assert len(found[S][0].triples) == 1 + len({(n * n) % 97 for n in range(500)})


def test_names_that_come_again_are_counted_as_long_as_they_are_remembered(folder: Path) -> None:
    order = [n % 7 for n in range(50)] + [n % 3 for n in range(20)] + [5, 6, 5, 1, 2]
    text = "".join(f'<a:g{name}> {AT} "{n}" <a:g{name}> .\n' for n, name in enumerate(order))
    for lookahead in (250_000, 8, 6, 5, 2, 1):
        agree([stream(folder, text)], StreamOptions(lookahead=lookahead))


def wanted_events(batches: Iterator[GraphBatch]) -> list[GraphEvent]:
    return [batch.event(i) for batch in batches for i in range(len(batch))]


@given(st.one_of(graphs(odd=True), triples()), options, st.sets(st.sampled_from(["a:p", "a:q", TYPE[1:-1], AT[1:-1]])))
@settings(max_examples=50)
def test_wanted_predicates_leave_out_triples_and_nothing_else(
    folder: Path, text: str, given_options: StreamOptions, wanted: set[str]
) -> None:
    source = stream(folder, text.replace("_:", "b:"))
    found, problem, counters = by_events([source], given_options)
    counted = Counters()
    events: list[GraphEvent] = []
    try:
        for batch in open_batches([source], given_options, counted, wanted=wanted, limits=BatchLimits(5))[0][0][1]:
            events += [batch.event(i) for i in range(len(batch))]
    except EventError as error:
        assert str(error) == problem
    else:
        assert problem is None and counted == counters
    expected = [
        GraphEvent(e.stream, e.time, tuple(t for t in e.triples if str(t[1]) in wanted), e.graph, e.source, e.record)
        for e in found[S]
    ]
    assert events == expected


@pytest.mark.parametrize("iri", ["foo", "http://x/%zz", "http://x/{", "http://x/a b", "http://x/\u00e9"])
@pytest.mark.parametrize("role", ["wanted", "time"])
def test_what_a_query_names_is_not_taken_for_an_iri_that_the_parser_refuses(folder: Path, iri: str, role: str) -> None:
    path = folder / "a.nq"
    path.write_text(f'<urn:g> <{GENERATED_AT}> "1" <urn:g> .\n<urn:s> <{iri}> "2" <urn:g> .\n', "utf-8")
    given_options = StreamOptions(time=iri if role == "time" else GENERATED_AT, malformed="drop")
    outcomes = []
    for wanted in ({iri, "urn:p"}, None):
        counters = Counters()
        opened, _ = open_batches([StreamSource("urn:s", (str(path),))], given_options, counters, wanted=wanted)
        try:
            problem, count = None, sum(len(batch) for batch in opened[0][1])
        except EventError as error:
            problem, count = str(error), 0
        outcomes.append((problem, count, counters.triples, counters.malformed))
    read = Counters()
    events, _ = open_streams([StreamSource("urn:s", (str(path),))], given_options, read)
    try:
        problem, count = None, sum(1 for _ in events)
    except EventError as error:
        problem, count = str(error), 0
    assert outcomes == [(problem, count, read.triples, read.malformed)] * 2
