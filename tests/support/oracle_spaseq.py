"""The naive evaluator of SPAseq: [SPAseq] §5, Definitions 5 to 16, and `docs/semantics.md`.

Terms are N-Triples text (`<http://…>`, `"10"^^<http://…>`, `_:b`), variables are names without `?`. A mapping is a
frozenset of (variable, term) pairs, a graph is a set of (subject, predicate, object).

A graph pattern is a tuple of elements:

    ("triple", s, p, o)          each a term or ("?", name)
    ("filter", expression)       as in [SPAseq] Definition 6; it may name variables of other GPMs
    ("graph", iri, group)        over the background knowledge (Definition 15)
    ("optional", group)  ("union", (group, …))  ("group", group)
    ("values", names, rows)      None in a row is UNDEF

and an expression is ("?", name), ("term", t), ("bound", name), ("!", e), ("negative", e), or (operator, e, f) with
one of `|| && = != < <= > >= + - * /`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
            case ("values", names, rows):
                pairs = [zip(names, row, strict=True) for row in rows]
                found = join(found, {frozenset((n, t) for n, t in row if t is not None) for row in pairs})
            case ("filter", _):
                pass
            case _:
                raise ValueError(f"no meaning for {element[0]}")
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
            case ("values", variables, _):
                names |= set(variables)
    return frozenset(names)


def pending(group: Group) -> frozenset[Expression]:
    """The FILTERs of a GPM that name variables it does not bind: part of the join (`docs/semantics.md`)."""
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
    """True if FILTER(expression) keeps the solution: an error is not true."""
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


# ----------------------------------------------------------------------------------------- GPMs at an instant


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
class Chain:
    """Sequences in parentheses, of which a run takes one: `(A ; B)`, `(A ; B) | C`."""

    alternatives: tuple[tuple[Element, ...], ...]


@dataclass(frozen=True, slots=True)
class Unordered:
    """`AND(Ψ1, …, Ψn)`: an instant for each part, in any order; several parts may have one instant."""

    parts: tuple[At, ...]


What = At | Chain | Unordered


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a sequence.

    `operator` is the sign before it ("" for the first), `optional` `?` and `negated` `!`. It is negated for `lasting`
    nanoseconds; None: as the window or the next element has it. `rounds` are the least and
    the greatest number of rounds (None: no greatest) and the sign that joins them ("": that of Definition 13 or 14);
    None without a repetition. `collect`: the variables of which solutions have the values in each round, under
    `ROUNDS`.
    """

    operator: str
    what: What
    rounds: tuple[int, int | None, str] | None = None
    optional: bool = False
    negated: bool = False
    lasting: int | None = None
    collect: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SpaseqQuery:
    """`window` in nanoseconds, or with `counted` in instants, None for none; `partition` the variables of PARTITION BY;
    `select` None is `*`. `pause`: nanoseconds without an instant after which the next one of a key is the first of
    another partition. `after`: PAST LAST, TO NEXT, TO FIRST, TO LAST or FIRST (once), and the GPM of the rule or "".
    """

    sequence: tuple[Element, ...]
    select: tuple[str, ...] | None
    window: int | None = None
    sliding: bool = False
    counted: bool = False
    origin: int = 0
    partition: tuple[str, ...] = ()
    pause: int | None = None
    after: tuple[str, str] | None = None


Owed = tuple[Solution, frozenset[Expression]]
"""A mapping together with the FILTERs that wait for the join with the run."""


@dataclass(frozen=True, slots=True)
class Value:
    """A mapping set Ω at an instant, never empty, the variables that the GPMs it comes from may bind, their names, and
    the variables that these always bind."""

    omega: frozenset[Owed]
    variables: frozenset[str]
    names: frozenset[str] = frozenset()
    certain: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Instant:
    """The events of one time: graphs, each with its stream's name; `key` is the mapping of the partition, if any."""

    time: int
    graphs: tuple[tuple[str, Graph], ...]
    key: Solution = EMPTY


def mappings_at(gpm: Gpm, instant: Instant, knowledge: Mapping[str, Graph]) -> set[Solution]:
    """The union of a GPM's values on the graphs of its streams (Definition 7), as far as it agrees with the key."""
    found = (match_group(gpm.group, graph, knowledge) for name, graph in instant.graphs if name in gpm.streams)
    return {m for each in found for m in each if instant.key <= m}


