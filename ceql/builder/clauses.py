"""The clauses of a query: windows, keys, strategies, columns. A clause that is given again replaces the one before."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn

from ceql.builder.constants import article, check_name, constant, duration
from ceql.builder.names import resolve
from ceql.builder.values import Condition, Constant, Listing, Value, Variable, all_true, node_of, variable_of
from ceql.query import Matches, Query, compile_query
from ceql.syntax import ast
from ceql.syntax.printer import print_query
from spaseq.core.after import AfterText
from spaseq.core.engine import Settings
from spaseq.core.errors import OptionError, expect_count, named_query
from spaseq.core.slips import did_you_mean

NO_TRUTH: Final = "a pattern is neither true nor false: q.run(events) gives matches, and these are true if there is one"
_AFTER: Final = {rule.name.lower(): rule for rule in AfterText}
_WITH_VARIABLE: Final = (AfterText.TO_FIRST, AfterText.TO_LAST)
_BESIDE: Final = "f.price is of its last event, f.price.collect() lists those of all, f.count() is their number"


class Clauses(ABC):
    """The methods that patterns and queries share: those that give a query, and those that compile it."""

    @abstractmethod
    def __tree__(self) -> ast.Query:
        """The query, with marks for names."""

    @property
    def tree(self) -> ast.Query:
        """The syntax tree. Raises `OptionError` if a condition names an event that is no part of the pattern."""
        with named_query("<query>"):
            return resolve(self.__tree__(), strict=True)

    def __ceql__(self) -> str:
        """The text, for everything that takes the text of a query."""
        with named_query("<query>"):
            return print_query(self.tree)

    def __str__(self) -> str:
        with named_query("<query>"):
            return print_query(resolve(self.__tree__(), strict=False))

    def __bool__(self) -> NoReturn:
        raise TypeError(NO_TRUTH)

    def _with(self, **clauses: Any) -> PatternQuery:
        return PatternQuery(replace(self.__tree__(), **clauses))

    def select(
        self, /, *shown: Variable | Listing | Value | Condition | None, **columns: Value | Condition | Constant
    ) -> PatternQuery:
        """The result: the events of variables, or a column for each value.

        `select(f, ok)` shows the events of f and ok, `select(f[["price", "name"]])` with these attributes, and
        `select(None)` no events, only the interval. `select(user=f.user, failures=f.count())` computes columns. Values
        without a name, or with one by `alias`, stand before them.
        """
        chosen = self.__tree__().selection.strategy
        if len(shown) == 1 and shown[0] is None and not columns:
            return self._with(selection=ast.Selection(chosen, ()))
        if not shown and not columns:
            raise OptionError("select shows one thing or more", "select(None) shows no events, only the interval")
        if not columns and all(isinstance(each, Variable | Listing) for each in shown):
            return self._with(selection=ast.Selection(chosen, tuple(map(_selected_item, shown))))
        found = (*map(_column, shown), *(_column(value, name) for name, value in columns.items()))
        return self._with(selection=ast.Selection(chosen, None, found))

    def keep(self, strategy: str) -> PatternQuery:
        """The strategy: "all", "any", "next", "last", "max", "strict" or "first" of the matches with one end."""
        word = _word("keep", strategy, {each.value.lower(): each for each in ast.Strategy})
        return self._with(selection=replace(self.__tree__().selection, strategy=word))

    def streams(self, *names: str) -> PatternQuery:
        """FROM: the streams that are merged, in their order."""
        return self._with(streams=tuple(ast.Name(check_name("a stream", name)) for name in names))

    def over(self, *keys: str | list[str] | tuple[str, ...]) -> PatternQuery:
        """PARTITION BY: attributes that all events of a match have in common. A list is alternatives: the first of
        them that an event has."""
        brackets = []
        for each in keys:
            names = list(each) if isinstance(each, list | tuple) else [each]
            if not names or not all(isinstance(name, str) for name in names):
                found = next((article(name) for name in names if not isinstance(name, str)), "an empty list")
                raise OptionError(f"over takes names of attributes, and this is {found}", "over('user', 'shop')")
            brackets.append(tuple(ast.Name(check_name("a key", name)) for name in names))
        return self._with(partition=tuple(brackets))

    def within(
        self,
        size: str | datetime.timedelta | int | float | None = None,
        attribute: str | None = None,
        *,
        events: int | None = None,
    ) -> PatternQuery:
        """WITHIN: the window. `within("1m")` and `within(timedelta(minutes=1))` are of time, `within(events=10)` of
        events, `within(100, "ts")` of an attribute."""
        if (size is None) is (events is None) or (attribute is not None and size is None):
            raise OptionError("within takes one window", "within('1m'), within(events=10), or within(100, 'ts')")
        window: ast.Within
        if events is not None:
            expect_count("within(events=…)", events)
            window = ast.WithinEvents(events)
        elif attribute is not None:
            number = None if isinstance(size, str) else constant(size)
            if not isinstance(number, ast.Number) or number.value < 0:
                raise OptionError(f"a window of an attribute is a number, 0 or more: {size!r}", "within(100, 'ts')")
            window = ast.WithinAttribute(number.value, ast.Name(check_name("the attribute of a window", attribute)))
        elif isinstance(size, int | float):
            hint = f"within('{size}s') is of time, within(events={size}) of events, within({size}, 'ts') of ts"
            raise OptionError(f"within({size}) has no unit", hint)
        else:
            window = ast.WithinTime(duration("a window", size))
        return self._with(within=window)

    def consume(self, policy: str) -> PatternQuery:
        """CONSUME BY: the partial matches that a match deletes: "any", those of its "partition", or "none"."""
        policies = {each.value.lower(): each for each in ast.Consume}
        return self._with(consume=ast.Consumption(_word("consume", policy, policies)))

    def order_by(
        self, *keys: Value | Condition, descending: bool | list[bool] | tuple[bool, ...] = False
    ) -> PatternQuery:
        """ORDER BY: the order of the matches that end at one event. `descending`: true for the greatest first, or that
        of each key."""
        ways = list(descending) if isinstance(descending, list | tuple) else [descending] * len(keys)
        if not keys or len(ways) != len(keys) or not all(isinstance(way, bool) for way in ways):
            hint = "order_by(b.price - a.price, a.time, descending=[True, False])"
            raise OptionError("order_by takes values, and descending is True or False, or has one for each", hint)
        found = (ast.Key(_column(key).expression, way) for key, way in zip(keys, ways, strict=True))
        return self._with(order=ast.Order(tuple(found)))

    def limit(self, count: int) -> PatternQuery:
        """LIMIT: at most so many matches for each event at which matches end, the first of `order_by`."""
        expect_count("limit", count)
        return self._with(limit=ast.Limit(count))

    def group_by(self, *by: str | datetime.timedelta) -> PatternQuery:
        """GROUP BY: a row for all matches that end at one "event", for each "key" of `over`, or for each stretch of
        time, as "1h"; `match_count` is their number."""
        words = {word for word in by if isinstance(word, str) and word in ("event", "key")}
        lengths = [each for each in by if not isinstance(each, str) or each not in words]
        if not by or len(words) + len(lengths) < len(by) or len(lengths) > 1:
            hint = "group_by('event'), group_by('key'), group_by('1h'), or group_by('key', '1h')"
            raise OptionError("group_by takes each kind of group once", hint)
        length = duration("a group of group_by", lengths[0]) if lengths else None
        if length == 0:
            raise OptionError("no match ends within no time", "group_by('1h') has a row for each hour")
        return self._with(grouping=ast.Grouping("event" in words, "key" in words, length))

    def after_match(self, rule: str, variable: Variable | None = None) -> PatternQuery:
        """AFTER MATCH: what a match discards: "past_last", "to_next" or "no_skip", or "to_first" or "to_last" with a
        variable."""
        found = _word("after_match", rule, _AFTER)
        if (found in _WITH_VARIABLE) is (variable is None):
            hint = "after_match('to_last', x), and after_match('past_last')"
            raise OptionError(f"after_match('{rule}') is {'of a' if variable is None else 'of no'} variable", hint)
        if variable is None:
            return self._with(after=ast.AfterMatch(found))
        if not isinstance(variable, Variable):
            raise OptionError(f"after_match is of a variable, and this is {article(variable)}", "x = event('A')")
        return self._with(after=ast.AfterMatch(found, ast.Name(variable_of(variable))))

    def compile(self, *, source: str = "<query>", settings: Settings | None = None) -> Query:
        """`ceql.compile` of this query."""
        return compile_query(self, source, settings)

    def run(self, events: Any = None, **words: Any) -> Matches:
        """The matches over events: `compile().run(events, …)`."""
        return self.compile().run(events, **words)


@dataclass(frozen=True, repr=False)
class PatternQuery(Clauses):
    """A pattern with clauses: a query. It is equal to another one if its tree is."""

    _tree: ast.Query

    def __tree__(self) -> ast.Query:
        return self._tree

    def __repr__(self) -> str:
        try:
            return f"<PatternQuery {' '.join(str(self).splitlines())}>"
        except OptionError as error:
            return f"<PatternQuery: {error.problem}>"

    def where(self, *conditions: Condition | Value) -> PatternQuery:
        """FILTER: the matches of which all conditions are true."""
        return self._with(where=ast.Filter(self._tree.where, all_true(conditions)))


def _word(what: str, given: Any, words: dict[str, Any]) -> Any:
    if isinstance(given, str) and given.strip().lower().replace(" ", "_") in words:
        return words[given.strip().lower().replace(" ", "_")]
    hint = did_you_mean(str(given), words)
    raise OptionError(f"{what} takes one of {', '.join(words)}, and this is {given!r}", hint)


def _selected_item(shown: Any) -> ast.Selected:
    if isinstance(shown, Listing):
        return ast.Selected(shown.variable, tuple(map(ast.Name, shown.attributes)))
    return ast.Selected(variable_of(shown))


def _column(value: Any, name: str | None = None) -> ast.Column:
    if isinstance(value, Variable | Listing):
        raise OptionError("select shows events or computes columns, and this is one beside the other", _BESIDE)
    if isinstance(value, Clauses) or (name is None and not isinstance(value, Value | Condition)):
        hint = "select(user=f.user, failures=f.count()), or key('user') for a key of over"
        raise OptionError(f"select takes values, and this is {article(value)}", hint)
    title = name if name is not None else value.column_name
    node = value.tree if isinstance(value, Condition) else ast.Null() if value is None else node_of(value, "a column")
    return ast.Column(node, None if title is None else ast.Name(check_name("the name of a column", title)))
