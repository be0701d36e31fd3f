"""The tests of an automaton: those on the event at hand alone, and those that read registers.

A test on the event at hand alone is *narrow*: it is evaluated on whole batches, and the vector of their truth values is
the event's symbol class (`spaseq.core.automata.alphabet`). A test that reads a register is *wide*: it is evaluated run
by run, on the values that are kept in registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spaseq.core.automata.rma import formulas as f
from spaseq.core.automata.rma.automaton import RMA
from spaseq.core.automata.rma.formulas import Formula, Test


class View:
    """Some attributes of an event, with the `get` by which relations read them."""

    __slots__ = ("_index", "_values")

    def __init__(self, index: dict[str, int], values: tuple[Any, ...]) -> None:
        self._index, self._values = index, values

    def get(self, name: str) -> Any:
        """The value of an attribute, or None."""
        at = self._index.get(name)
        return None if at is None else self._values[at]


class Vocabulary:
    """The tests of an automaton, and the symbol classes that have occurred.

    `features` are further narrow tests: events that differ in them have different classes.
    """

    def __init__(self, automaton: RMA, features: tuple[Test, ...] = ()) -> None:
        found = dict.fromkeys(t for transition in automaton.transitions for t in f.tests(transition.formula))
        self.narrow: tuple[Test, ...] = tuple(
            dict.fromkeys((*(t for t in found if set(t.arguments) <= {f.CURRENT}), *features))
        )
        self.wide: tuple[Test, ...] = tuple(t for t in found if not set(t.arguments) <= {f.CURRENT})
        from spaseq.core.automata.alphabet import Alphabet  # numba: only when events come

        self._alphabet = Alphabet(len(self.narrow))

    @property
    def has_wide(self) -> bool:
        """True if some test reads a register."""
        return bool(self.wide)

    @property
    def vectors(self) -> list[int]:
        """For each symbol class the truth of the narrow tests: bit p of an int for test p."""
        return self._alphabet.vectors

    def truth(self, kind: int) -> dict[Test, bool]:
        """The truth of the narrow tests for events of a symbol class."""
        return {t: bool(self.vectors[kind] >> p & 1) for p, t in enumerate(self.narrow)}

    def left(self, formula: Formula, kind: int) -> Formula:
        """A formula simplified for events of a symbol class: only wide tests are left in it."""
        return f.restrict(formula, self.truth(kind))

    def classes(self, rows: Any) -> np.ndarray:
        """The symbol class of each event: int32 (n,)."""
        truth = np.zeros((len(self.narrow), len(rows)), bool)
        for p, test in enumerate(self.narrow):
            evaluate = getattr(test.relation, "evaluate", None)
            truth[p] = _one_by_one(test, rows) if evaluate is None else evaluate(rows)
        return self._alphabet.classify(truth)


def _one_by_one(test: Test, rows: Any) -> list[bool]:
    """The truth of a narrow test at each row. All arguments of its relation are the event at hand."""
    reads = [test.relation.reads(place) for place in range(len(test.arguments))]
    read: Callable[[int], Any]
    if None in reads:
        read = rows.event
    else:
        names = dict.fromkeys(name for some in reads for name in some or ())
        index = {name: i for i, name in enumerate(names)}
        getters = [rows.getter(name) for name in names]

        def read_view(row: int) -> View:
            return View(index, tuple([get(row) for get in getters]))

        read = read_view

    return [bool(test.relation(*([read(row)] * len(test.arguments)))) for row in range(len(rows))]
