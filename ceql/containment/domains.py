"""Values of attributes that the conditions of two queries can tell apart.

Attributes that some condition compares with each other are of one *sort*. Conditions compare the values of a sort with
each other and with its constants. So an event with any values differs from no event whose values have the same
order among themselves, among the constants, and among the values that registers hold. Numbers are dense: between any
two there is another one. So it is enough to try each constant, each value in a register, and as many values in each gap
between them as the event has attributes of the sort.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ceql.operators import values
from ceql.operators.functions import FUNCTIONS
from ceql.syntax import ast
from ceql.syntax.walk import attributes_of, parts
from spaseq.core.errors import EventError
from spaseq.core.events import EVENT_TIME, parse_time

_SUFFIXES: Final = ("0", "A", "a", "m", "z", "\x01", "\0")
_EXACT: Final = 1 << 53
_SOME: Final[dict[type, tuple[Any, ...]]] = {int: (-7, 0, 2, 10), str: ("", "a", "A b", "abcdefghij"), bool: (True,)}
"""Values for the arguments of functions, by the classes that these take."""


@dataclass(slots=True)
class Sort:
    """Attributes that are compared with each other. `constants`: those that they are compared with; `kind` is theirs.
    `ordered`: some condition asks for an order. `related`: some condition compares two of them."""

    names: set[str] = field(default_factory=set)
    constants: set[Any] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    ordered: bool = False
    related: bool = False

    @property
    def kind(self) -> str:
        """The kind of the values; "number" if nothing says it, which stands for any that has the comparisons."""
        return min(self.kinds, default="number")

    def add(self, constant: Any) -> None:
        """Add a constant that is compared with its attributes."""
        self.constants.add(constant)
        self.kinds.add(values.kind_of(constant))

    @property
    def problem(self) -> str:
        """The reason why the values to try may not be enough; empty if they are."""
        name = min(self.names)
        if len(self.kinds) > 1:
            return f"{name} is compared with constants of different kinds"
        if self.kind == "text":
            if self.ordered and self.related:
                return f"{name} holds texts, compared by < with a text and with another attribute"
            if any(map(_is_time, self.constants)):
                return f"{name} may be a text or a time"
        if self.kind == "number" and any(abs(one) >= _EXACT or one != one for one in self.constants):
            return f"{name} is compared with a number that doubles do not hold exactly"
        return ""

    def tries(self, held: Iterable[Any], several: int) -> list[Any]:
        """The values to try: constants, those held in registers, and up to `several` in each gap between these; and
        NULL. O(n log n)."""
        kind = self.kind
        known = {one for one in (*self.constants, *held) if one is not None and values.kind_of(one) == kind}
        if kind == "truth":
            return [True, False, None]
        if kind == "text" and not self.ordered:
            fresh = (f"other{n or ''}" for n in range(len(known) + several))
            return [*sorted(known), *[one for one in fresh if one not in known][:several], None]
        points = sorted(known)
        gaps = _texts_between if kind == "text" else _numbers_between
        found: list[Any] = []
        for low, high in zip([None, *points], [*points, None], strict=True):
            found += gaps(low, high, several)
            if high is not None:
                found.append(high)
        return [*found, None]


def _numbers_between(low: Any, high: Any, several: int) -> list[Any]:
    """`several` ascending numbers between two, whole ones if there are. Raises `Refused` if doubles have too few."""
    if low is None and high is None:
        return list(range(1, several + 1))
    if low is None:
        first = math.ceil(high) - several
        return [first + n for n in range(several)]
    if high is None:
        first = math.floor(low) + 1
        return [first + n for n in range(several)]
    first = math.floor(low) + 1
    whole = math.ceil(high) - first
    if whole >= several:
        start = first + (whole - several) // 2
        return [start + n for n in range(several)]
    found = [low + (high - low) * (n + 1) / (several + 1) for n in range(several)]
    if not all(one < two for one, two in zip([low, *found], [*found, high], strict=True)):
        raise Refused(f"between {low} and {high} there are too few doubles")
    return found


def _texts_between(low: Any, high: Any, several: int) -> list[Any]:
    """Up to `several` texts between two; one at least if there is any."""
    heads = ["", "0", "A"] if low is None else [low + one for one in _SUFFIXES]
    if low is None and high is not None and high:
        heads += [chr(ord(high[0]) - 1)] if ord(high[0]) > 1 else []
    found = [one for one in heads if (low is None or low < one) and (high is None or one < high)]
    return sorted(found[:several])


def _is_time(text: Any) -> bool:
    try:
        parse_time(text)
    except EventError:
        return False
    return True


class Refused(Exception):
    """The reason, in words, why the product of two automata cannot be searched."""


class Domains:
    """The sorts of the attributes of conditions. `opaque`: the conditions that are more than comparisons of attributes
    with each other and with constants; of these the values to try are a guess."""

    def __init__(self, conditions: Iterable[ast.Condition]) -> None:
        self._sort: dict[str, Sort] = {}
        self.opaque: set[ast.Condition] = set()
        self.reasons: dict[ast.Condition, str] = {}
        every = list(conditions)
        for condition in every:
            if not self._read(condition):
                self.opaque.add(condition)
        for condition in every:
            problem = next((self._sort[n].problem for n in _names(condition) if self._sort[n].problem), "")
            if problem:
                self.opaque.add(condition)
                self.reasons[condition] = problem

    def sort(self, name: str) -> Sort:
        """The sort of an attribute; a new one if no condition reads it."""
        if name not in self._sort:
            self._sort[name] = Sort({name})
        return self._sort[name]

    def __iter__(self) -> Iterator[Sort]:
        """The sorts, each once."""
        return iter({id(sort): sort for sort in self._sort.values()}.values())

    def _read(self, node: ast.Condition) -> bool:
        """Adds what a condition compares; False if it does more than that."""
        for name in _names(node):
            self.sort(name)
        match node:
            case ast.And(left, right) | ast.Or(left, right):
                first, second = self._read(left), self._read(right)
                return first and second
            case ast.Not(child):
                return self._read(child)
            case ast.Compare(symbol, left, right):
                return self._compare(symbol, left, right)
            case ast.InRange(value):
                return all([self._compare(symbol, value, bound) for symbol, bound in node.bounds])
            case ast.In(value, items):
                return all([self._compare("=", value, item) for item in items])
            case ast.IsNull(ast.Attribute(name)):
                return name != EVENT_TIME
        self._guess(node)
        return False

    def _compare(self, symbol: str, left: ast.Expression, right: ast.Expression) -> bool:
        order = symbol not in ("=", "!=")
        match _now(left), _now(right):
            case ast.Attribute(one), ast.Attribute(two):
                if EVENT_TIME in (one, two):
                    return False
                sort = self._join(one, two)
                sort.ordered |= order
                sort.related = True
                return True
            case (ast.Attribute(name), (ast.Number() | ast.Text() | ast.Truth()) as constant) | (
                (ast.Number() | ast.Text() | ast.Truth()) as constant,
                ast.Attribute(name),
            ):
                sort = self.sort(name)
                sort.add(constant.value)
                sort.ordered |= order
                return name != EVENT_TIME
        self._guess(left, right)
        return _is_constant(left) and _is_constant(right)

    def _guess(self, *nodes: ast.Expression) -> None:
        """Adds the constants of some expressions to the sorts of their attributes: values to begin with."""
        every = [part for node in nodes for part in parts(node)]
        constants = [part.value for part in every if isinstance(part, ast.Number | ast.Text | ast.Truth)]
        constants += [text for part in every if isinstance(part, ast.Like) for text in like_samples(part.pattern)]
        for call in (part for part in every if isinstance(part, ast.Call)):
            for place, argument in enumerate(call.arguments):
                if isinstance(argument, ast.Attribute):
                    self._begin(argument.name, FUNCTIONS[call.function].classes(place))
        for attribute in (part for part in every if isinstance(part, ast.Attribute)):
            sort = self.sort(attribute.name)
            for constant in constants:
                if not sort.kinds or values.kind_of(constant) in sort.kinds:
                    sort.add(constant)

    def _begin(self, name: str, classes: frozenset[type]) -> None:
        """Adds values that a function takes, for an attribute that nothing else tells about."""
        sort = self.sort(name)
        some = next((some for kind, some in _SOME.items() if kind in classes), ())
        for one in some if not sort.kinds else ():
            sort.add(one)

    def _join(self, one: str, two: str) -> Sort:
        first, second = self.sort(one), self.sort(two)
        if first is not second:
            first.names |= second.names
            first.constants |= second.constants
            first.kinds |= second.kinds
            first.ordered |= second.ordered
            first.related |= second.related
            for name in second.names:
                self._sort[name] = first
        return first


def _now(node: ast.Expression) -> ast.Expression:
    """An attribute of an earlier event as one of the event at hand: both are of one sort."""
    return node.attribute if isinstance(node, ast.Earlier) else node


def _names(node: ast.Expression) -> list[str]:
    return [attribute.name for attribute in attributes_of(node)]


def _is_constant(node: ast.Expression) -> bool:
    return not any(isinstance(part, ast.Call | ast.Attribute) for part in parts(node))


_TOKENS: Final = re.compile(r"\[\^?(.)[^]]*\]|\\(.)|\.[*+]|\.|[()^$]", re.DOTALL)
"""Sets of characters, escapes, wild cards and groups of a regular expression."""


def like_samples(pattern: str) -> list[str]:
    """Texts that a regular expression may match: with its wild cards as nothing, and as letters."""
    found = []
    for several, one in (("", "a"), ("b", "c")):
        wild = {".": one, ".*": several, ".+": one}
        found.append(_TOKENS.sub(lambda token, wild=wild: token[1] or token[2] or wild.get(token[0], ""), pattern))  # type: ignore[misc]
    return found


def rank(value: Any, constants: list[Any], held: list[Any]) -> Any:
    """The place of a held value among sorted constants and sorted held values: equal for values of the same order."""
    if value is None:
        return None
    at = bisect_left(constants, value)
    if at < len(constants) and constants[at] == value:
        return ("=", at)
    return (at, bisect_left(held, value))
