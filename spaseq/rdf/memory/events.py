"""Events of the graphs that a program gives: pushed to a session, or given to `run` in place of files.

One graph is one event. Blank nodes belong to one event alone, as those of files do: the labels of two graphs have
nothing to do with each other.
"""

from __future__ import annotations

import datetime
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, Final, SupportsIndex, TypeAlias

import numpy as np
import pyoxigraph
from rdflib import BNode, Literal, URIRef

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events.time import is_date, nanoseconds_of, parse_time
from spaseq.core.events.timestamps import counted_hint
from spaseq.core.measure import shorten
from spaseq.rdf.columns.model import GraphBatch
from spaseq.rdf.given import FOREIGN, graph_names, is_dataset, is_graph, statements_of
from spaseq.rdf.memory.texts import read_text
from spaseq.rdf.model import GraphEvent
from spaseq.rdf.options import ARRIVAL, GENERATED_AT, StreamOptions
from spaseq.rdf.terms import Term, Terms, Triple, plain_literal
from spaseq.rdf.triple_terms import TripleTerm, has_blanks, with_nodes

Time: TypeAlias = SupportsIndex | datetime.datetime | str | pyoxigraph.Literal | np.datetime64
"""A time as a program gives it: ns, a datetime, a text or a literal, as of `given_time`."""

_SOURCE: Final = "<events>"
_END: Final = object()
REMEMBERED: Final = 10_000
"""Terms of each kind that a session remembers of the graphs pushed to it.

PERF: a dataset of pyoxigraph with three triples becomes an event in 85 µs, without this memory in 140.
"""
_PLACE: Final = "the graph"
_KINDS: Final = (
    "an event is a graph of rdflib or pyoxigraph, a list of triples, or a text of RDF; or, with its time, a pair "
    "(time, graph) or a spaseq.GraphEvent"
)


def given_time(time: Any, unit: str = "s") -> int:
    """Nanoseconds since the epoch: of an integer, itself; of a datetime, in UTC if it has no zone; of a text or a
    literal what `parse_time` reads, numbers in `unit`. Raises `OptionError` for anything else.

    >>> given_time(datetime.datetime(1970, 1, 1, 0, 0, 1)), given_time("1970-01-01T00:00:01Z"), given_time("1.5")
    (1000000000, 1000000000, 1500000000)
    """
    if isinstance(time, np.datetime64) and not np.isnat(time):
        return nanoseconds_of(time.astype("datetime64[ns]").astype(np.int64))
    text = time.value if isinstance(time, pyoxigraph.Literal) else time
    if isinstance(text, str) and not isinstance(text, URIRef | BNode):
        try:
            return parse_time(str(text), unit)
        except EventError as error:
            raise OptionError(f"time: {error.problem}", error.hint) from None
    if isinstance(time, (Mapping, pyoxigraph.NamedNode, URIRef, BNode)) or is_graph(time):
        raise OptionError(f"a {type(time).__name__} is no time", f"{_TIMES}; a pair is (time, graph)")
    try:
        return nanoseconds_of(time)
    except OptionError as error:
        raise OptionError(error.problem, _TIMES) from None


_TIMES: Final = "a time is an int (nanoseconds), a datetime, or a text or literal such as 2026-06-15T08:00:00Z"


