"""A query, checked and compiled, from which its evaluations are made. It never changes.

`ceql.query` is its face for users; batches (`ceql.runtime.evaluation`), pushed events (`ceql.runtime.session`) and
alerts (`ceql.runtime.alerts`) take a `CompiledQuery`.
"""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ceql.guards.totals import contents_of
from ceql.lowering.advice import advice
from ceql.lowering.lower import Lowered, lower
from ceql.lowering.passing import explain_steps
from ceql.operators.own import OWN
from ceql.results.bindings import Bindings, Shown, labels_by_type, lists_attributes
from ceql.results.matches import Computing
from ceql.results.ordering import Ordering
from ceql.results.ranking import Ranking, Ranks, find_ranks
from ceql.results.selected import Selected, Times
from ceql.results.sums import Summing
from ceql.rewrites import DEPTH, Rewritten, rewrite
from ceql.semantics.ambiguities import ambiguities
from ceql.semantics.check import check, conditions, event_types
from ceql.semantics.rounds import with_rounds
from ceql.semantics.schemas import Schema, read_schema
from ceql.semantics.scopes import is_deeper
from ceql.semantics.selection import with_columns
from ceql.semantics.streams import with_streams
from ceql.semantics.types import check_types
from ceql.syntax import ast
from ceql.syntax.parse import parse
from ceql.syntax.printer import print_formula, print_grouping, print_query, print_within
from ceql.syntax.walk import attributes_of, calls_of
from spaseq.core.engine import Choice, Program, Settings, Window, compile_program, explain_growth
from spaseq.core.errors import OptionError, UnsupportedFeature, expect_type, named_query
from spaseq.core.events import EVENT_TIME
from spaseq.core.events.options import type_name
from spaseq.core.events.time import format_duration
from spaseq.core.queries import compiled
from spaseq.core.slips import closest, did_you_mean
from spaseq.core.trees import walk


