"""A row of the table of functions (`ceql.operators.functions`): its arguments, its result, and its computation.

A function is computed of single values (`of_values`) and of columns (`of_columns`), with one result. Columns go to a
function of columns, if the row has one. Few texts have a result for each combination of them, others one for each row.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ceql.operators.columns import ByRow, Constant, Operand, column_from, compact, operand_kind, rows_at, values_of
from ceql.operators.values import CLASSES, KIND_WORDS, kind_of
from spaseq.core.errors import EventError
from spaseq.core.events import TextColumn

_COUNTS: Final = ("no", "one", "two", "three", "four")
_EXAMPLES: Final = {"list": "history", "list/texts": "history", "text": "name", "truth": "open", "time": "day"}
_FREE: Final = ("any", "event", "ordered")
"""Arguments of several kinds, which `work` itself checks."""


class OwnFunctionError(EventError):
    """A function of the user raised an exception, or gave a value of another kind."""


@dataclass(frozen=True, slots=True)
class Function:
    """`name(…)`, in capitals.

    `takes` has a kind of values for each argument (`ceql.operators.values.kind_of`), or several, "time/text"; or
    "ordered", "any", or "event", which is any value or a variable alone. The last `optional` arguments may be left out;
    with `repeats` the last one may come any number of times. `gives` is the kind of the result, "argument" for that of
    the first argument, "collected" for a list of such, or "cast" for the one that the second argument names. `work` is
    a function of the arguments' values, none of them NULL unless `takes_null`; its result is None for NULL. `columns`
    is a function of columns and `Constant`s, none of them NULL throughout unless `takes_null`, and the number of
    events. It gives a column, and NotImplemented if it has no answer for these. `constants` are the places of arguments
    that must be constants. `check` takes the arguments before the first event, None for those that are not constants;
    it raises `EventError` for wrong ones.

    `quantifier` is ANY or ALL for `x < ANY(list)`, and `symbol` the comparison of x with the elements.

    An aggregate has states: `start`, `add` gives the next one for a value in order of positions, NULL too, and `work`
    the result of the last. States are hashable and small.
    """

    name: str
    takes: tuple[str, ...]
    gives: str
    work: Callable[..., Any]
    add: Callable[[Any, Any], Hashable] | None = None
    start: Hashable = None
    optional: int = 0
    repeats: bool = False
    takes_null: bool = False
    columns: Callable[..., Any] | None = None
    constants: tuple[int, ...] = ()
    check: Callable[..., None] | None = None
    sample: str = ""
    symbol: str = ""
    quantifier: str = ""

    @property
    def count(self) -> str:
        """The number of its arguments, as words."""
        least, most = len(self.takes) - self.optional, len(self.takes)
        if self.repeats:
            return f"{_COUNTS[least]} or more"
        return _COUNTS[most] if least == most else f"{_COUNTS[least]} or {_COUNTS[most]}"

    @property
    def example(self) -> str:
        """A call of it."""
        if self.sample:
            return self.sample
        arguments = (f"{v}.{_EXAMPLES.get(kind, 'price')}" for v, kind in zip("xyzw", self.takes, strict=False))
        return f"{self.name}({', '.join(arguments)})"

    def fits(self, count: int) -> bool:
        """True if it takes so many arguments."""
        return len(self.takes) - self.optional <= count <= (math.inf if self.repeats else len(self.takes))

    def kind_at(self, place: int) -> str:
        """The element of `takes` for an argument."""
        return self.takes[min(place, len(self.takes) - 1)]

    def accepts(self, place: int, kind: str) -> bool:
        """True if an argument may be of this kind."""
        wanted = self.kind_at(place)
        return wanted in _FREE or kind in wanted.split("/")

    def classes(self, place: int) -> frozenset[type]:
        """The Python classes that `work` takes for an argument."""
        wanted = self.kind_at(place)
        kinds = CLASSES if wanted in _FREE else wanted.split("/")
        null = (type(None),) if self.takes_null else ()
        return frozenset(itertools.chain(*(CLASSES[kind] for kind in kinds), null))

    def of_values(self, *arguments: Any) -> Any:
        """The result for single values; None for NULL. `EventError` for a value of another kind."""
        if not self.takes_null and any([argument is None for argument in arguments]):
            return None
        for place, argument in enumerate(arguments):
            if argument is not None and not self.accepts(place, kind := kind_of(argument)):
                raise self.wrong(place, kind)
        return self.work(*arguments)

    def wrong(self, place: int, kind: str) -> EventError:
        """The error for an argument of another kind."""
        wanted, found = self.kind_at(place), KIND_WORDS[kind]
        if self.quantifier:
            problem = f"{self.quantifier} is of {plural(wanted)}, and this is {found}"
        elif len(self.takes) == 1:
            problem = f"{self.name} is of {kind_words(wanted)}, and this is {found}"
        elif len({*self.takes}) == 1 and not self.optional and not self.repeats:
            problem = f"{self.name} is of {self.count} {plural(wanted)}, and this is {found}"
        else:
            problem = f"argument {place + 1} of {self.name} is {kind_words(wanted)}, and this is {found}"
        hint = {"list": "[1.5, 2, 3.5] in JSON", "list/texts": "[1.5, 2] or ['a', 'b'] in JSON"}.get(wanted, "")
        if kind == "number" and "time" in wanted:
            hint = "TO_TIME(x.time, 's') makes a time of a number of seconds, with 'ms' of milliseconds"
        return EventError(problem, hint=hint)

    def of_columns(self, operands: Sequence[Operand], count: int) -> Operand:
        """The results for columns of `count` values. `EventError` for a value of another kind, `ByRow` if no column
        holds the results. O(count); of texts alone, `work` is called once for each combination of them."""
        if not self.takes_null and any(operand is None for operand in operands):
            return None
        for place, operand in enumerate(operands):
            if operand is not None and not self.accepts(place, kind := operand_kind(operand)):
                raise ByRow if kind == "mixed" else self.wrong(place, kind)
        varying = [operand for operand in operands if operand is not None and not isinstance(operand, Constant)]
        if not varying:
            value = self.work(*[o.value if isinstance(o, Constant) else None for o in operands])
            return None if value is None else Constant(value)
        if self.columns is not None:
            found = self.columns(*operands, count=count)
            if found is not NotImplemented:
                return found
        found = self._by_texts(operands, count)
        if found is not NotImplemented:
            return found
        rows = zip(*[values_of(operand, count) for operand in operands], strict=True)
        if self.takes_null:
            return column_from([self.work(*row) for row in rows])
        return column_from([None if None in row else self.work(*row) for row in rows])

    def _by_texts(self, operands: Sequence[Operand], count: int) -> Any:
        """The result of each combination of texts that occurs, then that of each row. NotImplemented if something else
        than texts varies, or combinations could be more than rows."""
        places: list[tuple[int, TextColumn]] = []
        for place, operand in enumerate(operands):
            if isinstance(operand, TextColumn):
                places.append((place, compact(operand)))
            elif operand is not None and not isinstance(operand, Constant):
                return NotImplemented
        if math.prod(len(column.texts) + 1 for _, column in places) > max(2 * count, 16):
            return NotImplemented
        combined = np.zeros(count, np.int64)
        for _, column in places:
            combined = combined * (len(column.texts) + 1) + column.codes + 1
        used, rows = _apart(combined)
        columns, rest = [], used
        for _, column in reversed(places):
            rest, codes = np.divmod(rest, len(column.texts) + 1)
            columns.append(values_of(TextColumn(codes - 1, column.texts), len(used)))
        fixed, found = [o.value if isinstance(o, Constant) else None for o in operands], []
        for texts in zip(*reversed(columns), strict=True):
            for (place, _), text in zip(places, texts, strict=True):
                fixed[place] = text
            found.append(self.work(*fixed) if self.takes_null or None not in texts else None)
        return rows_at(column_from(found), rows)


def _apart(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values that occur, ascending, and the place of each row's among them; int64 (n,), values of a small range."""
    used = np.flatnonzero(np.bincount(codes))
    places = np.zeros(int(codes.max(initial=0)) + 1, np.int64)
    places[used] = np.arange(len(used))
    return used, places[codes]


def kind_words(wanted: str) -> str:
    """An element of `takes` as words: "a time or a text"."""
    return " or ".join(KIND_WORDS[kind] for kind in wanted.split("/"))


def plural(wanted: str) -> str:
    """Values of a kind, as words: "lists of numbers"."""
    words = []
    for kind in wanted.split("/"):
        one, *of = KIND_WORDS[kind].removeprefix("a ").split(" of ")
        words.append(" of ".join([f"{one}s", *of]))
    return " or ".join(words)
