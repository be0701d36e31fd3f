"""The standing proof: random queries on every road of `roads.py`, against the definitions. Deterministic by seed.

    python -m tests.support.proof patterns ceql --first 0 --count 20000 --processes 2 --into differences

prints the number of queries drawn and, for each road, the numbers compared, refused by name and different. Every
difference is made small and written as a case ready for `cases/`. The tests run the same on fewer seeds
(`test_proof.py`). Exit code 1 if anything differs.

    python -m tests.support.proof spaseq ceql --spark cluster --count 200

takes the roads of Spark instead, in one session: in local mode, or of a cluster of two workers started for it.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import ceql
from spaseq.core.errors import BudgetExceeded, UnsupportedFeature
from tests.support import (
    drawn_aggregates,
    drawn_chosen,
    drawn_counts,
    drawn_earlier,
    drawn_ordered,
    drawn_orders,
    drawn_repeated,
    drawn_rounds,
    drawn_sequences,
    drawn_steps,
    drawn_totals,
    graph_patterns,
    harness,
    oracle,
    oracle_repeated,
    roads,
    strategies,
)
from tests.support.drawn_graph_orders import graph_orders_case
from tests.support.graph_patterns import PatternCase
from tests.support.harness import Case
from tests.support.roads import Ride, Road


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of random query.

    `draw` gives a query, `case` its form for the roads, `expected` the answers by definition. `problem` gives the
    difference of a road's answers from these (empty: none). `smaller` gives the queries with a part less, `toml` a case
    for `cases/`. `often`: the roads of every seed; the others take one seed of `SELDOM`. `around` gives what is set
    while the query of a seed is compared.
    """

    draw: Callable[[random.Random], Any]
    case: Callable[[Any], Case]
    expected: Callable[[Any], Any]
    problem: Callable[[Any, Any, Road, Counter[Any]], str]
    smaller: Callable[[Any], Iterator[Any]]
    toml: Callable[[Any, str], str]
    often: frozenset[str]
    around: Callable[[int], contextlib.AbstractContextManager[None]] = lambda seed: contextlib.nullcontext()


_GRAPHS = frozenset({"batch", "one by one", "snapshot"})
_MATCHES = _GRAPHS | {"cuts"}
_ENDS = _MATCHES | {"alerts", "pushed alerts"}
_EVERY = _ENDS | {"chain", "tree", "auto"}
"""The roads of every seed, by what they give."""
SELDOM = 10
SHRINKING = 400
"""Smaller queries that are tried for a difference."""