def value_at(what: At, instant: Instant, knowledge: Mapping[str, Graph]) -> set[Value]:
    """{Ω | (τ, Ω) ∈ ⟦Ψ⟧} for one instant τ. Definitions 7, 8, 9; a disjunction may have several."""
    match what:
        case Gpm(_, _, group):
            found = frozenset((m, pending(group)) for m in mappings_at(what, instant, knowledge))
            value = Value(found, bound_by(group), frozenset((what.name,)), certain_of(group))
            return {value} if found else set()
        case Either(left, right):
            return value_at(left, instant, knowledge) | value_at(right, instant, knowledge)
        case And(left, right):
            pairs = (
                Value(_join_owed(x.omega, y.omega), x.variables | y.variables, x.names | y.names, x.certain | y.certain)
                for x in value_at(left, instant, knowledge)
                for y in value_at(right, instant, knowledge)
            )
            return {pair for pair in pairs if pair.omega}
    raise AssertionError(what)


def _join_owed(left: frozenset[Owed], right: frozenset[Owed]) -> frozenset[Owed]:
    merged = ((merge(m, n), f | g) for m, f in left for n, g in right)
    return frozenset((m, filters) for m, filters in merged if m is not None)


def certain_of(group: Group) -> frozenset[str]:
    """The variables that every mapping of a group binds."""
    names: set[str] = set()
    for element in group:
        match element:
            case ("graph", _, inner) | ("group", inner):
                names |= certain_of(inner)
            case ("union", branches):
                names |= frozenset.intersection(*map(certain_of, branches))
            case ("values", variables, rows):
                names |= {v for i, v in enumerate(variables) if all(row[i] is not None for row in rows)}
            case ("triple", *_):
                names |= bound_by((element,))
    return frozenset(names)


def variables_at(what: What) -> frozenset[str]:
    """The variables that a BOp expression, sequences in parentheses, or parts in any order may bind."""
    if isinstance(what, Unordered):
        return frozenset().union(*map(variables_at, what.parts))
    if isinstance(what, Chain):
        elements = [e for alternative in what.alternatives for e in alternative if not e.negated]
        return frozenset().union(*(variables_at(e.what) for e in elements))
    if isinstance(what, Gpm):
        return bound_by(what.group)
    return variables_at(what.left) | variables_at(what.right)


def join_run(omega: Iterable[Solution], value: Value) -> frozenset[Solution]:
    """X ⋈ Y; the FILTERs of Y that name variables of X are part of the join."""
    merged = ((merge(m, n), filters) for m in omega for n, filters in value.omega)
    return frozenset(m for m, filters in merged if m is not None and all(is_true(f, m) for f in filters))


# ------------------------------------------------------------------------------------ sequences, Definitions 10 to 14


@dataclass(frozen=True, slots=True)
class Run:
    """The matched part of a sequence: the indices of its instants, ascending, and the join of their mapping sets.

    `names` are those of the GPMs that took each instant. `bound` are the variables that its GPMs may bind; before
    another round of a repetition those of the round before are taken away. `at` is the index of the last instant it has
    dealt with: the last of `instants`, or one that a negation let pass. `barred` must not match while it waits for the
    next element; that takes the very next instant if it is `pressed`. With `late`, ns, they bar it for so long behind
    the last of `instants`, and the next element comes later.
    """

    instants: tuple[int, ...]
    omega: frozenset[Solution]
    names: tuple[frozenset[str], ...] = ()
    bound: frozenset[str] = frozenset()
    at: int = -1
    barred: tuple[At, ...] = ()
    pressed: bool = False
    late: int | None = None


NOTHING = Run((), frozenset({EMPTY}))


def instants_of(streams: Streams) -> list[Instant]:
    """The distinct timestamps of the streamset, in order, with the graphs that bear them."""
    at: dict[int, list[tuple[str, Graph]]] = {}
    for name, events in streams.items():
        for time, graph in events:
            at.setdefault(time, []).append((name, graph))
    return [Instant(time, tuple(at[time])) for time in sorted(at)]


