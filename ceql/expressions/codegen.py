"""The predicates of an automaton on one event, a dict: a generated function returns their truth as the bits of an int.

It has the meaning of the predicates on a batch of one row (`ceql.expressions.predicates`,
`ceql.expressions.vectorized`); a property test compares the two. The function is generated once for each evaluation, so
that an event costs a few look-ups:

* type predicates: their bits are looked up by the event's type;
* predicates on one text attribute: their bits are looked up by the text (in a cache of `_TEXTS`, cleared when full);
* comparisons of an attribute with a number: Python comparisons, which are by value;
* all others: the closures of `ceql.expressions.scalar`.

The text of the function has words and numbers of this module alone. Attributes, constants of the query and all else are
values of names made here, so no query and no event can write into it.

Every condition is evaluated on every event, as on columns, so that single events and batches report the same values of
a wrong kind. Values other than ints within 64 bits, floats, strs, bools, datetimes and None, and types that are not
texts, raise `Unfit`; kinds that do not go together raise `EventError`. On either the caller evaluates the event as a
batch of one row, which converts the value or raises the error to show.
"""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ceql.expressions.predicates import Satisfies, StreamIs, TypeIs
from ceql.expressions.scalar import compile_condition
from ceql.operators import values
from ceql.syntax import ast
from ceql.syntax.walk import attributes_of
from spaseq.core.comparisons import COMPARISONS
from spaseq.core.events import Instant
from spaseq.core.pattern import NoneOf, Predicate

Event = Mapping[str, Any]
_TEXTS: Final = 1 << 16
_LOW, _HIGH = -(1 << 63), (1 << 63) - 1
_EPOCH: Final = datetime.datetime(1970, 1, 1)


class Unfit(Exception):
    """This event needs the columnar evaluation."""


def compile_bits(
    predicates: tuple[Predicate, ...], typed_by: str | tuple[str, ...], stream: str, *, needed: bool = True
) -> Callable[[Event], int] | None:
    """The function from an event to an int whose bit p is the truth of `predicates[p]`; None if one is not CEQL's.

    `typed_by` is the event's key for its type, or a tuple of the type of all events; `stream` is the stream that all
    events come on. The function raises `Unfit`, `EventError` if kinds of values do not go together, and `KeyError` if
    types are `needed` and the event has no such key.
    """
    try:
        source = _Source(typed_by, stream, needed)
        return source.function(source.text(predicates))
    except _Unknown:
        return None


