"""A compiled SPAseq query: what `spaseq.compile` gives."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import replace
from functools import partial
from typing import Any

from spaseq.core.automata import CEA
from spaseq.core.automata.diagram import automaton_diagram, automaton_text
from spaseq.core.drawing import Picture, query_html
from spaseq.core.engine import Program, Settings, Window, compile_program
from spaseq.core.engine.light import given, light_of
from spaseq.core.errors import (
    EventError,
    OptionError,
    QuerySemanticsError,
    expect_count,
    expect_type,
    named_query,
)
from spaseq.core.events.options import known_words
from spaseq.core.events.time import parse_time
from spaseq.core.measure import shortened
from spaseq.core.pattern import Pattern
from spaseq.core.watch import limited
from spaseq.gpm import GraphPattern, Knowledge
from spaseq.gpm.columnar import uncovered_pattern
from spaseq.language.guards.registers import MappingRegisters
from spaseq.language.lowering.lower import lower
from spaseq.language.results.match import Match
from spaseq.language.runtime.follow import FollowedMatches
from spaseq.language.runtime.knowledge import knowledge_of, with_entailment
from spaseq.language.runtime.matches import Matches
from spaseq.language.runtime.opened import Opened, named
from spaseq.language.runtime.read_ahead import Part
from spaseq.language.runtime.recogniser import Recogniser
from spaseq.language.runtime.session import Session
from spaseq.language.runtime.unmatched import Input
from spaseq.language.semantics.advice import advice
from spaseq.language.semantics.check import CheckedQuery, check
from spaseq.language.solving.solve import Solver
from spaseq.language.syntax.parse import parse
from spaseq.language.syntax.printer import print_within
from spaseq.rdf import (
    Counters,
    EventBy,
    EventWords,
    Followed,
    StreamOptions,
    StreamSource,
    merged_files,
    settle,
    term_of,
)

__all__ = ["Query", "compile_query", "knowledge_of", "stream_options", "stream_sources"]

_WORDS = (*EventWords.__annotations__, "format")
Streams = MappingABC[str, str | Sequence[str] | StreamSource]


class Query:
    """A checked query, ready to run. Pickles as its text.

    `pattern` is what it means to the engine, `automaton` what the engine makes of it, `warnings` what its author may
    have overlooked.
    """

    def __init__(self, text: str, source: str = "<query>", settings: Settings | None = None) -> None:
        if not isinstance(text, str):
            raise OptionError(f"a query is text, and this is a {type(text).__name__}", "open(path).read() reads a file")
        self.text = text
        self.source = source
        self.settings: Settings = Settings.given(settings)
        with named_query(source):
            self.checked: CheckedQuery = check(parse(text, source), text, source, variants=self.settings.variants)
            if self.settings.forget_keys_after is not None and not self.checked.partition:
                raise OptionError(
                    "forget_keys_after is given, and the query has no keys",
                    "PARTITION BY gives it some; else leave it out",
                )
            self.pattern: Pattern = lower(self.checked)
            self._check_start()
            self._program = self.program()

    def __reduce__(self) -> tuple[Any, ...]:
        return (Query, (self.text, self.source, self.settings))

    @property
    def automaton(self) -> CEA:
        """The automaton of `pattern`."""
        return self._program.cea

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the result, in order."""
        return self.checked.select

    @property
    def streams(self) -> tuple[tuple[str, str], ...]:
        """(name, IRI) of the streams, in order of the FROM clauses."""
        return self.checked.streams

    @property
    def warnings(self) -> tuple[str, ...]:
        """What its author may have overlooked."""
        return self.checked.warnings

    @property
    def advice(self) -> tuple[str, ...]:
        """What is probably not meant, though it can be run: GPMs that share nothing, slips. `spaseq check` says it."""
        return tuple(f"{self.source}: {line}" for line in advice(self.checked))

    @property
    def growth(self) -> tuple[str, ...]:
        """What makes the memory of a run grow for ever, in words: nothing, for queries with WITHIN."""
        forgets = self.settings.forget_keys_after is not None
        return self.window().growth([f"?{name}" for name in self.checked.partition], [], forgets)

    def window(self, time_unit: str = "s") -> Window:
        """The window over instants, in nanoseconds. `time_unit` reads the number of STARTING AT."""
        if self.checked.window is None:
            return Window("none")
        within = self.checked.tree.within
        if within is not None and within.sliding:
            return Window("span", self.checked.window)
        start = within.start if within is not None else None
        return Window("tumbling", self.checked.window, parse_time(start, time_unit) if start else 0)

    def program(self, time_unit: str = "s") -> Program:
        """The program the engine runs."""
        registers = MappingRegisters(self.checked.patterns)
        with named_query(self.source):
            return compile_program(self.pattern, self.window(time_unit), registers=registers, settings=self.settings)

    def recogniser(self, time_unit: str = "s", *, keep_events: bool = False) -> Recogniser:
        """An evaluation that takes rows solved elsewhere (`Recogniser.push_rows`), perhaps only those of a part of the
        streams.

        Clauses that range over the solutions of a window (`clauses.by_window`) need a part to have whole windows.
        """
        return Recogniser(self.checked, self.program(time_unit), None, keep_events=keep_events)

    def construct(self, bindings: Match | MappingABC[str, Any], number: int = 0) -> tuple[tuple[Any, Any, Any], ...]:
        """The graph that CONSTRUCT makes of a match, or of its bindings, as triples of RDF terms; its blank nodes are
        those of `number`.

        Raises `OptionError` if the query is no CONSTRUCT, and for what binds no RDF terms.
        """
        template = self.checked.clauses.template
        if template is None:
            raise OptionError("the query constructs no graph", "write CONSTRUCT { … } in place of SELECT")
        bound = bindings.bindings if isinstance(bindings, Match) else bindings
        expect_type("what a graph is constructed of", bound, MappingABC, "give a match, or its bindings")
        expect_count("number", number)
        terms = {str(name): term_of(term, f"the binding of ?{name}") for name, term in bound.items()}
        return template.graph(terms, number)

    def solver(
        self,
        knowledge: Knowledge | MappingABC[str, Any] | None = None,
        *,
        entailment: str | None = None,
        reference: bool = False,
    ) -> Solver:
        """What evaluates the GPMs on batches of events; the words as of `run`."""
        checked, known = self._known(knowledge, entailment)
        return Solver(checked, known, solution_rows=self.settings.solution_rows, reference=reference)

    def run(
        self,
        streams: Streams,
        kb: Knowledge | MappingABC[str, Any] | None = None,
        *,
        options: StreamOptions | None = None,
        keep_events: bool = True,
        entailment: str | None = None,
        reference: bool = False,
        **words: str | None,
    ) -> Matches:
        """The matches over files.

        Args:
            streams: by stream name or IRI: a path, a list of paths (globs, `-`, gzip and zstd too), or a
                `StreamSource`.
            kb: background knowledge, by the IRI that GRAPH names: files, a graph or a table (`knowledge_of`).
            options: how to read the streams; or, instead, the words of the command line: event_by=, time=,
                time_from=, time_unit=, interval=, ties=, lateness=, late=.
            keep_events: whether matches show their events (the window's events are then held).
            entailment: `rdfs` or `owl-rl`; see `with_entailment`.
            reference: whether rdflib evaluates all graph patterns, for comparison: the same answers, slowly.

        Raises `OptionError` for a stream or a graph that is missing or unknown.
        """
        chosen = self.reading(options, words)
        sources = stream_sources(self.checked, streams)
        checked, knowledge = self._known(kb, entailment)
        knowledge.check(checked.patterns.values())

        def open_streams(wanted: frozenset[str] | None) -> Opened:
            from spaseq.rdf.columns.reader import may_read_ahead, read_batches  # loads the kernels

            read = self.settled(chosen, sources)
            settled = read.settled
            parts = []
            for part in (part for source in sources for part in merged_files(source, settled)):
                counters = Counters()
                batches = partial(read_batches, part, settled, counters, wanted)
                parts.append(Part(batches, counters, may_read_ahead(part, settled)))
            return Opened(parts, settled.apart, Counters(), read)

        program = self.program(chosen.unit)
        return Matches(checked, program, knowledge, open_streams, keep_events=keep_events, reference=reference)

    @property
    def timed(self) -> str:
        """The clause or setting whose meaning depends on the times of events; empty if there is none."""
        if self.checked.tree.within is not None:
            return print_within(self.checked.tree.within)
        return "" if self.settings.forget_keys_after is None else "forget_keys_after"

    def settled(self, chosen: StreamOptions, sources: Sequence[StreamSource]) -> Input:
        """What is read, with the clock of all `sources` settled. `OptionError` as of `settle`, and if the query needs
        times and the events are given none."""
        read = Input(sources, chosen, settle(chosen, sources), self.timed)
        read.check()
        return read

    def follow(
        self,
        streams: Streams,
        kb: Knowledge | MappingABC[str, Any] | None = None,
        *,
        options: StreamOptions | None = None,
        keep_events: bool = True,
        entailment: str | None = None,
        reference: bool = False,
        **words: str | None,
    ) -> FollowedMatches:
        """The matches over streams that go on: files that grow, folders that get files, standard input.

        The arguments are those of `run`; a path may be a folder. With time from arrival the clock counts, not
        `interval`.
        """

        def open_session(settled: StreamOptions) -> Session:
            return self.open(
                kb=kb, options=settled, keep_events=keep_events, entailment=entailment, reference=reference
            )

        chosen, sources = self.reading(options, words), stream_sources(self.checked, streams)
        followed = Followed(sources, chosen)
        read = Input(sources, chosen, followed.options)
        return FollowedMatches(followed, open_session, self.checked, read)

    def open(
        self,
        state: bytes | None = None,
        *,
        kb: Knowledge | MappingABC[str, Any] | None = None,
        options: StreamOptions | None = None,
        keep_events: bool = True,
        entailment: str | None = None,
        reference: bool = False,
        **words: str | None,
    ) -> Session:
        """An incremental evaluation; `state` is a snapshot to go on from: of this query, these options and
        this entailment, else an `OptionError` says what differs. It holds plain data and runs no code."""
        chosen = self.reading(options, words)
        checked, knowledge = self._known(kb, entailment)
        solver = Solver(checked, knowledge, solution_rows=self.settings.solution_rows, reference=reference)
        recogniser = Recogniser(checked, self.program(chosen.unit), solver, keep_events=keep_events)
        session = Session(recogniser, (iri for _, iri in self.streams), chosen)
        if state is not None:
            session.restore(state)
        return session

    def reading(self, options: StreamOptions | None, words: MappingABC[str, str | None] | None = None) -> StreamOptions:
        """How to read streams, as `run` is told; the predicate of times may have a prefix of the query."""
        chosen = stream_options(options, words or {})
        label, colon, local = (chosen.time or "").partition(":")
        for prefix in reversed(self.checked.tree.prologue):
            if colon and prefix.label == label and not local.startswith("//"):
                return replace(chosen, time=prefix.iri + local)
        return chosen

    def _known(self, kb: Any, entailment: str | None) -> tuple[CheckedQuery, Knowledge]:
        """The query and the background knowledge as entailment has them, within the limits of time and memory."""
        with limited(self.settings):
            return with_entailment(self.checked, knowledge_of(kb), entailment, self.settings.closed_triples)

    def closing(self, kb: Any, entailment: str | None) -> list[str]:
        """How the graphs of knowledge are closed, a line each: over columns or, and why, by owlrl. The words as of
        `run`; GPMs ask for graphs that are there."""
        checked, knowledge = self._known(kb, entailment)
        if kb:
            knowledge.check(checked.patterns.values())
        return knowledge.told()

    def explain(
        self,
        format: str = "text",
        *,
        kb: Knowledge | MappingABC[str, Any] | None = None,
        entailment: str | None = None,
    ) -> str:
        """How the query is run, for people (`text`), its automaton as a picture (`dot`, `svg`), or both as `json`.

        With `kb` and `entailment`, as of `run`, the knowledge is closed, and it is said how: over columns or, and why,
        by owlrl; GPMs are those that entailment makes. Raises `OptionError` for another format, and for `svg` where
        there is no Graphviz (the extra `draw`).
        """
        expect_type("the format", format, str, "text, dot, svg or json")
        checked, knowledge = self._known(kb, entailment)
        if kb is not None:
            knowledge.check(checked.patterns.values())
        lines = list(self._explain_lines(checked, knowledge))
        if format == "text":
            return "\n".join(lines) + "\n"
        return automaton_text(self.automaton, format, self._about(lines))

    def picture(self, run: Any = None) -> Picture:
        """The automaton as a drawing: `svg()`, `dot`, `save(path)`; a notebook shows it.

        `run` lights it up: the ways of matches with their numbers, and what no run came to. It is what `run(…)` gives,
        the events of which are read anew; or a match, or a list of matches, which tell their own ways alone. Drawn are
        the ways of the first 200. Raises `OptionError` for anything else.
        """
        light = None if run is None else light_of(given(run), lambda matches: [match.way for match in matches])
        return Picture(automaton_diagram(self.automaton, light))

    def _repr_html_(self) -> str:
        return query_html(self.text, self.warnings, self.picture())

    def __repr__(self) -> str:
        return f"<spaseq.Query {shortened(self.text, 60)!r}>"

    def _about(self, plan: list[str]) -> dict[str, Any]:
        """What the query is, as plain data."""
        window = self.window()
        return {
            "form": self.checked.tree.form,
            "variables": list(self.variables),
            "streams": dict(self.streams),
            "gpms": {
                name: {
                    "streams": list(pattern.streams),
                    "binds": sorted(pattern.binds),
                    "needs": sorted(pattern.needs),
                    "graphs": list(pattern.graphs),
                }
                for name, pattern in self.checked.patterns.items()
            },
            "partition": list(self.checked.partition),
            "window": {"kind": window.kind, "nanoseconds": window.size, "origin": window.origin},
            "warnings": list(self.warnings),
            "plan": plan,
        }

    def _explain_lines(self, checked: CheckedQuery, knowledge: Knowledge) -> Iterator[str]:
        for name, iri in self.streams:
            yield f"stream {name}: <{iri}>"
        yield from knowledge.told()
        for pattern in checked.patterns.values():
            yield from _explain_pattern(pattern)
        yield f"{self.checked.tree.form.lower()}: {' '.join('?' + v for v in self.variables)}"
        if self.checked.clauses.by_window:
            ranges = "the whole stream" if self.checked.window is None else "its window"
            yield f"results wait for the end of {ranges}: a clause ranges over all its solutions"
        if self.checked.partition:
            yield "partition: " + " ".join("?" + v for v in self.checked.partition)
        yield from self.growth
        for warning in self.warnings:
            yield f"warning: {warning}"
        yield self._program.explain(per_second=1_000_000_000)

    def _check_start(self) -> None:
        within = self.checked.tree.within
        if within is None or within.start is None:
            return
        try:
            parse_time(within.start)
        except EventError as error:
            raise QuerySemanticsError(
                f"STARTING AT: {error.problem}", text=self.text, span=within.span, source=self.source, hint=error.hint
            ) from None


