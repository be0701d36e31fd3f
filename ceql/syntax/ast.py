"""The syntax tree of CEQL: frozen, slotted, and knowing nothing of how a query is run.

Every node has a `span`, its place in the text, which takes no part in equality: two trees are equal if they mean the
same. `ceql.syntax.printer` turns a tree back into text, and parsing that text gives an equal tree.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from spaseq.core.after import AfterText
from spaseq.core.errors import Span
from spaseq.core.pattern import Preference, Skip

MOST_BACK = 16
"""The most events that `PREV` looks back: each is a register of the automaton."""
EVERY = "ANY"
"""The word that stands for an event of whatever type, in place of a type."""
MATCH_TIMES = ("MATCH_START", "MATCH_END")
"""Names in SELECT: the times of the event at which a match starts, and of that at which it ends."""
SILENCE = "SILENCE"
"""A name in SELECT: the number of the silence that a row reports."""
GROUP_START = "GROUP_START"
"""A name in SELECT: the time at which a group of GROUP BY 1 HOUR begins."""
NOWHERE = Span(0, 0, 1, 1)
"""The span of nodes that were not read from a text."""


@dataclass(frozen=True, slots=True)
class Node:
    """Base of all nodes."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Name(Node):
    """An identifier, as it was meant: without back-quotes."""

    text: str


# Expressions: inside `x[…]`, and in a FILTER over several variables.


@dataclass(frozen=True, slots=True)
class Expression(Node):
    """Base of everything that has a value."""


@dataclass(frozen=True, slots=True)
class Number(Expression):
    value: int | float


@dataclass(frozen=True, slots=True)
class Text(Expression):
    value: str


@dataclass(frozen=True, slots=True)
class Truth(Expression):
    value: bool


@dataclass(frozen=True, slots=True)
class Null(Expression):
    """`NULL`, of whatever kind is needed."""


@dataclass(frozen=True, slots=True)
class Duration(Expression):
    """`30 SECONDS`, `1 HOUR 30 MINUTES`."""

    nanoseconds: int


CONSTANTS = (Number, Text, Truth)
"""The expressions that are constants."""


@dataclass(frozen=True, slots=True)
class Attribute(Expression):
    """`name` of the event at hand, or `variable.name`."""

    name: str
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Variable(Expression):
    """A variable without an attribute, which stands for its events: only as the argument of `COUNT(b)`."""

    name: str


@dataclass(frozen=True, slots=True)
class EveryMatch(Expression):
    """`*`, which stands for each match of a group: only as the argument of `COUNT(*)`."""


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """`AVG(b.price)`, `CORR(x.h, y.h)`. `function` is in capitals."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Earlier(Expression):
    """`PREV(b.price, back)`: the attribute of an event that its variable took before the event at hand, `back` events
    before; of the first one, `b[0].price`, if `back` is 0."""

    attribute: Attribute
    back: int


@dataclass(frozen=True, slots=True)
class Negate(Expression):
    child: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    operator: str  # + - * / %
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Condition(Expression):
    """Base of everything that is true, false or unknown."""


@dataclass(frozen=True, slots=True)
class Compare(Condition):
    operator: str  # = != < <= > >=
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Like(Condition):
    """`value LIKE 'regular expression'`, over the whole string."""

    value: Expression
    pattern: str


@dataclass(frozen=True, slots=True)
class In(Condition):
    """`value IN {…}`; the items are constants."""

    value: Expression
    items: tuple[Expression, ...]
    prepared: object = field(default=None, init=False, compare=False, repr=False)
    """The items, prepared for evaluation (`ceql.expressions.members`)."""


@dataclass(frozen=True, slots=True)
class InRange(Condition):
    """`value IN {low..high}` or `IN RANGE(low, high)`, both ends included; None is no bound."""

    value: Expression
    low: Expression | None
    high: Expression | None

    @property
    def bounds(self) -> tuple[tuple[str, Expression], ...]:
        """The comparisons that it stands for: symbols, and the other sides to `value`."""
        return tuple((symbol, bound) for symbol, bound in ((">=", self.low), ("<=", self.high)) if bound is not None)


@dataclass(frozen=True, slots=True)
class IsNull(Condition):
    """`value IS NULL`: true or false, never unknown."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Not(Condition):
    child: Condition


@dataclass(frozen=True, slots=True)
class And(Condition):
    left: Condition
    right: Condition


@dataclass(frozen=True, slots=True)
class Or(Condition):
    left: Condition
    right: Condition


@dataclass(frozen=True, slots=True)
class Holds(Condition):
    """`variable[condition]`: every event of the variable satisfies the condition. Only in a FILTER."""

    variable: Name
    condition: Condition


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """`CASE WHEN condition THEN result … ELSE otherwise END`: a result for each condition; without ELSE it is NULL."""

    conditions: tuple[Condition, ...]
    results: tuple[Expression, ...]
    otherwise: Expression | None = None


# Formulas: the WHERE clause.


@dataclass(frozen=True, slots=True)
class Formula(Node):
    """Base of the formulas of CEL ([CORE] §2.2)."""