@dataclass(slots=True)
class Report:
    """The results of the comparison: by road the numbers of queries, refusals and differences, and their texts."""

    drawn: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    different: dict[str, str] = field(default_factory=dict)

    def add(self, other: Report) -> None:
        self.drawn += other.drawn
        self.compared += other.compared
        self.refused += other.refused
        self.different |= other.different

    def __str__(self) -> str:
        lines = [f"{self.drawn:,} queries, {len(self.different):,} different"]
        lines += [f"  {n}: {c:,} compared, {self.refused[n]:,} refused" for n, c in sorted(self.compared.items())]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query that was drawn, the roads that take it, and its answers by definition."""

    drawn: Any
    case: Case
    expected: Any


@dataclass(frozen=True, slots=True)
class _Riding:
    """The input of all roads but the query: a seed, a folder for files that later roads replace, perhaps Spark."""

    seed: int
    folder: Path
    spark: Any = None

    def ride(self) -> Ride:
        return Ride(random.Random(self.seed), self.folder, self.spark, anew=self.seed % SELDOM == 0)


def _ask(kind: Kind, drawn: Any) -> _Asked:
    return _Asked(drawn, kind.case(drawn), kind.expected(drawn))


def check(kind: str, seeds: Sequence[int], only: Sequence[str] = (), spark: Any = None) -> Report:
    """Compares the queries of the seeds, with a session on the roads of Spark; a difference is made small."""
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            report.drawn += 1
            with KINDS[kind].around(seed):
                _check(KINDS[kind], f"{kind} {seed}", only, _Riding(seed, Path(folder), spark), report)
    return report


def _check(kind: Kind, name: str, only: Sequence[str], riding: _Riding, report: Report) -> None:
    asked = _ask(kind, kind.draw(random.Random(riding.seed)))
    for road in _roads_of(kind, asked.case, riding, only):
        problem = _problem(kind, asked, road, riding)
        if problem is None:
            report.refused[road.name] += 1
            continue
        report.compared[road.name] += 1
        if problem:
            small = _shrunk(kind, asked.drawn, road, riding, problem)
            report.different[f"{name} {road.name}"] = _describe(kind, small, road, riding)
            break  # other roads may have the same fault: one case is enough


def _roads_of(kind: Kind, case: Case, riding: _Riding, only: Sequence[str]) -> list[Road]:
    on_spark = riding.spark is not None
    every = [road for road in roads.roads(case) if road.spark == on_spark]
    if only:
        return [road for road in every if road.name in only]
    return [road for road in every if road.name in kind.often or on_spark or riding.seed % SELDOM == 0]


def _problem(kind: Kind, asked: _Asked, road: Road, riding: _Riding) -> str | None:
    """The difference found, empty for none, None if the road refuses the query; an exception is a difference too."""
    try:
        if road.leaves(asked.case):
            return None
        found = roads.given(asked.case, road, riding.ride())
        return kind.problem(asked.drawn, asked.expected, road, found)
    except Exception as error:  # whatever a road raises belongs into the report
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''} ({_place(error)})"


def _place(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.lineno}"


def _kind_of(problem: str) -> str:
    return problem.split(":")[0]


def _shrunk(kind: Kind, drawn: Any, road: Road, riding: _Riding, problem: str) -> Any:
    """A smaller query with a difference of the same kind."""
    tries, found = 0, True
    while found:
        found = False
        for candidate in kind.smaller(drawn):
            tries += 1
            if tries > SHRINKING:
                return drawn
            try:
                other = _problem(kind, _ask(kind, candidate), road, riding)
            except (graph_patterns.TooMany, oracle.TooBig):
                continue
            if other and _kind_of(other) == _kind_of(problem):
                drawn, found = candidate, True
                break
    return drawn


def _describe(kind: Kind, drawn: Any, road: Road, riding: _Riding) -> str:
    problem = _problem(kind, _ask(kind, drawn), road, riding)
    said = "\n".join(f"# {line}" for line in f"{road.name}: {problem}".splitlines())
    return f"{said}\n{kind.toml(drawn, f'random {riding.seed}')}"


# -- graph patterns


def _pattern_answers(drawn: PatternCase) -> set[Any]:
    return set(map(roads.plain, drawn.answers()))


def _pattern_problem(drawn: PatternCase, expected: set[Any], road: Road, found: Counter[Any]) -> str:
    """Blank nodes have one name here, so solutions that differ in them alone are not counted."""
    missing, surplus = expected - found.keys(), found.keys() - expected
    return "" if not missing and not surplus else f"differs: missing {_few(missing)}, surplus {_few(surplus)}"


def _few(answers: Any) -> str:
    rows = sorted((answer[1] // 10**9, sorted(answer[-1])) for answer in answers)
    return f"{len(rows)} {[(t, ' '.join(f'?{n}={v}' for n, v in row)) for t, row in rows[:2]]}"


def _pattern_toml(drawn: PatternCase, name: str) -> str:
    case = drawn.case()
    text = f"[[case]]\nname = \"{name}\"\nquery = '''\n{case.query}'''\n[case.graphs]\nS = [\n"
    text += "".join(f"    [{time}, '{triples}'],\n" for time, triples in case.graphs["S"]) + "]\n"
    if "GRAPH" in case.query:
        text += "[case.kb]\n" + "".join(f"'{iri}' = '{triples}'\n" for iri, triples in case.kb.items())
    text += _solutions(drawn.answers())
    return text if "[[case.solutions]]" in text else text.replace("[case.graphs]", "solutions = []\n[case.graphs]", 1)


# -- CEQL


Evaluate = Callable[[oracle.Query, harness.Events], list[oracle.Match]]


def _ceql_problem(drawn: strategies.CeqlCase, everything: list[oracle.Match], road: Road, found: Counter[Any]) -> str:
    if road.ends:
        expected = {end for _, end, _ in everything}
        missing, surplus = list[Any](sorted(expected - found.keys())), list[Any](sorted(set(found) - expected))
    else:
        wrong = oracle.compare_choice(drawn.query, everything, list(found.elements()))
        missing, surplus = wrong.missing, wrong.surplus
    return f"differs: missing {missing[:3]}, surplus {surplus[:3]}" if missing or surplus else ""


def _ceql(draw: Callable[[random.Random], strategies.CeqlCase], evaluate: Evaluate, often: frozenset[str]) -> Kind:
    def toml(drawn: strategies.CeqlCase, name: str) -> str:
        matches = [[s, e, list(d)] for s, e, d in evaluate(drawn.query, drawn.stream)]
        return f"{strategies.ceql_toml(drawn, name)}matches = {matches}\n"

    return Kind(
        draw,
        lambda drawn: Case("a random query", drawn.text, drawn.stream),
        lambda drawn: evaluate(oracle.replace(drawn.query, limit=None), drawn.stream),
        _ceql_problem,
        strategies.smaller_ceql,
        toml,
        often,
    )


def ceql_with_matches(rng: random.Random) -> strategies.CeqlCase:
    return strategies.interesting(strategies.ceql_case, lambda case: len(oracle.evaluate(case.query, case.stream)), rng)


def _earlier(rng: random.Random) -> strategies.CeqlCase:
    return strategies.interesting(
        drawn_earlier.earlier_case, lambda case: len(oracle.evaluate(case.query, case.stream)), rng
    )


def _earlier_steps(rng: random.Random) -> strategies.CeqlCase:
    """A query that is not refused: a condition with two variables in place of an aggregate's has no event."""
    while True:
        case = strategies.interesting(
            drawn_earlier.earlier_steps_case, lambda case: len(oracle.evaluate(case.query, case.stream)), rng
        )
        try:
            ceql.compile(case.text)
        except UnsupportedFeature:
            continue
        return case