Inside = Callable[[int, int], bool]
"""True if two instants, given by their indices, lie in one window."""
Sequences = Iterator[tuple[Element, ...]]


def written_out(elements: Sequence[Element]) -> Sequences:
    """The sequences without `?`, and without parentheses that nothing stands behind: those with and without each
    optional element. The first element in parentheses has the operator before these."""
    if not elements:
        yield ()
        return
    element, rest = elements[0], elements[1:]
    here: list[tuple[Element, ...]] = [()] if element.optional else []
    alone = replace(element, optional=False)
    if isinstance(element.what, Chain) and len(element.what.alternatives) == 1 and element.rounds is None:
        inside = written_out(element.what.alternatives[0])
        here += [tuple(replace(e, operator=e.operator or element.operator) for e in inner) for inner in inside]
    else:
        here.append((alone,))
    behind = list(written_out(rest))
    yield from ((*first, *later) for first in here for later in behind)


def runs_of(
    sequence: Sequence[Element], instants: Sequence[Instant], knowledge: Mapping[str, Graph], inside: Inside
) -> set[Run]:
    """⟦SeqExp⟧ over the windows that `inside` describes: the union over which optional elements are there."""
    known = {what: [value_at(what, instant, knowledge) for instant in instants] for what in _expressions(sequence)}
    finder = _Finder(known, len(instants), inside, [instant.time for instant in instants])
    return set().union(*(finder.whole(chosen) for chosen in set(written_out(sequence))))


def _expressions(sequence: Sequence[Element]) -> Iterator[At]:
    for element in sequence:
        if isinstance(element.what, Chain):
            for alternative in element.what.alternatives:
                yield from _expressions(alternative)
        elif isinstance(element.what, Unordered):
            yield from element.what.parts
        else:
            yield element.what


def _asked_at_once(value: Value, missing: frozenset[str]) -> Value:
    """The value with those FILTERs alone that name no variable of `missing`, or none but those always bound here."""
    return replace(
        value,
        omega=frozenset(
            (m, frozenset(f for f in filters if mentioned(f) <= value.certain or not mentioned(f) & missing))
            for m, filters in value.omega
        ),
    )


def _meets(run: Run, values: Iterable[Value]) -> bool:
    """True if a negated expression matches, compatibly with the run."""
    return any(join_run(run.omega, value) for value in values)


