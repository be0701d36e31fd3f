"""Attributes of events, expressions and conditions.

`f.user` of an event f is a `Value`. Its operators and methods give values and conditions, never answers: `f.price > 3`
is a `Condition`, which has no truth value of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NoReturn, overload

from ceql.builder.constants import Constant, article, check_name, check_text, constant, elements
from ceql.builder.names import show_expression
from ceql.operators.functions import FUNCTIONS
from ceql.syntax import ast
from ceql.syntax.printer import print_expression
from ceql.syntax.walk import parts, with_variables
from spaseq.core.errors import OptionError
from spaseq.core.slips import did_you_mean

_NO_TRUTH: Final = (
    "a condition is true or false of events, not now: join conditions with & | ~, each in parentheses, "
    "and write x.price.between(1, 5) for 1 <= x.price <= 5, x.price.is_in([1, 2]) for `in`"
)
_PARENTHESES: Final = "each comparison beside & and | stands in parentheses: (x.price > 3) & (y.price < 5)"


class Operators:
    """The operators of values."""

    tree: ast.Expression

    def __add__(self, other: Value | Constant) -> Value:
        return _compute("+", self, other)

    def __radd__(self, other: Value | Constant) -> Value:
        return _compute("+", other, self)

    def __sub__(self, other: Value | Constant) -> Value:
        return _compute("-", self, other)

    def __rsub__(self, other: Value | Constant) -> Value:
        return _compute("-", other, self)

    def __mul__(self, other: Value | Constant) -> Value:
        return _compute("*", self, other)

    def __rmul__(self, other: Value | Constant) -> Value:
        return _compute("*", other, self)

    def __truediv__(self, other: Value | Constant) -> Value:
        return _compute("/", self, other)

    def __rtruediv__(self, other: Value | Constant) -> Value:
        return _compute("/", other, self)

    def __mod__(self, other: Value | Constant) -> Value:
        return _compute("%", self, other)

    def __rmod__(self, other: Value | Constant) -> Value:
        return _compute("%", other, self)

    def __neg__(self) -> Value:
        return Value(ast.Negate(self.tree))

    def __pos__(self) -> Value:
        return Value(self.tree)

    def __eq__(self, other: Value | Constant | Elements) -> Condition:  # type: ignore[override]
        return _compare("=", self, other)

    def __ne__(self, other: Value | Constant | Elements) -> Condition:  # type: ignore[override]
        return _compare("!=", self, other)

    def __lt__(self, other: Value | Constant | Elements) -> Condition:
        return _compare("<", self, other)

    def __le__(self, other: Value | Constant | Elements) -> Condition:
        return _compare("<=", self, other)

    def __gt__(self, other: Value | Constant | Elements) -> Condition:
        return _compare(">", self, other)

    def __ge__(self, other: Value | Constant | Elements) -> Condition:
        return _compare(">=", self, other)

    def __and__(self, other: Value | Condition) -> Condition:
        return condition_of(self) & other

    def __or__(self, other: Value | Condition) -> Condition:
        return condition_of(self) | other

    def __invert__(self) -> Condition:
        return ~condition_of(self)

    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise TypeError(_NO_TRUTH)

    if not TYPE_CHECKING:

        def __rand__(self, other):
            raise TypeError(f"{other!r} & {self!r}: {_PARENTHESES}")

        def __ror__(self, other):
            raise TypeError(f"{other!r} | {self!r}: {_PARENTHESES}")

        __array_ufunc__ = None
        """numpy leaves operators with its numbers to this class."""

        def __call__(self, *arguments, **words):
            methods = {name for kind in Variable.__subclasses__() for name in dir(kind) if not name.startswith("_")}
            name = self.tree.name if isinstance(self.tree, ast.Attribute) else ""
            hint = did_you_mean(name, methods) or f"the methods of an event are {', '.join(sorted(methods))}"
            raise TypeError(f"{self} is a value, and no method\nhint: {hint}")

        def __getattr__(self, name):
            _refuse_hidden(name)
            methods = [each for each in dir(Value) if not each.startswith("_")]
            hint = (
                did_you_mean(name, methods) or "an attribute of an event with a dot in its name is event['user.name']"
            )
            raise AttributeError(f"{self} is a value, and has no {name}\nhint: {hint}")

        def __iter__(self):
            raise TypeError("a value is one of each event: x.price.collect() is the list of those of a match")


@dataclass(frozen=True, eq=False, repr=False)
class Value(Operators):
    """An expression: an attribute of an event, or something computed of attributes.

    Operators are `+ - * / %`, the comparisons, and `& | ~` between conditions. Constants are numbers, texts, truth
    values, datetimes, dates and timedeltas. `tree` is its syntax tree.
    """

    tree: ast.Expression
    column_name: str | None = None
    """The name of the column that it is in SELECT, by `alias`."""

    def __str__(self) -> str:
        return print_expression(show_expression(self.tree))

    def __repr__(self) -> str:
        return f"<Value {self}>"

    def alias(self, name: str) -> Value:
        """The same as a column of that name, for `select`."""
        return Value(self.tree, check_name("the name of a column", name))

    # Conditions

    def is_in(self, values: Any) -> Condition:
        """True for one of the constants of a list, `IN {…}`, or for an element of an attribute that is a list."""
        if isinstance(values, Value):
            return _true(ast.Call("MEMBER", (self.tree, values.tree)))
        members = [node_of(element, "an element of is_in") for element in elements(values)]
        if not members:
            raise OptionError("is_in takes a list of one constant or more", "leave the condition out")
        if all(isinstance(member, ast.CONSTANTS) for member in members):
            return Condition(ast.In(self.tree, tuple(members)))
        same: list[ast.Condition] = [ast.Compare("=", self.tree, member) for member in members]
        return Condition(_join(ast.Or, same))

    def not_in(self, values: Any) -> Condition:
        """The negation of `is_in`."""
        return ~self.is_in(values)

    def between(self, low: Value | Constant | None, high: Value | Constant | None) -> Condition:
        """True from `low` to `high`, both included; None is no bound."""
        least, most = (None if side is None else node_of(side, "a bound of between") for side in (low, high))
        if least is None and most is None:
            raise OptionError("between has no bounds", "x.price.between(1, 5), or between(1, None)")
        if (least is None or most is None) and not isinstance(least or most, ast.CONSTANTS):
            return self >= Value(least) if least is not None else self <= as_value(high)
        return Condition(ast.InRange(self.tree, least, most))

    def like(self, regex: str) -> Condition:
        """True if the whole text matches a regular expression (RE2): `.*` is any text, and `%` is no wildcard."""
        return Condition(ast.Like(self.tree, check_text("a regular expression", regex)))

    def ilike(self, regex: str) -> Condition:
        """The same as `like`, without telling capitals from other letters."""
        return Condition(ast.Like(self.tree, "(?i)" + check_text("a regular expression", regex)))

    def is_null(self) -> Condition:
        """True if the event lacks the attribute, or the value is not known."""
        return Condition(ast.IsNull(self.tree))

    def is_not_null(self) -> Condition:
        """The negation of `is_null`."""
        return Condition(ast.Not(ast.IsNull(self.tree)))

    # Lists

    def any(self) -> Elements:
        """Any element of an attribute that is a list: `x.item == y.basket.any()`."""
        return Elements(self.tree, "ANY")

    def all(self) -> Elements:
        """All elements of an attribute that is a list: `x.price > y.prices.all()`."""
        return Elements(self.tree, "ALL")

    # Kinds

    def cast(self, kind: str) -> Value:
        """The value as one of another kind: NUMBER, INTEGER, TEXT, BOOLEAN or TIMESTAMP. An error if there is none."""
        return function("CAST", self, kind)

    def try_cast(self, kind: str) -> Value:
        """The value as one of another kind; NULL if there is none."""
        return function("TRY_CAST", self, kind)

    # Aggregates

    def count(self) -> Value:
        """The number of values of all events that the variable took."""
        return function("COUNT", self)

    def count_distinct(self) -> Value:
        """The number of different values."""
        return Value(ast.Call("COUNT DISTINCT", (self.tree,)))

    def sum(self) -> Value:
        """The sum over all events that the variable took."""
        return function("SUM", self)

    def avg(self) -> Value:
        """The mean."""
        return function("AVG", self)

    def min(self) -> Value:
        """The least value."""
        return function("MIN", self)

    def max(self) -> Value:
        """The greatest value."""
        return function("MAX", self)

    def stddev(self) -> Value:
        """The standard deviation."""
        return function("STDDEV", self)

    def first(self) -> Value:
        """The value of the first event."""
        return function("FIRST", self)

    def last(self) -> Value:
        """The value of the last event."""
        return function("LAST", self)

    def collect(self) -> Value:
        """The list of all values, NULLs among them; for `select`."""
        return function("COLLECT", self)

    def corr(self, other: Value) -> Value:
        """Pearson's correlation of two attributes that are lists."""
        return function("CORR", self, other)


