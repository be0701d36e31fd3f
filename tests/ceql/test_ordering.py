"""ORDER BY: the order of the matches of each event, the first ones with LIMIT, and what does not go with it."""

from __future__ import annotations

import random
from typing import Any

import pytest

import ceql
from spaseq.core.errors import BudgetExceeded, EventError
from tests.support import drawn_ordered, harness

RISES = [
    *({"type": "A", "v": value} for value in (5, 1, None, 3)),
    {"type": "B", "v": 4},
]


def positions(text: str, events: Any) -> list[tuple[int, ...]]:
    return [match.positions for match in ceql.compile(text).run(events)]


@pytest.mark.parametrize(
    ("clauses", "first"),
    [
        ("ORDER BY B.v - A.v DESC LIMIT 3", [2, 1, 3]),
        ("ORDER BY B.v - A.v", [0, 3, 1, 2]),
        ("ORDER BY A.v LIMIT 2", [1, 3]),
        ("ORDER BY A.v IS NULL, A.v DESC", [0, 3, 1, 2]),
        ("ORDER BY COUNT(A)", [3, 2, 1, 0]),
        ("ORDER BY B.v LIMIT 0", []),
        ("LIMIT 1 ORDER BY COALESCE(A.v, 100) DESC", [2]),
    ],
)
def test_the_order_of_one_event(clauses: str, first: list[int]) -> None:
    assert positions(f"SELECT * WHERE A ; B {clauses}", RISES) == [(i, 4) for i in first]


@pytest.mark.parametrize(
    ("values", "order"),
    [
        (["b", "B", "é", "a"], [1, 3, 0, 2]),
        ([2**53 + 1, 2.0**53, 2**53, -1], [3, 2, 1, 0]),
        ([True, "x", 1, None], [2, 1, 0, 3]),
        ([[2, 1], [1, 9], [1], [None]], [2, 1, 0, 3]),
    ],
)
def test_values_of_all_kinds_have_an_order(values: list[Any], order: list[int]) -> None:
    events = [*({"type": "A", "v": value} for value in values), {"type": "B"}]
    assert [i for i, _ in positions("SELECT * WHERE A ; B ORDER BY A.v", events)] == order


def test_the_times_of_matches_are_keys() -> None:
    events = [{"type": "A", "time": f"2026-01-0{day}T00:00:00Z"} for day in (1, 2, 3)]
    events.append({"type": "B", "time": "2026-01-04T00:00:00Z"})
    text = "SELECT MATCH_END - MATCH_START AS took WHERE A ; B ORDER BY took DESC LIMIT 2"
    found = ceql.compile(text).run(events)
    assert [took.days for took in found.to_arrow()["took"].to_pylist()] == [3, 2]


def test_a_match_is_a_valuation_if_a_key_reads_variables() -> None:
    query = ceql.compile("SELECT * WHERE A AS a ; A AS b ORDER BY b.v")
    (match,) = query.run([{"type": "A", "v": 1}, {"type": "A", "v": 2}])
    assert match.bindings == {"a": [0], "b": [1]}


@pytest.mark.parametrize("seed", range(12))
def test_lists_are_in_order_on_each_road(seed: int) -> None:
    """Whole, cut and one by one, as the definition has them."""
    rng = random.Random(seed)
    cases = (drawn_ordered.ordered_case(rng) for _ in range(99))
    drawn = next(case for case in cases if not ceql.compile(case.text).compiled.named_streams)
    query, stream = ceql.compile(drawn.text), drawn.stream
    expected = drawn_ordered.matches(drawn)
    words: dict[str, Any] = {} if "time" in stream[0] else {"time_from": "arrival"}
    assert [(m.start, m.end, m.positions) for m in query.run(stream, **words)] == expected
    for cuts in (harness.cut(stream, random.Random(seed)), [[event] for event in stream]):
        with query.open(**words) as session:
            found = [match for part in cuts for match in session.push(part)]
        assert [(m.start, m.end, m.positions) for m in found] == expected


def test_matches_of_one_event_in_several_chunks() -> None:
    """The best of each chunk are compared with the best of those before."""
    events = [{"type": "A", "v": (i * 37) % 101} for i in range(100)] + [{"type": "B", "v": i} for i in range(3)]
    text = "SELECT * WHERE A AS a ; A AS b ; B ORDER BY a.v - b.v DESC, b.v"
    whole = positions(text, events)
    settings = ceql.Settings(output_bytes=1 << 16)
    query = ceql.compile(text + " LIMIT 3", settings=settings)
    parts = [whole[end * 4950 : end * 4950 + 3] for end in range(3)]
    assert [match.positions for match in query.run(events)] == [match for part in parts for match in part]
    assert query.run(events).count() == 9
    with pytest.raises(BudgetExceeded, match="output_bytes"):
        list(ceql.compile(text, settings=settings).run(events))


def test_a_key_that_cannot_be_computed() -> None:
    query = ceql.compile("SELECT * WHERE A ; B ORDER BY B.v - A.v")
    wrong = [{"type": "A", "v": "x"}, {"type": "A", "v": 1}, {"type": "B", "v": 2}]
    with pytest.raises(EventError, match="ORDER BY"):
        list(query.run(wrong))
    session = query.open()
    for event in wrong[:2]:
        session.push(event)
    with pytest.raises(EventError, match="ORDER BY"):
        session.push(wrong[2])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT a WHERE A AS a ; C AS c ORDER BY c.v", "ORDER BY names c, and SELECT leaves it out"),
        ("SELECT * WHERE A AS a ; B ORDER BY A.v", "so ORDER BY cannot name it"),
        ("SELECT * WHERE A ; B ORDER BY 1", "the same for every match"),
        ("SELECT * WHERE A ; B ORDER BY v", "whose v?"),
        ("SELECT * WHERE A ; B ORDER BY COLLECT(B.v)", "ORDER BY of a list"),
        ("SELECT * WHERE A ; B ORDER BY COUNT(*)", r"COUNT\(\*\) counts all"),
        ("SELECT * WHERE A ; B ORDER BY B[v > 3]", "ORDER BY takes no condition in brackets"),
        ("SELECT * WHERE A ; NOT B WITHIN 3 EVENTS ORDER BY A.v", "ORDER BY beside NOT at the end"),
        ("SELECT COUNT(*) AS n WHERE A ; B GROUP BY EVENT ORDER BY n", "ORDER BY sorts matches"),
        ("SELECT * WHERE A ; B ORDER BY B.v ORDER BY A.v", "a second ORDER BY clause"),
        ("SELECT * WHERE A ; B TOP 3 BY A.v", "ORDER BY x.price DESC LIMIT 3"),
        ("SELECT TOP 3 * WHERE A ; B", "ORDER BY x.price DESC LIMIT 3"),
        ("SELECT * WHERE A ; B ORDER BY B.v NULLS LAST", "NULL is the greatest value"),
        ("SELECT * ORDER BY A.v WHERE A ; B", "ORDER BY stands behind the formula"),
    ],
)
def test_refusals(text: str, said: str) -> None:
    with pytest.raises(ceql.QueryError, match=said):
        ceql.compile(text)


@pytest.mark.parametrize("word", ["order", "asc", "desc"])
def test_its_words_are_names_elsewhere(word: str) -> None:
    text = f"SELECT {word}.{word} AS {word} WHERE {word} ; B ORDER BY {word}.{word} DESC"
    found = ceql.compile(text).run([{"type": word, word: 1}, {"type": word, word: 2}, {"type": "B"}])
    assert [match.row for match in found] == [{word: 2}, {word: 1}]