class GivenEvents:
    """Makes the events of one stream. `before`: the number of events before; labels of blank nodes are made of it.

    `options`: of times that graphs state, and `format` of texts (None: guessed). `terms` remembers those of the graphs
    before. `ignored`: statements of default graphs that belong to no event.
    """

    def __init__(
        self,
        stream: str,
        options: StreamOptions,
        *,
        before: int = 0,
        format: Any = None,
        terms: Terms | None = None,
    ) -> None:
        self.stream = stream
        self.ignored = 0
        self._options = options
        self._format = options.format if format is None else format
        self._time = GENERATED_AT if options.time in (None, ARRIVAL) else str(options.time)
        self._scope = f"p{zlib.crc32(stream.encode()):08x}n"
        self._number = before
        self._terms = terms or Terms(REMEMBERED)

    def events(self, given: Any, time: Any = None) -> Iterator[GraphEvent]:
        """The events of `given`: one graph, or several, each alone or with its time.

        * A graph or a list of triples is one event, at `time`, else at the time that it states.
        * A dataset is an event for each of its named graphs, in order of their times: those that it states, in the
          graph or about it in the default graph. With `time`, all its triples are one event. A text is a dataset.
        * Several graphs: any iterable of graphs, of pairs (time, graph or list or text), and of `GraphEvent`s.

        Raises `OptionError` for anything else, and `EventError` for a graph without a time, or with two.
        """
        if isinstance(given, GraphEvent):
            self._expect_none(time)
            yield self._take(given)
        elif is_graph(given) or isinstance(given, str | bytes | bytearray):
            yield from self._of_graph(given, time)
        elif _holds_none(given):
            raise _no_event(given)
        else:
            yield from self._of_many(given, time)

    def _of_many(self, given: Iterable[Any], time: Any) -> Iterator[GraphEvent]:
        items = iter(given)
        first = next(items, _END)
        if first is _END:
            if time is not None:
                yield self._event((), time)
            return
        items = chain((first,), items)
        if _is_statement(first):
            yield from self._of_graph(items, time)
            return
        if not (isinstance(first, GraphEvent) or is_graph(first) or _is_pair(first)):
            raise _no_event(first, f"event {self._number + 1}")
        self._expect_none(time)
        for item in items:
            if isinstance(item, GraphEvent):
                yield self._take(item)
            elif _is_pair(item):
                yield from self._of_pair(*item)
            elif is_graph(item):
                yield from self._of_graph(item, None)
            else:
                raise _no_event(item, f"event {self._number + 1}")

    def _of_pair(self, time: Any, graph: Any) -> Iterator[GraphEvent]:
        place = f"event {self._number + 1}"
        try:
            at = given_time(time, self._options.unit)
        except OptionError as error:
            raise OptionError(f"{place}: {error.problem}", error.hint) from None
        if not is_graph(graph) and not isinstance(graph, str | bytes | bytearray) and _holds_none(graph):
            raise _no_event(graph, place)
        yield from self._of_graph(graph, at)

    def _expect_none(self, time: Any) -> None:
        if time is not None:
            hint = "a GraphEvent has a time; give others as pairs: [(time, graph), …]"
            raise OptionError("time= is the time of one graph, and these are events by themselves", hint)

    def _take(self, event: GraphEvent) -> GraphEvent:
        if event.stream != self.stream:
            problem = f"an event of the stream <{event.stream}> is given for the stream <{self.stream}>"
            raise EventError(problem, source=event.source, record=event.record or None)
        self._number += 1
        return event

    def _of_graph(self, given: Any, time: Any) -> Iterator[GraphEvent]:
        """The event of a graph, or those of a dataset."""
        text = isinstance(given, str | bytes | bytearray)
        found = read_text(given, self._format, self._terms) if text else statements_of(given, _PLACE, self._terms)
        graphs: dict[Term | None, dict[Triple, None]] = {}
        for triple, name in found:
            triples = graphs.setdefault(name, {})
            if triple is not None:
                s, p, o = triple
                triples[s, p, plain_literal(o)] = None
        if time is not None:
            name = next(iter(graphs)) if len(graphs) == 1 else None
            yield self._event(dict.fromkeys(chain.from_iterable(graphs.values())), time, name)
        elif not graphs.keys() - {None} and not (is_dataset(given) and not graphs):
            yield self._event_in_time(graphs.get(None, {}), None, {})
        else:
            yield from self._of_named(graphs, given)

    def _of_named(self, graphs: dict[Term | None, dict[Triple, None]], given: Any) -> Iterator[GraphEvent]:
        stated: dict[Term, dict[Literal, None]] = {}
        for s, p, o in graphs.pop(None, {}):
            if str(p) == self._time and isinstance(o, Literal):
                stated.setdefault(s, {})[o] = None
            else:
                self.ignored += 1
        if is_dataset(given):
            for name in graph_names(given):  # a graph without triples is an event if it is given a time
                if name in stated:
                    graphs.setdefault(name, {})
            graphs = dict(sorted(graphs.items(), key=lambda graph: str(graph[0])))  # a dataset has no order
        self.ignored += sum(len(times) for name, times in stated.items() if name not in graphs)
        made = [self._event_in_time(triples, name, stated) for name, triples in graphs.items()]
        yield from made if self._options.time == ARRIVAL else sorted(made, key=lambda event: event.time)

    def _event_in_time(
        self, triples: Mapping[Triple, None], name: Term | None, stated: Mapping[Term, Mapping[Literal, None]]
    ) -> GraphEvent:
        """The event of a graph at its time: stated in it, else about it, or counted."""
        options = self._options
        if options.time == ARRIVAL:
            return self._event(triples, self._number * options.step, name)
        from spaseq.rdf.columns.wrong_events import Draft, read_time, time_inside  # loads kernels

        record = self._number + 1
        told = options if options.time is not None else replace(options, time=GENERATED_AT)
        time = time_inside(Draft(name, record, list(triples), record), told, _SOURCE)
        if time is None and name is not None:
            times = {read_time(value, told, _SOURCE, record) for value in stated.get(name, ())}
            if len(times) > 1:
                hint = "a graph has one time; a later graph needs a name of its own"
                raise EventError(f"graph {name} has {len(times)} times", source=_SOURCE, record=record, hint=hint)
            time = next(iter(times), None)
        if time is None:
            raise self._no_time(triples, name, record)
        return self._event(triples, time, name)

    def _no_time(self, triples: Iterable[Triple], name: Term | None, record: int) -> EventError:
        what = f"event {record}" if name is None else f"graph {name}"
        where = "in it" if name is None else "in it, nor about it in the default graph"
        dated = dict.fromkeys(str(p) for _, p, value in triples if isinstance(value, Literal) and is_date(str(value)))
        hint = counted_hint("time", dated, what="predicate", placeholder="PREDICATE")
        return EventError(
            f"{what} has no time: there is no <{self._time}> {where}", source=_SOURCE, attribute=self._time,
            hint=f"push(graph, time=…) gives it one, or a pair (time, graph); when opened or run, {hint}",
        )  # fmt: skip

    def _event(self, triples: Iterable[Triple], time: Any, name: Term | None = None) -> GraphEvent:
        nodes: dict[Term, Term] = {}
        number = self._number

        def own(term: Term) -> Term:
            if term.__class__ is not BNode:
                return with_nodes(term, own) if has_blanks(term) else term
            found = nodes.get(term)
            if found is None:
                found = nodes[term] = BNode(f"{self._scope}{number}b{len(nodes)}")
            return found

        made = tuple((own(s), p, own(o)) for s, p, o in triples)
        event = GraphEvent(
            self.stream, given_time(time, self._options.unit), made, None if name is None else own(name), _SOURCE,
            number + 1,
        )  # fmt: skip
        self._number += 1
        return event