@dataclass(frozen=True, eq=False, repr=False)
class Condition:
    """True, false or unknown of events: `f.price > 3`. Conditions are joined by `&`, `|` and `~`.

    `tree` is its syntax tree. As a column of `select` it is TRUE, FALSE or NULL.
    """

    tree: ast.Condition
    column_name: str | None = None
    """The name of the column that it is in SELECT, by `alias`."""

    def __str__(self) -> str:
        return print_expression(show_expression(self.tree))

    def __repr__(self) -> str:
        return f"<Condition {self}>"

    def alias(self, name: str) -> Condition:
        """The same as a column of that name, for `select`."""
        return Condition(self.tree, check_name("the name of a column", name))

    def __and__(self, other: Value | Condition) -> Condition:
        return Condition(ast.And(self.tree, condition_of(other).tree))

    def __or__(self, other: Value | Condition) -> Condition:
        return Condition(ast.Or(self.tree, condition_of(other).tree))

    def __invert__(self) -> Condition:
        return Condition(ast.Not(self.tree))

    def __bool__(self) -> NoReturn:
        raise TypeError(_NO_TRUTH)

    __hash__ = object.__hash__

    if not TYPE_CHECKING:

        def __eq__(self, other):
            raise TypeError(f"({self}) == …: a condition is compared with nothing; ~condition is true if it is false")

        def __rand__(self, other):
            raise TypeError(f"{other!r} & ({self}): {_PARENTHESES}")

        def __ror__(self, other):
            raise TypeError(f"{other!r} | ({self}): {_PARENTHESES}")


