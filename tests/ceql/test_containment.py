"""`ceql.compare` against the oracle: no stream contradicts a relation, and every witness is one."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

import ceql
from ceql.cli.main import main
from ceql.containment import compare as comparing
from ceql.containment.compare import compare
from spaseq.core.containment.deciding import relation_of
from spaseq.core.containment.result import Comparison, Relation
from tests.support import strategies
from tests.support.oracle import Query, TooBig, evaluate

EQUAL, LESS, MORE = Relation.EQUIVALENT, Relation.NEW_IN_OLD, Relation.OLD_IN_NEW
BOTH, NONE, OPEN = Relation.OVERLAPPING, Relation.DISJOINT, Relation.UNDECIDED

DECIDED = [
    # the pattern
    ("A ; B", "A : B", LESS),
    ("A -> B", "A ; B", MORE),
    ("A+", "A ; A+", LESS),
    ("A ; B+", "A ; B OR A ; B ; B+", EQUAL),
    ("A ; NOT C ; B", "A ; B", MORE),
    ("AND(A, B)", "(A ; B) OR (B ; A)", EQUAL),
    ("A OR B", "B OR C", BOTH),
    ("A", "B", NONE),
    ("ANY", "A", LESS),
    # conditions on one event
    ("A AS x FILTER x[v > 5]", "A AS x FILTER x[v >= 6]", LESS),
    ("A AS x FILTER x[v > 5]", "A AS x FILTER NOT x[v <= 5]", EQUAL),
    ("A AS x FILTER x[v > 5 OR v <= 5]", "A AS x FILTER x[v IS NOT NULL]", EQUAL),
    ("A AS x FILTER x[v > 5 OR v <= 5]", "A", MORE),
    ("A AS x FILTER x[v IN {1, 2} AND s = 'a']", "A AS x FILTER x[v BETWEEN 1 AND 2 AND s IN {'a', 'b'}]", MORE),
    ("A AS x FILTER x[s < 'b']", "A AS x FILTER x[s <= 'a']", LESS),
    ("A AS x FILTER x[on = TRUE]", "A AS x FILTER x[on != FALSE]", EQUAL),
    ("A AS x FILTER x[v < w]", "A AS x FILTER x[v != w]", MORE),
    ("A AS x FILTER x[s = 'a' AND LENGTH(t) > 3]", "A AS x FILTER x[LENGTH(t) > 3]", MORE),
    ("A AS x FILTER x[UPPER(s) = 'AB' AND v > 3]", "A AS x FILTER x[UPPER(s) = 'AB']", MORE),
    ("A AS x FILTER x[ip LIKE '10[.].*' AND v IN {1}]", "A AS x FILTER x[ip LIKE '10[.].*']", MORE),
    # conditions between events
    ("A AS x ; B AS y FILTER x.v < y.v", "A AS x ; B AS y FILTER x.v <= y.v", MORE),
    ("A AS x ; B AS y FILTER x.v < y.v AND y.v < 5",
     "A AS x ; B AS y FILTER x.v < y.v AND y.v < 5 AND x[v < 5]", EQUAL),
    ("A AS x ; B AS y FILTER x.v < y.v", "A AS x ; B AS y FILTER x.v > y.v", NONE),
    ("A AS x ; A AS y ; A AS z FILTER x.v < y.v AND y.v < z.v AND x.v < z.v",
     "A AS x ; A AS y ; A AS z FILTER x.v < y.v AND y.v < z.v", EQUAL),
    ("A AS x ; B+ AS y FILTER y.v > x.v", "A AS x ; B+ AS y FILTER y.v >= x.v", MORE),
    ("A :+ AS x FILTER x.v > PREV(x.v)", "A :+ AS x FILTER x.v >= PREV(x.v)", MORE),
    ("A AS x ; B AS y FILTER x.s = y.s AND x[s = 'a']", "A AS x ; B AS y FILTER x[s = 'a'] AND y[s = 'a']", EQUAL),
    # windows
    ("A ; B WITHIN 5 EVENTS", "A ; B WITHIN 7 EVENTS", MORE),
    ("A : B WITHIN 5 EVENTS", "A : B WITHIN 7 EVENTS", EQUAL),
    ("A ; B WITHIN 5 SECONDS", "A ; B WITHIN 3 SECONDS", LESS),
    ("A WITHIN 5 SECONDS", "A WITHIN 3 SECONDS", EQUAL),
    ("A ; B WITHIN 5 EVENTS", "A ; B WITHIN 3 SECONDS", BOTH),
    ("A ; B WITHIN 5 [p]", "A ; B", MORE),
    ("A ; B+ WITHIN 2 EVENTS", "A ; B ; B WITHIN 2 EVENTS", LESS),
    # keys
    ("A ; B PARTITION BY [k]", "A ; B", MORE),
    ("A : B PARTITION BY [k]", "A : B", BOTH),
    ("A ; B PARTITION BY [k]", "A ; B PARTITION BY [k], [m]", LESS),
    ("A AS x ; B AS y FILTER x.k = y.k", "A ; B PARTITION BY [k]", EQUAL),
    ("A AS x ; B AS y FILTER x[k < m] PARTITION BY [k], [m]", "A ; B PARTITION BY [m], [k]", MORE),
    ("A AS x ; B AS y FILTER x[k = 1] AND y[k = 2] PARTITION BY [k]", "A ; C PARTITION BY [k]", MORE),
    # choices
    ("STRICT: A ; B", "A : B", EQUAL),
    ("NEXT: A ; B", "NEXT: A AS x ; B", EQUAL),
    ("NEXT: A ; B", "A ; B", MORE),
    ("A ; B CONSUME BY ANY", "A ; B", MORE),
    ("A ; NOT B WITHIN 2 EVENTS", "A", MORE),
    ("A AS a ; B ORDER BY a.p DESC", "A AS a ; B", EQUAL),
    ("A AS a ; B ORDER BY a.p LIMIT 1", "A AS a ; B", MORE),
    ("A AS a ; B ORDER BY a.p DESC LIMIT 1", "A AS a ; B ORDER BY a.p LIMIT 1", BOTH),
]  # fmt: skip

UNDECIDED = [
    ("A AS x FILTER x[ABS(v) > 3]", "A AS x FILTER x[ABS(v) >= 3.5]", "ABS(v) > 3"),
    ("A AS x ; B AS y FILTER x.v < y.v + 1", "A AS x ; B AS y FILTER x.v - 1 < y.v", "relates events"),
    ("A AS x ; B AS y FILTER SUM(y.v) > 3", "A AS x ; B AS y FILTER SUM(y.v) >= 4", "has an aggregate"),
    ("MAX: A ; B+", "LAST: A ; B+", "chooses among its matches"),
    ("A AS a ; B ORDER BY a.p LIMIT 1", "A AS a ; B ORDER BY a.p LIMIT 1", "chooses among its matches"),
    ("A AS x FILTER x[v = 1]", "A AS x FILTER x[v = 'a']", "v = "),
    ("A AS x FILTER x[type = 'A']", "A", "about times or types"),
    ("A ; NOT B FOR 5 SECONDS", "A ; NOT B FOR 3 SECONDS", "events around them"),
    ("A AS x FILTER x[d > '2026-01-01']", "A AS x FILTER x[d > '2026-01-01' OR d = '2026-02-01']", "d "),
]


def _query(short: str) -> str:
    """A query of the tables above: `NEXT: …` is SELECT NEXT * WHERE …"""
    selection, colon, rest = short.partition(": ")
    return f"SELECT {selection} * WHERE {rest}" if colon and selection.isupper() and len(selection) > 2 else (
        f"SELECT * WHERE {short}")  # fmt: skip


@pytest.mark.parametrize(("old", "new", "relation"), DECIDED)
def test_a_relation(old: str, new: str, relation: Relation) -> None:
    found = compare(_query(old), _query(new))
    assert found.relation is relation, found
    assert found.differ is (relation is not EQUAL)
    assert (found.only_old is None) == (relation in (EQUAL, MORE))
    assert (found.only_new is None) == (relation in (EQUAL, LESS))
    for witness in (found.only_old, found.only_new, found.both):
        if witness is not None:
            assert _reported_by(witness, _query(old), _query(new)) == witness.reported_by


def _reported_by(witness: Any, old: str, new: str) -> str:
    """The query that reports the match of a witness, by the engine over rows in another form: pushed one by one."""
    found = []
    for text in (old, new):
        words: Any = {"time": "time", "time_unit": "s"} if "time" in witness.rows[0] else {}
        session = ceql.compile(text).open(**words)
        matches = [m for row in witness.rows for m in session.push([row])] + session.close()
        keys = ("start", "end", "positions")
        found.append(any([m.start, m.end, tuple(m.positions)] == [witness.match[k] for k in keys] for m in matches))
    return {(True, False): "old", (False, True): "new", (True, True): "both"}.get((found[0], found[1]), "none")


@pytest.mark.parametrize(("old", "new", "reason"), UNDECIDED)
def test_what_is_not_decided_says_why(old: str, new: str, reason: str) -> None:
    found = compare(_query(old), _query(new), streams=20)
    if found.relation is OPEN:
        assert reason in found.reason and "random streams" in found.reason
    else:
        assert found.differ and "shown by streams" in found.reason


def test_valuations_are_told_by_names() -> None:
    old, new = "SELECT * WHERE A AS x ; A AS y", "SELECT * WHERE A AS y ; A AS x"
    assert compare(old, new).relation is EQUAL
    assert compare(old, new, valuations=True).relation is NONE
    assert compare(old, "SELECT x[v] WHERE A AS x ; A AS y").relation is NONE  # the list asks for valuations
    assert compare("SELECT x WHERE A AS x ; A", "SELECT x WHERE A AS x ; A+").relation is EQUAL  # A+ is not shown


def test_budgets_and_streams() -> None:
    few = ceql.Settings(compared_steps=10)
    found = compare("SELECT * WHERE A ; B ; C ; D", "SELECT * WHERE A ; B ; C ; E ; D", settings=few, streams=0)
    assert found.relation is OPEN and "compared_steps is 10 steps and 11 are needed" in found.reason
    found = compare("SELECT * FROM S WHERE A", "SELECT * FROM T WHERE A")
    assert found.relation is OPEN and "different streams" in found.reason and "random" not in found.reason
    found = compare("SELECT * WHERE S>A ; T>B WITHIN 5 [p]", "SELECT * WHERE S>A ; T>B WITHIN 7 [p]")
    assert found.relation is MORE and {row["stream"] for row in found.only_new.rows} == {"S", "T"}  # type: ignore[union-attr]
    found = compare("SELECT * FROM S, T WHERE A", "SELECT * FROM T, S WHERE A", streams=0)
    assert "in another order" in found.reason
    enough = ceql.Settings(compared_steps=100)
    found = compare("SELECT * WHERE A ; B", "SELECT * WHERE A : B ; C", settings=enough, streams=0)
    assert found.only_old is not None, "a word that was found before the budget was reached"
    with pytest.raises(ceql.QuerySyntaxError, match="<new>"):
        compare("SELECT * WHERE A", "SELECT")
    with pytest.raises(ceql.OptionError, match="streams"):
        compare("SELECT * WHERE A", "SELECT * WHERE A", streams=-1)


def test_of_groups_the_matches_are_compared() -> None:
    old, new = (f"SELECT COUNT(*) AS n WHERE A ; B WITHIN {n} EVENTS GROUP BY EVENT" for n in (4, 3))
    found = compare(old, new)
    assert found.relation is LESS and found.reason == "decided for all streams"
    assert found.only_old is not None and found.only_old.match["positions"] == (0, 4)
    assert compare(old, "SELECT SUM(x.v) AS s WHERE A AS x ; B WITHIN 4 EVENTS GROUP BY EVENT").relation is EQUAL


def test_the_relation_of_facts() -> None:
    """Of all combinations of facts: no relation is said that an unknown one could change."""
    facts = (True, False, None)
    for known in itertools.product(facts, repeat=3):
        settled = {
            relation_of(*(f if f is not None else g for f, g in zip(known, some, strict=True)))
            for some in itertools.product((True, False), repeat=3)
        }
        assert relation_of(*known) in (*settled, OPEN)
        if relation_of(*known) is not OPEN:
            assert settled == {relation_of(*known)}


def _contradiction(found: Comparison, old: Query, new: Query, stream: Any) -> bool:
    """True if a stream has a match that the relation excludes."""
    one, two = set(evaluate(old, stream)), set(evaluate(new, stream))
    excluded = {EQUAL: one ^ two, MORE: one - two, LESS: two - one, NONE: one & two}
    return bool(excluded.get(found.relation))


def _pairs(rng: random.Random) -> tuple[strategies.CeqlCase, strategies.CeqlCase]:
    """A random query, and a simpler version of it or another one."""
    case = strategies.ceql_case(rng)
    simpler = [c for c in itertools.islice(strategies.smaller_ceql(case), 40) if c.query != case.query]
    other = rng.choice(simpler) if simpler and rng.random() < 0.8 else strategies.ceql_case(rng)
    return (case, other) if rng.random() < 0.5 else (other, case)


def _check(seed: int, most: int = 2_000) -> bool:
    """One pair of random queries against the oracle; True if its relation was decided by the automata."""
    rng = random.Random(seed)
    case, other = _pairs(rng)
    try:
        found = compare(case.text, other.text, streams=0, settings=ceql.Settings(compared_steps=most))
    except (ceql.QueryError, ceql.BudgetExceeded):
        return False
    assert comparing.NOT_SHOWN not in found.reason, (case.text, other.text)
    streams = [case.stream, other.stream]
    streams += [[dict(e) for e in strategies.draw_stream(rng, 5)] for _ in range(4)]
    for stream in streams:
        try:
            assert not _contradiction(found, case.query, other.query, stream), (case.text, other.text, stream, found)
        except TooBig:
            continue
    for witness in (found.only_old, found.only_new):
        if witness is not None and not case.query.streams and not other.query.streams:
            rows = [{name: v for name, v in row.items() if v is not None} for row in witness.rows]
            one, two = set(evaluate(case.query, rows)), set(evaluate(other.query, rows))
            assert one - two if witness.reported_by == "old" else two - one, (case.text, other.text, rows)
    return found.relation is not OPEN and "decided" in found.reason


def test_random_pairs_against_the_oracle() -> None:
    assert sum(_check(seed, 300) for seed in range(8)) > 1


@pytest.mark.slow
def test_many_random_pairs_against_the_oracle() -> None:
    assert sum(map(_check, range(60, 3_000))) > 500


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    old, new = "SELECT * WHERE A ; B", "SELECT * WHERE A : B"
    assert main(["compare", old, new]) == 5
    assert capsys.readouterr().out.startswith("new contained in old: decided for all streams\na match of the old query")
    assert main(["compare", old, old, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["relation"] == "equivalent"
    more = [f"{old} FILTER SUM(B.v) > 3", f"{old} FILTER SUM(B.v) > 3 AND SUM(B.v) > 2"]
    assert main(["compare", *more, "--streams", "2"]) == 6
    assert capsys.readouterr().out.startswith("undecided, because ")
    assert main(["compare", "-", "-"]) == 2