class _Finder:
    """Finds the runs of sequences. `known`: the value of each BOp expression at every one of `count` instants, which
    have `times`."""

    def __init__(
        self, known: Mapping[At, Sequence[set[Value]]], count: int, inside: Inside, times: Sequence[int]
    ) -> None:
        self.times = times
        self.known = known
        self.count = count
        self.inside = inside

    def whole(self, sequence: Sequence[Element]) -> set[Run]:
        """⟦SeqExp⟧ of a sequence without `?`."""
        taken = [i for i, element in enumerate(sequence) if not element.negated]
        if not taken:
            return set()
        first, last = taken[0], taken[-1]
        runs = {run for i in range(self.count) for run in self.begin(sequence[first], NOTHING, i, opens=True)}
        for element in sequence[first + 1 : last + 1]:
            runs = self.extend(runs, element)
        return {
            run
            for run in runs
            if not any(self.occurs_before(run, e) for e in sequence[:first])
            and not any(self.occurs_behind(run, e) for e in sequence[last + 1 :])
        }

    def values(self, element: Element) -> Sequence[set[Value]]:
        if isinstance(element.what, Chain | Unordered):
            raise ValueError("'!' behind a sequence in parentheses, or behind AND")
        return self.known[element.what]

    def extend(self, runs: Iterable[Run], element: Element) -> set[Run]:
        """The runs once they have dealt with one element more."""
        if element.negated:
            return {new for run in runs for new in self.let_pass(run, element)}
        return {new for run in runs for new in self.step(run, element.operator, element)}

    def step(self, run: Run, operator: str, element: Element) -> Iterator[Run]:
        """`:` Definition 10, `;` Definition 11, `,` Definition 12, for one run (τ', X). With `;` a sequence in
        parentheses begins at the first instant that it can begin with, whether it is completed or not."""
        for i in range(run.at + 1, self.count):
            if not self.inside(run.instants[0], i):
                return
            early = run.late is not None and self.times[i] - self.times[run.instants[-1]] <= run.late
            if early:
                if any(_meets(run, self.known[what][i]) for what in run.barred):
                    return
                continue
            yield from self.begin(element, run, i)
            if operator == "," or run.pressed or (operator == ";" and self.may_begin(element.what, run, i)):
                return
            if run.late is None and any(_meets(run, self.known[what][i]) for what in run.barred):
                return

    def may_begin(self, what: What, run: Run, i: int) -> bool:
        """True if the instant `i` may be the first one of `what`.

        Of an AND, if one part matches there, joined with the run. Those FILTERs of it wait that name a variable which
        another part may bind, unless the part itself always binds all that they name.
        """
        if isinstance(what, Chain):
            return any(self.may_begin(sequence[0].what, run, i) for sequence in self.sequences(what))
        if not isinstance(what, Unordered):
            return _meets(run, self.known[what][i])
        for number, part in enumerate(what.parts):
            others = what.parts[:number] + what.parts[number + 1 :]
            missing = frozenset().union(*map(variables_at, others))
            for value in self.known[part][i]:
                if join_run(run.omega, _asked_at_once(value, missing)):
                    return True
        return False

    def sequences(self, what: Chain) -> Sequences:
        for alternative in what.alternatives:
            for chosen in written_out(alternative):
                if not chosen or chosen[0].negated or chosen[-1].negated:
                    raise ValueError("a sequence in parentheses is empty, or begins or ends with '!'")
                yield chosen

    def begin(self, element: Element, run: Run, i: int, *, opens: bool = False) -> set[Run]:
        """The runs that have taken all of the element, the first instant being `i`. `opens`: it begins the SEQ.

        Definitions 13 (`;` between rounds) and 14 (`,`), and `:` likewise: the union over the numbers of rounds k.
        Before each further round those variables of the element are freed that nothing before the repetition has bound.
        """
        latest = self.once(element.what, run, i)
        if element.rounds is None:
            return latest
        low, high, sign = element.rounds
        again, free = sign or (";" if opens else ","), variables_at(element.what) - run.bound
        latest = _with_rounds(latest, element, run.bound)
        result: set[Run] = set(latest) if low <= 1 else set()
        k = 1
        while latest and (high is None or k < high):
            k += 1
            freed = {replace(r, omega=_without(r.omega, free), bound=run.bound) for r in latest}
            moved = {new for r in freed for new in self.step(r, again, replace(element, rounds=None))}
            latest = _with_rounds(moved, element, run.bound)
            if k >= low:
                if high is None:
                    latest -= result  # these have gone on already
                result |= latest
        return result

    def in_any_order(self, what: Unordered, run: Run, i: int) -> Iterator[Run]:
        """The runs that have taken an instant for each part, the first of which is `i`. They are every choice of
        instants in the window, and of a mapping set of each part there. All of the sets are joined with that of the
        run, and the FILTERs of all parts are decided in this join."""
        start = run.instants[0] if run.instants else i
        room = [k for k in range(i, self.count) if self.inside(start, k)]
        for places in itertools.product(room, repeat=len(what.parts)):
            if min(places) != i:
                continue
            sets = [self.known[part][k] for part, k in zip(what.parts, places, strict=True)]
            for values in itertools.product(*sets):
                omega: frozenset[Owed] = frozenset({(EMPTY, frozenset())})
                for value in values:
                    omega = _join_owed(omega, value.omega)
                variables = frozenset().union(*(value.variables for value in values))
                joined = join_run(run.omega, Value(omega, variables))
                if joined:
                    own = sorted(set(places))
                    names = [
                        frozenset().union(*(v.names for v, k in zip(values, places, strict=True) if k == at))
                        for at in own
                    ]
                    yield Run((*run.instants, *own), joined, (*run.names, *names), run.bound | variables, own[-1])

    def once(self, what: What, run: Run, i: int) -> set[Run]:
        """One round. The run moves as a whole with each mapping set of instant `i` whose join with its own is not
        empty. If `what` is a sequence, it goes on through it."""
        if isinstance(what, Unordered):
            return set(self.in_any_order(what, run, i))
        if not isinstance(what, Chain):
            joined = ((join_run(run.omega, value), value) for value in self.known[what][i])
            return {
                Run((*run.instants, i), omega, (*run.names, value.names), run.bound | value.variables, i)
                for omega, value in joined
                if omega
            }
        found: set[Run] = set()
        for first, *later in self.sequences(what):
            runs = self.begin(first, run, i)
            for element in later:
                runs = self.extend(runs, element)
            found |= runs
        return found

    def let_pass(self, run: Run, element: Element) -> Iterator[Run]:
        """The run once a negation between two elements is dealt with.

        After `;` and `:` it bars the wait for the next element. After `,` either the next element takes the very next
        instant, or that instant does not match and passes.
        """
        if element.operator != ",":
            assert not isinstance(element.what, Chain | Unordered)
            yield replace(run, barred=(*run.barred, element.what), late=element.lasting)
            return
        yield replace(run, barred=(), pressed=True)
        values, following = self.values(element), run.at + 1
        if following < self.count and self.inside(run.instants[0], following) and not _meets(run, values[following]):
            yield replace(run, at=following, barred=(), pressed=False)

    def occurs_before(self, run: Run, element: Element) -> bool:
        """True if a negated expression matched since the window opened, or as long before the run as it lasts,
        compatibly with a run that has taken nothing."""
        start, values, lasting = run.instants[0], self.values(element), element.lasting
        if lasting is not None:
            near = [i for i in range(start) if self.times[start] - self.times[i] <= lasting]
            return any(_meets(NOTHING, values[i]) for i in near)
        return any(self.inside(i, start) and _meets(NOTHING, values[i]) for i in range(start))

    def occurs_behind(self, run: Run, element: Element) -> bool:
        """True if a negated expression matches behind the run before the window closes, or for as long as it lasts."""
        last, lasting = run.instants[-1], element.lasting
        if lasting is not None:
            near = [i for i in range(last + 1, self.count) if self.times[i] - self.times[last] <= lasting]
            return any(_meets(run, self.values(element)[i]) for i in near)
        later, values = range(run.instants[-1] + 1, self.count), self.values(element)
        return any(self.inside(run.instants[0], i) and _meets(run, values[i]) for i in later)