def _long_ceql(rng: random.Random) -> strategies.CeqlCase:
    return strategies.interesting(
        strategies.long_ceql_case, lambda case: len(oracle.evaluate_long(case.query, case.stream)), rng
    )


def _ending(rng: random.Random) -> strategies.CeqlCase:
    """A query that is not refused, as its matches determine the events that its NOT relates."""
    return _not_refused(strategies.ending_case, rng)


def _absence(rng: random.Random) -> strategies.CeqlCase:
    """A query that is not refused, as its NOT has not too many conditions, each on variables that take one event. As a
    rule its NOTs leave matches out, as those of few drawn ones do."""
    while True:
        case = _not_refused(strategies.absence_case, rng)
        if rng.random() < 1 / 60:
            return case
        with contextlib.suppress(oracle.TooBig):
            if strategies.left_out(case):
                return case


def _border(rng: random.Random) -> strategies.CeqlCase:
    """A query that is not refused, for reasons of its window or as those of `_ending`."""
    return _not_refused(strategies.border_case, rng)


def _choice(rng: random.Random) -> strategies.CeqlCase:
    """As `_border`, with a choice among what the NOTs leave."""
    return _not_refused(drawn_chosen.chosen_case, rng)


def _orders(rng: random.Random) -> strategies.CeqlCase:
    """A query that is not refused."""
    return _not_refused(drawn_orders.orders_case, rng)


def _lasting(rng: random.Random) -> strategies.CeqlCase:
    """A query that is not refused, with a NOT for a time. As a rule its NOTs leave matches out."""
    while True:
        case = _not_refused(strategies.lasting_case, rng)
        if " FOR " not in case.text:
            continue
        if rng.random() < 1 / 60:
            return case
        with contextlib.suppress(oracle.TooBig):
            if strategies.left_out(case):
                return case


def _repeat(rng: random.Random) -> strategies.CeqlCase:
    """A query that is not refused, with several rows of some match as a rule."""
    while True:
        case = drawn_repeated.repeated_case(rng)
        try:
            ceql.compile(case.text)
            found = oracle_repeated.evaluate(case.query, case.stream)
        except (UnsupportedFeature, BudgetExceeded, oracle.TooBig):
            continue
        if len(found) < 300 and (any(number > 1 for *_, number in found) or rng.random() < 1 / 20):
            return case


def _repeated_problem(drawn: strategies.CeqlCase, expected: list[Any], road: Road, found: Counter[Any]) -> str:
    wanted = Counter({end for _, end, *_ in expected} if road.ends else expected)
    return "" if found == wanted else f"differs: missing {[*wanted - found][:3]}, surplus {[*found - wanted][:3]}"


def _not_refused(draw: Callable[[random.Random], strategies.CeqlCase], rng: random.Random) -> strategies.CeqlCase:
    while True:
        case = strategies.interesting(draw, lambda case: len(oracle.evaluate(case.query, case.stream)), rng)
        try:
            ceql.compile(case.text)
        except (UnsupportedFeature, BudgetExceeded):
            continue
        return case


# -- aggregates over matches