def _is_statement(item: Any) -> bool:
    """True for a triple or a quad, right or wrong."""
    kinds = (pyoxigraph.Triple, pyoxigraph.Quad)
    return isinstance(item, kinds) or (isinstance(item, tuple | list) and len(item) in (3, 4))


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple | list) and len(item) == 2


def _holds_none(given: Any) -> bool:
    """True for an object that holds no graphs, nor triples."""
    others = (str, bytes, bytearray, os.PathLike, Mapping, GraphBatch, pyoxigraph.Triple, pyoxigraph.Quad, *FOREIGN)
    return isinstance(given, others) or not isinstance(given, Iterable) or hasattr(given, "column_names")


def _no_event(given: Any, place: str = "") -> OptionError:
    """The error for an object that is no event, nor holds any."""
    at = f"{place}: " if place else ""
    if isinstance(given, (URIRef, BNode, Literal, TripleTerm, *FOREIGN)):
        return OptionError(
            f"{at}a term of RDF is no graph", "a graph of one triple is a list: [(subject, predicate, object)]"
        )
    if isinstance(given, os.PathLike | str | bytes | bytearray):
        problem = f"{at}a text or a path is no graph among others: {shorten(str(given), 60)!r}"
        return OptionError(problem, "a list has pairs: (time, text); query.run(streams={name: path}) reads a file")
    if isinstance(given, Mapping):
        return OptionError(
            f"{at}a {type(given).__name__} holds no triples", f"{_KINDS}; json.dumps makes JSON-LD a text"
        )
    return OptionError(f"{at}an object of the type {type(given).__name__} is no graph event, nor holds any", _KINDS)


def is_whole(given: Any) -> bool:
    """True for an object that is a graph, or holds none: it is no iterable of triples, graphs or events."""
    return is_graph(given) or isinstance(given, list | tuple | GraphEvent) or _holds_none(given)


def check_given(given: Any, place: str) -> None:
    """Raises `OptionError`, which calls it `place`, for an object that holds no events, as far as its type and the
    first item of a list tell."""
    if isinstance(given, str | bytes | bytearray) or (_holds_none(given) and not isinstance(given, GraphEvent)):
        raise _no_event(given, place)
    if isinstance(given, list | tuple) and given:
        first = given[0]
        if not (_is_pair(first) or _is_statement(first) or is_graph(first) or isinstance(first, GraphEvent)):
            raise _no_event(first, place)