ROUNDS = "+"
"""Under this name a solution has its rounds, each a tuple of pairs of a variable and its term."""


def collecting(sequence: Sequence[Element], names: frozenset[str]) -> tuple[Element, ...]:
    """The sequence whose repetitions, those in no other one, keep the values of `names` of each round."""
    found = []
    for element in sequence:
        if element.rounds is not None:
            element = replace(element, collect=names)
        elif isinstance(element.what, Chain):
            inside = tuple(collecting(alternative, names) for alternative in element.what.alternatives)
            element = replace(element, what=Chain(inside))
        found.append(element)
    return tuple(found)


def _with_rounds(runs: set[Run], element: Element, before: frozenset[str]) -> set[Run]:
    """The runs, the values of their last round being behind those of the rounds before. A repetition that binds none of
    the variables anew has no rounds."""
    names = (element.collect - before) & variables_at(element.what)
    if not names:
        return runs
    return {replace(run, omega=frozenset(_with_round(m, names) for m in run.omega)) for run in runs}


def _with_round(mapping: Solution, names: frozenset[str]) -> Solution:
    terms: dict[str, Any] = dict(mapping)
    own = tuple(sorted((x, terms[x]) for x in names if x in terms))
    return frozenset((terms | {ROUNDS: (*terms.get(ROUNDS, ()), own)}).items())


def _without(omega: Iterable[Solution], variables: frozenset[str]) -> frozenset[Solution]:
    return frozenset(frozenset(pair for pair in m if pair[0] not in variables) for m in omega)


# ------------------------------------------------------------------------------------------- queries, Definition 16


Answer = tuple[int, int, tuple[int, ...], Solution]
"""(time of the first instant, time of the last, times of all matched instants, solution)."""