@dataclass(frozen=True, eq=False)
class Elements:
    """The elements of a list, any or all of them: one side of a comparison."""

    tree: ast.Expression
    quantifier: str

    def __repr__(self) -> str:
        return f"<{self.quantifier} of {Value(self.tree)}>"

    if not TYPE_CHECKING:
        __hash__ = object.__hash__

        def __eq__(self, other):
            return _compare("=", as_value(other), self)

        def __ne__(self, other):
            return _compare("!=", as_value(other), self)

        def __lt__(self, other):
            return _compare(">", as_value(other), self)

        def __le__(self, other):
            return _compare(">=", as_value(other), self)

        def __gt__(self, other):
            return _compare("<", as_value(other), self)

        def __ge__(self, other):
            return _compare("<=", as_value(other), self)


@dataclass(frozen=True)
class Earlier:
    """An event that a variable took before the event at hand; its attributes are values."""

    _variable: str
    _back: int

    def __getattr__(self, name: str) -> Value:
        _refuse_hidden(name)
        return self[name]

    def __getitem__(self, name: str) -> Value:
        attribute = ast.Attribute(check_name("an attribute", name), self._variable)
        return Value(ast.Earlier(attribute, self._back))


@dataclass(frozen=True)
class Listing:
    """A variable with the attributes to show, in `select`."""

    variable: str
    attributes: tuple[str, ...]


class Variable:
    """The events that a part of a pattern takes. `f.user` and `f["user name"]` are attributes of them.

    A method has the name that an attribute may have, too: that attribute is `f["count"]`.
    """

    _variable: str

    def __getattr__(self, name: str) -> Value:
        _refuse_hidden(name)
        return Value(ast.Attribute(check_name("an attribute", name), self._variable))

    @overload
    def __getitem__(self, name: str) -> Value: ...

    @overload
    def __getitem__(self, name: int) -> Earlier: ...

    @overload
    def __getitem__(self, name: list[str]) -> Listing: ...

    def __getitem__(self, name: str | int | list[str]) -> Value | Earlier | Listing:
        if isinstance(name, str):
            return Value(ast.Attribute(check_name("an attribute", name), self._variable))
        if type(name) is int and name == 0:
            return Earlier(self._variable, 0)
        if isinstance(name, list) and name:
            return Listing(self._variable, tuple(check_name("an attribute", each) for each in name))
        hint = "f['user name'] is an attribute, f[0].price that of the first event, f[['a', 'b']] two attributes"
        raise OptionError(f"[{name!r}] is no part of an event", hint)

    def count(self) -> Value:
        """The number of events that it took."""
        return Value(ast.Call("COUNT", (ast.Variable(self._variable),)))

    def each(self, *conditions: Condition | Value) -> Condition:
        """True if each event of the variable satisfies the conditions, `b[v < 1 OR v > 3]`.

        Without `each`, an OR around a loop is of two conditions on all events: `b.v < 1` for all, or `b.v > 3` for all.
        """
        inner = all_true(conditions)
        if any(isinstance(part, ast.Holds | ast.Variable) for part in parts(inner)):
            raise OptionError("each within each, or the count of events within it", "b.count() > 2 stands outside")
        own = self._variable
        bare = with_variables(inner, lambda name: None if name == own else name)
        return Condition(ast.Holds(ast.Name(own), bare))

    def prev(self, back: int = 1) -> Earlier:
        """The event that it took before the one at hand, or `back` events before: `f.price < f.prev().price`."""
        if type(back) is not int or not 0 < back <= ast.MOST_BACK:
            hint = "prev() is the event before, prev(2) the one before that, and f[0] the first"
            raise OptionError(f"prev takes a number from 1 to {ast.MOST_BACK}, and this is {back!r}", hint)
        return Earlier(self._variable, back)

    if not TYPE_CHECKING:

        def __iter__(self):
            raise TypeError("the events of a variable are those of a match: x.price.collect() lists their prices")

        def __contains__(self, other):
            raise TypeError("the events of a variable are those of a match: x.price.is_in([1, 2]) is a condition")


