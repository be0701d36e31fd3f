"""The oracle of `spaseq.rdf.columns`, with objects: statements become graph events, in order of time.

`open_streams` gives the events of files that hold them, for tests to compare with and to push. Only the parsers of
files (`Document`, `parse_statements`) and the words of errors are shared.

Two steps make the events of a file. Each is a generator over the one before, so only a few events are held:

1. *Drafts.* `_graphs`, `_subjects`, `_sizes` or `_whole` cut the statements into drafts, an event's statements without
   a time. `_graphs` also passes on the times of graphs that the default graph states (`About`).
2. *Times.* `_from_arrival` counts; `_from_predicate` looks into the draft, then at the times stated for its name. A
   draft whose time stands further on waits, and everything behind it, so that events leave in the order of the source.

The rules, if the file leaves a choice:

* **graph**: an event graph ends where a statement of another event graph begins; statements of the default graph in
  between do not end it. A graph without triples (`NO_TRIPLE`) is an event too. A name that comes again after that is
  another event, counted as `reopened`. Statements of the default graph are not in any event; those that do not give a
  graph's time are counted as `ignored`.
* **subject**: a run of statements with one subject (and one graph), with those of the blank nodes that belong to it
  (`_Runs`). It also ends where a predicate of an IRI comes again, even with the same value. A flat record has one value
  for each attribute, so the next record of that subject has begun. Only `rdf:type` may stand several times, with
  different types. A blank node may have several values: it is described once. Events about several IRIs need graphs.
* **size:N**: N statements make an event, as in the original engine. Fewer at the end are malformed.
* **time**: in the event's graph, values of the predicate on the graph's own name come first, then those on any subject.
  If there are none, the default graph's statements about the name count, before or after. Several are an error.
"""

from __future__ import annotations

import heapq
import zlib
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Final, TypeAlias

from rdflib import RDF, BNode, URIRef

from spaseq.core.events.reorder import SingleReorderer
from spaseq.rdf.columns.wrong_events import (
    Draft,
    cut_off,
    no_named_graph,
    no_time,
    read_time,
    time_inside,
    two_times,
)
from spaseq.rdf.empty_graphs import MARK
from spaseq.rdf.files import STDIN, Format, byte_chunks, expand_files, format_of
from spaseq.rdf.model import Counters, GraphEvent, Instant
from spaseq.rdf.options import ARRIVAL, GENERATED_AT, EventBy, StreamOptions
from spaseq.rdf.statements import Document, Statement, parse_statements, statement_of, unmark
from spaseq.rdf.streams import StreamSource, check_names, file_options, settle
from spaseq.rdf.terms import Term, Terms

NO_TRIPLE: Final = URIRef(MARK)
"""The subject, the same object, of the statement that stands for those of an empty graph."""


@dataclass(frozen=True, slots=True)
class _About:
    """The default graph states that the graph `name` has the time `value`."""

    name: Term
    value: Term
    record: int


_Item: TypeAlias = Draft | _About
NESTED: Final = 5
"""Runs of subjects that may wait for a pointing statement: `[ … ]` that stand in each other up to four deep."""


def assemble(
    statements: Iterable[Statement],
    options: StreamOptions,
    *,
    stream: str,
    source: str,
    counters: Counters | None = None,
    first: int = 0,
) -> Iterator[GraphEvent]:
    """The events in the statements of one file, in the file's order.

    A pure function of its arguments apart from `counters`: any way of reading the file gives the same.
    `options.event_by` and `options.time` must be settled (`settle`). `first` is the number of
    events that came before in the same stream, for time from arrival. `source` names the file in messages.

    EventError: a graph without a time or with several, a time that cannot be read, no named graph if events are graphs,
    an unfinished last event.
    """
    if options.event_by is None or options.time is None:
        raise ValueError("event_by and time must be settled before events are assembled")
    counters = counters if counters is not None else Counters()
    items = _drafts(statements, options.event_by, options, source, counters)
    if options.time == ARRIVAL:
        drafts = _from_arrival(items, options, first)
    else:
        drafts = _from_predicate(items, options, source, counters)
    scope = f"{zlib.crc32(f'{stream} {source}'.encode()):08x}"
    return _events(drafts, stream, source, scope, counters)


