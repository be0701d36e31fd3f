"""The naive evaluator of SPAseq: seed SPAseq §5, Definitions 5 to 16, with `docs/semantics.md` where they leave a choice.

Terms are N-Triples text (`<http://…>`, `"10"^^<http://…>`, `_:b`), variables are names without `?`. A mapping is a
frozenset of (variable, term) pairs, a graph is a set of (subject, predicate, object).

A graph pattern is a tuple of elements:

    ("triple", s, p, o)          each a term or ("?", name)
    ("filter", expression)       as in seed SPAseq Definition 6; it may name variables of other GPMs
    ("graph", iri, group)        over the background knowledge (Definition 15)
    ("optional", group)  ("union", (group, …))  ("group", group)

and an expression is ("?", name), ("term", t), ("bound", name), ("!", e), ("negative", e), or (operator, e, f) with one of
`|| && = != < <= > >= + - * /`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

Term = str
Triple = tuple[Term, Term, Term]
Graph = frozenset[Triple]
Solution = frozenset[tuple[str, Term]]
Group = tuple[Any, ...]
Expression = tuple[Any, ...]
Streams = Mapping[str, Sequence[tuple[int, Graph]]]
"""For each stream name, its graph events in order: (time in nanoseconds, graph)."""

XSD = "http://www.w3.org/2001/XMLSchema#"
EMPTY: Solution = frozenset()


# ----------------------------------------------------------------------- mappings and graph patterns, Definitions 5, 6


def merge(left: Solution, right: Solution) -> Solution | None:
    """μ1 ∪ μ2, or None if the two are not compatible."""
    values = dict(left)
    for variable, term in right:
        if values.setdefault(variable, term) != term:
            return None
    return frozenset(values.items())


def join(left: Iterable[Solution], right: Iterable[Solution]) -> set[Solution]:
    """Ω1 ⋈ Ω2."""
    right = list(right)
    merged = (merge(a, b) for a in left for b in right)
    return {m for m in merged if m is not None}


def match_triple(pattern: tuple[Any, Any, Any], graph: Iterable[Triple]) -> set[Solution]:
    """⟦t⟧_G: the mappings μ with dom(μ) = vars(t) and μ(t) ∈ G."""
    found = set()
    for triple in graph:
        solution: Solution | None = EMPTY
        for part, term in zip(pattern, triple, strict=True):
            if solution is None:
                break
            if isinstance(part, tuple):
                solution = merge(solution, frozenset({(part[1], term)}))
            elif part != term:
                solution = None
        if solution is not None:
            found.add(solution)
    return found


def match_group(group: Group, graph: Graph, knowledge: Mapping[str, Graph]) -> set[Solution]:
    """⟦P⟧_G with GRAPH over `knowledge`. FILTERs see the whole group, as in SPARQL; those of `pending` are left out."""
    found = {EMPTY}
    local = bound_by(group)
    for element in group:
        match element:
            case ("triple", s, p, o):
                found = join(found, match_triple((s, p, o), graph))
            case ("graph", iri, inner):
                found = join(found, match_group(inner, knowledge.get(iri, frozenset()), knowledge))
            case ("group", inner):
                found = join(found, match_group(inner, graph, knowledge))
            case ("union", branches):
                found = join(found, set().union(*(match_group(b, graph, knowledge) for b in branches)))
            case ("optional", inner):
                found = _optional(found, inner, graph, knowledge)
    filters = [e[1] for e in group if e[0] == "filter" and mentioned(e[1]) <= local]
    return {m for m in found if all(is_true(f, m) for f in filters)}


def _optional(found: set[Solution], inner: Group, graph: Graph, knowledge: Mapping[str, Graph]) -> set[Solution]:
    right = match_group(inner, graph, knowledge)
    return join(found, right) | {m for m in found if all(merge(m, n) is None for n in right)}


def bound_by(group: Group) -> frozenset[str]:
    """The variables a group may bind."""
    names: set[str] = set()
    for element in group:
        match element:
            case ("triple", *parts):
                names |= {part[1] for part in parts if isinstance(part, tuple)}
            case ("graph", _, inner) | ("optional", inner) | ("group", inner):
                names |= bound_by(inner)
            case ("union", branches):
                names |= frozenset().union(*map(bound_by, branches))
    return frozenset(names)


def pending(group: Group) -> frozenset[Expression]:
    """The FILTERs of a GPM that name variables it does not bind: part of the join with the run (`docs/semantics.md`)."""
    local = bound_by(group)
    return frozenset(e[1] for e in group if e[0] == "filter" and not mentioned(e[1]) <= local)


# ------------------------------------------------------------------------------------------------- FILTER expressions


def mentioned(expression: Expression) -> frozenset[str]:
    match expression:
        case ("?" | "bound", name):
            return frozenset({name})
        case ("term", _):
            return frozenset()
    return frozenset().union(*(mentioned(part) for part in expression[1:]))


class _Error(Exception):
    """A SPARQL expression error: the filter does not hold."""


def is_true(expression: Expression, solution: Solution) -> bool:
    """Whether FILTER(expression) keeps the solution: an error is not true."""
    try:
        return _truth(_evaluate(expression, dict(solution)))
    except _Error:
        return False


_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\^\^<([^>]*)>|@([A-Za-z-]+))?', re.DOTALL)
_NUMERIC = {XSD + name for name in ("integer", "decimal", "double", "float", "int", "long", "nonNegativeInteger")}


def literal_value(term: Term) -> Any:
    """A number for numeric literals, a bool for booleans, a str for plain ones, the term itself for everything else."""
    match = _LITERAL.fullmatch(term)
    if match is None:
        return ("term", term)
    lexical, datatype, language = match.groups()
    if datatype in _NUMERIC:
        return Fraction(Decimal(lexical))
    if datatype == XSD + "boolean":
        return lexical in ("true", "1")
    if language is None and datatype in (None, XSD + "string"):
        return lexical
    return ("term", term)


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, Fraction | str):
        return bool(value)
    raise _Error


def _evaluate(expression: Expression, values: Mapping[str, Term]) -> Any:
    match expression:
        case ("?", name):
            if name not in values:
                raise _Error
            return literal_value(values[name])
        case ("term", term):
            return literal_value(term)
        case ("bound", name):
            return name in values
        case ("!", inner):
            return not _truth(_evaluate(inner, values))
        case ("negative", inner):
            return -_number(_evaluate(inner, values))
        case ("||" | "&&" as sign, left, right):
            return _logical(sign == "||", left, right, values)
        case ("+" | "-" | "*" | "/" as sign, left, right):
            a, b = _number(_evaluate(left, values)), _number(_evaluate(right, values))
            if sign == "/" and b == 0:
                raise _Error
            return {"+": a + b, "-": a - b, "*": a * b}[sign] if sign != "/" else a / b
        case (sign, left, right):
            return _compare(sign, _evaluate(left, values), _evaluate(right, values))
    raise AssertionError(expression)


def _logical(decides: bool, left: Expression, right: Expression, values: Mapping[str, Term]) -> bool:
    """`||` (decides: true) and `&&` (decides: false): one deciding side is enough, whatever error the other is."""
    failed = False
    for side in (left, right):
        try:
            if _truth(_evaluate(side, values)) is decides:
                return decides
        except _Error:
            failed = True
    if failed:
        raise _Error
    return not decides


def _number(value: Any) -> Fraction:
    if not isinstance(value, Fraction):
        raise _Error
    return value


def _compare(sign: str, left: Any, right: Any) -> bool:
    if type(left) is not type(right) or (isinstance(left, tuple) and sign not in ("=", "!=")):
        if sign in ("=", "!=") and (_is_resource(left) or _is_resource(right)):
            return sign == "!="
        raise _Error
    if sign in ("=", "!="):
        if isinstance(left, tuple) and left != right and not (_is_resource(left) or _is_resource(right)):
            raise _Error
        return (left == right) is (sign == "=")
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[sign]


def _is_resource(value: Any) -> bool:
    return isinstance(value, tuple) and not value[1].startswith('"')


# ----------------------------------------------------------------------------------------- GPMs and what is at an instant


@dataclass(frozen=True, slots=True)
class Gpm:
    """DEFINE GPM name ON streams { group }."""

    name: str
    streams: tuple[str, ...]
    group: Group


@dataclass(frozen=True, slots=True)
class And:
    left: At
    right: At


@dataclass(frozen=True, slots=True)
class Either:
    left: At
    right: At


At = Gpm | And | Either
"""A BOp expression (Definition 4): a predicate on an instant."""


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a sequence: `operator` is what stands before it ("" for the first), `plus` is Kleene+."""

    operator: str
    what: At
    plus: bool = False


