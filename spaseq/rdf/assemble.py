"""Statements of one file become graph events: which of them belong together, and when it happened.

Two steps, each a generator over the one before, so that a file of any length needs the memory of a few events:

1. *Drafts.* `_graphs`, `_subjects`, `_sizes` or `_whole` cut the statements into drafts, an event's statements
   without a time. `_graphs` also passes on what the default graph says about the time of a graph (`About`).
2. *Times.* `_from_arrival` counts; `_from_predicate` looks into the draft, then at what was said about its name. A
   draft whose time stands further on waits, and everything behind it, so that events leave in the order of the
   source.

The rules, where the file leaves a choice:

* **graph**: an event graph ends where a statement of another event graph begins; statements of the default graph in
  between do not end it. A graph without triples (`NO_TRIPLE`) is an event too. A name that comes again after that is
  another event, counted as `reopened`. Statements of the default graph are not in any event; those that do not give a
  graph's time are counted as `ignored`.
* **subject**: a run of statements with one subject (and one graph), with those of the blank nodes that belong to it
  (`_Runs`). It also ends where a predicate of an IRI comes again: a flat record has one value for each attribute, so
  the next record of that subject has begun, even with the value it had before. Only `rdf:type` may stand several times,
  with different types. A blank node may have several values: it is described once. Events that need several IRIs as
  subjects need graphs.
* **size:N**: N statements make an event, as in the original engine. A rest at the end is malformed.
* **time**: in the event's graph, the values of the predicate on the graph's own name come first, then those on any
  subject. Only if there are none, what the default graph says about the name, before or after. More than one time is
  an error.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from rdflib import RDF, BNode, Literal

from spaseq.core.errors import EventError
from spaseq.core.events.time import is_date, parse_time
from spaseq.core.events.timestamps import counted_hint
from spaseq.rdf.iri import closest_iri
from spaseq.rdf.model import Counters, GraphEvent
from spaseq.rdf.options import ARRIVAL, GENERATED_AT, EventBy, StreamOptions
from spaseq.rdf.statements import NO_TRIPLE, Statement
from spaseq.rdf.terms import Term, Triple

__all__ = [
    "NESTED",
    "Draft",
    "assemble",
    "cut_off",
    "no_named_graph",
    "no_time",
    "read_time",
    "time_inside",
    "two_times",
]


@dataclass(slots=True)
class Draft:
    """An event in the making. `number` is its place in the file, from 1; `repeated`: its graph had ended before."""

    name: Term | None
    record: int
    triples: list[Triple]
    number: int = 0
    repeated: bool = False
    time: int | None = None


@dataclass(frozen=True, slots=True)
class _About:
    """The default graph says that the graph `name` has the time `value`."""

    name: Term
    value: Term
    record: int


_Item: TypeAlias = Draft | _About
NESTED: Final = 5
"""Runs of subjects that may wait for what points at them: `[ … ]` that stand in each other up to four deep."""
_NO_GRAPHS: Final = "--event-by subject or --event-by size:N makes events of triples that stand in no named graph"


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
    `options.event_by` and `options.time` must be settled (`spaseq.rdf.streams.settle`). `first` is the number of
    events that came before in the same stream, for time from arrival. `source` names the file in messages.

    EventError: a graph without a time or with several, a time that cannot be read, no named graph where events are
    graphs, an unfinished last event.
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
    """A run of `subject`: `nodes` are the blank nodes in it, `seen` what an IRI's next record would say again."""

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

    A blank node that an open run names belongs to it. Another one has a run of its own, which is put on those there
    are, as parsers tell of `[ … ]` before they tell what points at it. Where a run says that its subject, or a blank
    node in it, points at the subject of one above, it takes that run and those above it; so does a run that begins by
    pointing at one. Whatever else begins a run ends all of them. No more than `NESTED` runs wait, so that events that
    are blank nodes themselves come out.
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
    """The last `limit` names, to tell whether one came before."""

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
    """What the default graph said about times that no draft has taken, and the drafts that still look for theirs."""

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


# What is wrong with an event, also said by `spaseq.rdf.columns` ------------------------------------------------------


def time_inside(draft: Draft, options: StreamOptions, source: str) -> int | None:
    """The time in the draft's own graph, None if it has none."""
    time = options.time or ""
    found = [(s, o) for s, p, o in draft.triples if str.__eq__(p, time)]
    if not found:
        return None
    own = [value for subject, value in found if subject == draft.name]
    times = {read_time(value, options, source, draft.record): value for value in own or [value for _, value in found]}
    if len(times) > 1:
        raise EventError(
            f"{_called(draft)} has {len(times)} times: {', '.join(map(str, times.values()))}",
            source=source,
            record=draft.record,
            hint="an event has one time; --time names the predicate that gives it",
        )
    return next(iter(times))


def read_time(value: Term, options: StreamOptions, source: str, record: int) -> int:
    """Nanoseconds; the lexical form decides, whatever datatype it claims."""
    attribute = options.time or ""
    if not isinstance(value, Literal):
        problem = f"{value} is not a time: a time is a literal"
        raise EventError(problem, source=source, record=record, attribute=attribute)
    try:
        return parse_time(str(value), options.unit)
    except EventError as error:
        raise EventError(error.problem, source=source, record=record, attribute=attribute, hint=error.hint) from None


def _called(draft: Draft) -> str:
    return f"event {draft.number}" if draft.name is None else f"graph {draft.name}"


def no_time(draft: Draft, options: StreamOptions, source: str) -> EventError:
    where = "in it" if draft.name is None else "in it, nor about it in the default graph"
    problem = f"{_called(draft)} has no time: there is no <{options.time}> {where}"
    if draft.name is None and any(type(subject) is BNode for subject, _, _ in draft.triples):
        hint = "its subject is a blank node, an event by itself unless what points at it stands beside it, and no more"
        hint += f" than {NESTED - 1} are open in each other: a named graph for each event keeps all nodes together"
    elif draft.repeated:
        hint = "statements of this graph stood further up already: those of one graph must stand together"
    else:
        dated = [str(p) for _, p, value in draft.triples if isinstance(value, Literal) and is_date(str(value))]
        hint = counted_hint("time", dict.fromkeys(dated), what="predicate", placeholder="PREDICATE")
        close = closest_iri(options.time or "", {str(predicate) for _, predicate, _ in draft.triples})
        hint = f"did you mean <{close}>? {hint}" if close else hint
    return EventError(problem, source=source, record=draft.record, attribute=options.time or "", hint=hint)


def two_times(name: Term, before: int, source: str, record: int) -> EventError:
    """The default graph says a time of the graph `name` on line `record`, and another one on line `before`."""
    return EventError(
        f"graph {name} has two times; the other is on line {before}",
        source=source,
        record=record,
        hint="a graph has one time; a later graph needs a name of its own",
    )


def cut_off(count: int, size: int, source: str, record: int) -> EventError:
    """The last event, which begins on line `record`, has `count` triples, and events have `size`."""
    return EventError(
        f"the last event has {count} triple(s), and an event has {size}",
        source=source,
        record=record,
        hint="the file is cut off, or events have another size (--event-by size:N, or as the streams file says)",
    )


def no_named_graph(source: str) -> EventError:
    """Events are named graphs, and there is none in the file."""
    return EventError("no named graph in the file, and events are named graphs", source=source, hint=_NO_GRAPHS)