def _events(drafts: Iterable[Draft], stream: str, source: str, scope: str, counters: Counters) -> Iterator[GraphEvent]:
    for draft in drafts:
        own = _OwnBlanks(f"e{scope}n{draft.number}")
        triples = tuple(dict.fromkeys((own.of(s), p, own.of(o)) for s, p, o in draft.triples))
        name = None if draft.name is None else own.of(draft.name)
        counters.events += 1
        counters.reopened += draft.repeated
        assert draft.time is not None
        yield GraphEvent(stream, draft.time, triples, name, source, draft.record)


class _OwnBlanks:
    """Gives the blank nodes of one event labels that no other event has, in the order they are met."""

    __slots__ = ("_known", "_prefix")

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._known: dict[Term, BNode] = {}

    def of(self, term: Term) -> Term:
        if type(term) is not BNode:
            return term
        found = self._known.get(term)
        if found is None:
            found = self._known[term] = BNode(f"{self._prefix}b{len(self._known)}")
        return found


# Step 1: drafts -------------------------------------------------------------------------------------------------------


def _drafts(
    statements: Iterable[Statement], by: EventBy, options: StreamOptions, source: str, counters: Counters
) -> Iterator[_Item]:
    """The drafts, numbered."""
    if by.kind == "graph":
        items: Iterator[_Item] = _graphs(statements, options, source, counters)
    elif by.kind == "subject":
        items = _subjects(statements)
    elif by.kind == "size":
        items = _sizes(statements, by.size, options, source, counters)
    else:
        items = _whole(statements)
    number = 0
    for item in items:
        if isinstance(item, Draft):
            number += 1
            item.number = number
        yield item


def _graphs(
    statements: Iterable[Statement], options: StreamOptions, source: str, counters: Counters
) -> Iterator[_Item]:
    predicate = options.time if options.time and options.time != ARRIVAL else GENERATED_AT
    closed = _Recent(options.lookahead)
    draft: Draft | None = None
    record = 0
    for s, p, o, name, record in statements:
        if name is None:
            if str.__eq__(p, predicate):
                yield _About(s, o, record)
            else:
                counters.ignored += 1
            continue
        if draft is None or (draft.name is not name and draft.name != name):
            if draft is not None:
                closed.add(draft.name)
                yield draft
            draft = Draft(name, record, [], repeated=name in closed)
        if s is not NO_TRIPLE:
            draft.triples.append((s, p, o))
    if draft is not None:
        yield draft
    elif record:
        raise no_named_graph(source)


def _subjects(statements: Iterable[Statement]) -> Iterator[Draft]:
    runs = _Runs()
    for statement in statements:
        yield from runs.add(statement)
    yield from runs.close()


@dataclass(slots=True)
class _Run:
    """A run of `subject`: `nodes` are its blank nodes, `seen` predicates and types that an IRI's next record would
    repeat."""

    draft: Draft
    subject: Term
    nodes: set[Term] = field(default_factory=set)
    seen: set[Term | tuple[Term, Term]] = field(default_factory=set)

    def has(self, term: Term) -> bool:
        return term in self.nodes if type(term) is BNode else term == self.subject

    def take(self, above: _Run) -> None:
        self.draft.triples += above.draft.triples
        self.nodes |= above.nodes


class _Runs:
    """The runs of one subject that are not finished, each of them but the first of a blank node.

    A blank node that an open run names belongs to it. Any other begins a run on top of the open ones, as parsers give
    `[ … ]` before the statements that point at them. If the subject or a blank node of a run points at the subject of
    one above, the run takes that one and those above it. So does a run that begins by pointing at one. Any other
    beginning ends all runs. At most `NESTED` runs wait, so that events that are blank nodes themselves come out.
    """

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: list[_Run] = []

    def add(self, statement: Statement) -> Iterator[Draft]:
        """Put the statement where it belongs; the events that have ended with that."""
        s, p, o, name, record = statement
        if self._open and name != self._open[0].draft.name:
            yield from self.close()
        blank, key = type(s) is BNode, (p, o) if p == RDF.type else p
        runs = self._open
        home = next((level for level in reversed(range(len(runs))) if runs[level].has(s)), -1)
        again = home >= 0 and not blank and key in runs[home].seen
        child = -1
        if type(o) is BNode:
            child = next((level for level in range(home + 1, len(runs)) if runs[level].subject == o), -1)
        if child >= 0 and home >= 0 and not again:
            self._merge(home)
        elif child >= 0:
            self._merge(child)
            if not blank:
                yield from self.close(child)
            runs[-1].subject = s
        elif again or home < len(runs) - 1 or not runs:
            if home >= 0 or not blank:
                yield from self.close()
            elif len(runs) == NESTED:
                yield from self.close(1)
            runs.append(_Run(Draft(name, record, []), s))
        run = runs[-1]
        run.draft.triples.append((s, p, o))
        if not blank:
            run.seen.add(key)
        run.nodes.update(term for term in (s, o) if type(term) is BNode)

    def close(self, count: int | None = None) -> Iterator[Draft]:
        """The first `count` runs, all by default, have ended."""
        for run in self._open[:count]:
            yield run.draft
        del self._open[:count]

    def _merge(self, level: int) -> None:
        """The run at `level` takes those above."""
        for above in self._open[level + 1 :]:
            self._open[level].take(above)
        del self._open[level + 1 :]


