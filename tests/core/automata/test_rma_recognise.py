"""Register match automata over batches, and those of queries: recognised where the engine finds matches."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ceql
from spaseq.core.automata import rma
from spaseq.core.engine import Window
from spaseq.core.errors import BudgetExceeded, EventError, OptionError, UnsupportedFeature
from tests.core.automata.test_rma_laws import many
from tests.support import harness
from tests.support import oracle_rma as o
from tests.support.rma_expressions import Names, lowered, random_expression, random_stream
from tests.support.sizes import share, some

SEEDS = st.integers(0, 2**32)


def as_ceql(e: Any) -> str:
    """An expression of the oracle as CEQL text."""
    match e:
        case ("as", kind, name):
            return f"({kind} AS {name})"
        case ("filter", child, condition):
            return f"({as_ceql(child)} FILTER {as_condition(condition)})"
        case ("or", a, b):
            return f"({as_ceql(a)} OR {as_ceql(b)})"
        case (";" | ":" as how, a, b):
            return f"({as_ceql(a)} {how} {as_ceql(b)})"
        case ("+" | ":+" as how, child):
            return f"({as_ceql(child)}){how}"
    raise AssertionError(e)


def as_condition(c: Any) -> str:
    match c:
        case ("not", child):
            return f"NOT ({as_condition(child)})"
        case ("and" | "or" as how, a, b):
            return f"({as_condition(a)} {how.upper()} {as_condition(b)})"
        case (symbol, (x, a), (y, b)):
            return f"{x}.{a} {symbol} {y}.{b}"
        case (symbol, (x, a), value):
            return f"{x}.{a} {symbol} {value}"
    raise AssertionError(c)


def optional(e: Any) -> bool:
    return isinstance(e, tuple) and (e[0] == "?" or any(optional(part) for part in e))


@settings(max_examples=some(120))
@given(SEEDS)
def test_queries_are_recognised_where_the_engine_finds_matches(seed: int) -> None:
    rng = random.Random(seed)
    expression, _ = random_expression(rng, 3, Names(), beyond=True)
    if optional(expression):
        return
    stream = random_stream(rng, 9)  # some values are NULL: CEQL's NOT leaves them unknown, here and there
    clauses = rng.choice(("", " PARTITION BY [id]")) + rng.choice(("", " WITHIN 2 EVENTS", " WITHIN 3 MILLISECONDS"))
    query = ceql.compile(f"SELECT * WHERE {as_ceql(expression)}{clauses}")
    found = list(query.run(stream, time_from="arrival"))
    asked = query.alerts()
    assert set(asked.run(stream, time_from="arrival")) == {m.end for m in found}
    assert asked.ask(stream, time_from="arrival") == bool(found)
    window, rows = query.compiled.lowered.window, list(asked.rows(stream, time_from="arrival"))
    recogniser = rma.Recogniser(asked.automaton, window)
    assert {int(p) for part in rows for p in part.positions[recogniser.push(part)]} == {m.end for m in found}
    if not clauses and all("value" in e for e in stream):
        expected = o.matches(expression, stream)
        assert {m.positions for m in found} == expected


@settings(max_examples=some(100))
@given(SEEDS, st.integers(1, 5))
def test_the_recogniser_answers_as_the_expression_means(seed: int, window: int) -> None:
    """In batches of any size; in a window of events, of time, and counted in the automaton."""
    rng = random.Random(seed)
    expression, _ = random_expression(rng, 3, Names(), beyond=True)
    stream = random_stream(rng, 9)
    expected = o.ends(o.matches(("window", expression, window), stream))
    automaton = rma.build(lowered(expression))
    for given_window in (Window("events", window - 1), Window("span", window - 1), Window("span", window - 0.5)):
        assert answers(rma.Recogniser(automaton, given_window), stream, rng) == expected
    assert answers(rma.Recogniser(rma.count_events(automaton, window)), stream, rng) == expected
    assert answers(rma.Recogniser(automaton), stream, rng) == o.ends(o.matches(expression, stream))


def answers(recogniser: rma.Recogniser, stream: list[Any], rng: random.Random) -> set[int]:
    found: set[int] = set()
    done = 0
    while done < len(stream):
        size = rng.choice((0, 1, 1, 2, 4))
        yes = recogniser.push(stream[done : done + size])
        found |= {done + int(i) for i in np.flatnonzero(yes)}
        done += size
    return found


@settings(max_examples=some(40))
@given(SEEDS)
def test_windows_that_tumble_and_partitions(seed: int) -> None:
    rng = random.Random(seed)
    expression, _ = random_expression(rng, 2, Names())
    stream = random_stream(rng, 10)
    automaton, tumbling = rma.build(lowered(expression)), Window("tumbling", 4, 1)
    found = rma.Recogniser(automaton, tumbling).push(stream)
    blocks = [(0, 1), (1, 5), (5, 9), (9, 10)]
    expected = {a + end for a, b in blocks for end in o.ends(o.matches(expression, stream[a:b]))}
    assert set(np.flatnonzero(found).tolist()) == expected
    keys = np.array([rng.randrange(-1, 2) for _ in stream])
    found = rma.Recogniser(automaton, Window("events", 2)).push(rma.EventRows(stream, keys=keys))
    assert not found[keys < 0].any()
    for key in (0, 1):
        rows = np.flatnonzero(keys == key)
        part = [stream[r] for r in rows]
        expected = o.ends(o.matches(("window", expression, 3), part))
        assert set(np.flatnonzero(found[rows]).tolist()) == expected


def test_relations_of_whole_events() -> None:
    close = rma.Holds("close", lambda a, b: abs(a["value"] - b["value"]) <= 1)
    expression = rma.Where(rma.Then(rma.event("T", "x"), rma.event("T", "y")), rma.Test(close, ("x", "y")))
    stream = [{"type": "T", "value": v} for v in (1, 5, 4, 9, 2)]
    assert rma.Recogniser(rma.build(expression)).push(stream).tolist() == [False, False, True, False, True]
    assert rma.matches(rma.build(expression), stream) == {(1, 2), (0, 4)}


def test_equal_values_share_a_configuration() -> None:
    expression = rma.Where(rma.Then(rma.event("T", "x"), rma.event("H", "y")), rma.relate("x.id", "=", "y.id"))
    recogniser = rma.Recogniser(rma.build(expression))
    recogniser.push([{"type": "T", "id": i % 3, "value": i} for i in range(50)])
    assert recogniser.configurations == 4, "the start, and one for each of three identifiers"


def test_configurations_have_a_limit_which_forgets_first_what_left_the_window() -> None:
    expression = rma.Where(rma.Then(rma.event("T", "x"), rma.event("H", "y")), rma.relate("x.value", "<", "y.value"))
    stream = [{"type": "T", "value": i} for i in range(100)]
    limits = rma.Limits(max_configurations=20)
    assert not rma.Recogniser(rma.build(expression), Window("events", 10), limits=limits).push(stream).any()
    with pytest.raises(BudgetExceeded, match="max_configurations is 20"):
        rma.Recogniser(rma.build(expression), limits=limits).push(stream)


def test_a_condition_that_cannot_be_asked_names_the_event() -> None:
    expression = rma.Where(rma.Then(rma.event("T", "x"), rma.event("T", "y")), rma.relate("x.id", "<", "y.id"))
    with pytest.raises(EventError, match="event 2"):
        rma.Recogniser(rma.build(expression)).push([{"type": "T", "id": 1}, {"type": "T", "id": "one"}])


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT * WHERE A ; NOT B ; C", "a negation between two parts"),
        ("SELECT * WHERE A ; NOT B", "NOT at the end"),
        ("SELECT * WHERE AND(A, B)", r"a conjunction \(AND\)"),
        ("SELECT x WHERE A AS x ; B", "a match of which SELECT leaves out an event"),
        ("SELECT STRICT * WHERE A ; B", "SELECT STRICT"),
        ("SELECT NEXT * WHERE A ; B", "a selection that leaves matches out"),
        ("SELECT * WHERE A ; B CONSUME BY ANY", "consumption"),
        ("SELECT * WHERE A AS x ; (B AS y)+ FILTER x.v < y.v", "where y has several events"),
        ("SELECT * WHERE (A AS x OR B AS y) ; C AS z FILTER x.v < z.v", "where x has an event in one alternative only"),
        ("SELECT * WHERE (A+) AS x FILTER AVG(x.v) > 2", r"the condition AVG\(x\.v\) > 2"),
        ("SELECT * WHERE (A ; B) AS x ; C AS z FILTER x.v < z.v", "where x has several events"),
    ],
)
def test_what_has_no_automaton_is_refused_by_name(query: str, what: str) -> None:
    asked = ceql.compile(query).alerts()
    with pytest.raises(UnsupportedFeature, match=what):
        asked.automaton  # noqa: B018


def test_one_name_in_two_scopes_is_two_variables() -> None:
    query = ceql.compile("SELECT * WHERE (A ; B FILTER A.v < B.v) ; (A ; B FILTER A.v < B.v)")
    stream = [{"type": t, "v": v} for t, v in (("A", 1), ("B", 2), ("A", 5), ("B", 4), ("B", 6))]
    assert list(query.alerts().run(stream)) == [4]
    assert len(query.alerts().automaton.registers) == 2


@settings(max_examples=some(50))
@given(SEEDS, st.integers(1, 4))
def test_the_single_run_of_a_deterministic_automaton(seed: int, window: int) -> None:
    rng = random.Random(seed)
    expression, _ = random_expression(rng, 2, Names(), beyond=True)
    stream = random_stream(rng, 12)
    limits = rma.Limits(max_states=400, max_registers=12, max_minterms=300)
    bounded = rma.count_events(rma.build(lowered(expression)), window)
    try:
        automaton = rma.determinise(bounded, output_agnostic=True, complete=True, limits=limits)
    except BudgetExceeded:
        return
    run = rma.SingleRun(automaton, (rma.compare("~.id", "=", 1),))
    parts = [run.push(stream[:5]), run.push([]), run.push(stream[5:])]
    accepted = np.concatenate([part.accepted for part in parts])
    assert set(np.flatnonzero(accepted).tolist()) == o.ends(o.matches(("window", expression, window), stream))
    letters = np.concatenate([part.letters for part in parts]).tolist()
    states = np.concatenate([part.states for part in parts]).tolist()
    assert len({(letter, e["id"]) for letter, e in zip(letters, stream, strict=True)}) == len(set(letters))
    acceptor = rma.Acceptor(automaton)
    for event, state in zip(stream, states, strict=True):
        acceptor.push(event)
        assert acceptor.states == {state}


def test_an_automaton_of_a_query_is_asked_of_its_batches() -> None:
    asked = ceql.compile("SELECT * WHERE T : H").alerts()
    for push in (rma.Recogniser(asked.automaton).push, rma.SingleRun(asked.deterministic()).push):
        with pytest.raises(OptionError, match="type = T cannot be evaluated on plain events"):
            push([{"type": "T"}])
    with pytest.raises(OptionError, match="cannot be evaluated on a single event"):
        rma.accepts(asked.automaton, [{"type": "T"}])


def test_a_final_state_that_is_also_entered_unmarked() -> None:
    """A run accepts only where it has just marked (Definition 4.4), also where it stays in a final state."""
    t = rma.Test(rma.Is("type", "=", "T"), (rma.CURRENT,))
    loops = (rma.Transition(0, t, 0, marks=True), rma.Transition(0, rma.negation(t), 0))
    automaton = rma.RMA(("q",), frozenset({0}), frozenset({0}), (), loops)
    stream = [{"type": kind} for kind in "HTTHT"]
    expected = [False, True, True, False, True]
    assert rma.accepts(automaton, stream) == expected
    run = rma.SingleRun(automaton)
    steps = run.push(stream)
    assert steps.accepted.tolist() == expected
    assert [int(s) in run.automaton.finals for s in steps.states] == expected
    assert rma.Recogniser(automaton).push(stream).tolist() == expected
    assert rma.accepts(rma.complement(automaton), stream) == [not yes for yes in expected]


def test_a_single_run_needs_a_deterministic_automaton() -> None:
    automaton = rma.build(rma.event("T", "x"))
    with pytest.raises(OptionError, match="may have several runs"):
        rma.SingleRun(automaton)
    whole = rma.determinise(automaton, output_agnostic=True, complete=True)
    with pytest.raises(OptionError, match="a feature is a condition on one event"):
        rma.SingleRun(whole, (rma.relate("x.id", "=", "y.id"),))


def test_the_deterministic_automaton_of_a_query() -> None:
    query = ceql.compile("SELECT * WHERE (T AS x) ; (H AS y) FILTER x.id = y.id WITHIN 2 EVENTS")
    asked = query.alerts()
    stream = random_stream(random.Random(4), 60)
    run = rma.SingleRun(asked.deterministic())
    found = [rows.positions[run.push(rows).accepted] for rows in asked.rows(stream)]
    assert np.concatenate(found).tolist() == list(asked.run(stream))
    with pytest.raises(UnsupportedFeature, match="a window of time has no deterministic automaton"):
        ceql.compile("SELECT * WHERE A ; B WITHIN 2 SECONDS").alerts().deterministic()


def test_every_case_of_the_fragment() -> None:
    """The named cases of CEQL whose queries have an automaton: it accepts where the expected matches end."""
    of_ceql = [case for case in harness.load_all() if not (case.is_spaseq or case.matches is None or case.error)]
    tried = 0
    for case in share(of_ceql):
        query = ceql.compile(case.query)
        try:
            recogniser = rma.Recogniser(query.alerts().automaton, query.compiled.lowered.window)
        except UnsupportedFeature:
            continue
        tried += 1
        streams = harness.streams_of(case.events)
        rows = query.alerts().rows(case.events) if streams is None else query.alerts().rows(streams=streams)
        found = {int(p) for part in rows for p in part.positions[recogniser.push(part)]}
        assert found == {end for _, end, *_ in case.matches}, case.place
    assert tried > 60


test_many_queries = many(test_queries_are_recognised_where_the_engine_finds_matches, SEEDS)
test_many_windows = many(test_the_recogniser_answers_as_the_expression_means, SEEDS, st.integers(1, 5))
test_many_partitions = many(test_windows_that_tumble_and_partitions, SEEDS)
test_many_runs = many(test_the_single_run_of_a_deterministic_automaton, SEEDS, st.integers(1, 4))