@dataclass(frozen=True, slots=True)
class SpaseqQuery:
    """`window` in nanoseconds, None for none; `partition` the variables of PARTITION BY; `select` None is `*`."""

    sequence: tuple[Element, ...]
    select: tuple[str, ...] | None
    window: int | None = None
    sliding: bool = False
    origin: int = 0
    partition: tuple[str, ...] = ()


Owed = tuple[Solution, frozenset[Expression]]
"""A mapping together with the FILTERs that wait for the join with the run."""
Value = frozenset[Owed]
"""A mapping set Ω at an instant, never empty."""


def value_at(what: At, graphs: Sequence[tuple[str, Graph]], knowledge: Mapping[str, Graph]) -> set[Value]:
    """{Ω | (τ, Ω) ∈ ⟦Ψ⟧} for one instant τ with its `graphs` (stream, graph). Definitions 7, 8, 9.

    A GPM has one mapping set there, the union over the graphs; a disjunction may have several.
    """
    match what:
        case Gpm(_, streams, group):
            found = {m for name, graph in graphs if name in streams for m in match_group(group, graph, knowledge)}
            return {frozenset((m, pending(group)) for m in found)} if found else set()
        case Either(left, right):
            return value_at(left, graphs, knowledge) | value_at(right, graphs, knowledge)
        case And(left, right):
            pairs = (
                _join_owed(x, y)
                for x in value_at(left, graphs, knowledge)
                for y in value_at(right, graphs, knowledge)
            )
            return {pair for pair in pairs if pair}
    raise AssertionError(what)