def _sizes(
    statements: Iterable[Statement], size: int, options: StreamOptions, source: str, counters: Counters
) -> Iterator[Draft]:
    draft: Draft | None = None
    for s, p, o, name, record in statements:
        draft = draft or Draft(name, record, [])
        if name != draft.name:
            draft.name = None
        draft.triples.append((s, p, o))
        if len(draft.triples) == size:
            yield draft
            draft = None
    if draft is None:
        return
    if options.malformed != "drop":
        raise cut_off(len(draft.triples), size, source, draft.record)
    counters.malformed += 1


def _whole(statements: Iterable[Statement]) -> Iterator[Draft]:
    draft: Draft | None = None
    for s, p, o, name, record in statements:
        draft = draft or Draft(name, record, [])
        draft.triples.append((s, p, o))
    if draft is not None:
        yield draft


class _Recent:
    """The last `limit` names, to detect one that came before."""

    __slots__ = ("_limit", "_names")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._names: OrderedDict[Term | None, None] = OrderedDict()

    def add(self, name: Term | None) -> None:
        self._names[name] = None
        self._names.move_to_end(name)
        if len(self._names) > self._limit:
            self._names.popitem(last=False)

    def __contains__(self, name: Term | None) -> bool:
        return name in self._names


# Step 2: times --------------------------------------------------------------------------------------------------------


def _from_arrival(items: Iterable[_Item], options: StreamOptions, first: int) -> Iterator[Draft]:
    count = first
    for item in items:
        if isinstance(item, Draft):
            item.time = count * options.step
            count += 1
            yield item


def _from_predicate(items: Iterable[_Item], options: StreamOptions, source: str, counters: Counters) -> Iterator[Draft]:
    said = _Said(options, source)
    waiting: deque[Draft] = deque()
    for item in items:
        if isinstance(item, _About):
            said.note(item, counters)
        else:
            item.time = time_inside(item, options, source)
            if item.time is None:
                said.ask(item)
            waiting.append(item)
        while waiting and waiting[0].time is not None:
            yield waiting.popleft()
        if len(waiting) > options.lookahead:
            raise no_time(waiting[0], options, source)
    if waiting:
        raise no_time(waiting[0], options, source)
    counters.ignored += len(said)


class _Said:
    """The times from the default graph that no draft has taken, and the drafts that still look for theirs."""

    __slots__ = ("_asking", "_options", "_source", "_times")

    def __init__(self, options: StreamOptions, source: str) -> None:
        self._options = options
        self._source = source
        self._times: OrderedDict[Term, tuple[int, int]] = OrderedDict()
        self._asking: dict[Term, deque[Draft]] = {}

    def __len__(self) -> int:
        return len(self._times)

    def note(self, about: _About, counters: Counters) -> None:
        """Give the time to the first draft that asked for it, or keep it for one to come."""
        time = read_time(about.value, self._options, self._source, about.record)
        asking = self._asking.get(about.name)
        if asking:
            asking.popleft().time = time
            if not asking:
                del self._asking[about.name]
            return
        before = self._times.setdefault(about.name, (time, about.record))
        if before[0] != time:
            raise two_times(about.name, before[1], self._source, about.record)
        if len(self._times) > self._options.lookahead:
            self._times.popitem(last=False)
            counters.ignored += 1

    def ask(self, draft: Draft) -> None:
        """Give `draft` the time said about its name, now or when it comes."""
        if draft.name is None:
            return
        found = self._times.pop(draft.name, None)
        if found is not None:
            draft.time = found[0]
        else:
            self._asking.setdefault(draft.name, deque()).append(draft)


