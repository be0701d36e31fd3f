"""Random patterns as the oracle's formulas, and their translation to the core's algebra."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from spaseq.core.pattern import And, As, Atom, Filter, Iterate, Or, Pattern, Project, Sequence, Skip
from tests.support import oracle as o

TYPES = "ABC"


@dataclass(frozen=True)
class HasType:
    name: str

    def evaluate(self, batch: Rows) -> np.ndarray:
        return batch.types == self.name

    def excludes(self, other: object) -> bool:
        return isinstance(other, HasType) and other.name != self.name


@dataclass(frozen=True)
class Less:
    attribute: str
    bound: int

    def evaluate(self, batch: Rows) -> np.ndarray:
        return batch.values < self.bound


@dataclass
class Rows:
    """A batch of events: a type, a value, a time and perhaps a partition each."""

    types: np.ndarray
    values: np.ndarray
    positions: np.ndarray
    times: np.ndarray
    keys: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.types)

    def __getitem__(self, rows: slice) -> Rows:
        keys = None if self.keys is None else self.keys[rows]
        return Rows(self.types[rows], self.values[rows], self.positions[rows], self.times[rows], keys)

    def events(self) -> list[dict[str, object]]:
        keys = [None] * len(self) if self.keys is None else [None if k < 0 else int(k) for k in self.keys]
        columns = zip(self.types, self.values, self.times, keys, strict=True)
        return [{"type": str(t), "v": int(v), "time": int(s), "t": int(s), "k": k} for t, v, s, k in columns]


def random_rows(rng: random.Random, size: int, partitions: int = 0) -> Rows:
    """`size` events with ties in time and small gaps; partition -1 is NULL."""
    times = np.cumsum([rng.choice((0, 1, 1, 2)) for _ in range(size)]).astype(np.int64)
    keys = np.array([rng.randrange(-1, partitions) for _ in range(size)], np.int64) if partitions else None
    types = np.array([rng.choice(TYPES) for _ in range(size)], "U1")
    return Rows(types, np.array([rng.randrange(4) for _ in range(size)], np.int64), np.arange(size), times, keys)


def random_formula(rng: random.Random, depth: int, names: list[str]) -> o.Formula:
    """A formula of at most `depth` operators on the longest path. `names` collects the variables it defines."""
    if depth == 0 or rng.random() < 0.15:
        atom: o.Formula = o.Type(rng.choice(TYPES))
        if rng.random() < 0.6:
            names.append(rng.choice("xyz"))
            atom = o.As(atom, names[-1])
        return atom
    match rng.randrange(9):
        case 0 | 1 | 2:
            left = random_formula(rng, depth - 1, names)
            return o.Then(left, random_formula(rng, depth - 1, names), rng.random() < 0.35)
        case 3:
            return o.Or(random_formula(rng, depth - 1, names), random_formula(rng, depth - 1, names))
        case 7:
            return o.And(random_formula(rng, depth - 1, names), random_formula(rng, depth - 1, names))
        case 8:
            absent = random_absent(rng)
            return o.Without(random_formula(rng, depth - 1, names), absent, random_formula(rng, depth - 1, names))
        case 4:
            return o.Plus(random_formula(rng, depth - 1, names), rng.random() < 0.4)
        case 5:
            inner: list[str] = []
            child = random_formula(rng, depth - 1, inner)
            names += inner
            if not inner:
                return child
            return o.Filter(child, ("on", rng.choice(inner), ("<", ("attribute", "v"), ("value", rng.randrange(1, 4)))))
        case _:
            inner = []
            child = random_formula(rng, depth - 1, inner)
            kept = frozenset(v for v in inner if rng.random() < 0.6) | frozenset(t for t in TYPES if rng.random() < 0.3)
            names += [v for v in inner if v in kept]
            return o.Project(child, kept)


def random_absent(rng: random.Random) -> o.Formula:
    """A formula that may stand in a negation: one event, perhaps filtered, perhaps one of two."""
    atom: o.Formula = o.Type(rng.choice(TYPES))
    if rng.random() < 0.5:
        atom = o.Filter(o.As(atom, "n"), ("on", "n", ("<", ("attribute", "v"), ("value", rng.randrange(1, 4)))))
    return o.Or(atom, o.Type(rng.choice(TYPES))) if rng.random() < 0.3 else atom


def atoms(formula: o.Formula) -> tuple[Atom, ...]:
    """A formula of one event as alternatives."""
    match formula:
        case o.Or(left, right):
            return atoms(left) + atoms(right)
        case o.Filter(o.As(o.Type(name), _), ("on", _, ("<", _, ("value", bound)))):
            return (Atom(frozenset({HasType(name), Less("v", bound)}), frozenset({name})),)
        case o.Type(name):
            return (Atom(frozenset({HasType(name)}), frozenset({name})),)
    raise AssertionError(formula)


def lower(formula: o.Formula) -> Pattern:
    """The same formula in the core's algebra."""
    match formula:
        case o.Type(name):
            return Atom(frozenset({HasType(name)}), frozenset({name}))
        case o.As(child, variable):
            return As(lower(child), variable)
        case o.Filter(child, ("on", variable, ("<", _, ("value", bound)))):
            return Filter(lower(child), variable, Less("v", bound))
        case o.Or(left, right):
            return Or(lower(left), lower(right))
        case o.Then(left, right, adjacent):
            return Sequence(lower(left), lower(right), Skip.NONE if adjacent else Skip.ANY)
        case o.And(left, right):
            return And(lower(left), lower(right))
        case o.Without(left, absent, right):
            return Sequence(lower(left), lower(right), Skip.ANY, atoms(absent))
        case o.Plus(child, adjacent):
            return Iterate(lower(child), Skip.NONE if adjacent else Skip.ANY)
        case o.Project(child, kept):
            return Project(lower(child), kept)
    raise AssertionError(formula)
