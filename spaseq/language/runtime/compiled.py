"""A SPAseq query, checked and compiled, from which its evaluations are made. It never changes.

`spaseq.language.query` is its face for users; Spark's tasks take a `CompiledQuery`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import replace
from typing import Any

from spaseq.core.automata import CEA
from spaseq.core.engine import Choice, Program, Window, compile_program
from spaseq.core.errors import EventError, QuerySemanticsError, named_query
from spaseq.core.events.time import parse_time
from spaseq.core.queries import compiled
from spaseq.core.watch import limited
from spaseq.gpm import GraphPattern, Knowledge
from spaseq.gpm.columnar import uncovered_pattern
from spaseq.gpm.entail import Schema
from spaseq.gpm.functions.own import OWN
from spaseq.language.guards.registers import MappingRegisters
from spaseq.language.lowering.lower import lower, lower_silence
from spaseq.language.runtime.knowledge import knowledge_of, with_entailment, with_schema
from spaseq.language.runtime.opened import stream_options
from spaseq.language.runtime.unmatched import Input
from spaseq.language.semantics.advice import advice
from spaseq.language.semantics.check import CheckedQuery, check
from spaseq.language.semantics.counting import why_listed
from spaseq.language.semantics.lasting import Lasting
from spaseq.language.semantics.lookups import lookups_of
from spaseq.language.solving.solve import Solver
from spaseq.language.syntax.parse import parse
from spaseq.language.syntax.printer import print_within
from spaseq.rdf import StreamOptions, StreamSource, settle


class CompiledQuery(compiled.CompiledQuery):
    """A query's text and checked form, and the programs made of it. `variables` are those of the result, in order;
    `streams` are (name, IRI), in order of the FROM clauses."""

    own = OWN

    def _compile(self) -> None:
        tree = parse(self.text, self.source)
        settings = self.settings
        self.checked: CheckedQuery = check(
            tree, self.text, self.source, variants=settings.variants, repeated=settings.repeated_events
        )
        self.variables: tuple[str, ...] = self.checked.select
        self.streams: tuple[tuple[str, str], ...] = self.checked.streams
        self._expect_keys(self.checked.partition)
        self.lookups = lookups_of(self.checked)
        self.pattern = lower(self.checked, self.lookups)
        self._check_start()
        within = self.checked.tree.within
        self.within = "" if within is None or within.by_events else print_within(within)
        if self.checked.lasting != Lasting():
            self.within = self.within or "a '!' with FOR"
        self._program = self.program()

    @property
    def automaton(self) -> CEA:
        """The automaton of the query, compiled once."""
        return self._program.cea

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

    def under(self, schema: Schema) -> CompiledQuery:
        """The query with its GPMs rewritten: they find on events the consequences under `schema`."""
        found = copy.copy(self)
        found.checked = with_schema(self.checked, schema)
        return found

    @property
    def functions(self) -> tuple[str, ...]:
        """The IRIs of the functions that it calls, each once."""
        return self.checked.functions

    @property
    def warnings(self) -> tuple[str, ...]:
        """Likely oversights of the query's author."""
        return self.checked.warnings

    @property
    def advice(self) -> tuple[str, ...]:
        """GPMs that share nothing, and slips: a line each."""
        return tuple(advice(self.checked))

    @property
    def growth(self) -> tuple[str, ...]:
        """The causes, in words, for which the memory of a run grows for ever."""
        forgets = self.settings.forget_keys_after is not None
        return self.window().growth([f"?{name}" for name in self.checked.partition], [], forgets)

    def window(self, time_unit: str = "s") -> Window:
        """The window over instants, in nanoseconds or in instants. `time_unit` reads the number of STARTING AT."""
        if self.checked.window is None:
            return Window("none")
        within = self.checked.tree.within
        if within is not None and within.by_events:
            return Window("events", self.checked.window)
        if within is not None and within.sliding:
            return Window("span", self.checked.window)
        start = within.start if within is not None else None
        return Window("tumbling", self.checked.window, parse_time(start, time_unit) if start else 0)

    def program(self, time_unit: str = "s") -> Program:
        """A new program of the engine, whose registers are of one evaluation."""
        registers = MappingRegisters(self.checked.patterns)
        after = self.checked.after
        # Solutions differ by the GPMs that took an instant, so matches that differ in these are reported apart.
        goal = frozenset((after.variable,)) if after is not None and after.on_variable else None
        with named_query(self.source):
            return compile_program(
                self.pattern, self.window(time_unit), choice=Choice(after=after), registers=registers,
                settings=self.settings, around=lower_silence(self.checked), valuations=goal is not None, shown=goal,
            )  # fmt: skip

    def reading(self, options: StreamOptions | None, words: MappingABC[str, Any] | None = None) -> StreamOptions:
        """The options for reading streams, as given to `run`; the predicate of times may have a prefix of the query."""
        chosen = stream_options(options, words or {})
        label, colon, local = (chosen.time or "").partition(":")
        for prefix in reversed(self.checked.tree.prologue):
            if colon and prefix.label == label and not local.startswith("//"):
                return replace(chosen, time=prefix.iri + local)
        return chosen

    def settled(self, chosen: StreamOptions, sources: Sequence[StreamSource]) -> Input:
        """The input, with the clock of all `sources` settled. `OptionError` as of `settle`, and if the query needs
        times and the events are given none."""
        read = Input(sources, chosen, settle(chosen, sources), self.timed)
        read.check()
        return read

    def known(self, kb: Any, entailment: str | None = None, *, whole: bool = False) -> tuple[CheckedQuery, Knowledge]:
        """The query and the background knowledge as entailment has them, within the limits of time and memory. `whole`:
        `OptionError` if the query names a graph that is not there."""
        with limited(self.settings):
            checked, knowledge = with_entailment(
                self.checked, knowledge_of(kb), entailment, self.settings.closed_triples
            )
        if whole:
            knowledge.check(checked.patterns.values())
        return checked, knowledge

    def closing(self, kb: Any, entailment: str | None) -> list[str]:
        """A line for each graph of knowledge about its closing: over columns or by owlrl, with the reason. The words as
        of `run`; GPMs must ask for graphs that are there."""
        return self.known(kb, entailment, whole=bool(kb))[1].told()

    def solver(self, kb: Any = None, *, entailment: str | None = None, reference: bool = False) -> Solver:
        """The solver of the GPMs on batches of events; the words as of `run`."""
        checked, knowledge = self.known(kb, entailment)
        return Solver(checked, knowledge, solution_rows=self.settings.solution_rows, reference=reference)

    def explain(self, format: str, kb: Any = None, entailment: str | None = None) -> str:
        """As of `spaseq.language.query.Query.explain`."""
        return self.explained(format, self._plan(kb, entailment), self._about())

    def _about(self) -> dict[str, Any]:
        """The description of the query, as plain data."""
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
            "window": {
                "kind": window.kind,
                "events" if window.by_position else "nanoseconds": window.size,
                "origin": window.origin,
            },
        }

    def _plan(self, kb: Any, entailment: str | None) -> Iterator[str]:
        checked, knowledge = self.known(kb, entailment, whole=kb is not None)
        for name, iri in self.streams:
            yield f"stream {name}: <{iri}>"
        yield from knowledge.told()
        for pattern in checked.patterns.values():
            yield from _explain_pattern(pattern)
        yield f"{self.checked.tree.form.lower()}: {' '.join('?' + v for v in self.variables)}"
        if self.checked.clauses.by_window:
            ranges = "the whole stream" if self.checked.window is None else "its window"
            yield f"results wait for the end of {ranges}: a clause ranges over all its solutions"
        why = why_listed(self.checked)
        if why:
            yield f"aggregates over solutions: of a list of them, O(matches), since {why}"
        elif self.checked.clauses.groups:
            yield "aggregates over solutions: none is listed, by the mappings of each step; O(mappings) an instant"
        yield from _explain_lasting(self.checked)
        if self.lookups is not None and (why or not self.checked.clauses.groups):
            names = " ".join(f"?{name}" for name in sorted(self.lookups.variables))
            yield f"looked up in the instants of a match, not kept by runs: {names}"
        if self.checked.partition:
            yield "partition: " + " ".join("?" + v for v in self.checked.partition)
        yield from self.growth
        for warning in self.warnings:
            yield f"warning: {warning}"
        yield self._program.explain(per_second=1_000_000_000)
        yield from self._explain_runs()

    def _explain_runs(self) -> Iterator[str]:
        """The lines on the keeping of runs."""
        from spaseq.core.engine import explain_growth  # which loads what evaluates

        kept = explain_growth(self._program)
        yield from kept
        if any("a tree by" in line for line in kept):
            yield "once a graph has several solutions of a GPM, runs are tried one by one in place of a tree, for good"


def _explain_lasting(query: CheckedQuery) -> Iterator[str]:
    """Lines on what must not come for a time."""
    for place, time, conjunctions in (
        ("start", query.lasting.silence, [c for variant in query.variants for c in variant.before]),
        ("end", query.lasting.patience, [c for variant in query.variants for c in variant.after]),
    ):
        if time is not None:
            names = " | ".join(dict.fromkeys(" & ".join(c) for c in conjunctions))
            yield f"at the {place}: no {names} for {time / 1e9:,.12g} s"


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