def _aggregates(draw: Callable[[random.Random], drawn_aggregates.AggregatesCase]) -> Kind:
    def one(rng: random.Random) -> drawn_aggregates.AggregatesCase:
        while True:
            case = draw(rng)
            try:
                ceql.compile(case.text)
            except (UnsupportedFeature, BudgetExceeded):
                continue
            return case

    return Kind(
        one, lambda drawn: Case("a random query", drawn.text, drawn.stream, rows=True),
        drawn_aggregates.rows, _rows_problem, drawn_aggregates.smaller_aggregates,
        lambda drawn, name: strategies.ceql_toml(drawn, name) + f"# rows = {list(drawn_aggregates.rows(drawn))}\n",
        _MATCHES,
    )  # fmt: skip


def _rows_problem(drawn: Any, expected: Counter[Any], road: Road, found: Counter[Any]) -> str:
    if road.ends:
        ends = drawn_aggregates.rows(replace(drawn, group="EVENT")).total()
        return "" if found.total() == ends else f"differs: {found.total()} ends, not {ends}"
    return "" if found == expected else f"differs: missing {[*expected - found][:3]}, surplus {[*found - expected][:3]}"


def _order(
    rng: random.Random, draw: Callable[[random.Random], drawn_ordered.OrderedCase], share: float
) -> drawn_ordered.OrderedCase:
    """A `share` is of those whose best matches are found without a list."""
    ranked = rng.random() < share
    while True:
        case = draw(rng)
        if ranked and case.limit is None:
            continue
        try:
            compiled = ceql.compile(case.text).compiled
        except (UnsupportedFeature, BudgetExceeded):
            continue
        if not ranked or not isinstance(compiled.ranks, str):
            return case


def _ordered_problem(drawn: Any, expected: list[Any], road: Road, found: Counter[Any]) -> str:
    wanted = Counter({end for _, end, _ in expected} if road.ends else expected)
    return "" if found == wanted else f"differs: missing {[*wanted - found][:3]}, surplus {[*found - wanted][:3]}"


def _with_order(
    draw: Callable[[random.Random], drawn_ordered.OrderedCase], share: float, often: frozenset[str]
) -> Kind:
    return Kind(
        partial(_order, draw=draw, share=share), lambda drawn: Case("a random query", drawn.text, drawn.stream),
        drawn_ordered.matches, _ordered_problem, drawn_ordered.smaller_ordered,
        lambda drawn, name: strategies.ceql_toml(drawn, name)
        + f"matches = {[[s, e, list(d)] for s, e, d in drawn_ordered.matches(drawn)]}\n",
        often,
    )  # fmt: skip


# -- valuations


def _bindings_problem(drawn: strategies.CeqlCase, everything: list[Any], road: Road, found: Counter[Any]) -> str:
    """If not all are reported, LIMIT and ANY count valuations, most recent starts first."""
    query = drawn.query
    if query.strategy != "ANY" and query.limit is None:
        missing, surplus = Counter(everything) - found, found - Counter(everything)
        return f"differs: missing {list(missing)}, surplus {list(surplus)}" if missing or surplus else ""
    most = 1 if query.strategy == "ANY" else query.limit
    if max(found.values(), default=0) > 1 or not found.keys() <= set(everything):
        return f"differs: {found} are not all among {everything}"
    for end in {e for _, e, _ in everything}:
        starts = sorted((s for s, e, _ in everything if e == end), reverse=True)[:most]
        reported = sorted((s for s, e, _ in found if e == end), reverse=True)
        if len(reported) != len(starts) or (query.strategy != "ANY" and reported != starts):
            return f"differs: of those that end at {end}, {reported} begin the reported and {starts} were to be"
    return ""


def _bindings_toml(drawn: strategies.CeqlCase, name: str) -> str:
    rows = harness.ceql_bindings_by_definition(drawn.text, drawn.stream)
    told = ", ".join(f"[{s}, {e}, {{{', '.join(f'{x} = {at}' for x, at in taken)}}}]" for s, e, taken in rows)
    return f"{strategies.ceql_toml(drawn, name)}bindings = [{told}]\n"


def _bindings(drawn: strategies.CeqlCase) -> list[Any]:
    rows = harness.ceql_bindings_by_definition(drawn.text, drawn.stream)
    return [(s, e, tuple((x, tuple(at)) for x, at in taken)) for s, e, taken in rows]


# -- SPAseq


def _spaseq_case(drawn: strategies.SpaseqCase) -> Case:
    return Case("a random query", drawn.text, graphs=drawn.graphs, kb=strategies.BACKGROUND)