def normal(value: Any) -> Any:
    """The value as conditions read it from a column: NaN is None, a datetime an `Instant`. `Unfit` for other types."""
    kind = value.__class__
    if kind is str or kind is bool or value is None:
        return value
    if kind is int:
        if _LOW <= value <= _HIGH:
            return value
    elif kind is float:
        return None if value != value else value
    elif kind is datetime.datetime and value.tzinfo in (None, datetime.UTC):
        span = value.replace(tzinfo=None) - _EPOCH
        nanoseconds = ((span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds) * 1_000
        if _LOW <= nanoseconds <= _HIGH:
            return Instant(nanoseconds)
    raise Unfit


class _Unknown(Exception):
    pass


class _TypeBits(dict[str, int]):
    def __missing__(self, name: str) -> int:
        return 0


class _TextBits(dict[str, int]):
    """The bits for each text of one attribute, computed when a text first occurs."""

    def __init__(self, work: Callable[[Any], int]) -> None:
        self._work = work

    def __missing__(self, text: str) -> int:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise Unfit from None
        bits = self._work(text)
        if len(self) >= _TEXTS:
            self.clear()
        self[text] = bits
        return bits


class _Source:
    """The text of the function, and the names it uses."""

    def __init__(self, typed_by: str | tuple[str, ...], stream: str, needed: bool = True) -> None:
        self._typed_by = typed_by
        self._needed = needed
        self._stream = stream
        self._names: dict[str, Any] = {"normal": normal, "compare": values.compare, "Unfit": Unfit}
        self._always = 0

    def function(self, text: str) -> Callable[[Event], int]:
        """The function that has the text."""
        exec(compile(text, "<bits>", "exec"), self._names)
        return self._names["bits_of"]

    def text(self, predicates: tuple[Predicate, ...]) -> str:
        """The text of the function. It is the same for any names and constants of a query."""
        types = _TypeBits()
        alone: dict[str, list[tuple[int, ast.Condition]]] = {}
        several: list[tuple[int, ast.Condition]] = []
        none: list[tuple[int, NoneOf]] = []
        places: dict[Predicate, int] = {}
        for predicate in _with_parts(predicates):
            place = places[predicate] = len(places)
            match predicate:
                case TypeIs(name):
                    types[name] = types.get(name, 0) | 1 << place
                    self._always |= (isinstance(self._typed_by, tuple) and name in self._typed_by) << place
                case StreamIs(name):
                    self._always |= (name == self._stream) << place
                case Satisfies(condition):
                    names = dict.fromkeys(a.name for a in attributes_of(condition))
                    if len(names) == 1:
                        alone.setdefault(next(iter(names)), []).append((place, condition))
                    else:
                        several.append((place, condition))
                case NoneOf():
                    none.append((place, predicate))
                case _:
                    raise _Unknown
        lines = self._types(types)
        for name, conditions in alone.items():
            lines += self._alone(name, conditions)
        lines += self._several(several)
        lines += self._none_of(none, places)
        kept = (1 << len(predicates)) - 1
        lines.append(f"return bits & {kept}" if len(places) > len(predicates) else "return bits")
        return "\n".join(["def bits_of(event):", "    get = event.get", *("    " + line for line in lines)])

    def _name(self, stem: str, value: Any) -> str:
        name = f"{stem}_{len(self._names)}"
        self._names[name] = value
        return name

    def _types(self, types: Mapping[str, int]) -> list[str]:
        """Lines for the bits of the event's type, and for those that every event has."""
        if isinstance(self._typed_by, tuple):
            return [f"bits = {self._always}"]
        key = self._name("key", self._typed_by)
        return [f"type = event[{key}]" if self._needed else f"type = get({key})", "if type.__class__ is str:",
                f"    bits = {self._name('types', types)}[type] | {self._always}",
                "elif type is None:", f"    bits = {self._always}", "else:", "    raise Unfit"]  # fmt: skip

    def _alone(self, name: str, conditions: list[tuple[int, ast.Condition]]) -> list[str]:
        """Lines for the conditions that read attribute `name` alone: texts are looked up, other values compared."""
        tests = [(place, compile_condition(c, lambda attribute: _itself)) for place, c in conditions]
        texts = _TextBits(functools.partial(_bits, tests))
        lines = [f"v = get({self._name('key', name)})", "kind = v.__class__", "if kind is str:",
                 f"    bits |= {self._name('texts', texts)}[v]", "else:", *_normalise("    ")]  # fmt: skip
        for place, condition in conditions:
            lines += [f"    if {self._positive(condition, 'v')}: bits |= {1 << place}"]
        return lines

    def _several(self, conditions: list[tuple[int, ast.Condition]]) -> list[str]:
        """Lines for the conditions that read several attributes or none: closures over a tuple of all their values."""
        names = list(dict.fromkeys(a.name for _, c in conditions for a in attributes_of(c)))
        lines = [f"v{i} = normal(get({self._name('key', name)}))" for i, name in enumerate(names)]
        if conditions:
            lines.append(f"row = ({''.join(f'v{i}, ' for i in range(len(names)))})")
        for place, condition in conditions:
            test = compile_condition(condition, lambda attribute: _at(names.index(attribute.name)))
            lines.append(f"if {self._name('test', test)}(row) is True: bits |= {1 << place}")
        return lines

    def _none_of(self, found: list[tuple[int, NoneOf]], places: dict[Predicate, int]) -> list[str]:
        lines = []
        for place, predicate in sorted(found, key=lambda each: _nesting(each[1])):  # the inner ones first
            masks = [sum(1 << places[p] for p in conjunction) for conjunction in predicate.alternatives]
            some = " or ".join(f"bits & {m} == {m}" for m in masks) or "False"
            lines.append(f"if not ({some}): bits |= {1 << place}")
        return lines

    def _positive(self, node: ast.Condition, value: str) -> str:
        """The text of a Python expression that is true where `node` is known to hold of `value`, which is not a text.

        `&` and `|` evaluate both sides, so that a wrong kind of value is reported on either. There is no NOT around
        them, so unknown may count as false.
        """
        match node:
            case ast.And(left, right):
                return f"({self._positive(left, value)} & {self._positive(right, value)})"
            case ast.Or(left, right):
                return f"({self._positive(left, value)} | {self._positive(right, value)})"
            case ast.Compare(symbol, ast.Attribute(), ast.Number(number)) if math.isfinite(number):
                return self._number_comparison(symbol, number)
            case ast.Compare(symbol, ast.Number(number), ast.Attribute()) if math.isfinite(number):
                return self._number_comparison(COMPARISONS[symbol].mirror, number)
        test = compile_condition(node, lambda attribute: _itself)
        return f"({self._name('test', test)}({value}) is True)"

    def _number_comparison(self, symbol: str, number: int | float) -> str:
        sign, other = self._name("sign", symbol), self._name("number", number)
        python = "==" if symbol == "=" else symbol
        return f"(v {python} {other} if kind is int or kind is float else compare({sign}, v, {other}) is True)"


def _normalise(indent: str) -> list[str]:
    """Lines that normalise `v`, of class `kind` and not a str, as `normal` does."""
    lines = ["if kind is int:", f"    if not {_LOW} <= v <= {_HIGH}: raise Unfit",
             "elif kind is float:", "    if v != v: v = kind = None",
             "elif v is not None:", "    v = normal(v)", "    kind = v.__class__"]  # fmt: skip
    return [indent + line for line in lines]


def _with_parts(predicates: Iterable[Predicate]) -> list[Predicate]:
    """`predicates` in their order, then the parts of those that are a `NoneOf`, and the parts of these."""
    found = dict.fromkeys(predicates)
    waiting = list(found)
    for predicate in waiting:  # it grows
        parts = [part for part in _parts(predicate) if part not in found]
        found.update(dict.fromkeys(parts))
        waiting += parts
    return list(found)


def _parts(predicate: Predicate) -> list[Predicate]:
    """The predicates that a `NoneOf` is about; none of another predicate."""
    if not isinstance(predicate, NoneOf):
        return []
    return list(dict.fromkeys(part for conjunction in predicate.alternatives for part in conjunction))


def _nesting(predicate: Predicate) -> int:
    """The number of `NoneOf`s that are nested in a predicate, and 1."""
    return 1 + max(map(_nesting, _parts(predicate)), default=0)


def _bits(tests: list[tuple[int, Callable[[Any], bool | None]]], value: Any) -> int:
    bits = 0
    for place, test in tests:
        if test(value) is True:
            bits |= 1 << place
    return bits


def _itself(value: Any) -> Any:
    return value


def _at(index: int) -> Callable[[tuple[Any, ...]], Any]:
    return lambda row: row[index]