@dataclass(frozen=True)
class Named(Variable):
    """A variable of a pattern that was a text."""

    _variable: str


def variable_of(given: Variable) -> str:
    """The mark or the name of a variable."""
    return given._variable


def _refuse_hidden(name: str) -> None:
    if name.startswith("_"):
        raise AttributeError(f"attributes that begin with _ are written in brackets: event[{name!r}]")


class Functions:
    """The functions of CEQL, those of `ceql.register_function` among them: `fn.lower(f.name)` is `LOWER(fail.name)`."""

    def __getattr__(self, name: str) -> Callable[..., Value]:
        if name.startswith("_"):
            raise AttributeError(name)
        row = name.upper()
        if row not in FUNCTIONS or not row.isidentifier():
            hint = _ELSEWHERE.get(row) or did_you_mean(row, (n for n in FUNCTIONS if n.isidentifier()), "fn.{}")
            raise OptionError(f"unknown function {row}", hint.lower() if hint.startswith("did") else hint)
        return lambda *arguments: function(row, *arguments)

    def __dir__(self) -> list[str]:
        return sorted(name.lower() for name in FUNCTIONS if name.isidentifier())


_ELSEWHERE: Final = {
    "PREV": "x.prev().price", "ANY": "x.price == y.prices.any()", "ALL": "x.price > y.prices.all()",
    "IF": "when(x.price > 3).then('dear').otherwise('cheap')", "IN": "x.price.is_in([1, 2])",
    "COUNT_DISTINCT": "x.price.count_distinct()",
}  # fmt: skip


def function(name: str, *arguments: Any) -> Value:
    """The call of a function of the table."""
    nodes = [
        ast.Variable(variable_of(argument)) if isinstance(argument, Variable) and name == "COUNT"
        else ast.Null() if argument is None else node_of(argument, f"an argument of {name}")
        for argument in arguments
    ]  # fmt: skip
    if FUNCTIONS[name].gives == "cast" and isinstance(nodes[-1], ast.Text):
        nodes[-1] = ast.Text(nodes[-1].value.upper())
    return Value(ast.Call(name, tuple(nodes)))


@dataclass(frozen=True)
class When:
    """A condition of a choice that has no result yet: `.then(…)` gives it."""

    case: ast.Case
    condition: ast.Condition

    def then(self, result: Value | Constant | None) -> Choice:
        """The result if the condition is true, and none before it."""
        found = ast.Null() if result is None else node_of(result, "a result of when")
        case = self.case
        return Choice(ast.Case((*case.conditions, self.condition), (*case.results, found)))


@dataclass(frozen=True, eq=False, repr=False)
class Choice(Value):
    """`CASE WHEN … THEN … END`, a value; NULL if no condition is true."""

    def when(self, condition: Value | Condition) -> When:
        """One more condition, for what none before is true of."""
        assert isinstance(self.tree, ast.Case)
        return When(self.tree, condition_of(condition).tree)

    def otherwise(self, result: Value | Constant | None) -> Value:
        """The result if no condition is true."""
        assert isinstance(self.tree, ast.Case)
        found = ast.Null() if result is None else node_of(result, "the result of otherwise")
        return Value(replace(self.tree, otherwise=found))