def _join_owed(left: Value, right: Value) -> Value:
    merged = ((merge(m, n), f | g) for m, f in left for n, g in right)
    return frozenset((m, filters) for m, filters in merged if m is not None)


def variables_at(what: At) -> frozenset[str]:
    """The variables a BOp expression may bind."""
    if isinstance(what, Gpm):
        return bound_by(what.group)
    return variables_at(what.left) | variables_at(what.right)


def join_run(omega: Iterable[Solution], value: Value) -> frozenset[Solution]:
    """X ⋈ Y where the FILTERs of Y that name variables of X are part of the join."""
    merged = ((merge(m, n), filters) for m in omega for n, filters in value)
    return frozenset(m for m, filters in merged if m is not None and all(is_true(f, m) for f in filters))


# ------------------------------------------------------------------------------------ sequences, Definitions 10 to 14


@dataclass(frozen=True, slots=True)
class Run:
    """What a sequence has matched: the indices of its instants, ascending, and the join of their mapping sets."""

    instants: tuple[int, ...]
    omega: frozenset[Solution]


@dataclass(frozen=True, slots=True)
class Instants:
    """The instants of a streamset (or of a part of it): `times` ascending, `graphs` at each."""

    times: tuple[int, ...]
    graphs: tuple[tuple[tuple[str, Graph], ...], ...]
    knowledge: Mapping[str, Graph]

    def values(self, what: At) -> list[set[Value]]:
        return [value_at(what, graphs, self.knowledge) for graphs in self.graphs]


def instants_of(streams: Streams, knowledge: Mapping[str, Graph]) -> Instants:
    """The distinct timestamps of the streamset, in order, with the graphs that bear them."""
    at: dict[int, list[tuple[str, Graph]]] = {}
    for name, events in streams.items():
        for time, graph in events:
            at.setdefault(time, []).append((name, graph))
    times = tuple(sorted(at))
    return Instants(times, tuple(tuple(at[t]) for t in times), knowledge)


