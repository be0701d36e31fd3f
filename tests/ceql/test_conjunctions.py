"""AND of many parts: what has no automaton runs in a chain, and what needs the automaton says so."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import ceql
from ceql.cli import main as cli
from spaseq.core.engine import Settings
from spaseq.core.errors import BudgetExceeded, OptionError
from tests.support import harness
from tests.support.harness import Events
from tests.support.sizes import some

Match = tuple[int, int, tuple[int, ...]]
EVALUATORS = ("chain", "tree", "auto")


def formula(n: int) -> str:
    return f"AND({', '.join(f'T{i} AS t{i}' for i in range(n))})"


def stream(n: int, count: int, seed: int) -> Events:
    """Every type comes soon again, so that windows have some matches and not many."""
    rng = random.Random(seed)
    found: list[dict[str, Any]] = []
    while len(found) < count:
        some = [*range(n), *(rng.randrange(n) for _ in range(max(1, n // 6)))]
        rng.shuffle(some)
        found += [{"type": f"T{i}", "k": rng.choice("ab"), "v": rng.randrange(9), "time": 0} for i in some]
    return [{**event, "time": second} for second, event in enumerate(found[:count])]


def defined(
    n: int, events: Events, window: int, holds: Callable[[list[dict[str, Any]]], bool] = lambda events: True
) -> list[Match]:
    """The matches by definition: one event of each type, none more than `window` behind the first, for which the
    condition holds."""
    found = []
    for end in range(len(events)):
        first = max(0, end - window)
        places = [[p for p in range(first, end + 1) if events[p]["type"] == f"T{i}"] for i in range(n)]
        last = next(i for i in range(n) if events[end]["type"] == f"T{i}")
        places[last] = [end]
        for taken in itertools.product(*places):
            if holds([dict(events[p]) for p in taken]):
                found.append((min(taken), end, tuple(sorted(taken))))
    return sorted(found)


def as_list(matches: Iterable[Any]) -> list[Match]:
    return sorted((m.start, m.end, tuple(m.positions)) for m in matches)


def on_every_road(text: str, events: Events, evaluator: str, seed: int) -> Iterable[list[Match]]:
    """Batch; one by one; cut, with snapshots, each for another query of the same text."""
    settings = Settings(evaluator=evaluator)
    query, again = (ceql.compile(text, settings=settings) for _ in range(2))
    yield as_list(query.run(events))
    session = query.open()
    yield as_list([m for event in events for m in session.push(event)] + session.close())
    rng, session, found = random.Random(seed), query.open(), []
    for part in harness.cut(events, rng):
        found += session.push(part)
        query, again = again, query
        session = query.open(session.snapshot())
    yield as_list(found + session.close())


@pytest.mark.parametrize("evaluator", EVALUATORS)
@pytest.mark.parametrize("n", [13, pytest.param(20, marks=pytest.mark.slow)])
def test_matches_without_an_automaton_are_those_of_the_definition(n: int, evaluator: str) -> None:
    window = n + n // 5
    for seed in range(some(2)):
        events = stream(n, 4 * n, seed)
        expected = defined(n, events, window)
        assert expected
        for found in on_every_road(f"SELECT * WHERE {formula(n)} WITHIN {window} EVENTS", events, evaluator, seed):
            assert found == expected


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_conditions_between_the_parts(evaluator: str) -> None:
    n, window = 14, 17

    def holds(events: list[dict[str, Any]]) -> bool:
        return bool(events[0]["v"] < events[5]["v"] and events[3]["v"] + events[4]["v"] != events[13]["v"])

    for seed in range(some(2)):
        events = stream(n, 6 * n, seed)
        expected = defined(n, events, window, holds)
        assert expected and expected != defined(n, events, window)
        text = f"SELECT * WHERE {formula(n)} FILTER t0.v < t5.v AND t3.v + t4.v != t13.v WITHIN {window} EVENTS"
        for found in on_every_road(text, events, evaluator, seed):
            assert found == expected


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_keys_and_what_stands_around(evaluator: str) -> None:
    """Conditions that become a key; AND behind another part; NOT behind it, at the end of the query."""
    n = 13
    events = [{**event, "id": 7} for event in stream(n, 3 * n, 1)]
    events.insert(0, {"type": "S", "k": "a", "v": 0, "time": -1, "id": 7})
    events.insert(9, {**events[8], "id": 8})
    own = [e for e in events if e["id"] == 7]
    window = n + 2
    equal = " AND ".join(f"t{i}.id = t{i + 1}.id" for i in range(n - 1))
    text = f"SELECT * WHERE {formula(n)} FILTER {equal} WITHIN {window} [time]"
    by_key = ceql.compile(text, settings=Settings(evaluator=evaluator))
    expected = defined(n, own[1:], window)
    assert by_key.partition == (("id",),) and by_key.run(events).count() == len(expected)
    behind = f"SELECT * WHERE S ; {formula(n)} WITHIN {window} EVENTS"
    expected = [(0, e + 1, (0, *(p + 1 for p in taken))) for _, e, taken in defined(n, own[1 : window + 1], window)]
    for found in on_every_road(behind, own, evaluator, 1):
        assert found == expected and found
    ending = f"SELECT * WHERE {formula(n)} ; NOT S WITHIN {window} SECONDS"
    query = ceql.compile(ending, settings=Settings(evaluator=evaluator))
    alone = query.run(own[1:]).count()
    assert alone and alone == ceql.compile(ending.replace(" ; NOT S", ""),
                                           settings=Settings(evaluator=evaluator)).run(own[1:]).count()  # fmt: skip
    assert query.run([*own[1 : n + 3], {**own[0], "time": n + 1}]).count() == 0


TWENTY = f"SELECT * WHERE {formula(20)} WITHIN 30 EVENTS"


def test_what_needs_the_automaton_says_so() -> None:
    events = stream(20, 20, 1)
    for text, evaluator, reason in (
        (TWENTY, "compact", "evaluators 'auto' and 'chain'"),
        (TWENTY + " LIMIT 1", None, "not consumption or LIMIT"),
        (TWENTY.replace("*", "NEXT *"), "auto", "not NEXT"),
        (TWENTY.replace("*", "NEXT *"), "chain", "not NEXT"),
        (TWENTY + " CONSUME BY ANY", "tree", "not consumption or LIMIT"),
        (f"SELECT * WHERE {formula(30)}", "auto", "a branch of 30 events"),
        (f"SELECT * WHERE {formula(13).replace(', ', ' -> X, ')}", "auto", "skip-till-next"),
    ):
        with pytest.raises(BudgetExceeded, match="conjunction_transitions is 30,000 transitions of AND") as caught:
            ceql.compile(text, settings=Settings(evaluator=evaluator))
        assert reason in caught.value.hint and caught.value.setting == "conjunction_transitions"
    query = ceql.compile(TWENTY, settings=Settings(evaluator="chain"))
    needs: tuple[Callable[[], Any], ...] = (
        lambda: query.automaton,
        lambda: query.explain("json"),
        lambda: list(query.alerts().run(events)),
        lambda: list(query.run(events, valuations=True)),
        lambda: ceql.compile(TWENTY.replace("*", "t0[v]"), settings=Settings(evaluator="chain")),
    )
    for need in needs:
        with pytest.raises(BudgetExceeded, match="conjunction_transitions"):
            need()


def test_explain_says_why_it_is_a_chain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query, events = tmp_path / "query.ceql", tmp_path / "events.jsonl"
    query.write_text(TWENTY)
    events.write_text("".join(f'{{"type": "T{i}"}}\n' for i in range(20)))
    assert cli.main(["explain", str(query), "--evaluator", "auto"]) == 0
    out = capsys.readouterr().out
    assert "evaluator: chain (no automaton: conjunction_transitions is 30,000 transitions of AND and" in out
    assert "branch 1, event 19: type = T19" in out
    arguments = ["--events", str(events), "--format", "count", "--evaluator", "auto", "--explain"]
    assert cli.main(["run", str(query), *arguments]) == 0
    told = capsys.readouterr()
    assert told.out.strip() == "1" and "evaluator: chain (no automaton" in told.err
    assert cli.main(["explain", str(query), "--evaluator", "compact"]) == 4
    assert "conjunction_transitions" in capsys.readouterr().err
    assert cli.main(["check", str(query)]) == 0 and ceql.compile(TWENTY).run(str(events)).count() == 1
    few = ceql.compile(f"SELECT * WHERE {formula(11)}", settings=Settings(evaluator="auto"))
    assert few.automaton.states == 2**11 - 1 and "evaluator: compact" in few.explain()


def test_a_snapshot_is_of_the_query_and_the_budget_that_it_was_taken_of() -> None:
    text = f"SELECT * WHERE {formula(6)}"
    chain = Settings(evaluator="chain", conjunction_transitions=10)
    session = ceql.compile(text, settings=chain).open()
    session.push([{"type": f"T{i}"} for i in range(5)])
    blob = session.snapshot()
    assert len(ceql.compile(text, settings=chain).open(blob).push({"type": "T5"})) == 1
    with pytest.raises(OptionError):
        ceql.compile(text.replace("T4", "T7"), settings=chain).open(blob)
    with pytest.raises(OptionError):
        ceql.compile(text, settings=Settings(evaluator="chain")).open(blob)
