"""`x IN {…}` is x = each of them, however many: in batches, in pushed events and in conditions over several events."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pytest

import ceql
from ceql.syntax import ast
from ceql.syntax.parse import parse
from spaseq.core.errors import EventError

_NUMBERS = (0, 1, 2, -3, 1.5, 2.0, 2**53, 2**53 + 1, float(2**53), -(2**63), 2**63 - 1, 1e300)
_TIMES = tuple(datetime.datetime(2024, 1, day) for day in (1, 2, 3))
_KINDS: dict[str, tuple[tuple[Any, ...], tuple[str, ...]]] = {
    "whole": (tuple(v for v in _NUMBERS if isinstance(v, int)), tuple(map(repr, _NUMBERS))),
    "double": ((*(v for v in _NUMBERS if isinstance(v, float)), float("nan")), tuple(map(repr, _NUMBERS))),
    "text": (("a", "b", "it's", ""), ("'a'", "'c'", "'it''s'", "''")),
    "truth": ((True, False), ("TRUE", "FALSE")),
    "time": (_TIMES, ("'2024-01-01'", "'2024-01-02T00:00:00Z'", "'2024-01-04'")),
}


def _matched(condition: str, values: list[Any]) -> list[list[int]]:
    """At which values the condition holds: of a batch, of single pushes, and where it is one over two events."""
    events = [{"type": "A", "v": v} for v in values]
    query = ceql.compile(f"SELECT * WHERE A AS a FILTER a[{condition}]")
    with query.open() as session:
        pushed = [m.start for event in events for m in session.push(event)]
    both = condition.replace("v ", "a.v ")
    pairs = ceql.compile(f"SELECT * WHERE Z AS z ; A AS a FILTER {both} OR a.w > z.w", settings=_ONE)
    guarded = [m.end - 1 for m in pairs.run([{"type": "Z", "w": 9}, *events])]
    return [sorted(m.start for m in query.run(events)), sorted(pushed), sorted(guarded)]


_ONE = ceql.Settings(filter_alternatives=1)


@pytest.mark.parametrize("kind", _KINDS)
def test_in_is_an_or_of_equalities(kind: str) -> None:
    rng = random.Random(kind)
    values, texts = _KINDS[kind]
    for _ in range(6):
        items = [rng.choice(texts) for _ in range(rng.randint(1, 4))]
        stream = [rng.choice((*values, None)) for _ in range(8)]
        equalities = " OR ".join(f"v = {item}" for item in items)
        found = _matched(f"v IN {{{', '.join(items)}}}", stream)
        assert found == _matched(f"({equalities})", stream), (items, stream)
        assert found[0] == found[1] == found[2]
        assert _matched(f"v NOT IN {{{', '.join(items)}}}", stream) == _matched(f"NOT ({equalities})", stream)


def test_kinds_that_do_not_go_together_are_named() -> None:
    for items, value in (("'a', 'b'", 1), ("1, 2", "a"), ("1, 'a'", 1), ("TRUE", 1)):
        query = ceql.compile(f"SELECT * WHERE A AS a FILTER a[v IN {{{items}}}]")
        with pytest.raises(EventError, match="cannot be combined"):
            query.run([{"type": "A", "v": value}]).count()
        with query.open() as session, pytest.raises(EventError, match="cannot be combined"):
            session.push({"type": "A", "v": value})


def _items(text: str) -> Any:
    formula = parse(text).where
    assert isinstance(formula, ast.Filter) and isinstance(formula.condition, ast.Holds)
    assert isinstance(formula.condition.condition, ast.In)
    return formula.condition.condition.items


def test_a_long_set_reads_like_a_short_one() -> None:
    """A comment keeps a set from being read as one token."""
    parts = ["1", "- 2", "-2.5e3", "'it''s'", '"say ""x"""', ".5", "''"] * 10
    long, slow = ", ".join(parts), "  ,".join(parts[:-1]) + "  , /**/ " + parts[-1]
    one, other = (
        _items(f"SELECT * WHERE A FILTER A[v IN {{\n{long} }}]"),
        _items(f"SELECT * WHERE A FILTER A[v IN {{{slow}}}]"),
    )
    assert one == other and len(one) == 70
    assert (one[3].span.line, one[3].span.column) == (2, 17) and other[0].span.column == 33


@pytest.mark.parametrize("wrong", ["1 2", "1,, 2", "x", "1..5", "1e999", "2x", "'a"])
def test_what_is_wrong_in_a_long_set_has_its_place(wrong: str) -> None:
    text = f"SELECT * WHERE A FILTER A[v IN {{{'1, ' * 40}{wrong}}}]"
    with pytest.raises(ceql.QueryError) as caught:
        ceql.compile(text)
    assert caught.value.span is not None and caught.value.span.column > 130


def test_thousands_of_values_contradict_each_other_or_not() -> None:
    even, odd = ("{" + ", ".join(str(2 * i + odd) for i in range(20_000)) + "}" for odd in (0, 1))
    assert ceql.compile(f"SELECT * WHERE A FILTER A[v IN {even} AND v IN {odd}]").warnings
    assert ceql.compile(f"SELECT * WHERE A FILTER A[v IN {even} AND v NOT IN {even}]").warnings
    query = ceql.compile(f"SELECT * WHERE A FILTER A[v IN {even} AND v NOT IN {odd}]")
    assert not query.warnings
    assert query.run([{"type": "A", "v": v} for v in (4, 5, 40_000)]).count() == 1
