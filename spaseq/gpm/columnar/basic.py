"""Matches basic graph patterns on a batch of events.

The triples of a batch are listed by predicate once (`spaseq.gpm.columnar.lists`), for all patterns. The pairs of a
property path are computed first and become a list of their own. Then, for each event, a kernel backtracks over the
lists of the triple patterns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from rdflib.paths import Path
from rdflib.term import BNode, URIRef, Variable

from spaseq.core.errors import BudgetExceeded
from spaseq.core.jit import attempt_rows, interprets
from spaseq.core.watch import check, to_hold
from spaseq.gpm import algebra
from spaseq.gpm.columnar import kernels as k
from spaseq.gpm.columnar.lists import Lists
from spaseq.gpm.columnar.paths import pairs_of
from spaseq.gpm.columnar.table import Table

_Triple = tuple[Any, Any, Any]
_SEEK: Final = 24  # a list with this many triples at one event is sorted; the kernel scans shorter ones


@dataclass(frozen=True, slots=True)
class _Step:
    """A triple pattern in the form of the kernel. `predicate`: an IRI, a path, or None for any.

    `places`: for subject, predicate and object (its kind, the slot of its variable); the slot is -1 for a constant,
    which is in `terms`. `seek`: the place by which triples are looked up, -1 for none.
    """

    predicate: Any
    places: tuple[tuple[int, int], ...]
    terms: tuple[Any, Any, Any]
    seek: int


@dataclass(frozen=True, slots=True)
class BasicPattern:
    """A basic graph pattern compiled for the kernel. `names`: pairs of a variable and its slot. `shape`: equal for
    patterns that differ in the names of their variables alone; None for one with a property path."""

    steps: tuple[_Step, ...]
    names: tuple[tuple[str, int], ...]
    slots: int
    shape: tuple[Any, ...] | None = None


def basic_pattern(node: algebra.BGP, given: Iterable[Variable] = ()) -> BasicPattern:
    """Compiles a basic graph pattern that is not empty. `given`: the variables of the first slots, which have terms
    before the first step."""
    slots: dict[Any, int] = {name: slot for slot, name in enumerate(given)}
    steps = tuple(_step(triple, slots) for triple in _order(node.triples, slots))
    names = tuple(sorted((str(term), slot) for term, slot in slots.items() if isinstance(term, Variable)))
    return BasicPattern(steps, names, len(slots), _shape(steps))


def _shape(steps: Sequence[_Step]) -> tuple[Any, ...] | None:
    if any(isinstance(step.predicate, Path) for step in steps):
        return None
    return tuple((step.places, tuple(None if _is_open(t) else t for t in step.terms), step.seek) for step in steps)


def _is_open(term: Any) -> bool:
    """True if a term of a pattern is a variable, or a blank node, which acts as one."""
    return isinstance(term, (Variable, BNode))


def _order(triples: Sequence[_Triple], given: Iterable[Any]) -> list[_Triple]:
    """The triple patterns in the order of matching: those that share variables with earlier ones or with the `given`
    ones, and those with the most constants, come first."""
    rest, order = list(triples), []
    known: set[Any] = set(given)
    while rest:
        best = max(rest, key=lambda t: sum(term in known or not _is_open(term) for term in t))
        rest.remove(best)
        order.append(best)
        known.update(term for term in best if _is_open(term))
    return order


def _step(triple: tuple[Any, Any, Any], slots: dict[Any, int]) -> _Step:
    known = set(slots)
    places = []
    for term in triple:
        if isinstance(term, (Variable, BNode)):
            what = k.SAME if term in slots else k.FILL
            places.append((what, slots.setdefault(term, len(slots))))
        else:
            # All triples in the list of a predicate have it, so it need not be compared.
            places.append((k.CONSTANT, -1))
    predicate = triple[1] if isinstance(triple[1], (URIRef, Path)) else None
    bound = [place for place in (0, 2) if triple[place] in known or places[place][0] == k.CONSTANT]
    return _Step(predicate, tuple(places), triple, bound[0] if bound else -1)


def match(pattern: BasicPattern, lists: Lists, events: np.ndarray, counting: bool) -> Table:
    """The solutions of a pattern at `events` (int32, ascending). They do not include the pattern's blank nodes, so rows
    may be equal. `counting`: True if each solution must occur as often as in SPARQL.

    Raises `BudgetExceeded` (`solution_rows`) beyond the lists' budget.
    """
    names = [name for name, _ in pattern.names]
    # Sequences often ask several times for the same triples, under different FILTERs.
    held = None if pattern.shape is None else lists.known_matches.get(pattern.shape)
    if held is not None and (held[0] is events or np.array_equal(held[0], events)):
        return Table(held[1], {name: held[2][slot] for name, slot in pattern.names})
    laid = _lay_out(pattern, lists, counting)
    if laid is None or not len(events):
        return Table.none(names)
    triples, rows, sought, starts, steps = laid
    capacity = max(64, 2 * len(events))
    found_events, found = np.empty(capacity, np.int32), np.empty((capacity, pattern.slots), np.int32)
    state = np.zeros(2, np.int64)
    tried = _most_tried(starts, steps, events) if interprets(k.match_events) else 0
    while not attempt_rows(k.match_events, tried, triples, rows, sought, starts, steps, events, state, pattern.slots,
                           found_events, found):  # fmt: skip
        check()
        if capacity >= lists.budget:
            raise BudgetExceeded("solution_rows", lists.budget, capacity + 1, "rows")
        capacity = min(4 * capacity, lists.budget)
        to_hold(4 * capacity * (1 + pattern.slots))
        found_events, found = _grow(found_events, capacity), _grow(found, capacity)
    count = int(state[1])
    found_events = found_events[:count]
    slots = tuple(found[:count].T.copy())  # the same arrays for every caller: they are distinguished by identity
    if pattern.shape is not None:
        lists.known_matches[pattern.shape] = events, found_events, slots
    return Table(found_events, {name: slots[slot] for name, slot in pattern.names})


def _most_tried(starts: np.ndarray, steps: np.ndarray, events: np.ndarray) -> int:
    """About as many candidates as a pattern may try: without a sorted list, all of an event for each earlier one."""
    candidates = np.diff(starts, axis=1)[:, events].sum(axis=0).astype(np.float64)
    free = max(1, int((steps[:, 7] < 0).sum()))
    return int(min(3 * len(steps) * (1 + candidates**free).sum(), 1e12))


def _grow(array: np.ndarray, capacity: int) -> np.ndarray:
    larger = np.empty((capacity, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


_Layout = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _lay_out(pattern: BasicPattern, lists: Lists, counting: bool) -> _Layout | None:
    """The arguments of the kernel; None if a constant or a predicate is not in the batch: no solutions."""
    laid = lists.layouts.get(id(pattern))
    if laid is None:
        steps = _steps(pattern, lists)
        if steps is None:
            return None
        laid = lists.layouts[id(pattern)] = pattern, steps
    steps = laid[1]
    for step, number in zip(pattern.steps, steps[:, 0].tolist(), strict=True):
        if number < 0 or (step.seek >= 0 and lists.longest(number) > _SEEK):
            return _lay_out_lists(pattern, lists, steps.copy(), counting)
    return lists.triples, lists.rows, lists.rows, lists.starts, steps


def _steps(pattern: BasicPattern, lists: Lists) -> np.ndarray | None:
    """The steps as the kernel reads them, int32 (steps, 8), with the list of the predicate in column 0, or -1 if it
    needs another one. None if a constant or a predicate does not occur in the batch."""
    space = lists.space
    steps = np.zeros((len(pattern.steps), 8), np.int32)
    for i, step in enumerate(pattern.steps):
        for place, (what, slot) in enumerate(step.places):
            value = slot
            if what == k.CONSTANT and not isinstance(step.terms[place], Path):
                value = space.find(step.terms[place])
                if value < 0 and isinstance(step.predicate, Path) and place != 1:
                    value = space.number(step.terms[place])  # a path of length zero leads from any term to itself
                if value < 0:
                    return None
            steps[i, 1 + 2 * place], steps[i, 2 + 2 * place] = what, value
        number = lists.number(step.predicate) if isinstance(step.predicate, URIRef) else -1
        if isinstance(step.predicate, URIRef) and number < 0:
            return None
        steps[i, 0], steps[i, 7] = number, -1
    return steps


def _lay_out_lists(pattern: BasicPattern, lists: Lists, steps: np.ndarray, counting: bool) -> _Layout:
    """The arguments of the kernel, with a list for each step. A list has all triples, those of the step's predicate, or
    the pairs of its path; it is sorted by the term at `seek`, if that is not -1."""
    events = len(lists)
    triples, rows, sought = [lists.triples], [], []
    starts = np.zeros((len(steps), events + 1), np.int64)
    count, used = len(lists.triples), 0
    for i, step in enumerate(pattern.steps):
        match step.predicate:
            case None:
                own, begins = np.arange(len(lists.triples), dtype=np.int32), lists.offsets
            case URIRef() as predicate:
                begins = lists.starts[lists.number(predicate)]
                own = lists.rows[begins[0] : begins[-1]]
            case path:
                ends = [int(steps[i, 2 + 2 * place]) for place in (0, 2) if step.places[place][0] == k.CONSTANT]
                pairs = pairs_of(path, ends, lists, counting)
                derived = np.stack([pairs.sources, np.full(len(pairs), -1, np.int32), pairs.targets], axis=1)
                triples.append(derived.astype(np.int32))
                own = np.arange(count, count + len(pairs), dtype=np.int32)
                begins = np.searchsorted(pairs.events, np.arange(events + 1))
                steps[i, 4] = -1
                count += len(pairs)
        keys = np.zeros(len(own), np.int32)
        if step.seek >= 0:
            whole = np.concatenate(triples) if len(triples) > 1 else lists.triples
            keys = whole[own, step.seek]
            order = np.lexsort((keys, np.repeat(np.arange(events), np.diff(begins))))
            own, keys = own[order], keys[order]
            steps[i, 7] = step.seek
        steps[i, 0] = i
        starts[i] = begins - begins[0] + used
        used += len(own)
        rows.append(own)
        sought.append(keys)
    return (
        np.ascontiguousarray(np.concatenate(triples)),
        np.concatenate(rows).astype(np.int32),
        np.concatenate(sought).astype(np.int32),
        starts,
        steps,
    )
