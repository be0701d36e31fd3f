"""The kernel for registers against the loop in Python: the same answers, also where it hands over in the middle."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from automata.rma_expressions import Names, lowered, random_expression, random_stream

import ceql
from ceql.query import Query
from spaseq.automata import rma
from spaseq.automata.rma import EventRows, Limits, Recogniser, Then, Where, event, kernels, relate
from spaseq.automata.rma.guarded_run import GuardedRun
from spaseq.automata.rma.kernel_run import KernelRun
from spaseq.automata.rma.register_codes import NOTHING, UNKNOWN, alternatives
from spaseq.engine import Window
from spaseq.errors import BudgetExceeded, EventError

PHI = Where(Then(event("T", "x"), event("H", "y")), relate("x.id", "=", "y.id"))


WINDOWS = Window("events", 4), Window("span", 6), Window("span", 5.5), Window("tumbling", 7, 2)


def slowly(automaton: rma.RMA, window: Any, limits: Limits = Limits()) -> Recogniser:  # noqa: B008 - frozen
    """A recogniser that asks one by one."""
    found = Recogniser(automaton, window, limits=limits)
    found._run = GuardedRun(found.automaton, found._vocabulary, limits)
    return found


def pushed(recogniser: Recogniser, stream: list[Any], keys: np.ndarray | None, rng: random.Random) -> list[bool]:
    found: list[bool] = []
    while len(found) < len(stream):
        at, size = len(found), rng.choice((1, 2, 5, 20))
        part = EventRows(stream[at : at + size], at, None if keys is None else keys[at : at + size])
        found += recogniser.push(part).tolist()
    return found


def related(rng: random.Random) -> Any:
    """An expression with a condition over both sides of a sequence."""
    names = Names()
    while True:
        (a, left), (b, right) = (random_expression(rng, 2, names, beyond=True) for _ in range(2))
        if left and right:
            break

    def condition() -> Any:
        attribute = rng.choice(("id", "value"))
        found: Any = (rng.choice(("=", "!=", "<", "<=", ">", ">=")), (rng.choice(left), attribute),
                      (rng.choice(right), attribute))  # fmt: skip
        return ("not", found) if rng.random() < 0.2 else found

    over = condition() if rng.random() < 0.5 else (rng.choice(("and", "or")), condition(), condition())
    whole = ("filter", (rng.choice((";", ";", ":")), a, b), over)
    return rng.choice((whole, ("+", whole), (";", whole, ("as", "H", names.fresh()))))


def test_the_kernel_answers_as_the_loop_does() -> None:
    taken = handed = matched = 0
    for seed in range(250):
        rng = random.Random(seed)
        expression = related(rng)
        stream = random_stream(rng, 40)
        if seed % 4 == 0:  # a value without a code: what is kept goes over to the loop
            stream = [e | {"id": True} if i > 20 and e.get("id") == 1 else e for i, e in enumerate(stream)]
        automaton = rma.build(lowered(expression))
        window = rng.choice((None, *WINDOWS))
        keys = np.array([rng.randrange(-1, 3) for _ in stream]) if rng.random() < 0.3 else None
        quick, slow = Recogniser(automaton, window), slowly(automaton, window)
        expected = pushed(slow, stream, keys, random.Random(seed))
        assert pushed(quick, stream, keys, random.Random(seed)) == expected, seed
        if isinstance(quick._run, KernelRun):
            taken += 1
            handed += quick._run._instead is not None
            matched += any(expected)
    assert taken > 60 and handed > 5 and matched > 30


def queries() -> list[Query]:
    texts = (
        "SELECT * WHERE A AS x ; B AS y FILTER x.a < y.a AND NOT (x.b = y.b) WITHIN 5 EVENTS",
        "SELECT * WHERE A AS x ; B AS y ; C AS z FILTER x.a <= z.a AND (y.b > z.b OR x.b != y.b) WITHIN 4 SECONDS",
        "SELECT * WHERE ((A AS x ; B AS y FILTER x.s = y.s) ; C)+ PARTITION BY [k]",
        "SELECT * WHERE A AS x ; (B AS y OR C AS y) FILTER x.s != y.s WITHIN 9 EVENTS",
        "SELECT * WHERE A AS x : B AS y ; A AS z FILTER x.a >= z.b AND y.b = z.b",
    )
    return [ceql.compile(text) for text in texts]


def test_queries_are_recognised_by_the_kernel_where_the_engine_finds_matches() -> None:
    for seed in range(12):
        rng = random.Random(seed)
        events = []
        for i in range(60):
            e: dict[str, Any] = {"type": rng.choice("ABC"), "time": i // 2, "k": rng.randrange(2)}
            e |= {name: rng.choice((0, 1, 2.5, 2, -3, 1e300)) for name in "ab" if rng.random() < 0.9}
            events.append(e | {"s": rng.choice("uvw")} if rng.random() < 0.9 else e)
        for query in queries():
            alerts = query.alerts()
            assert set(alerts.run(events)) == {m.end for m in query.run(events)}, (seed, query.text)
            recogniser = Recogniser(alerts.automaton, query._lowered.window)
            (rows,) = alerts.rows(events)
            recogniser.push(rows)
            assert isinstance(recogniser._run, KernelRun) and recogniser._run._instead is None


def test_values_without_codes_are_handed_over_and_stay_what_they_were() -> None:
    for odd in (2**60, float("nan"), (1, 2)):
        values = ("T", 1), ("T", "u"), ("T", None), ("H", 1), ("H", "u"), ("H", odd)
        stream = [{"type": kind, "id": i} for kind, i in values]
        for parts in ([stream], [[e] for e in stream]):
            quick, slow = Recogniser(rma.build(PHI)), slowly(rma.build(PHI), None)
            assert [quick.push(p).tolist() for p in parts] == [slow.push(p).tolist() for p in parts]
    order = rma.build(Where(Then(event("T", "x"), event("H", "y")), relate("x.id", "<", "y.id")))
    recogniser = Recogniser(order)
    assert isinstance(recogniser._run, KernelRun)
    recogniser.push([{"type": "T", "id": 1}])
    with pytest.raises(EventError, match="1 cannot be set against 'u'"):
        recogniser.push([{"type": "H", "id": "u"}])


def test_many_configurations_texts_and_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rooms that grow, texts that are forgotten, windows that empty them."""
    monkeypatch.setattr("spaseq.automata.rma.register_codes._TEXTS", 100)
    rng = random.Random(3)
    stream = [{"type": rng.choice("TTH"), "id": f"t{rng.randrange(10**6)}"} for _ in range(4000)]
    stream += [{"type": "H", "id": e["id"]} for e in stream[-50:]]
    automaton, window = rma.build(PHI), Window("events", 1500)
    quick, slow = Recogniser(automaton, window), slowly(automaton, window)
    assert isinstance(quick._run, KernelRun)
    expected = slow.push(stream)
    found = [quick.push(EventRows(stream[i : i + 500], i)) for i in range(0, len(stream), 500)]
    assert np.concatenate(found).tolist() == expected.tolist() and expected.any()
    assert len(quick._run._codes._texts) < 3000
    for limit, fits in ((500, False), (4500, True)):
        short = Recogniser(automaton, window, limits=Limits(max_configurations=limit))
        if fits:
            assert short.push(stream).tolist() == expected.tolist()
        else:
            with pytest.raises(BudgetExceeded, match="max_configurations"):
                short.push(stream)


def test_what_the_kernel_does_not_take() -> None:
    assert (kernels.NOTHING, kernels.UNKNOWN) == (NOTHING, UNKNOWN)  # it has literals of its own
    recogniser = Recogniser(ceql.compile("SELECT * WHERE A AS x ; B AS y FILTER x.a + 1 < y.a").alerts().automaton)
    assert isinstance(recogniser._run, GuardedRun)
    parts = [rma.disjunction(relate(f"x.v{i}", "<", f"y.v{i}"), relate(f"x.w{i}", "<", f"y.w{i}")) for i in range(7)]
    assert alternatives(rma.conjunction(*parts)) is None  # 128 clauses
    assert len(alternatives(rma.conjunction(*parts[:6])) or ()) == 64