def evaluate(query: SpaseqQuery, streams: Streams, knowledge: Mapping[str, Graph] | None = None) -> set[Answer]:
    """The answers of a query over a streamset, with the instants each was matched at."""
    known = knowledge or {}
    answers: set[Answer] = set()
    for instants in _partitions(query, instants_of(streams), known):
        times = [instant.time for instant in instants]
        runs = runs_of(query.sequence, instants, known, _window(query, times))
        for run in runs if query.after is None else _after(runs, *query.after):
            at = tuple(times[i] for i in run.instants)
            answers |= {(at[0], at[-1], at, _project(m, query.select)) for m in run.omega}
    return answers


def _after(runs: Iterable[Run], rule: str, gpm: str) -> Iterator[Run]:
    """The runs that no reported one has discarded, in one partition: by their ends, then in the order of NEXT. That
    compares positions: the one with the smallest position of the symmetric difference comes first."""
    matches: dict[tuple[int, ...], list[Run]] = {}
    for run in runs:
        matches.setdefault(run.instants, []).append(run)
    discards: list[Callable[[int], bool]] = []
    for instants in sorted(matches, key=lambda d: (d[-1], (*d, float("inf")))):
        if any(discarded(instants[0]) for discarded in discards):
            continue
        yield from matches[instants]
        taken = [i for run in matches[instants] for i, names in zip(instants, run.names, strict=True) if gpm in names]
        discards.append(_discards(rule, instants, taken))


def _discards(rule: str, instants: tuple[int, ...], taken: list[int]) -> Callable[[int], bool]:
    """True of the starts that a match discards; `taken`: the instants that the rule's GPM took."""
    first, last = instants[0], instants[-1]
    match rule:
        case "FIRST":
            return lambda start: True
        case "PAST LAST":
            return lambda start: start <= last
        case "TO NEXT":
            return lambda start: start == first
        case "TO FIRST":
            return lambda start: bool(taken) and start < min(taken)
    assert rule == "TO LAST", rule
    return lambda start: bool(taken) and start < max(taken)


def solutions(answers: Iterable[Answer]) -> set[tuple[int, Solution]]:
    """The pairs (τ, μ) of Definition 16."""
    return {(end, solution) for _, end, _, solution in answers}


def _project(solution: Solution, select: tuple[str, ...] | None) -> Solution:
    return solution if select is None else frozenset(pair for pair in solution if pair[0] in select)


def _window(query: SpaseqQuery, times: Sequence[int]) -> Inside:
    """Tumbling and half-open `[t0 + kω, t0 + (k+1)ω)`, or sliding and closed, also of instants; see
    `docs/semantics.md`."""
    size, origin = query.window, query.origin
    if size is None:
        return lambda i, j: True
    if query.counted:
        return lambda i, j: j - i <= size
    if query.sliding:
        return lambda i, j: times[j] - times[i] <= size
    return lambda i, j: (times[i] - origin) // size == (times[j] - origin) // size


def _partitions(
    query: SpaseqQuery, instants: Sequence[Instant], knowledge: Mapping[str, Graph]
) -> Iterator[Sequence[Instant]]:
    """PARTITION BY: for each key the instants that belong to it.

    One does if some GPM, without its FILTERs, has a mapping there that binds the variables so. Every value there is
    restricted to the key.
    """
    if not query.partition:
        yield instants
        return
    names = frozenset(query.partition)
    parts: dict[Solution, list[Instant]] = {}
    gpms = [gpm for what in _expressions(query.sequence) for gpm in _gpms(what)]
    for instant in instants:
        found = (m for gpm in gpms for m in mappings_at(_without_filters(gpm), instant, knowledge))
        keys = {frozenset(pair for pair in m if pair[0] in names) for m in found}
        for key in keys:
            if len(key) == len(names):
                parts.setdefault(key, []).append(Instant(instant.time, instant.graphs, key))
    for own in parts.values():
        times = [instant.time for instant in own]
        pauses = [i for i in range(1, len(own)) if query.pause is not None and times[i] - times[i - 1] > query.pause]
        for first, last in itertools.pairwise([0, *pauses, len(own)]):
            yield own[first:last]


def _gpms(what: At) -> list[Gpm]:
    return [what] if isinstance(what, Gpm) else _gpms(what.left) + _gpms(what.right)


def _without_filters(gpm: Gpm) -> Gpm:
    return Gpm(gpm.name, gpm.streams, tuple(e for e in gpm.group if e[0] != "filter"))