def when(condition: Value | Condition) -> When:
    """A choice: `when(f.price > 9).then("dear").otherwise("cheap")` is `CASE WHEN … THEN … ELSE … END`."""
    return When(ast.Case((), ()), condition_of(condition).tree)


def lit(constant: Constant | None) -> Value:
    """A constant as a value: `lit(1) + 1`. Beside a value, in `then` and in `select` constants need no `lit`."""
    return Value(ast.Null() if constant is None else node_of(constant, "a constant"))


def key(name: str) -> Value:
    """An attribute of PARTITION BY in `select`: all events of a match have it, so it is of no variable."""
    return Value(ast.Attribute(check_name("a key", name)))


fn: Final = Functions()
"""The functions of CEQL: `fn.lower(f.name)`."""
match_start: Final = Value(ast.Attribute("MATCH_START"))
"""The time of the event at which a match starts, in `select`."""
match_end: Final = Value(ast.Attribute("MATCH_END"))
"""The time of the event at which a match ends, in `select`."""
match_count: Final = Value(ast.Call("COUNT", (ast.EveryMatch(),)))
"""The number of the matches of a group, in `select` with `group_by`."""
group_start: Final = Value(ast.Attribute("GROUP_START"))
"""The time at which a group of `group_by("1h")` begins, in `select`."""


def as_value(given: Any) -> Value:
    """A value, or a constant as one. `OptionError` for others."""
    return given if isinstance(given, Value) else Value(node_of(given, "one side of a comparison"))


def node_of(given: Any, what: str) -> ast.Expression:
    """The tree of a value or a constant. `OptionError` for anything else; `what` says what it was given as."""
    if isinstance(given, Value):
        return given.tree
    found = constant(given)
    if found is not None:
        return found
    hint = "a value is an attribute of an event, x.price, a number, a text, a datetime or a timedelta"
    if given is None:
        hint = "x.price.is_null() is true if there is none"
    elif isinstance(given, Condition):
        hint = f"a condition has a value by when({given}).then(1).otherwise(0)"
    elif isinstance(given, Variable):
        hint = "name the attribute that is meant: x.price"
    elif isinstance(given, list | tuple | set | frozenset):
        hint = "x.price.is_in([1, 2]) is true for one of them"
    elif callable(given) and not isinstance(given, type):
        hint = "a method is called: x.count(); an attribute of its name is x['count']"
    raise OptionError(f"{what} is a value, and this is {'None' if given is None else article(given)}", hint)


def condition_of(given: Any) -> Condition:
    """A condition, or a value that is true or false as one: `f.open`, `fn.startswith(f.host, 'db')`. `OptionError` for
    others."""
    if isinstance(given, Condition):
        return given
    if isinstance(given, Value):
        node = given.tree
        if isinstance(node, ast.Attribute | ast.Earlier | ast.Case | ast.Call):
            return _true(node)
        raise OptionError(f"{given} is a value, and a condition is needed here", f"compare it: ({given}) > 3")
    hint = "a condition compares values: x.price > 3; an event, x.price, with an attribute of another: x.id == y.id"
    if isinstance(given, bool):
        hint = "was == used between two events, or `and`, `or`, `in`? x.id == y.id compares attributes; use & | ~"
    raise OptionError(f"this is {article(given)}, and a condition is needed here", hint)


def _true(node: ast.Expression) -> Condition:
    return Condition(ast.Compare("=", node, ast.Truth(True)))


def _join(kind: type[ast.And] | type[ast.Or], conditions: list[ast.Condition]) -> ast.Condition:
    """The conditions joined from the left."""
    joined, *rest = conditions
    for each in rest:
        joined = kind(joined, each)
    return joined


def all_true(conditions: tuple[Any, ...]) -> ast.Condition:
    """The conditions joined by AND. `OptionError` for none."""
    if not conditions:
        raise OptionError("where takes one condition or more", "where(x.price > 3, y.price < 5)")
    return _join(ast.And, [condition_of(each).tree for each in conditions])


def _compute(symbol: str, left: Any, right: Any) -> Value:
    what = f"one side of {symbol}"
    return Value(ast.Arithmetic(symbol, node_of(left, what), node_of(right, what)))


def _compare(symbol: str, left: Any, right: Any) -> Condition:
    if isinstance(right, Elements):
        return _true(ast.Call(f"{symbol} {right.quantifier}", (left.tree, right.tree)))
    what = f"one side of {symbol}"
    return Condition(ast.Compare(symbol, node_of(left, what), node_of(right, what)))
