"""The text of a pattern or a query as a value of this package, to be composed with others."""

from __future__ import annotations

import re
from typing import Final

from ceql.builder.clauses import PatternQuery
from ceql.builder.patterns import Pattern
from ceql.syntax.parse import parse as parse_text
from spaseq.core.errors import OptionError, expect_type, named_query

_QUERY: Final = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*SELECT\b", re.IGNORECASE | re.DOTALL)
_AROUND: Final = "SELECT * WHERE "


def pattern(text: str) -> Pattern:
    """A pattern that is written in CEQL, without SELECT and clauses: `pattern("A ; B+ AS b FILTER b.price > 3")`.

    Its variables have the names that they have in the text: `pattern(…).variable("b")`. Raises `QuerySyntaxError`.

    >>> falling = pattern("(T AS p FILTER p.price < PREV(p.price)):+")
    >>> print(falling.within(events=5))
    SELECT *
    WHERE (T AS p FILTER p.price < PREV(p.price)):+
    WITHIN 5 EVENTS
    """
    expect_type("a pattern", text, str, "pattern('A ; B')")
    if _QUERY.match(text):
        raise OptionError("this is the text of a whole query", "ceql.parse(text) reads it")
    tree = parse_text(_AROUND + text)
    if tree != Pattern(tree.where).__tree__():
        raise OptionError("this pattern has clauses", f"leave them out, or write ceql.parse('{_AROUND}…')")
    return Pattern(tree.where)


def parse(text: str, *, source: str = "<query>") -> PatternQuery:
    """A query that is written in CEQL, as a value: `parse("SELECT * WHERE A ; B").within("1m")`.

    Raises `QuerySyntaxError`; what a query means is checked when it is compiled.
    """
    expect_type("a query", text, str, "ceql.parse('SELECT * WHERE A ; B')")
    with named_query(source):
        return PatternQuery(parse_text(text, source))
