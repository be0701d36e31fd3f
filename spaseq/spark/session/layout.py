"""How a query is laid out on Spark: which GPMs are joined with their knowledge by Spark, and where the table of
solutions may be cut into parts that the engine runs on separately.

A cut must not change an answer:

* a *tumbling window* holds its runs, so windows are separate ([SPAseq] Definition 16);
* *PARTITION BY* keys are separate substreams by definition; not where a clause (GROUP BY, ORDER BY, …) ranges over the
  solutions of a window, which are those of all keys;
* a *sliding window* of length ω without keys is cut into slices of time that overlap by ω: the runs that end at a time
  depend on no instant before the last ω, so each slice reports the matches that end in it, and no others;
* ASK has one answer for the whole run, so it is one part; with FIRST each key has one match;
* what AFTER MATCH discards reaches back beyond a sliding window, so that is not cut by time;
* everything else is one part, too. A variable that all GPMs share is no key: a run's mapping set moves as a whole
  (Definition 10), so a mapping that leaves early decides for the others.

An instant at which no GPM has a value is part of the table only where an answer depends on it: where the sequence
asks for the very next instant (`,`, and Kleene+ inside a sequence).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from spaseq.core.pattern import Iterate, Pattern, Sequence, Skip
from spaseq.gpm import Condition, GraphPattern
from spaseq.gpm.algebra import GraphNode, certain, has_exists, visible, walk
from spaseq.language.runtime.compiled import CompiledQuery
from spaseq.language.semantics.lasting import Lasting


@dataclass(frozen=True, slots=True)
class Layout:
    """The plan for one query.

    `gpms`: the names of the GPMs; a row of the table names one by its place here. `variables`: those that each may
    bind, sorted. `joined`: GPMs whose background knowledge Spark joins. `blanks`: instants without a value are kept;
    `windows`: those of no partition too, since windows without a match have results.
    `by_window`, `by_key`: where the table is cut; `by_slice`: into slices that overlap by the window. `ordered`: rows
    come in an order that says something (ORDER BY).
    """

    gpms: tuple[str, ...]
    variables: tuple[tuple[str, ...], ...]
    joined: tuple[str, ...]
    blanks: bool
    windows: bool
    by_window: bool
    by_key: bool
    by_slice: bool
    ordered: bool

    def explain(self) -> Iterator[str]:
        """A line on each decision."""
        for name in self.joined:
            yield (
                f"GPM {name}: Spark joins its solutions with what it asks of the knowledge; in slices of time each "
                "task does"
            )
        cuts = [text for cut, text in ((self.by_window, "window"), (self.by_key, "PARTITION BY key")) if cut]
        if self.by_slice:
            yield "cut into slices of time that overlap by the window; each reports the matches that end in it"
        elif cuts:
            yield f"partitioned by {' and '.join(cuts)}; the engine runs on each part"
        else:
            yield "recognised in one partition: no tumbling window and no PARTITION BY to cut at, an ASK, or FIRST"
        if self.blanks:
            yield "instants without a value are kept, for ',', Kleene+ and windows that have no match"


def lay_out(query: CompiledQuery) -> Layout:
    """The layout of a query."""
    patterns = query.checked.patterns
    contiguous = _is_contiguous(query.pattern)
    by_key = bool(query.checked.partition)
    window = query.window()
    clauses = query.checked.clauses
    forgets, once = query.checked.after is not None, query.checked.tree.once
    lasts = query.checked.lasting != Lasting()  # what decides about a match may lie outside of its window
    # Inside a partition an instant can count without a value, by its mappings before the FILTERs; those need it all.
    may_join = not (contiguous and by_key)
    return Layout(
        gpms=tuple(patterns),
        variables=tuple(tuple(sorted(pattern.binds)) for pattern in patterns.values()),
        joined=tuple(name for name, pattern in patterns.items() if may_join and _is_joinable(pattern)),
        blanks=contiguous or clauses.one_group,
        windows=clauses.one_group,
        by_window=window.tumbles and not clauses.ask and not once and not lasts,
        by_key=by_key and not clauses.by_window and not clauses.ask,
        by_slice=window.slides and not window.by_position and not (by_key or clauses.ask or forgets or lasts),
        ordered=clauses.by_window and clauses.ordered,
    )


def event_part(pattern: GraphPattern) -> GraphPattern:
    """What a GPM asks of the event's graph, its knowledge left off, and the conditions that wait for it."""
    early = tuple(c for c in pattern.local if not _waits(pattern, c))
    return replace(pattern, knowledge=(), local=early, graphs=())


def late_conditions(pattern: GraphPattern) -> tuple[Condition, ...]:
    """The conditions of a GPM that `event_part` leaves off."""
    return tuple(c for c in pattern.local if _waits(pattern, c))


def _waits(pattern: GraphPattern, condition: Condition) -> bool:
    """Whether a condition's truth may depend on the knowledge: it may bind one of the variables."""
    told = frozenset().union(*(visible(part) for _, part in pattern.knowledge))
    return bool(condition.variables & told - certain(pattern.event))


def knowledge_parts(pattern: GraphPattern) -> Iterator[tuple[str, GraphPattern]]:
    """For each GRAPH clause joined to the event part: its name, and a pattern to be evaluated on that graph alone."""
    for iri, part in pattern.knowledge:
        yield iri, replace(pattern, event=part, knowledge=(), local=(), graphs=(), required=frozenset())


def _is_joinable(pattern: GraphPattern) -> bool:
    """Whether the knowledge can be joined after the event part was evaluated without it.

    Not where a GRAPH is nested in the event part or in a GRAPH, or a condition holds an EXISTS: those need both at
    once.
    """
    nodes = [pattern.event, *(part for _, part in pattern.knowledge)]
    nested = any(isinstance(inner, GraphNode) for node in nodes for inner in walk(node))
    exists = any(has_exists(condition.expression) for condition in pattern.local)
    return bool(pattern.knowledge) and not nested and not exists


def _is_contiguous(pattern: Pattern) -> bool:
    """Whether the pattern somewhere asks for the very next instant."""
    if isinstance(pattern, (Sequence, Iterate)) and pattern.skip is Skip.NONE:
        return True
    values = (getattr(pattern, field.name) for field in fields(pattern))
    return any(_is_contiguous(value) for value in values if isinstance(value, Pattern))
