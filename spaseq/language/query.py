"""The library's face: `compile` a query, `run` it over files, `follow` those that grow, or `open` it and push.

A `Query` never changes; `Matches` are lazy, one pass over the events per use; a `Session` is an evaluation in progress.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from typing import Any, Literal, Unpack, overload

from spaseq.core import protocols
from spaseq.core.automata import CEA
from spaseq.core.engine import Settings
from spaseq.core.errors import expect_count, expect_type
from spaseq.core.events.growing import clock_length
from spaseq.core.events.options import Duration
from spaseq.language.results.match import Match, expect_template
from spaseq.language.runtime.compiled import CompiledQuery
from spaseq.language.runtime.follow import FollowedMatches
from spaseq.language.runtime.knowledge import Known
from spaseq.language.runtime.matches import Matches, with_graphs
from spaseq.language.runtime.opened import Opened, Streams, check_memory, open_files, stream_sources
from spaseq.language.runtime.recogniser import Recogniser
from spaseq.language.runtime.session import Session
from spaseq.language.runtime.unmatched import Input
from spaseq.language.semantics.check import CheckedQuery
from spaseq.live.evaluation import Alive
from spaseq.live.states import Saving, State
from spaseq.rdf import (
    Followed,
    PyoxigraphDataset,
    RdflibGraph,
    StreamOptions,
    StreamWords,
    graph_as,
    hash_of_terms,
    term_of,
)


def compile_query(text: str, source: str = "<query>", settings: Settings | None = None) -> Query:
    """A query, parsed, checked and compiled.

    Args: `text` in SPAseq; `source` is its name in errors; `settings` are the budgets of the engine. Raises:
    `QuerySyntaxError`, `QuerySemanticsError`, `UnsupportedFeature`, each with line, column and a hint.
    """
    return Query(CompiledQuery(text, source, settings))


class Query(protocols.Query):
    """A compiled query. Its evaluations are made from `compiled`."""

    compiled: CompiledQuery

    @property
    def checked(self) -> CheckedQuery:
        """Its syntax tree with the meaning of names."""
        return self.compiled.checked

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the result, in order."""
        return self.compiled.variables

    @property
    def streams(self) -> tuple[tuple[str, str], ...]:
        """(name, IRI) of the streams, in order of the FROM clauses."""
        return self.compiled.streams

    def explain(
        self,
        format: str = "text",
        *,
        kb: Known = None,
        entailment: str | None = None,
    ) -> str:
        """The plan of the query, for people (`text`), its automaton as a picture (`dot`, `svg`), or both as `json`.

        With `kb` and `entailment`, as of `run`, the knowledge is closed, and the text reports the method: over columns
        or by owlrl, with the reason. GPMs are those that entailment makes. Raises `OptionError` for another format, and
        for `svg` without Graphviz (the extra `draw`).
        """
        return self.compiled.explain(format, kb, entailment)

    def ways(self, run: Any) -> tuple[CEA, protocols.Ways]:
        """The automaton, and the ways of matches through it."""
        return self.automaton, lambda matches: [match.way for match in matches]

    @overload
    def construct(
        self, bindings: Match | MappingABC[str, Any], number: int | None = None, *, as_: Literal["triples"] = "triples"
    ) -> tuple[tuple[Any, Any, Any], ...]: ...
    @overload
    def construct(
        self, bindings: Match | MappingABC[str, Any], number: int | None = None, *, as_: Literal["rdflib"]
    ) -> RdflibGraph: ...
    @overload
    def construct(
        self, bindings: Match | MappingABC[str, Any], number: int | None = None, *, as_: Literal["pyoxigraph"]
    ) -> PyoxigraphDataset: ...
    def construct(
        self, bindings: Match | MappingABC[str, Any], number: int | None = None, *, as_: str = "triples"
    ) -> Any:
        """The graph that CONSTRUCT makes of a match, or of its bindings.

        Args:
            bindings: a match, or a mapping of variables to terms.
            number: the blank nodes of the template are those of this number. By default they are those of the match,
                so that the graphs of two matches can be put into one.
            as_: `rdflib` gives a `Graph` with the prefixes of the query, `pyoxigraph` a `Dataset` of quads in the
                default graph, `triples` a tuple of triples of rdflib's terms.

        Raises `OptionError` if the query is no CONSTRUCT, and for bindings that are no RDF terms.
        """
        template = expect_template(self.compiled.checked.clauses.template)
        bound = bindings.bindings if isinstance(bindings, Match) else bindings
        expect_type("what a graph is constructed of", bound, MappingABC, "give a match, or its bindings")
        if number is not None:
            expect_count("number", number)
        terms = {str(name): term_of(term, f"the binding of ?{name}") for name, term in bound.items()}
        place = bindings.times + bindings.positions if isinstance(bindings, Match) else ()
        triples = template.graph(terms, hash_of_terms(terms, place) if number is None else number)
        prologue = self.compiled.checked.tree.prologue
        prefixes = {prefix.label: prefix.iri for prefix in prologue if prefix.label is not None}
        return graph_as(as_, triples, prefixes)

    def run(
        self,
        streams: Streams,
        kb: Known = None,
        *,
        options: StreamOptions | None = None,
        keep_events: bool = True,
        entailment: str | None = None,
        reference: bool = False,
        **words: Unpack[StreamWords],
    ) -> Matches:
        """The matches over files, or over graphs in memory.

        Args:
            streams: by stream name or IRI: a path, a list of paths (globs, `-`, gzip and zstd too), or a
                `StreamSource`. Or what `Session.push` takes: an iterable of pairs (time, graph), of graphs that state
                their times, or of `GraphEvent`s; a dataset of named graphs. Or the `Matches` of a CONSTRUCT.
            kb: background knowledge, by the IRI that GRAPH names: files, a graph or a table (`knowledge_of`). Or a
                Dataset of rdflib, a Store or Dataset of pyoxigraph: its named graphs.
            options: how to read the streams; or, instead, the words of the command line: event_by=, time=,
                time_from=, time_unit=, interval=, ties=, lateness=, late=, on_late=. The last is a function; it
                is called with each event that is dropped because it is late, as a `LateEvent`.
            keep_events: True if matches show their events (the window's events are then held).
            entailment: `rdfs` or `owl-rl`; see `with_entailment`.
            reference: True if rdflib evaluates all graph patterns, for comparison: the same answers, slowly.

        Raises `OptionError` for a stream or a graph that is missing or unknown.
        """
        query = self.compiled
        chosen = query.reading(options, words)
        sources = stream_sources(query.checked, with_graphs(streams), memory=True)
        check_memory(sources, chosen)
        checked, knowledge = query.known(kb, entailment, whole=True)

        def open_streams(wanted: frozenset[str] | None) -> Opened:
            return open_files(query.settled(chosen, sources), wanted)

        program = query.program(chosen.unit)
        return Matches(checked, program, knowledge, open_streams, keep_events=keep_events, reference=reference)

    def follow(
        self,
        streams: Streams,
        kb: Known = None,
        *,
        options: StreamOptions | None = None,
        keep_events: bool = True,
        entailment: str | None = None,
        reference: bool = False,
        clock: Duration | None = None,
        **words: Unpack[StreamWords],
    ) -> FollowedMatches[Match]:
        """The matches over streams that go on: files that grow, folders that get files, standard input.

        The arguments are those of `run`; a path may be a folder. With time from arrival the clock counts, not
        `interval`. If events state their times, `clock="2s"` lets time go on while nothing comes, by the machine's
        clock, so much behind it: absences are then known as their windows close. An event that takes longer from its
        time to here is late.
        """

        def open_session(settled: StreamOptions) -> Session:
            return self.open(
                kb=kb, options=settled, keep_events=keep_events, entailment=entailment, reference=reference
            )

        query = self.compiled
        chosen, sources = query.reading(options, words), stream_sources(query.checked, streams)
        followed = Followed(sources, chosen, clock=None if clock is None else clock_length(clock))
        read = Input(sources, chosen, followed.options)
        return FollowedMatches(followed, open_session, read, ask=query.checked.clauses.ask)

    def open(
        self,
        state: bytes | None = None,
        *,
        kb: Known = None,
        options: StreamOptions | None = None,
        keep_events: bool = True,
        entailment: str | None = None,
        reference: bool = False,
        **words: Unpack[StreamWords],
    ) -> Session:
        """An incremental evaluation; `state` is a snapshot to go on from: of this query, these options and this
        entailment, else an `OptionError` names the difference. It holds plain data and runs no code."""
        query = self.compiled
        chosen = query.reading(options, words)
        solver = query.solver(kb, entailment=entailment, reference=reference)
        recogniser = Recogniser(solver.query, query.program(chosen.unit), solver, keep_events=keep_events)
        session = Session(recogniser, chosen)
        if state is not None:
            session.restore(state)
        return session

    def alive(
        self,
        source: Any,
        *,
        state: State = None,
        clock: Duration | None = None,
        save: Saving = None,
        every: Duration = "10s",
        kb: Known = None,
        options: StreamOptions | None = None,
        keep_events: bool = True,
        entailment: str | None = None,
        **words: Unpack[StreamWords],
    ) -> Alive[Match]:
        """The matches over a source, as they are found: `async for match in query.alive(source)`.

        Args:
            source: an asynchronous iterator of batches (a `GraphEvent`, a graph, or a list of either), or
                of `spaseq.live.Delivery`, which has positions; an `asyncio.Queue`, or an iterable of batches.
                `spaseq.live` has sources of files and servers.
            state: the place to go on from: what `snapshot()` of the result gave, or the path of a file of that, which
                need not be there yet. The source goes to the position that it covers.
            clock: if nothing comes, time goes on by the machine's clock, so much behind it, as of `follow`.
            save: the path of a file, or a function, that keeps a state. Then the source may forget what it covers.
            every: the time between two saves. They are made between batches, once the matches so far were taken.

        The others are those of `open`. Matches are given at least once: the page *Live evaluation* has the guarantee.
        Raises `OptionError` for what is no source, and for a state that this source cannot go to.
        """

        def open_session(blob: bytes | None) -> Session:
            return self.open(blob, kb=kb, options=options, keep_events=keep_events, entailment=entailment, **words)

        once = self.compiled.checked.clauses.ask
        return Alive(
            open_session, source, words=("stream", "time"), once=once, state=state, clock=clock, save=save, every=every
        )
