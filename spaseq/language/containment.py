"""`spaseq.compare`: the matches that one of two queries reports and the other one does not, over all streams.

What is proved. Two queries are equivalent if their sequences, graph patterns, clauses, streams and windows are the
same, whatever their layout, prefixes and order of definitions. A query with more conditions in its graph patterns, or a
narrower window, is contained in the one without, if the sequence is *monotone*: more solutions never mean fewer
matches. Skip-till-next (`;`) passes over events that do not join, and an
absence fails by more solutions, so neither is monotone. A join works solution by solution, so it is.

What is shown. Random streams of graphs that the triple patterns fit; the engine runs both queries over them. Anything
else is undecided: containment of graph patterns with FILTERs is, in general, undecidable.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from spaseq.core.automata import Avoid
from spaseq.core.containment.deciding import relation_of, reports_all
from spaseq.core.containment.result import Comparison, Relation, Witness
from spaseq.core.engine import Settings, Window
from spaseq.core.errors import EventError, expect_count
from spaseq.core.events.time import format_time
from spaseq.gpm import algebra
from spaseq.gpm.containment.fitting import Fitting
from spaseq.gpm.containment.implied import implies
from spaseq.gpm.functions import FRESH
from spaseq.gpm.pattern import GraphPattern
from spaseq.language.guards.guards import Take
from spaseq.language.lowering.lower import Holds
from spaseq.language.query import Query, compile_query
from spaseq.language.runtime.knowledge import Known

STREAMS: Final = 200
"""Random streams that are tried if there is no proof."""
_LONGEST: Final = 6
"""Events of a random stream."""
_SECOND: Final = 1_000_000_000


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
        if not self._obstacle:
            tried = self._try_streams()
        relation = self._relation
        if relation is Relation.UNDECIDED:  # and why streams say no more
            reason += f"; {self._obstacle}" if self._obstacle else f"; {tried:,} random streams decide no more"
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
        varying = _varying(self.old, self.new)
        if varying:
            return f"the value of {varying} is another one each time"
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
    def _obstacle(self) -> str:
        """The reason why no streams are tried; empty if they are."""
        if _varying(self.old, self.new):
            return "so a query differs from itself"
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
        "PARTITION BY": (one.partition, two.partition),  # it changes what the runs of a sequence keep
        "their sequences": (old.pattern, new.pattern),
        "their result clauses": (one.clauses, two.clauses),
        "what a match discards": (one.after, two.after),
        "the times of absences": (one.lasting, two.lasting),
        "forget_keys_after": (old.settings.forget_keys_after, new.settings.forget_keys_after),
    }
    return next((name for name, (first, second) in parts.items() if first != second), "")


def _varying(*queries: Query) -> str:
    """A function in one of the queries whose value is another one each time; empty if there is none."""
    parts: list[object] = []
    for query in queries:
        plan = query.checked.clauses.plan
        parts += [*(pattern.parts for pattern in query.checked.patterns.values()), () if plan is None else plan.parts]
    return next((call.name for call in algebra.calls_inside(tuple(parts)) if call.name in FRESH), "")


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
        all(any(implies(given, wanted) for given in patterns[0][name].local) for wanted in patterns[1][name].local)
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


# -- streams


def _matches(query: Query, rows: Sequence[dict[str, Any]], kb: Known) -> dict[Any, dict[str, Any]]:
    """The matches of a query over rows, by what they are: start, end, positions and bindings."""
    streams = {iri: [(row["time"], row["graph"]) for row in rows if row["stream"] == iri] for _, iri in query.streams}
    found: dict[Any, dict[str, Any]] = {}
    if not rows:
        return found
    for match in query.run(streams, kb, keep_events=False):
        bindings = {str(name): _text_of(term) for name, term in sorted(match.bindings.items())}
        key = match.start, match.end, tuple(match.positions), tuple(bindings.items())
        found[key] = {"start": match.start, "end": match.end, "positions": key[2], "bindings": bindings}
    return found


def _text_of(term: Any) -> str:
    """A binding as text: a term, or the list of a `(?v+ AS ?name)`."""
    return (
        term.n3()
        if hasattr(term, "n3")
        else " ".join(map(_text_of, term))
        if isinstance(term, tuple | list)
        else (str(term))
    )


def _random_streams(old: Query, new: Query, count: int) -> Iterator[tuple[dict[str, Any], ...]]:
    """Streams of graphs that the triple patterns of both queries fit. The same ones for the same queries."""
    rng = random.Random(count)
    patterns = [pattern for query in (old, new) for pattern in query.checked.patterns.values()]
    fitting = Fitting(patterns)
    sizes = [w.size for w in (old.compiled.window(), new.compiled.window()) if w.kind in ("span", "tumbling")]
    gaps = [0, _SECOND] + [int(f) for size in sizes for f in (size // 2, size, size + _SECOND)]
    for _ in range(count):
        now, rows = 0, []
        for _ in range(rng.randint(1, _LONGEST)):
            now += rng.choice(gaps)
            pattern = rng.choice(patterns)
            lines = fitting.graph(pattern, rng)
            if lines:
                rows.append(
                    {"stream": rng.choice(pattern.streams), "time": format_time(now), "graph": "\n".join(lines)}
                )
        yield tuple(rows)