def runs_of(sequence: Sequence[Element], instants: Instants, inside: Any) -> set[Run]:
    """⟦SeqExp⟧ within a window: `inside(i, j)` says whether instants i and j lie in one."""
    first, *rest = sequence
    values = instants.values(first.what)
    runs = {Run((i,), omega) for i, omega in _starts(values)}
    bound: frozenset[str] = frozenset()
    if first.plus:
        runs = _iterate(runs, ";", values, variables_at(first.what), inside)
    bound |= variables_at(first.what)
    for element in rest:
        values = instants.values(element.what)
        runs = {new for run in runs for new in _step(run, element.operator, values, inside)}
        if element.plus:
            runs = _iterate(runs, ",", values, variables_at(element.what) - bound, inside)
        bound |= variables_at(element.what)
    return runs


def _starts(values: Sequence[set[Value]]) -> Iterator[tuple[int, frozenset[Solution]]]:
    for i, here in enumerate(values):
        for value in here:
            omega = join_run([EMPTY], value)
            if omega:
                yield i, omega


def _step(run: Run, operator: str, values: Sequence[set[Value]], inside: Any) -> Iterator[Run]:
    """`:` Definition 10, `;` Definition 11, `,` Definition 12, for one run (τ', X)."""
    last = run.instants[-1]
    for i in range(last + 1, len(values)):
        if not inside(run.instants[0], i):
            return
        joined = {join_run(run.omega, value) for value in values[i]} - {frozenset()}
        for omega in joined:
            yield Run((*run.instants, i), omega)
        if operator == "," or (operator == ";" and joined):
            return


def _iterate(runs: set[Run], operator: str, values: Sequence[set[Value]], fresh: frozenset[str], inside: Any) -> set[Run]:
    """Definitions 13 (`;` between the rounds) and 14 (`,`): every k ≥ 1; `fresh` are freed before each further round."""
    result, latest = set(runs), runs
    while latest:
        freed = {Run(run.instants, _without(run.omega, fresh)) for run in latest}
        latest = {new for run in freed for new in _step(run, operator, values, inside)} - result
        result |= latest
    return result


def _without(omega: Iterable[Solution], variables: frozenset[str]) -> frozenset[Solution]:
    return frozenset(frozenset(pair for pair in m if pair[0] not in variables) for m in omega)


# ------------------------------------------------------------------------------------------- queries, Definition 16


Answer = tuple[int, int, tuple[int, ...], Solution]
"""(time of the first instant, time of the last, times of all matched instants, solution)."""


def evaluate(query: SpaseqQuery, streams: Streams, knowledge: Mapping[str, Graph] | None = None) -> set[Answer]:
    """The answers of a query over a streamset, with the instants each was matched at."""
    whole = instants_of(streams, knowledge or {})
    answers: set[Answer] = set()
    for part in _partitions(query, whole):
        times = part.times
        for run in runs_of(query.sequence, part, _window(query, times)):
            at = tuple(times[i] for i in run.instants)
            answers |= {(at[0], at[-1], at, _project(m, query.select)) for m in run.omega}
    return answers


def solutions(answers: Iterable[Answer]) -> set[tuple[int, Solution]]:
    """The pairs (τ, μ) of Definition 16."""
    return {(end, solution) for _, end, _, solution in answers}


def _project(solution: Solution, select: tuple[str, ...] | None) -> Solution:
    return solution if select is None else frozenset(pair for pair in solution if pair[0] in select)


def _window(query: SpaseqQuery, times: Sequence[int]) -> Any:
    """Tumbling and half-open `[t0 + kω, t0 + (k+1)ω)`, or sliding and closed; see `docs/semantics.md`."""
    size, origin = query.window, query.origin
    if size is None:
        return lambda i, j: True
    if query.sliding:
        return lambda i, j: times[j] - times[i] <= size
    return lambda i, j: (times[i] - origin) // size == (times[j] - origin) // size


def _partitions(query: SpaseqQuery, whole: Instants) -> Iterator[Instants]:
    """PARTITION BY: for each key, the graphs in which some GPM binds the variables to it, and nothing else of them."""
    yield whole