def _spaseq_answers(drawn: strategies.SpaseqCase) -> int:
    case = _spaseq_case(drawn)
    return len(harness.spaseq_oracle(case.query, case.graphs, case.kb))


def _spaseq_expected(drawn: strategies.SpaseqCase) -> Counter[Any]:
    case = _spaseq_case(drawn)
    return Counter(set(map(roads.plain, harness.spaseq_oracle(case.query, case.graphs, case.kb))))


def _spaseq_problem(drawn: strategies.SpaseqCase, expected: Counter[Any], road: Road, found: Counter[Any]) -> str:
    return "" if found == expected else f"differs: missing {_few(expected - found)}, surplus {_few(found - expected)}"


def _spaseq_toml(drawn: strategies.SpaseqCase, name: str) -> str:
    case = _spaseq_case(drawn)
    answers = harness.spaseq_oracle(case.query, case.graphs, case.kb)
    return strategies.spaseq_toml(drawn, name) + _solutions(answers)


def _solutions(answers: Any) -> str:
    text = ""
    for _, end, _, row in sorted(answers, key=repr):
        text += f"[[case.solutions]]\ntime = {end / 10**9:g}\n" + "".join(f"{n} = '{t}'\n" for n, t in sorted(row))
    return text


def _spaseq(
    draw: Callable[[random.Random], strategies.SpaseqCase],
    often: frozenset[str],
    smaller: Callable[[Any], Iterator[Any]] = strategies.smaller_spaseq,
) -> Kind:
    return Kind(
        lambda rng: strategies.interesting(draw, _spaseq_answers, rng), _spaseq_case, _spaseq_expected,
        _spaseq_problem, smaller, _spaseq_toml, often,
    )  # fmt: skip


def _toml_of(answers: Callable[[Any], Any]) -> Callable[[Any, str], str]:
    """The case of a query with clauses over the solutions of another, its `base`."""
    return lambda drawn, name: (
        strategies.spaseq_toml(drawn.base, name).replace(drawn.base.text, drawn.text) + _solutions(answers(drawn))
    )


KINDS = {
    "patterns": Kind(
        graph_patterns.pattern_case, PatternCase.case, _pattern_answers, _pattern_problem, graph_patterns.smaller,
        _pattern_toml,
        frozenset({"batch", "one by one", "snapshot", "rdflib"}),
    ),
    "ceql": _ceql(strategies.wide_ceql_case, oracle.evaluate, _EVERY),
    "long ceql": _ceql(
        _long_ceql, oracle.evaluate_long, frozenset({"batch", "cuts", "snapshot", "alerts", "pushed alerts"})
    ),
    "steps": Kind(
        drawn_steps.steps_case, lambda drawn: Case("a random query", drawn.text, drawn.stream),
        lambda drawn: oracle.evaluate(oracle.replace(drawn.query, limit=None), drawn.stream), _ceql_problem,
        drawn_steps.smaller_steps, strategies.ceql_toml,
        _ENDS | {"auto"},
    ),
    "endings": _ceql(_ending, oracle.evaluate, _EVERY),
    "borders": _ceql(_border, oracle.evaluate, _ENDS),
    "chosen": _ceql(_choice, oracle.evaluate, _ENDS),
    "absences": _ceql(_absence, oracle.evaluate, _EVERY - {"auto"}),
    "lasting borders": _ceql(_lasting, oracle.evaluate, _ENDS),
    "repeated": Kind(
        _repeat, lambda drawn: Case("a random query", drawn.text, drawn.stream),
        lambda drawn: oracle_repeated.evaluate(drawn.query, drawn.stream), _repeated_problem, strategies.smaller_ceql,
        lambda drawn, name: strategies.ceql_toml(drawn, name)
        + f"matches = {[[s, e, list(d), *k] for s, e, d, *k in oracle_repeated.evaluate(drawn.query, drawn.stream)]}\n",
        _EVERY,
    ),
    "totals": _ceql(drawn_totals.totals_case, oracle.evaluate, _EVERY),
    "totals in steps": _ceql(drawn_totals.steps_with_totals_case, oracle.evaluate, _ENDS),
    "aggregates": _aggregates(drawn_aggregates.aggregates_case),
    "orders": replace(_ceql(_orders, oracle.evaluate, _ENDS | {"auto"}), around=drawn_orders.pools_of),
    "order aggregates": replace(_aggregates(drawn_orders.order_aggregates_case), around=drawn_orders.pools_of),
    "ordered": _with_order(drawn_ordered.ordered_case, 0.4, _ENDS | {"chain", "auto"}),
    "ordered orders": replace(
        _with_order(drawn_ordered.ordered_orders_case, 0.9, _ENDS), around=drawn_orders.pools_of
    ),
    "earlier": _ceql(
        _earlier, oracle.evaluate,
        _ENDS | {"chain", "auto"},
    ),
    "earlier steps": _ceql(_earlier_steps, oracle.evaluate, _ENDS),
    "after": _ceql(strategies.after_case, oracle.evaluate, _ENDS),
    "valuations": Kind(
        ceql_with_matches, lambda drawn: Case("a random query", drawn.text, drawn.stream, valuations=True), _bindings,
        _bindings_problem, strategies.smaller_ceql, _bindings_toml, frozenset({"batch", "snapshot"}),
    ),
    "spaseq": _spaseq(strategies.spaseq_case, _GRAPHS),
    "spaseq after": _spaseq(
        drawn_sequences.spaseq_after_case, _GRAPHS,
        drawn_sequences.smaller_sequences,
    ),
    "groups": _spaseq(drawn_sequences.groups_case, _GRAPHS, drawn_sequences.smaller_sequences),
    "unordered": _spaseq(drawn_sequences.unordered_case, _GRAPHS, drawn_sequences.smaller_sequences),
    "lasting": _spaseq(drawn_sequences.lasting_case, _GRAPHS, drawn_sequences.smaller_sequences),
    "lookups": _spaseq(drawn_sequences.lookups_case, _MATCHES, drawn_sequences.smaller_sequences),
    "graph orders": replace(_spaseq(graph_orders_case, _MATCHES), around=drawn_orders.pools_of),
    "rounds": Kind(
        drawn_rounds.rounds_case, lambda drawn: drawn.case, drawn_rounds.answers,
        _spaseq_problem, drawn_rounds.smaller_rounds, _toml_of(drawn_rounds.answers), _GRAPHS,
    ),
    "counts": Kind(
        drawn_counts.counts_case, lambda drawn: drawn.case, drawn_counts.answers, _spaseq_problem,
        drawn_counts.smaller_counts, _toml_of(drawn_counts.answers), _MATCHES,
    ),
    "long spaseq": _spaseq(strategies.long_spaseq_case, frozenset({"batch", "snapshot"})),
}  # fmt: skip