# Files and streams ----------------------------------------------------------------------------------------------------


def open_streams(
    sources: Sequence[StreamSource], options: StreamOptions, counters: Counters | None = None
) -> tuple[Iterator[GraphEvent], StreamOptions]:
    """The merged events of `sources`, given in the order of the FROM clause, and the options as settled."""
    check_names(sources)
    counters = counters if counters is not None else Counters()
    settled = settle(options, sources)
    streams = [(s.iri, read_stream(s.iri, s.files, settled, counters, event_by=s.event_by)) for s in sources]
    return merge_streams(streams), settled


def read_stream(
    iri: str,
    files: Sequence[str],
    options: StreamOptions,
    counters: Counters | None = None,
    *,
    event_by: EventBy | None = None,
) -> Iterator[GraphEvent]:
    """The events of the stream `iri`, in order of time. Errors about names and options are raised at once."""
    counters = counters if counters is not None else Counters()
    source = StreamSource(iri, tuple(files), event_by)
    settled = settle(options, (source,))
    return in_order(_assembled(source, expand_files(files), settled, counters), settled, counters)


def _assembled(
    source: StreamSource, paths: Sequence[str], options: StreamOptions, counters: Counters
) -> Iterator[GraphEvent]:
    terms = Terms()
    count = 0
    for path in paths:
        own = file_options(path, source, options)
        form = format_of(path, options.format)
        name = "<stdin>" if path == STDIN else path
        chunks = byte_chunks(path)
        if form.lines:
            statements = parse_statements(chunks, form, path, terms=terms, counters=counters, malformed=own.malformed)
        else:
            statements = document_statements(chunks, form, path, own, terms, counters)
        for event in assemble(statements, own, stream=source.iri, source=name, counters=counters, first=count):
            count += 1
            yield event


def document_statements(
    chunks: Iterable[bytes], form: Format, path: str, options: StreamOptions, terms: Terms, counters: Counters
) -> Iterator[Statement]:
    """The statements of a document, a graph without triples as one statement of `NO_TRIPLE` if graphs are events."""
    for quads, lines, empty in Document(unmark(chunks), form, path, by_graph=options.by_graph).parts():
        for place, (quad, line) in enumerate(zip(quads, lines, strict=True)):
            statement = statement_of(quad, line, terms, path)
            counters.triples += place not in empty
            yield (NO_TRIPLE, NO_TRIPLE, NO_TRIPLE, *statement[3:]) if place in empty else statement


def in_order(events: Iterable[GraphEvent], options: StreamOptions, counters: Counters) -> Iterator[GraphEvent]:
    """The events of one stream sorted by time, equal times in the order they came; `spaseq.core.events.reorder`."""
    order = SingleReorderer(options, described)
    for event in events:
        yield from order.push(event.time, event)
        counters.late += order.take_dropped()
    yield from order.due(last=True)


def described(event: GraphEvent) -> tuple[str, tuple[str, int]]:
    """The names of an event's stream and place in errors about its time."""
    return f"stream {event.stream}", (event.source, event.record)


def merge_streams(streams: Sequence[tuple[str, Iterable[GraphEvent]]]) -> Iterator[GraphEvent]:
    """The events of all streams by time; equal times in the order of `streams` (as in FROM), then of the source.

    Each stream must be in order. One event of each is held, so nothing comes out before every stream has given one.
    """
    return heapq.merge(*(events for _, events in streams), key=attrgetter("time"))


def instants(merged: Iterable[GraphEvent], options: StreamOptions) -> Iterator[Instant]:
    """The instants of a streamset: one per distinct time, numbered from 0.

    With time from arrival, and with `ties="arrival"`, each event is an instant of its own.
    """
    if options.apart:
        for position, event in enumerate(merged):
            yield Instant(position, event.time, (event,))
    else:
        for position, (time, events) in enumerate(groupby(merged, key=attrgetter("time"))):
            yield Instant(position, time, tuple(events))
