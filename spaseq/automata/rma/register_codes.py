"""Which automata with registers the kernel takes, and their events as codes.

It takes comparisons of one attribute of the event at hand or of a register with another (`f.Relates`, and a query's
`a.x < b.y`), with AND, OR and NOT around them. Codes are int64 that compare like the values: numbers as doubles, texts,
which are only compared for being equal, by a number each. Whole numbers beyond 2^53, NaN, truth, times and lists are
not among them: `Codes.load` then says so, and the loop in Python goes on (`guarded_run.py`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from spaseq.automata.rma import formulas as f
from spaseq.automata.rma.formulas import Formula, Test
from spaseq.events import NumberColumn, TextColumn

__all__ = ["NOTHING", "SYMBOLS", "UNKNOWN", "Codes", "Literal", "Side", "alternatives", "comparison_of"]

NOTHING: Final = -(1 << 63)
"""In place of a register that nothing can read."""
UNKNOWN: Final = NOTHING + 1
"""The code of NULL: every comparison fails."""
SYMBOLS: Final = ("=", "!=", "<", "<=", ">", ">=")
CLAUSES: Final = 64
"""Alternatives of a condition as a disjunction of conjunctions; with more the loop in Python asks it."""
_EXACT: Final = 1 << 53
_TEXTS: Final = 1 << 16

Side = tuple[str, str]
"""A register or `f.CURRENT`, and an attribute."""


@dataclass(frozen=True, slots=True)
class Literal:
    """`left symbol right`, or that it does not hold."""

    symbol: str
    left: Side
    right: Side
    negated: bool = False


_DECIDED: Final = Literal("=", ("", ""), ("", ""))


def comparison_of(test: Test) -> Literal | None:
    """A test as a comparison of two attributes; None where it is another."""
    match test.relation:
        case f.Relates(left, symbol, right):
            first, second = test.arguments
            return Literal(symbol, (first, left), (second, right))
        case relation:
            compares = getattr(relation, "compares", None)
            found = None if compares is None else compares()
            if found is None:
                return None
            (i, left), symbol, (j, right) = found
            return Literal(symbol, (test.arguments[i], left), (test.arguments[j], right))


def alternatives(
    formula: Formula, negated: bool = False, narrow: tuple[Test, ...] = ()
) -> list[tuple[Literal, ...]] | None:
    """A formula of comparisons in disjunctive normal form; None where it is another, or has more than `CLAUSES`.

    `narrow`: tests that will have been decided by then, whatever they are.
    """
    match formula:
        case Test():
            found = _DECIDED if formula in narrow else comparison_of(formula)
            return None if found is None else [(Literal(found.symbol, found.left, found.right, negated),)]
        case f.Not(child):
            return alternatives(child, not negated, narrow)
        case f.All(parts) | f.Some(parts):
            several = [alternatives(part, negated, narrow) for part in parts]
            known = [clauses for clauses in several if clauses is not None]
            if len(known) < len(several):
                return None
            if isinstance(formula, f.Some) != negated:
                joined = [clause for clauses in known for clause in clauses]
                return joined if len(joined) <= CLAUSES else None
            if np.prod([float(len(clauses)) for clauses in known]) > CLAUSES:
                return None
            return [tuple(itertools.chain(*choice)) for choice in itertools.product(*known)]
    return None


class Codes:
    """The attributes of events as codes. `names`: those that are read, a column each."""

    def __init__(self, literals: Iterator[Literal]) -> None:
        self._literals = tuple(dict.fromkeys(literals))
        self.names = tuple(dict.fromkeys(name for x in self._literals for _, name in (x.left, x.right)))
        self._kinds: dict[str, str | None] = dict.fromkeys(self.names)
        self._texts: dict[Hashable, int] = {}
        self._next = 0
        self._full = _TEXTS

    def load(self, rows: Any) -> np.ndarray | None:
        """int64 (n, names), or None where some value has no code that compares with others; then nothing changes."""
        found = [_values(rows, name) for name in self.names]
        kinds = dict(self._kinds)
        for name, (kind, _) in zip(self.names, found, strict=True):
            if kind == "other" or (kind is not None and kinds[name] not in (None, kind)):
                return None
            kinds[name] = kinds[name] or kind
        for x in self._literals:
            both = {kinds[x.left[1]], kinds[x.right[1]]} - {None}
            if len(both) > 1 or (both == {"text"} and x.symbol not in ("=", "!=")):
                return None
        self._kinds = kinds
        codes = np.full((len(rows), len(self.names)), UNKNOWN, np.int64)
        for i, (kind, values) in enumerate(found):
            if kind is not None:
                codes[:, i] = _double_codes(values) if kind == "number" else self._numbered(values)
        return codes

    def value(self, name: str, code: int, texts: dict[int, str]) -> Any:
        """What a code of an attribute stands for; `texts` is `texts()`."""
        if code == UNKNOWN:
            return None
        if self._kinds[name] == "text":
            return texts[code]
        bits = code ^ ((1 << 63) - 1) if code < 0 else code
        number = float(np.int64(bits).view(np.float64))
        return int(number) if number.is_integer() and abs(number) <= _EXACT else number

    def texts(self) -> dict[int, Any]:
        """The texts by their codes."""
        return {code: text for text, code in self._texts.items()}

    @property
    def full(self) -> bool:
        """Whether there are many texts, perhaps of no register any more."""
        return len(self._texts) > self._full

    def forget(self, held: np.ndarray) -> None:
        """Let go of the texts whose codes are not in `held`."""
        codes = set(np.unique(held).tolist())
        self._texts = {text: code for text, code in self._texts.items() if code in codes}
        self._full = 2 * len(self._texts) + _TEXTS

    def _numbered(self, values: tuple[np.ndarray, list[str]]) -> np.ndarray:
        places, texts = values
        numbers = []
        for text in texts:
            number = self._texts.setdefault(text, self._next)
            self._next += number == self._next
            numbers.append(number)
        return np.array([*numbers, UNKNOWN], np.int64)[places]


def _values(rows: Any, name: str) -> tuple[str | None, Any]:
    """The kind of an attribute in a batch, and its values.

    "number": float64, NaN for NULL. "text": places (-1 NULL) in a list. None where all are NULL. "other".
    """
    column = getattr(getattr(rows, "events", None), "column", None)
    if column is None:
        get = rows.getter(name)
        return _of_values([get(row) for row in range(len(rows))])
    match column(name):
        case None:
            return None, None
        case NumberColumn(values, known):
            inexact = values.dtype.kind == "i" and values.size and max(int(values.max()), -int(values.min())) > _EXACT
            if inexact:
                return "other", None
            return "number", values.astype(np.float64) if known is None else np.where(known, values, np.nan)
        case TextColumn(codes, texts):
            return "text", (codes, texts.to_pylist())
    return "other", None


def _of_values(values: list[Any]) -> tuple[str | None, Any]:
    kinds = {type(v) for v in values} - {type(None)}
    if not kinds:
        return None, None
    if kinds == {str}:
        texts = {v: i for i, v in enumerate(dict.fromkeys(v for v in values if v is not None))}
        return "text", (np.array([-1 if v is None else texts[v] for v in values], np.int64), list(texts))
    if kinds <= {int, float} and all(v is None or _is_exact(v) for v in values):
        return "number", np.array([np.nan if v is None else v for v in values], np.float64)
    return "other", None


def _is_exact(value: float) -> bool:
    """Whether a double has the value, and it is one."""
    return abs(value) <= _EXACT if isinstance(value, int) else not math.isnan(value)


def _double_codes(values: np.ndarray) -> np.ndarray:
    """int64 in the order of the doubles, `UNKNOWN` for NaN."""
    bits = (values + 0.0).view(np.int64)  # -0.0 is 0.0
    codes = np.where(bits < 0, bits ^ np.int64((1 << 63) - 1), bits)
    return np.where(np.isnan(values), np.int64(UNKNOWN), codes)

