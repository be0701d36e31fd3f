"""The cache of deterministic states: its arrays grow by what is new, and it gives up where making states costs more
than it saves."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

import ceql
from ceql import Settings
from spaseq.core.automata import CEA, determinise
from spaseq.core.automata.determinise import PATIENCE, TURN, Cache, Tables

_MANY = "SELECT * WHERE (A OR B):+ : A : (A OR B) : (A OR B) : (A OR B) : (A OR B) WITHIN 7 EVENTS"
"""More deterministic states the longer it is: which of the last events were an A."""
_EVENTS = [{"type": random.Random(k).choice("AB")} for k in range(300)]


def _automaton() -> tuple[CEA, list[int]]:
    cea = ceql.compile(_MANY).automaton
    return cea, list(range(1 << len(cea.predicates)))


def _rows(tables: Tables) -> tuple[list[Counter[tuple[int, ...]]], ...]:
    """Of each class the rows of starts and of states, in any order."""
    pairs = ((tables.init_from, tables.init), (tables.affected_from, tables.affected))
    return tuple([Counter(map(tuple, rows[a:b].tolist())) for a, b in pairwise(at)]
                 for at, rows in pairs)  # fmt: skip


def _all_learnt(cache: Cache) -> None:
    while len(cache) > len(list(cache.learnt)):
        cache.learn(list(range(len(cache))))


def test_tables_that_grew_are_those_made_at_once() -> None:
    cea, vectors = _automaton()
    for seed in range(20):
        rng, grown = random.Random(seed), Cache(cea, 1 << 26)
        for classes in range(1, len(vectors) + 1):
            if rng.random() < 0.5 or classes == len(vectors):
                grown.add_classes(vectors[:classes])
            for _ in range(rng.randrange(3)):
                grown.learn(rng.sample(range(len(grown)), min(len(grown), 3)))
                if rng.random() < 0.7:
                    grown.tables()
        _all_learnt(grown)
        whole = Cache(cea, 1 << 26)
        whole.restore(grown.states)
        whole.add_classes(vectors)
        whole.learn(list(range(len(whole))))
        assert grown.states == whole.states and grown.memory_usage() == whole.memory_usage()
        assert _rows(grown.tables()) == _rows(whole.tables())
        assert grown.tables().known.all() and len(grown.tables().known) == len(grown)


def test_a_row_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often tables are asked for: each new state once made those of all states anew."""
    made, flat = 0, determinise._flat

    def counted(lists: Any, width: int) -> Any:
        nonlocal made
        made += sum(map(len, lists)) if width == 6 else 0
        return flat(lists, width)

    monkeypatch.setattr(determinise, "_flat", counted)
    cea, vectors = _automaton()
    cache = Cache(cea, 1 << 26)
    cache.add_classes(vectors)
    while len(cache) > len(list(cache.learnt)):
        cache.learn([min(set(range(len(cache))) - set(cache.learnt))])
        cache.tables()
    assert len(cache) > 15
    assert made <= len(cache.tables().affected)


@pytest.mark.parametrize(("events", "pays"), [(TURN, True), (TURN // 100, False)])
def test_a_cache_pays_while_its_states_are_used(events: int, pays: bool) -> None:
    """States made: `TURN` a turn; one live set at each of so many events."""
    cea, vectors = _automaton()
    cache = Cache(cea, 1 << 26)
    cache.add_classes(vectors)
    cache.pays(1, 0)
    told, position = [], 0
    for _ in range(PATIENCE):
        made = 0
        while made < TURN:
            _all_learnt(cache)
            made += len(cache)
            cache.clear([])
        position += events
        told.append(cache.pays(1, position))
    assert told == [True] * (PATIENCE - 1) + [pays]


@pytest.mark.parametrize("single", [False, True])
def test_what_does_not_pay_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, single: bool
) -> None:
    """Matches are the same; said once."""
    expected = [match.positions for match in ceql.compile(_MANY).open().push(_EVENTS)]
    query = ceql.compile(_MANY, settings=Settings(automaton_bytes=6_000))

    def found() -> tuple[list[Any], Any]:
        session = query.open()
        parts = [[event] for event in _EVENTS] if single else [_EVENTS]
        return [m.positions for part in parts for m in session.push(part)], session._run.evaluator

    matches, evaluator = found()
    assert matches == expected and evaluator.statistics["fell_back"] == 0 and evaluator.statistics["automaton_clears"]
    monkeypatch.setattr(determinise, "TURN", 16)
    monkeypatch.setattr(determinise, "WORTH", 0)
    matches, evaluator = found()
    assert matches == expected and evaluator.statistics["fell_back"] == 1
    assert [r.getMessage().count("hardly used, within automaton_bytes") for r in caplog.records] == [1]