def _share(work: tuple[str, range, tuple[str, ...]], spark: Any = None) -> Report:
    kind, seeds, only = work
    return check(kind, seeds, only, spark)


BLOCK = 10


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kinds", nargs="+", choices=sorted(KINDS))
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--roads", default="", help="only these, apart by commas")
    parser.add_argument("--into", type=Path, help="a folder for the differences")
    parser.add_argument("--spark", choices=("local", "cluster"), help="the roads of Spark, and where they run")
    options = parser.parse_args(arguments)
    only = tuple(filter(None, options.roads.split(",")))
    different = 0
    with ExitStack() as stack:
        if options.spark:
            share = partial(_share, spark=session_on(options.spark, stack))
            every: Callable[..., Iterator[Report]] = map
        else:
            share, every = partial(_share), stack.enter_context(ProcessPoolExecutor(options.processes)).map
        for kind in options.kinds:
            end = options.first + options.count
            blocks = [range(s, min(s + BLOCK, end)) for s in range(options.first, end, BLOCK)]
            whole = Report()
            for report in every(share, [(kind, block, only) for block in blocks]):
                whole.add(report)
                for name, text in report.different.items():
                    print(f"-- {name}\n{text}", flush=True)
                    if options.into:
                        options.into.mkdir(parents=True, exist_ok=True)
                        (options.into / f"{name.replace(' ', '_')}.toml").write_text(text, "utf-8")
            print(f"{kind}: {whole}", flush=True)
            different += len(whole.different)
    return 1 if different else 0


def session_on(where: str, stack: ExitStack) -> Any:
    """A session of Spark in local mode, or on a cluster of its own, ended with `stack`."""
    import spaseq.spark

    settings = {}
    if where == "cluster":
        from tests.spark.cluster.standalone import ROOT, standalone

        cluster = stack.enter_context(standalone(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
        settings = {
            "spark.master": cluster.url,
            "spark.executor.memory": "512m",
            "spark.executorEnv.PYTHONPATH": str(ROOT),
        }
    session = spaseq.spark.local_session(2, configuration=settings)
    stack.callback(session.stop)
    return session


if __name__ == "__main__":
    sys.exit(main())
