"""`spaseq.compare`: the matches that one of two queries reports and the other one does not, over all streams.

What is proved. Two queries whose sequences, graph patterns, clauses, streams and windows are the same are equivalent,
whatever their layout, prefixes and the order of their definitions. And a query is contained in another one if it is the
same but for more conditions in its graph patterns or a narrower window, and if the sequence is *monotone*: with more
solutions and more events it has no fewer matches. Skip-till-next (`;`) passes over events that do not join, and an
absence fails by more solutions, so neither is monotone. A join works solution by solution, so it is.

What is shown. Random streams of graphs that the triple patterns fit; the engine runs both queries over them. Anything
else is undecided: containment of graph patterns with FILTERs is, in general, undecidable.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from rdflib.namespace import XSD
from rdflib.term import BNode, Literal, URIRef, Variable

from spaseq.core.automata import Avoid
from spaseq.core.containment.deciding import relation_of, reports_all
from spaseq.core.containment.result import Comparison, Relation, Witness
from spaseq.core.engine import Settings, Window
from spaseq.core.errors import EventError, expect_count
from spaseq.core.events.time import format_time
from spaseq.core.trees import walk
from spaseq.gpm import algebra
from spaseq.gpm.pattern import Condition, GraphPattern
from spaseq.language.guards.guards import Take
from spaseq.language.lowering.lower import Holds
from spaseq.language.query import Query, compile_query
from spaseq.language.runtime.knowledge import Known

STREAMS: Final = 200
"""Random streams that are tried if there is no proof."""
_LONGEST: Final = 6
"""Events of a random stream."""
_SECOND: Final = 1_000_000_000
_MIRROR: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compare(
    old: str | Query, new: str | Query, *, kb: Known = None, settings: Settings | None = None, streams: int = STREAMS
) -> Comparison:
    """The relation of the matches of two queries, over all streams.

    Two matches are the same if they have the same interval, positions and bindings of the selected variables.

    Args: `old` and `new` are queries or their text. `kb`: background knowledge of both, as of `Query.run`, for the
    streams that are tried. `settings` are of queries given as text. `streams`: the random streams that are tried if
    there is no proof.

    A stream that shows a difference has been run by the engine. Raises the errors of `compile_query` for a text.
    """
    expect_count("streams", streams)
    queries = [
        query if isinstance(query, Query) else compile_query(query, f"<{name}>", settings)
        for name, query in (("old", old), ("new", new))
    ]
    return _Case(queries[0], queries[1], kb, streams).decide()


@dataclass(slots=True)
class _Case:
    """Two queries, and the facts known so far: `shown` by streams, `absent` by proof."""

    old: Query
    new: Query
    kb: Known
    streams: int
    shown: dict[str, Witness] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)

    def decide(self) -> Comparison:
        reason = self._prove()
        tried = 0
        if not self._untried:
            tried = self._try_streams()
        relation = self._relation
        if relation is Relation.UNDECIDED:  # and why streams say no more
            reason += f"; {self._untried}" if self._untried else f"; {tried:,} random streams decide no more"
        return Comparison(relation, reason, self.shown.get("old"), self.shown.get("new"), self.shown.get("both"))

    @property
    def _relation(self) -> Relation:
        """The relation by the facts known so far."""
        old, new, both = (
            True if name in self.shown else False if name in self.absent else None for name in ("old", "new", "both")
        )
        return relation_of(old, new, both)

    # Proofs

    def _prove(self) -> str:
        """Adds the facts that are proved; the reason, in words."""
        old, new = self.old.compiled, self.new.compiled
        unlike = _unlike(self.old, self.new)
        if unlike:
            return f"the queries differ in {unlike}"
        same_window = old.window() == new.window()
        if same_window and old.checked.patterns == new.checked.patterns:
            self.absent |= {"old", "new"}
            return "the queries are the same but for their text"
        why = _not_monotone(self.old) or _not_monotone(self.new)
        if why:
            return why
        if _narrows(self.old, self.new):
            self.absent.add("old")
        if _narrows(self.new, self.old):
            self.absent.add("new")
        return "one query has more conditions or a narrower window" if self.absent else "their conditions differ"

    # Streams

    @property
    def _untried(self) -> str:
        """The reason why no streams are tried; empty if they are."""
        if {iri for _, iri in self.old.streams} != {iri for _, iri in self.new.streams}:
            return "the queries read different streams"
        reads = any(p.graphs or p.any_graph for q in (self.old, self.new) for p in q.checked.patterns.values())
        return "they read background knowledge, and kb= is not given" if reads and self.kb is None else ""

    def _try_streams(self) -> int:
        """Runs both queries over random streams until nothing is left to be shown; how many."""
        tried = 0
        for rows in _random_streams(self.old, self.new, self.streams):
            if self._relation is not Relation.UNDECIDED:
                break
            tried += 1
            for witness in self._witnesses(rows):
                if witness.reported_by not in self.shown:
                    self.shown[witness.reported_by] = self._shorten(witness)
        return tried

    def _witnesses(self, rows: Sequence[dict[str, Any]]) -> list[Witness]:
        """The differences that a stream shows, and a match of both. A stream that is refused shows nothing."""
        try:
            old, new = _matches(self.old, rows, self.kb), _matches(self.new, rows, self.kb)
        except EventError:
            return []
        sides = (("old", old, old.keys() - new.keys()), ("new", new, new.keys() - old.keys()))
        return [
            Witness(who, tuple(rows), of[min(keys, key=str)])
            for who, of, keys in (*sides, ("both", old, old.keys() & new.keys()))
            if keys
        ]

    def _shorten(self, witness: Witness) -> Witness:
        """A witness without the events that it does not need."""
        for n in reversed(range(len(witness.rows))):
            rows = (*witness.rows[:n], *witness.rows[n + 1 :])
            less = [one for one in self._witnesses(rows) if one.reported_by == witness.reported_by]
            witness = less[0] if less else witness
        return witness


def _unlike(old: Query, new: Query) -> str:
    """The part, in words, in which two queries differ beyond conditions and windows; empty if in none."""
    one, two = old.checked, new.checked
    parts = {
        "the streams they read": (frozenset(iri for _, iri in one.streams), frozenset(iri for _, iri in two.streams)),
        "their graph patterns": (_bare(one.patterns), _bare(two.patterns)),
        "their sequences": (old.pattern, new.pattern),
        "their result clauses": (one.clauses, two.clauses),
        "PARTITION BY": (one.partition, two.partition),
        "what a match discards": (one.after, two.after),
        "the times of absences": (one.lasting, two.lasting),
        "forget_keys_after": (old.settings.forget_keys_after, new.settings.forget_keys_after),
    }
    return next((name for name, (first, second) in parts.items() if first != second), "")


def _bare(patterns: dict[str, GraphPattern]) -> dict[str, GraphPattern]:
    """The graph patterns without the conditions that they decide alone."""
    return {name: replace(pattern, local=()) for name, pattern in patterns.items()}


def _not_monotone(query: Query) -> str:
    """The reason why more solutions may mean fewer matches; empty if they do not."""
    program, clauses = query.compiled.program(), query.checked.clauses
    transitions = [transition for out in program.cea.transitions for transition in out]
    if any(transition.rank for transition in transitions):
        return "the sequence waits for the next instant that joins (;)"
    if query.checked.partition:
        return "PARTITION BY leaves out instants without solutions, which changes what lies side by side"
    guards = [action.guard for transition in transitions for action in transition.actions if hasattr(action, "guard")]
    avoids = any(isinstance(action, Avoid) for transition in transitions for action in transition.actions)
    if avoids or not all(isinstance(one, Holds) for one in program.cea.predicates) or not all(map(_is_join, guards)):
        return "the sequence is more than joins of solutions"
    if clauses.by_window or clauses.ask:
        return "a result depends on several matches"
    return "" if reports_all(program) else "a match discards others"


def _is_join(guard: Any) -> bool:
    """True if a guard does nothing but join the solutions of an instant with those of the run."""
    return isinstance(guard, Take) and not (guard.before or guard.owed or guard.collect or guard.decided)


def _narrows(old: Query, new: Query) -> bool:
    """True if a monotone query `old` has all conditions of `new`, or stronger ones, and a window inside of its."""
    patterns = old.checked.patterns, new.checked.patterns
    stronger = all(
        all(any(_implies(given, wanted) for given in patterns[0][name].local) for wanted in patterns[1][name].local)
        for name in patterns[0]
    )
    return stronger and _is_inside(old.compiled.window(), new.compiled.window())


def _is_inside(narrow: Window, wide: Window) -> bool:
    """True if any two places that the one window holds together, the other one does, too."""
    if wide.kind == "none":
        return True
    if narrow.kind == wide.kind != "tumbling":
        return narrow.size <= wide.size
    if narrow.kind == "tumbling" and wide.kind == "span":
        return narrow.size - 1 <= wide.size
    if not (narrow.kind == wide.kind == "tumbling"):
        return False
    return wide.size % narrow.size == 0 and (wide.origin - narrow.origin) % narrow.size == 0


def _implies(given: Condition, wanted: Condition) -> bool:
    """True if a condition holds whenever `given` does: the same one, or a bound on one variable by a lesser number."""
    if given == wanted:
        return True
    one, two = _bound(given.expression), _bound(wanted.expression)
    if one is None or two is None or one[0] != two[0] or one[1][0] != two[1][0]:
        return False
    (_, symbol, limit), (_, other, least) = one, two
    further = limit > least if symbol[0] == ">" else limit < least
    return further or (limit == least and (symbol == other or other.endswith("=")))


def _bound(node: algebra.Expression) -> tuple[str, str, Decimal] | None:
    """(variable, <, <=, > or >=, number) of a comparison of a variable with an integer or a decimal; else None."""
    match node:
        case algebra.Call(symbol, (algebra.Term(Variable() as name), algebra.Term(Literal() as limit))):
            pass
        case algebra.Call(symbol, (algebra.Term(Literal() as limit), algebra.Term(Variable() as name))):
            symbol = _MIRROR.get(symbol, "")
        case _:
            return None
    if symbol not in _MIRROR or limit.datatype not in (XSD.integer, XSD.decimal) or limit.value is None:
        return None
    return str(name), symbol, Decimal(limit.value)


# -- streams


def _matches(query: Query, rows: Sequence[dict[str, Any]], kb: Known) -> dict[Any, dict[str, Any]]:
    """The matches of a query over rows, by what they are: start, end, positions and bindings."""
    streams = {iri: [(row["time"], row["graph"]) for row in rows if row["stream"] == iri] for _, iri in query.streams}
    found: dict[Any, dict[str, Any]] = {}
    if not rows:
        return found
    for match in query.run(streams, kb, keep_events=False):
        bindings = {str(name): term.n3() for name, term in sorted(match.bindings.items())}
        key = match.start, match.end, tuple(match.positions), tuple(bindings.items())
        found[key] = {"start": match.start, "end": match.end, "positions": key[2], "bindings": bindings}
    return found


def _random_streams(old: Query, new: Query, count: int) -> Iterator[tuple[dict[str, Any], ...]]:
    """Streams of graphs that the triple patterns of both queries fit. The same ones for the same queries."""
    rng = random.Random(count)
    patterns = [pattern for query in (old, new) for pattern in query.checked.patterns.values()]
    subjects = {str(s) for p in patterns for s, _, _ in _triples(p) if isinstance(s, Variable)}
    values = _values(patterns)
    sizes = [w.size for w in (old.compiled.window(), new.compiled.window()) if w.kind in ("span", "tumbling")]
    gaps = [0, _SECOND] + [int(f) for size in sizes for f in (size // 2, size, size + _SECOND)]
    for _ in range(count):
        now, rows = 0, []
        for _ in range(rng.randint(1, _LONGEST)):
            now += rng.choice(gaps)
            pattern = rng.choice(patterns)
            terms = _Terms(rng, subjects, values)
            graph = [terms.triple(t) for t in _triples(pattern) if rng.random() < 0.9]
            lines = sorted({line for line in graph if line})
            if lines:
                rows.append(
                    {"stream": rng.choice(pattern.streams), "time": format_time(now), "graph": "\n".join(lines)}
                )
        yield tuple(rows)


@dataclass(slots=True)
class _Terms:
    """Terms for the variables of one graph: few, so that graphs join."""

    rng: random.Random
    subjects: set[str]
    values: list[Literal]
    chosen: dict[str, Any] = field(default_factory=dict)

    def triple(self, pattern: tuple[Any, Any, Any]) -> str:
        """A triple that fits a pattern, as N-Triples; empty for a property path or a triple term."""
        terms = [self._term(part) for part in pattern]
        if any(term is None for term in terms) or isinstance(terms[0], Literal) or not isinstance(terms[1], URIRef):
            return ""
        return " ".join(term.n3() for term in terms) + " ."

    def _term(self, part: Any) -> Any:
        if not isinstance(part, Variable | BNode):
            return part if isinstance(part, URIRef | Literal) else None
        name = str(part)
        if name not in self.chosen:
            named = name in self.subjects or isinstance(part, BNode)
            self.chosen[name] = URIRef(f"urn:x:{self.rng.randint(1, 2)}") if named else self.rng.choice(self.values)
        return self.chosen[name]


def _triples(pattern: GraphPattern) -> list[tuple[Any, Any, Any]]:
    """The triple patterns of the part of a graph pattern that is about events."""
    return [triple for node in walk(pattern.event) if isinstance(node, algebra.BGP) for triple in node.triples]


def _values(patterns: Iterable[GraphPattern]) -> list[Literal]:
    """The constants that conditions compare with, numbers also one less and one more; and some numbers."""
    found = {Literal(1), Literal(2)}
    for pattern in patterns:
        expressions = [c.expression for c in (*pattern.local, *pattern.correlated)]
        expressions += [node.condition for node in walk(pattern.event) if isinstance(node, algebra.Filter)]
        for expression in expressions:
            for term in _literals(expression):
                found.add(term)
                if isinstance(term.value, int | Decimal) and not isinstance(term.value, bool):
                    found |= {Literal(term.value - 1), Literal(term.value + 1)}
    return sorted(found, key=lambda term: (str(term.datatype), str(term)))


def _literals(node: algebra.Expression) -> Iterator[Literal]:
    match node:
        case algebra.Term(Literal() as value):
            yield value
        case algebra.Call():
            for argument in node.arguments:
                yield from _literals(argument)
