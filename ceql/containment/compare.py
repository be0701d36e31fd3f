"""The comparison of two queries: the product of their automata, and streams that the engine runs both over."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ceql.containment import letters as alphabet
from ceql.containment.domains import Domains, Refused
from ceql.containment.letters import Alphabet
from ceql.containment.streams import Engine, random_streams
from ceql.expressions.predicates import Satisfies, StreamIs, TypeIs
from ceql.guards.guard import Guard
from ceql.query import Query, compile_query
from ceql.syntax.ast import Condition
from ceql.syntax.printer import print_expression, print_query
from ceql.syntax.walk import aggregates_of, attributes_of
from spaseq.core.containment.deciding import Known, choose_alike, relation_of, reports_all
from spaseq.core.containment.product import Automaton, Bounds, Budget, Found, search
from spaseq.core.containment.result import Comparison, Relation, Witness
from spaseq.core.containment.windows import events_in, goals
from spaseq.core.engine import Program, Settings
from spaseq.core.engine.program.around import Quiet
from spaseq.core.errors import (
    BudgetExceeded,
    EventError,
    LimitReached,
    UnsupportedFeature,
    expect_count,
    expect_type,
)
from spaseq.core.events import EVENT_TIME
from spaseq.core.protocols import Written

NOT_SHOWN: Final = "the engine does not show a match that the product of the automata has"
STREAMS: Final = 200
"""Random streams that are tried if the product does not decide."""
_OWN: Final = frozenset(("type", "stream", "time", "timestamp", EVENT_TIME))
"""Attributes that say more of an event than their value."""


def compare(
    old: str | Written | Query, new: str | Written | Query, *, valuations: bool = False,
    settings: Settings | None = None, streams: int = STREAMS,
) -> Comparison:  # fmt: skip
    """The relation of the matches of two queries, over all streams.

    Args: `old` and `new` are queries or their text. `valuations`: matches differ in the positions of each variable
    that SELECT shows, by name; else its interval and its positions, as of `Query.run`. A list of attributes in one
    SELECT asks for valuations of both. `settings` are of queries given as text, and `compared_steps` bounds the
    search. `streams`: the random streams that are tried if the search does not decide.

    A stream that shows a difference has been run by the engine. The columns that SELECT computes are not compared. Of
    queries with GROUP BY the matches that they count are compared.
    Raises the errors of `compile_query` for a text, and `UnsupportedFeature` for NOT … FOR EVERY.

    >>> print(compare("SELECT * WHERE A ; B", "SELECT * WHERE A : B").relation)
    new contained in old
    """
    expect_type("valuations", valuations, bool, "it is True or False")
    expect_count("streams", streams)
    queries = [
        _listing(query if isinstance(query, Query) else compile_query(query, f"<{name}>", settings))
        for name, query in (("old", old), ("new", new))
    ]
    if any(query.compiled.repeats for query in queries):
        hint = "FOR 10 SECONDS, without EVERY, reports each match once"
        raise UnsupportedFeature("queries with NOT … FOR EVERY are not compared", hint=hint)
    asked = valuations or any(query.compiled.valuations for query in queries)
    return _Case(Engine(queries[0], queries[1], asked), streams, settings or queries[1].settings).decide()


def _listing(query: Query) -> Query:
    """The query; one with GROUP BY without it, since its rows do not tell which matches they are of."""
    if query.tree.grouping is None:
        return query
    listing = replace(query.tree, selection=replace(query.tree.selection, columns=()), grouping=None)
    return compile_query(print_query(listing), query.compiled.source, query.settings)


@dataclass(slots=True)
class _Case:
    """Two queries, and what is known of them so far. `absent`: those that report no match alone, or "both" if no match
    is of both."""

    engine: Engine
    streams: int
    settings: Settings
    shown: dict[str, Witness] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)
    exact: bool = True

    def decide(self) -> Comparison:
        programs: list[Program] = []
        try:
            programs = [self._program(query) for query in (self.engine.old, self.engine.new)]
            domains = self._domains(programs)
            self._search(programs, domains)
        except Refused as refused:
            self.reasons.append(str(refused))
        except LimitReached:
            raise
        except BudgetExceeded as error:
            self.reasons.append(str(error).replace("\nhint: ", ": "))
        if self._open and self.engine.same_streams:
            try:
                self._try_streams()
            except Refused as refused:
                self.reasons.append(str(refused))
        return self._answer()

    @property
    def _open(self) -> list[str]:
        """The facts that are not known yet."""
        known = self.absent | self.shown.keys()
        wanted = [name for name in ("old", "new") if name not in known]
        return wanted + (["both"] if not wanted and self.shown.keys() >= {"old", "new"} and "both" not in known else [])

    def _fact(self, name: str) -> Known:
        return True if name in self.shown else False if name in self.absent else None

    def _answer(self) -> Comparison:
        relation = relation_of(self._fact("old"), self._fact("new"), self._fact("both"))
        if relation is Relation.UNDECIDED:
            reason = "; ".join(dict.fromkeys(self.reasons))
            if self.engine.same_streams:
                reason += f"; of {self.streams:,} random streams none shows a match {_words(self._open)}"
        elif self.reasons:
            reason = f"shown by streams ({'; '.join(dict.fromkeys(self.reasons))})"
        else:
            reason = "decided for all streams"
        return Comparison(
            relation, reason.removeprefix("; "), self.shown.get("old"), self.shown.get("new"), self.shown.get("both")
        )

    # The product of the automata

    def _program(self, query: Query) -> Program:
        compiled = query.compiled
        return compiled.program_with_labels if self.engine.valuations else compiled.program_of(False)

    def _domains(self, programs: list[Program]) -> Domains:
        """The values to try. Raises `Refused` for queries outside the class that is decided."""
        engine = self.engine
        if not _read_alike(engine.old, engine.new):
            raise Refused("the queries read different streams, or in another order")
        for query in (engine.old, engine.new):
            if query.settings.forget_keys_after is not None:
                raise Refused("forget_keys_after ends the runs of keys")
        guards = [guard for program in programs for guard in _guards(program)]
        leaves = alphabet.leaves_of(p for program in programs for p in program.cea.predicates)
        found = [leaf.condition for leaf in leaves if isinstance(leaf, Satisfies)]
        domains = Domains([*found, *(guard.condition for guard in guards)])
        for guard in guards:
            if any(True for _ in aggregates_of(guard.condition)):
                raise Refused(f"{guard.query_text} has an aggregate")
            if guard.condition in domains.opaque:
                why = domains.reasons.get(guard.condition, "it is more than comparisons of attributes")
                raise Refused(f"{guard.query_text} relates events, and {why}")
        own = _OWN | set(engine.measures)
        for condition in (*found, *(guard.condition for guard in guards)):
            for attribute in attributes_of(condition):
                if attribute.name in own:
                    raise Refused(f"{_text_of(condition)} is about times or types")
        return domains

    def _search(self, programs: list[Program], domains: Domains) -> None:
        engine = self.engine
        old, new = (
            alphabet.Query(program.cea, tuple(_guards(program)), _keys(query, _OWN | set(engine.measures)))
            for query, program in zip((engine.old, engine.new), programs, strict=True)
        )
        same_keys = set(old.keys) == set(new.keys)
        windows = programs[0].window, programs[1].window
        one_measure = engine.old.window_attribute == engine.new.window_attribute
        bounds = Bounds(events_in(windows[0]), events_in(windows[1]), not same_keys)
        wanted = list(goals(*windows, one_measure))
        shown = [frozenset(q.compiled.shown.variables) if engine.valuations else None for q in (engine.old, engine.new)]
        every = [
            reports_all(program) and not _sorts_first(query)
            for program, query in zip(programs, (engine.old, engine.new), strict=True)
        ]
        self.exact = all(every)
        budget = Budget(self.settings.compared_steps)
        absent = {"old", "new", "both"}
        for key in _contexts(old, new, domains):
            letters = Alphabet(old, new, domains, key, engine.streams, self.settings.compared_steps)
            automata = [
                Automaton(program.cea, registers if program.registers is not None else None, names)
                for program, registers, names in zip(programs, letters.registers, shown, strict=True)
            ]
            for unsure in (False, True):
                found = Found()
                try:
                    search(automata[0], automata[1], letters, wanted, bounds, budget, found, unsure=unsure)
                finally:
                    if not unsure:
                        self._confirm(found, letters)
                absent -= found.words.keys()
                if not unsure:
                    wanted = [goal for goal in wanted if goal.reported_by not in found.words]
                if not found.unsure or not wanted:
                    break
        self._conclude(programs, every, absent, same_keys)
        if domains.opaque and self._open:
            self.reasons.append(f"it may depend on {_text_of(min(domains.opaque, key=str))}")

    def _confirm(self, found: Found, letters: Alphabet) -> None:
        """Run both queries over the streams that were found."""
        for goal, word in found.words.values():
            rows = self.engine.rows_of((letters.rows[n] for n in word), goal.lasts)
            self._show(rows, exact=True)
            if goal.reported_by not in self.shown and self.exact:
                self.reasons.append(NOT_SHOWN)

    def _show(self, rows: tuple[dict[str, Any], ...], exact: bool = False) -> None:
        """Runs both queries over a stream. A stream whose values do not go together shows nothing."""
        try:
            found = list(self.engine.witnesses(rows))
        except EventError:
            return
        for witness in found:
            if witness.reported_by not in self.shown:
                self.shown[witness.reported_by] = witness if exact else self._shorten(witness)

    def _shorten(self, witness: Witness) -> Witness:
        """A witness without the events that it does not need."""
        for n in reversed(range(len(witness.rows))):
            rows = (*witness.rows[:n], *witness.rows[n + 1 :])
            less = [one for one in self.engine.witnesses(rows) if one.reported_by == witness.reported_by]
            witness = less[0] if less else witness
        return witness

    def _conclude(self, programs: list[Program], every: list[bool], absent: set[str], same_keys: bool) -> None:
        """Adds the facts about reported matches that follow from those of the automata. `every`: True for each query
        that reports all of these."""
        alike = not _sorts_first(self.engine.old, self.engine.new) and choose_alike(programs[0], programs[1], same_keys)
        if {"old", "new"} <= absent and (all(every) or alike):
            self.absent |= {"old", "new"}
        for name, other_reports_all in (("old", every[1]), ("new", every[0])):
            if name in absent and other_reports_all:
                self.absent.add(name)
        if "both" in absent:
            self.absent.add("both")
        if not all(every):
            self.reasons.append("a query chooses among its matches, or looks at events around them")

    # Streams

    def _try_streams(self) -> None:
        """Run both queries over random streams, until nothing is left to be shown."""
        engine = self.engine
        programs = [query.compiled.program_of(False) for query in (engine.old, engine.new)]
        leaves = [leaf for program in programs for leaf in _leaves_of(program)]
        conditions = [leaf.condition for leaf in leaves if isinstance(leaf, Satisfies)]
        conditions += [guard.condition for program in programs for guard in _guards(program)]
        keys = [name for query in (engine.old, engine.new) for bracket in query.partition for name in bracket]
        orders = (query.tree.order for query in (engine.old, engine.new))
        sorted_by = [key.expression for order in orders if order is not None for key in order.keys]
        read = {attribute.name for node in (*conditions, *sorted_by) for attribute in attributes_of(node)}
        names = sorted(read - _OWN - set(keys) - set(engine.measures))
        types = sorted({leaf.name for leaf in leaves if isinstance(leaf, TypeIs)})
        domains = Domains(conditions)
        for rows in random_streams(engine, domains, [*types, "Other"], names, keys, self.streams):
            self._show(rows)
            if not self._open:
                break


def _leaves_of(program: Program) -> Iterator[TypeIs | StreamIs | Satisfies]:
    """The types and conditions of a program, and of the events that must not come around its matches."""
    around, against = program.around, program.against
    more = [around.absent, around.before, *(quiet.none for quiet in around.quiets)]
    more += [one.none for one in around.marked]
    predicates = [p for p in program.cea.predicates if not isinstance(p, Quiet)] if _has_automaton(program) else []
    yield from alphabet.leaves_of([*predicates, *(one for one in more if one is not None)])
    if against is not None:
        yield from _leaves_of(against)


def _has_automaton(program: Program) -> bool:
    return not isinstance(program.automaton, BudgetExceeded)


def _guards(program: Program) -> Iterator[Guard]:
    """The guards of a program, in the order of its registers."""
    yield from getattr(program.registers, "guards", ())


def _sorts_first(*queries: Query) -> bool:
    """True if one of the queries sorts its matches and reports the first, which no program knows of."""
    return any(query.tree.order is not None and query.tree.limit is not None for query in queries)


def _read_alike(old: Query, new: Query) -> bool:
    """True if two queries read the same streams, and in the same order if FROM gives one: it orders equal times."""
    one, two = old.compiled.named_streams, new.compiled.named_streams
    ordered = old.tree.streams or new.tree.streams
    return one == two if ordered else set(one) == set(two)


def _keys(query: Query, own: frozenset[str]) -> tuple[str, ...]:
    """The attributes of the keys of a query; none of them may be one of its `own`, of times and types."""
    found = []
    for bracket in query.partition:
        if len(bracket) > 1:
            raise Refused(f"a key is one of {', '.join(bracket)}")
        if bracket[0] in own:
            raise Refused(f"the key {bracket[0]} is about times or types")
        found.append(bracket[0])
    return tuple(dict.fromkeys(found))


def _contexts(old: alphabet.Query, new: alphabet.Query, domains: Domains) -> Iterator[dict[str, Any]]:
    """The values of keys that a word may have: one of each kind that conditions can tell apart."""
    names = list(dict.fromkeys((*old.keys, *new.keys)))
    tries = []
    for name in names:
        sort = domains.sort(name)
        alike = sum(other in sort.names for other in names)
        if alike > 1 and set(old.keys) != set(new.keys):
            raise Refused(f"the keys differ, and {name} is compared with another key")
        optional = not (name in old.keys and name in new.keys)
        tries.append([one for one in sort.tries((), alike) if optional or one is not None])
    for chosen in itertools.product(*tries):
        yield dict(zip(names, chosen, strict=True))


def _text_of(condition: Condition) -> str:
    return print_expression(condition)


def _words(missing: list[str]) -> str:
    told = {"old": "of the old query alone", "new": "of the new query alone", "both": "of both"}
    return " or ".join(told[name] for name in missing)