def compile_query(text: str, source: str = "<query>", settings: Settings | None = None) -> Query:
    """Parses and checks a query. Raises `QueryError`s that point into the text; `source` is the name they show."""
    return Query(text, source, settings)


def _explain_pattern(pattern: GraphPattern) -> Iterator[str]:
    yield f"GPM {pattern.name} on {', '.join(f'<{iri}>' for iri in pattern.streams)}"
    yield f"  binds: {' '.join('?' + v for v in sorted(pattern.binds)) or 'nothing'}"
    why = uncovered_pattern(pattern)
    yield f"  evaluated {f'event by event by rdflib: {why}' if why else 'as columns, a batch of events at once'}"
    if pattern.required:
        yield f"  only on events with: {' '.join(sorted(f'<{p}>' for p in pattern.required))}"
    for iri, _ in pattern.knowledge:
        yield f"  joined with GRAPH <{iri}>, evaluated once"
    if pattern.local:
        yield f"  conditions of its own: {len(pattern.local)}"
    for condition in pattern.correlated:
        yield f"  condition on the run: names {' '.join('?' + v for v in sorted(condition.variables))}"


def stream_options(options: StreamOptions | None, words: MappingABC[str, str | None]) -> StreamOptions:
    """How to read streams, from `options` or from words of the command line. Raises `OptionError`."""
    given = {key: value for key, value in words.items() if value is not None}
    if options is not None and given:
        raise OptionError(f"give options= or {', '.join(given)}=, not both")
    if options is not None:
        expect_type("options", options, StreamOptions, "StreamOptions.parse(…), or the words by themselves")
        return options
    known_words(given, _WORDS)
    return StreamOptions.parse(**given)


def stream_sources(query: CheckedQuery, streams: Streams) -> list[StreamSource]:
    """The streams to open, in order of the FROM clause."""
    return [_source(iri, value) for iri, value in named(streams, query).items()]


def _source(iri: str, value: Any) -> StreamSource:
    own = value.event_by if isinstance(value, StreamSource) else None
    value = value.files if isinstance(value, StreamSource) else value
    if own is not None:
        expect_type(f"stream <{iri}>: event_by", own, EventBy, 'EventBy.parse("size:3") makes one')
    files = value if isinstance(value, (list, tuple)) else (value,)
    for file in files:
        if not isinstance(file, str | os.PathLike):
            raise OptionError(
                f"stream <{iri}>: a {type(file).__name__} is no path",
                "give a path or a list of them; Query.open takes events, spaseq.spark DataFrames of Spark",
            )
    return StreamSource(iri, tuple(map(str, files)), own)