@dataclass(frozen=True, slots=True)
class EventType(Formula):
    """`R`, or `s>R`: one event of type R (on stream s), taken by the variables `R` and `s>R`.

    With `every`, the name is the word ANY: one event of whatever type.
    """

    name: str
    stream: Name | None = None
    every: bool = False


@dataclass(frozen=True, slots=True)
class As(Formula):
    child: Formula
    variable: Name


@dataclass(frozen=True, slots=True)
class Filter(Formula):
    child: Formula
    condition: Condition


@dataclass(frozen=True, slots=True)
class Either(Formula):
    """`left OR right`."""

    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Sequence(Formula):
    """`left ; right`, `left -> right` or `left : right`: `skip` says which events may lie between the two."""

    left: Formula
    right: Formula
    skip: Skip


@dataclass(frozen=True, slots=True)
class Repeat(Formula):
    """`child{low,high}`: so many rounds; `high` None is no bound. `child+` is `child{1,}`, `child*` is `child{0,}`, and
    `child?` is `child{0,1}`.

    Rounds are joined by `;`, `->` or `:`, as `skip` says: `child+`, `child->+`, `child:+`. `preference` is the choice
    of a run that waits for one more round and for what follows. No round begins with or behind an event of `until`.
    """

    child: Formula
    low: int
    high: int | None
    skip: Skip = Skip.ANY
    preference: Preference = Preference.GREEDY
    until: Without | None = None


@dataclass(frozen=True, slots=True)
class Without(Formula):
    """`NOT child`, or `NOT child FOR duration` (ns); with `every`, `NOT child FOR EVERY duration`."""

    child: Formula
    duration: int | None = None
    every: bool = False


@dataclass(frozen=True, slots=True)
class Conjunction(Formula):
    """`AND(φ, ψ, …)`: all of them, in any order."""

    parts: tuple[Formula, ...]


# The query.


class Strategy(enum.Enum):
    """The choice of SELECT among the matches that end at one event (docs/semantics.md, CEQL)."""

    ALL = "ALL"
    ANY = "ANY"
    NEXT = "NEXT"
    LAST = "LAST"
    MAX = "MAX"
    STRICT = "STRICT"
    FIRST = "FIRST"


class Consume(enum.Enum):
    """The partial matches that a match deletes: all of them, those of its own partition, or none."""

    ANY = "ANY"
    PARTITION = "PARTITION"
    NONE = "NONE"


@dataclass(frozen=True, slots=True)
class Selected(Node):
    """`v` or `v[attr, …]` in SELECT; no attributes means all."""

    variable: str
    attributes: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class Column(Node):
    """`expression AS name` in SELECT: what it computes of each match. `name` None: it has no AS."""

    expression: Expression
    name: Name | None = None


@dataclass(frozen=True, slots=True)
class Selection(Node):
    """`*` (`items` is None), `NONE` (`items` is empty), a list of variables, or `columns`, which are of all events of a
    match, as with `*`."""

    strategy: Strategy | None
    items: tuple[Selected, ...] | None
    columns: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True)
class Within(Node):
    """Base of the windows."""


@dataclass(frozen=True, slots=True)
class WithinEvents(Within):
    count: int


@dataclass(frozen=True, slots=True)
class WithinTime(Within):
    nanoseconds: int


@dataclass(frozen=True, slots=True)
class WithinAttribute(Within):
    """`WITHIN size [attribute]`: `size` is in the unit of the attribute's values."""

    size: int | float
    attribute: Name


@dataclass(frozen=True, slots=True)
class Consumption(Node):
    policy: Consume


@dataclass(frozen=True, slots=True)
class Key(Node):
    """`expression` of ORDER BY, or `expression DESC`."""

    expression: Expression
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Order(Node):
    """`ORDER BY key, …`: the order of the matches that end at one event."""

    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Limit(Node):
    count: int


@dataclass(frozen=True, slots=True)
class AfterMatch(Node):
    """`variable` is that of TO FIRST and TO LAST, `v` or `s>R`, else None."""

    rule: AfterText
    variable: Name | None = None


@dataclass(frozen=True, slots=True)
class Grouping(Node):
    """`GROUP BY EVENT`, `GROUP BY KEY, 1 HOUR`: a row for all matches of a group.

    `event`: by the event at which they end, `key`: by that of PARTITION BY, `length`: by the time at which they end, in
    stretches of so many ns. `window`: by what is no group, for an error.
    """

    event: bool = False
    key: bool = False
    length: int | None = None
    window: bool = False


@dataclass(frozen=True, slots=True)
class Query(Node):
    """A whole query. `partition` has a tuple of attributes for each bracket; it is empty without PARTITION BY."""

    selection: Selection
    streams: tuple[Name, ...]
    where: Formula
    partition: tuple[tuple[Name, ...], ...] = ()
    within: Within | None = None
    consume: Consumption | None = None
    limit: Limit | None = None
    after: AfterMatch | None = None
    grouping: Grouping | None = None
    order: Order | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that are computed of matches: columns of SELECT, then keys of ORDER BY."""
        keys = () if self.order is None else self.order.keys
        return (*(column.expression for column in self.selection.columns), *(key.expression for key in keys))
