"""What a recogniser asks of events: its tests, told apart by whether one event decides them.

A test about the event at hand alone is *narrow*: asked of whole batches, and an event is known by the vector of its
answers, its symbol class (`spaseq.automata.alphabet`). One that reads a register is *wide*: asked run by run, of the
values that were kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spaseq.automata.rma import formulas as f
from spaseq.automata.rma.automaton import RMA
from spaseq.automata.rma.formulas import Formula, Test

__all__ = ["View", "Vocabulary"]


class View:
    """Some attributes of an event, as relations read them."""

    __slots__ = ("_index", "_values")

    def __init__(self, index: dict[str, int], values: tuple[Any, ...]) -> None:
        self._index, self._values = index, values

    def get(self, name: str) -> Any:
        """The value of an attribute, or None."""
        at = self._index.get(name)
        return None if at is None else self._values[at]


class Vocabulary:
    """The tests of an automaton, and the symbol classes of the events met so far.

    `features` are more tests of the event at hand, by which classes are told apart though the automaton does not care.
    """

    def __init__(self, automaton: RMA, features: tuple[Test, ...] = ()) -> None:
        found = dict.fromkeys(t for transition in automaton.transitions for t in f.tests(transition.formula))
        self.narrow = tuple(dict.fromkeys((*(t for t in found if set(t.arguments) <= {f.CURRENT}), *features)))
        self.wide = tuple(t for t in found if not set(t.arguments) <= {f.CURRENT})
        from spaseq.automata.alphabet import Alphabet  # numba: only when events come

        self._alphabet = Alphabet(len(self.narrow))

    @property
    def has_wide(self) -> bool:
        """Whether some test reads a register."""
        return bool(self.wide)

    @property
    def vectors(self) -> list[int]:
        """For each symbol class its answers, bit p for test p."""
        return self._alphabet.vectors

    def truth(self, kind: int) -> dict[Test, bool]:
        """The narrow tests as the events of a symbol class answer them."""
        return {t: bool(self.vectors[kind] >> p & 1) for p, t in enumerate(self.narrow)}

    def left(self, formula: Formula, kind: int) -> Formula:
        """What is left to ask of a formula at an event of a symbol class: wide tests."""
        return f.restricted(formula, self.truth(kind))

    def classes(self, rows: Any) -> np.ndarray:
        """int32 (n,): the symbol class of each event."""
        truth = np.zeros((len(self.narrow), len(rows)), bool)
        for p, test in enumerate(self.narrow):
            evaluate = getattr(test.relation, "evaluate", None)
            truth[p] = _one_by_one(test, rows) if evaluate is None else evaluate(rows)
        return self._alphabet.classify(truth)


def _one_by_one(test: Test, rows: Any) -> list[bool]:
    """A relation of several arguments is about the event at hand under several names, and reads attributes by each."""
    reads = [test.relation.reads(place) for place in range(len(test.arguments))]
    read: Callable[[int], Any]
    if None in reads:
        read = rows.event
    else:
        names = dict.fromkeys(name for some in reads for name in some or ())
        index = {name: i for i, name in enumerate(names)}
        getters = [rows.getter(name) for name in names]

        def read(row: int) -> View:
            return View(index, tuple([get(row) for get in getters]))

    return [bool(test.relation(*([read(row)] * len(test.arguments)))) for row in range(len(rows))]