class CompiledQuery(compiled.CompiledQuery):
    """A query's text, tree and lowered form, and the automata made of it.

    `rewritten` is the tree as it is compiled, `shown` the parts of matches that SELECT shows; `valuations` is true if
    it asks which variables took which events.
    """

    own = OWN

    def _compile(self) -> None:
        self._programs: dict[bool, Program] = {}
        self.tree: ast.Query = with_streams(with_columns(parse(self.text, self.source)))
        check(self.tree, self.text, self.source)
        settings = self.settings
        lazy = settings.evaluator in ("chain", "tree")  # which take few events, and count rounds by themselves
        most = 0 if lazy else settings.repeated_events
        self.rewritten: Rewritten = rewrite(with_rounds(self.tree), settings.rewrite_size, most)
        self.lowered: Lowered = lower(self.rewritten.query, self.text, self.source, self.settings)
        self._expect_keys(self.lowered.partition)
        self.within = _clause_with_a_time(self.tree)
        self.pattern = self.lowered.pattern
        self.shown: Shown = Shown.of(self.tree)
        self.selected: Selected | None = Selected(self.tree) if self.tree.selection.columns else None
        self.keys: Selected | None = None if self.tree.order is None else self._keys(self.tree.order)
        self.summing: Summing | None = None if self.tree.grouping is None else Summing(self.tree)
        self.valuations: bool = self.summing is None and lists_attributes(self.tree)
        self.program()  # its errors are those of the query

    def _keys(self, order: ast.Order) -> Selected:
        """The keys of ORDER BY, as columns."""
        if self.lowered.around.waits:
            problem = "ORDER BY beside NOT at the end, where matches of one event are reported at several times"
            raise UnsupportedFeature(problem, text=self.text, span=order.span, source=self.source,
                                     hint="leave ORDER BY out, and sort the table of matches")  # fmt: skip
        columns = tuple(ast.Column(key.expression, ast.Name(f"key {i}")) for i, key in enumerate(order.keys))
        selection = replace(self.tree.selection, items=None, columns=columns)
        return Selected(replace(self.tree, selection=selection), "ORDER BY")

    def ordering(self, times: Times) -> Ordering | None:
        """The order of the matches of an event, for one evaluation; None without ORDER BY. `times`: the form of their
        times."""
        order, limit = self.tree.order, self.tree.limit
        if order is None or self.keys is None:
            return None
        bindings = self.bindings(self.valuations)
        labels = () if bindings is None else self.program_with_labels.labels or ()
        most = None if limit is None else limit.count
        ranks, program = self.ranks, self.program(self.valuations)
        ranking = Ranking(ranks, program, bindings, labels) if isinstance(ranks, Ranks) else None
        return Ordering(order, self.keys, bindings, labels, times, self.settings.output_bytes, most, ranking)

    @functools.cached_property
    def ranks(self) -> Ranks | str:
        """The keys that the best matches of an event are found by, or the reason for which all are listed."""
        if self.tree.order is None:
            return "there is no ORDER BY"
        limit = None if self.tree.limit is None else self.tree.limit.count
        return find_ranks(self.tree.order, limit, self.program(), self.program_with_labels.cea)

    def counting(self, valuations: bool) -> Program:
        """The program whose matches are counted: ORDER BY changes no number, so LIMIT is the engine's."""
        if self.keys is None or self.tree.limit is None:
            return self.program(valuations)
        settings = self.settings
        if settings.evaluator in ("chain", "tree"):  # which have no LIMIT
            settings = replace(settings, evaluator="compact")
        return self._program(valuations and self._by_type is None, settings, self.lowered.choice)

    def program(self, valuations: bool | None = None) -> Program:
        """The automaton with its window and budgets. It reports complex events, or valuations (by default as the query
        asks); each is compiled on first use. If types tell the variables, complex events are all that is needed."""
        if self.summing is not None:
            return self._aggregating
        if valuations is None:
            valuations = self.valuations
        return self.program_of(valuations and self._by_type is None)

    @functools.cached_property
    def _aggregating(self) -> Program:
        """The program of aggregates over matches: of complex events, or if variables are read of valuations."""
        assert self.summing is not None
        if self.lowered.around.waits:
            problem = "GROUP BY beside NOT at the end, where matches of one event are reported at several times"
            span = None if self.tree.grouping is None else self.tree.grouping.span
            raise UnsupportedFeature(problem, text=self.text, span=span, source=self.source,
                                     hint="leave GROUP BY out, and group the table of matches")  # fmt: skip
        program = self.program_of(bool(self.summing.variables))
        return replace(program, summed=self.summing, listed=program.why_listed)

    def shows(self, valuations: bool) -> bool:
        """True if matches show the events of variables, by the query or as asked for. `OptionError` for rows that stand
        for several matches."""
        if valuations and self.summing is not None:
            raise OptionError("valuations are of matches, and GROUP BY lists none", "leave GROUP BY out")
        return valuations or self.valuations

    @functools.cached_property
    def program_with_labels(self) -> Program:
        """The program of valuations, by the compact structure: lazy evaluators have none, and take its labels."""
        if self.settings.evaluator not in ("chain", "tree"):
            return self.program_of(True)
        return self._program(True, replace(self.settings, evaluator="compact"))

    @functools.cached_property
    def _by_type(self) -> dict[str, int] | None:
        """The labels of valuations by the types of events, if these decide them."""
        after = self.tree.after is not None and self.tree.after.variable is not None
        return None if after else labels_by_type(self.program_with_labels.cea)

    def program_of(self, valuations: bool) -> Program:
        """The program whose matches are complex events, or valuations with their labels."""
        if valuations not in self._programs:
            self._programs[valuations] = self._program(valuations, self.settings)
        return self._programs[valuations]

    def _program(self, valuations: bool, settings: Settings, choice: Choice | None = None) -> Program:
        """A program of the query. `choice`: by default that of the query, without a LIMIT that is behind ORDER BY."""
        if choice is None:
            choice = self.lowered.choice
            choice = choice if self.tree.order is None else replace(choice, limit=None)
        with named_query(self.source):
            return compile_program(
                self.lowered.pattern,
                self.lowered.window,
                strict=self.lowered.strict,
                choice=choice,
                around=self.lowered.around,
                against=self._against(),
                registers=self.lowered.registers,
                settings=settings,
                valuations=valuations,
                shown=frozenset(self.shown.variables) if valuations else None,
            )

    def _against(self) -> Program | None:
        """The program that finds the events that call off a match which waits for its window to close."""
        lowered = self.lowered
        if lowered.against is None:
            return None
        # The automaton finds them, whatever evaluator the query has: the lazy ones do not take skip-till-next.
        settings = replace(self.settings, evaluator="compact")
        window = replace(lowered.around, silences=()).reach(lowered.window)
        return compile_program(lowered.against, window, registers=lowered.against_registers, settings=settings)

    def bindings(self, valuations: bool, schema: Schema | None = None) -> Bindings | None:
        """The names for the events that variables took; None if matches have none."""
        labels = self.program_with_labels.labels if valuations else None
        declared = None if schema is None else schema.arrow
        return None if labels is None else Bindings(self.shown, labels, self._by_type, declared)

    def computing(self, times: Times, schema: Schema | None = None) -> Computing | None:
        """The columns that SELECT computes; None if it lists variables."""
        return (
            None if self.selected is None else Computing(self.selected, times, {} if schema is None else schema.arrow)
        )

    def declared(self, given: Any) -> Schema | None:
        """The schema that was given, if any, once the query is known to fit it."""
        if given is None:
            return None
        schema = read_schema(given)
        check_types(self.tree, schema, self.text, self.source)
        return schema

    def timed_by(self, clause: str) -> CompiledQuery:
        """The query for uses that need the times of events because of `clause`, too."""
        found = copy.copy(self)
        found.within = self.within or clause
        return found

    @property
    def timed(self) -> str:
        """As of `spaseq.core.queries.compiled`, and the times of matches that SELECT or ORDER BY reads."""
        computed = (part.match_time for part in (self.selected, self.keys) if part is not None)
        return super().timed or next(filter(None, computed), "")

    @property
    def warnings(self) -> tuple[str, ...]:
        """Likely mistakes: parts that can be read in two ways, parts that no event can match, and a query of only
        these."""
        doubtful = [] if is_deeper(self.tree.where, DEPTH) else ambiguities(self.tree, self.text)
        found = tuple(f"{self.source}:{part}" for part in (*doubtful, *self.rewritten.removed))
        repeated, window = self.lowered.around.repeated, self.lowered.window
        if repeated is not None and window.is_bounded and window.size < repeated.every.size:
            found = (*found, f"{self.source}: WITHIN is shorter than the time of FOR EVERY: the query reports nothing")
        limit = self.tree.limit
        if limit is not None and limit.count == 0:
            return (*found, f"{self.source}:{limit.span.line}:{limit.span.column}: LIMIT 0 reports nothing")
        if self.rewritten.unsatisfiable:
            return (*found, f"{self.source}: no stream has a match: the query reports nothing")
        return found

    @property
    def advice(self) -> tuple[str, ...]:
        """Events that nothing relates, a line each."""
        return () if self.rewritten.unsatisfiable else tuple(advice(self.tree, self.lowered))  # which is a warning

    @property
    def repeats(self) -> bool:
        """True if a match is reported again after each silence behind it."""
        return self.lowered.around.repeated is not None

    @property
    def growth(self) -> tuple[str, ...]:
        """The causes, in words, for which the memory of a run grows for ever."""
        program, grouping = self.program(), self.tree.grouping
        keeps_runs = program.keeps_runs and not program.adds_states
        if self.rewritten.unsatisfiable or not (keeps_runs or self.lowered.partition):
            return ()
        both = (self.lowered.registers, self.lowered.against_registers)
        guards = [guard for registers in both if registers is not None for guard in registers.guards]
        found = (a for guard in guards for a in attributes_of(guard.condition))
        names = (f"{(a.variable or '').partition('#')[0]}.{a.name}" for a in found if a.name != EVENT_TIME)
        values = dict.fromkeys(name.lstrip(".") for name in names)
        keys = [" or ".join(bracket) for bracket in self.lowered.partition]
        rows = ["memory grows with the keys: each has a row of GROUP BY until the stream is over"]
        held = rows if grouping is not None and grouping.key and grouping.length is None else []
        return *self.lowered.window.growth(keys, list(values), self.settings.forget_keys_after is not None), *held

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that conditions, columns of SELECT and ORDER BY read, and those of PARTITION BY without
        alternatives."""
        computed = (name for part in (self.selected, self.keys) if part is not None for name in part.attributes)
        return tuple(dict.fromkeys((*self._decisive, *computed)))

    @property
    def _decisive(self) -> tuple[str, ...]:
        """The attributes that decide which matches there are, but for those of alternatives in PARTITION BY."""
        found = [a.name for c in conditions(self.tree.where) for a in attributes_of(c)]
        found += [name.text for bracket in self.tree.partition if len(bracket) == 1 for name in bracket]
        return tuple(found)

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that it calls."""
        every = (*conditions(self.tree.where), *self.tree.expressions)
        return tuple(dict.fromkeys(call.function for part in every for call in calls_of(part)))

    @property
    def read(self) -> frozenset[str]:
        """Every attribute that evaluation looks at, without the columns of SELECT and ORDER BY."""
        window = () if self.lowered.window_attribute is None else (self.lowered.window_attribute,)
        return frozenset([*self._decisive, *itertools.chain(*self.lowered.partition), *window])

    @property
    def named_streams(self) -> tuple[str, ...]:
        """The streams that the query names."""
        if self.tree.streams:
            return tuple(s.text for s in self.tree.streams)
        return tuple(dict.fromkeys(a.stream.text for a in event_types(self.tree.where) if a.stream is not None))

    @property
    def named_types(self) -> tuple[str, ...]:
        """The event types that the query names; ANY is none."""
        return tuple(dict.fromkeys(atom.name for atom in event_types(self.tree.where) if not atom.every))

    def streams(self, given: tuple[str, ...]) -> tuple[str, ...]:
        """The streams to read, in their order, if `given` are there; `()` asks for those that the query names.

        Raises `OptionError` for one that is missing or unknown.
        """
        for name in given:
            expect_type("the name of a stream", name, str, "give a text")
        named = self.named_streams
        if not given:
            return named or ("",)
        for name in given:
            if self.tree.streams and name not in named:
                raise _unknown_stream(name, named)
        for name in named:
            if name not in given:
                raise OptionError(
                    f"no events for stream {name}", f"the query reads {', '.join(named)}; given: {', '.join(given)}"
                )
        return named if self.tree.streams else given

    def types(self, given: Iterable[str]) -> tuple[str, ...]:
        """The types of inputs that have one each, in their order. `OptionError` if the query reads streams."""
        names = tuple(given)
        for name in names:
            type_name("the type of an input", name)
        if not names:
            raise OptionError("no inputs to run over", "run(types={type: events, …})")
        if self.named_streams:
            raise OptionError(
                f"the query reads streams: {', '.join(self.named_streams)}, and types= is for one without",
                "give each stream its events, with a column of types: streams={name: events, …}",
            )
        self.check_given(names)
        return names

    def sources(
        self, events: Any, streams: Mapping[str, Any] | None, types: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The input, by stream, or by type. `OptionError` if it does not fit the names in the query."""
        given = {"events": events, "streams": streams, "types": types}
        several = [name for name, value in given.items() if value is not None]
        if len(several) != 1:
            problem = f"{' and '.join(several)} are given together" if several else "no events to run over"
            raise OptionError(problem, "give run(events), or run(streams={name: events, …}), or run(types={…})")
        if types is not None:
            expect_type("types", types, Mapping, "run(types={type: events, …})")
            return {name: types[name] for name in self.types(types)}
        if streams is not None:
            expect_type("streams", streams, Mapping, "run(streams={name: events, …})")
            if not streams:
                raise OptionError("no streams to run over", "run(streams={name: events, …})")
            return {name: streams[name] for name in self.streams(tuple(streams))}
        named = self.named_streams
        if len(named) > 1:
            raise OptionError(
                f"the query reads several streams: {', '.join(named)}",
                "give each its events: --stream NAME=FILE for each",
            )
        return {(named or ("",))[0]: events}

    def check_given(self, types: str | tuple[str, ...]) -> None:
        """`OptionError` if the query names a type that no input has. `types`: those given for the inputs, or the column
        that says them."""
        for name in self.named_types if isinstance(types, tuple) else ():
            if name not in types:
                given = " or ".join(dict.fromkeys(types))
                likely = closest(name, types)
                hint = f'types={{"{name}": events, …}} gives each input its type'
                if likely is not None:
                    hint = f"{likely} may stand for {name}"
                raise OptionError(f"all events are given the type {given}, and the query names {name}", hint)

    def explain(self, format: str) -> str:
        """As of `ceql.query.Query.explain`."""
        return self.explained(format, self._plan(), {})

    def _plan(self) -> Iterator[str]:
        lowered = self.lowered
        yield "query:"
        yield from ("  " + line for line in print_query(self.tree).splitlines())
        yield from self._explain_rewrites()
        yield from self.growth
        if lowered.window_attribute is not None:
            yield f"window over: {lowered.window_attribute} (its own numbers, closed)"
        if lowered.partition:
            yield f"partition by: {', '.join(' or '.join(bracket) for bracket in lowered.partition)}"
        for key in lowered.keys:
            yield f"  {key} by conditions that every event of a match is under; they need no evaluation of their own"
        if lowered.strict:
            yield "selection: STRICT, matched positions are consecutive"
        if self.tree.order is not None:
            yield from self._explain_order(self.tree.limit)
        yield from _explain_around(lowered)
        steps = list(explain_steps(self.tree.where))
        if steps:
            yield "steps:"
            yield from ("  " + line for line in steps)
        for guard in () if lowered.registers is None else lowered.registers.guards:
            contents = contents_of(guard)
            if contents:
                yield f"{guard}: {contents}"
        yield "automaton:"
        program = self.program()
        yield from ("  " + line for line in (*program.explain().splitlines(), *explain_growth(program)))

    def _explain_order(self, limit: ast.Limit | None) -> Iterator[str]:
        """The lines on the order of the matches of an event."""
        first = "" if limit is None else f", of which the first {limit.count:,} are reported"
        if isinstance(self.ranks, Ranks):
            yield f"order: the best matches of each event are found by the nodes that matches share, and sorted{first}"
        else:
            yield f"order: the matches of each event are listed and sorted{first}"
            if limit is not None:
                yield f"  all of them, since {self.ranks}"

    def _explain_rewrites(self) -> Iterator[str]:
        """The query that is compiled, if rewriting changed it, and the parts left out."""
        if self.rewritten.query != self.tree:
            yield "compiled as:"
            yield from ("  " + line for line in print_query(self.rewritten.query).splitlines())
        if self.rewritten.removed:
            yield "left out, as no stream matches it:"
            yield from (f"  {part}" for part in self.rewritten.removed)
            if self.rewritten.unsatisfiable:
                yield "  which is all of it: the query reports nothing"
        for name, span in self.rewritten.unsafe:
            place = f"{span.line}:{span.column}"
            yield f"{name} is bound again at {place}: it holds the events of both (not safe, [CEL])"


def _clause_with_a_time(query: ast.Query) -> str:
    """WITHIN, GROUP BY, or the first NOT … FOR, as text; empty if none of them names a time."""
    if isinstance(query.within, ast.WithinTime):
        return f"WITHIN {print_within(query.within)}"
    if query.grouping is not None and query.grouping.length is not None:
        return f"GROUP BY {print_grouping(query.grouping)}"
    lasting = (n for n in walk(query.where) if isinstance(n, ast.Without) and n.duration is not None)
    return next(map(print_formula, lasting), "")


def _explain_around(lowered: Lowered) -> Iterator[str]:
    """Lines on the events that must not come around a match."""
    around = lowered.around
    if around.absent is not None:
        behind = "" if lowered.against is None else ", and none that its conditions relate to the match"
        when = "their windows close" if around.patience is None else f"{_time(around.patience)} have passed"
        yield f"at the end: {around.absent}{behind}; matches are reported as {when}"
    if around.repeated is not None:
        every = _time(around.repeated.every)
        yield f"at the end: {around.repeated.none}; a match is reported again after each {every} without one"
    if around.before is not None:
        yield f"at the start: {around.before}, from the first event of the window that a match ends on"
    for one in around.marked:
        where = "at the end" if one.behind else "at the start"
        when = "in the window of the match" if one.duration is None else f"for {_time(one.duration)}"
        when += ", from the part in front of its AND on, or its first event" if one.since else ""
        yield f"{where}{' of some alternatives' if one.mark else ''}: {one.none}, {when}"
    for silent in around.silences:
        duration, some = silent.quiet.duration, " of some alternatives" if silent.border is not None else ""
        since = f"for {_time(duration)}" if duration.is_bounded else "since the stream began"
        yield f"at the start{some}: {silent.quiet.none}, {since}"


def _time(window: Window) -> str:
    return format_duration(int(window.size))


def _unknown_stream(name: str, named: tuple[str, ...]) -> OptionError:
    return OptionError(f"unknown stream {name}", did_you_mean(name, named) or f"the query reads {', '.join(named)}")
