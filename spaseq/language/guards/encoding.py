"""Runs as codes, so that the kernels can join mappings themselves.

`spaseq.language.guards.registers` defines the guards of a query on sets of mappings. Here a mapping is a code per
variable: terms are numbered as they come, and a join is a test for equality. A FILTER `?a < ?b` between GPMs is a test
of codes in the order of the values (`spaseq.language.guards.sides`). Any other FILTER between GPMs is a question about
the terms of its variables, asked once about the same terms. It is not asked if it compares sums and products of numbers
that are not too close to each other. A list of rounds is a code, too (`spaseq.language.guards.round_lists`).

Guards are compiled once for a query (`spaseq.language.guards.operations`), to operations on registers and columns
(`spaseq.language.guards.layout`). `TermCodes` are those of one evaluation: it writes the columns of instants. If a GPM
has several mappings, they are further values of the instant, and Ω is a set of rows of codes.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as MappingABC
from typing import TYPE_CHECKING, Any

import numpy as np

from spaseq.core.automata import INITIAL
from spaseq.core.engine.program.register_ops import NOTHING, UNKNOWN
from spaseq.core.errors import InternalError
from spaseq.core.integers import apart
from spaseq.core.snapshot import expect
from spaseq.gpm import ROUNDS, Side, freeze, holds
from spaseq.language.guards.layout import Columns
from spaseq.language.guards.operations import CompiledGuards
from spaseq.language.guards.round_lists import RoundLists
from spaseq.language.guards.sides import NAMES, SideCodes
from spaseq.language.guards.terms import NumberedTerms, SolutionTerms
from spaseq.language.semantics.expand import Conjunction
from spaseq.rdf import Term

if TYPE_CHECKING:
    from spaseq.gpm.columnar.evaluate import Solutions
    from spaseq.language.solving.instants import InstantBatch, Rows


_LATEST = (1 << 63) - 1
"""The latest time, ns."""


class TermCodes:
    """`spaseq.core.engine.Codes` of an evaluation.

    `outputs` are the registers of variables and of the list of rounds: the mapping that a match was accepted with.
    """

    def __init__(self, guards: CompiledGuards) -> None:
        layout = guards.layout
        self._bound, self._layout = guards.bound, layout
        self.ops = guards.ops
        self._questions = [question for own in guards.filters.values() for question in own.asked]
        self.asked: int = max((len(question.names) for question in self._questions), default=0)
        self.registers: int = layout.registers
        self.outputs: tuple[int, ...] = (*layout.terms.values(), *(() if layout.list is None else (layout.list,)))
        self.terms: NumberedTerms = NumberedTerms()
        self._solved = SolutionTerms(self.terms)
        compared = [comparison for own in guards.filters.values() for comparison in own.compared]
        self._sides = SideCodes(compared, self._solved, next(iter(guards.patterns.values())).prologue)
        self.chains: RoundLists | None = None if layout.list is None else RoundLists(self.terms, layout.collected)
        self._blank = np.full((1, layout.width), NOTHING, np.int64)
        for columns in layout.columns.values():
            self._blank[0, columns.others] = 0
            self._blank[0, columns.present] = UNKNOWN
        self._nothing: list[int] = self._blank[0].tolist()
        self._last: Rows | None = None
        self._wholes: dict[int, tuple[np.ndarray, np.ndarray | None]] = {}
        self._room = np.empty((0, layout.width), np.int64)
        self._no_extras = self._room
        self._extras: list[np.ndarray] = []

    # -- the columns of instants

    def load(self, batch: InstantBatch, rows: np.ndarray) -> np.ndarray | None:
        """int64 (n, columns), as of `Codes.load`; None if values do not compare with earlier ones.

        PERF: only `rows` are written, in an array that is kept: a sequence of 20 GPMs has 145 columns. 25,000 instants
        of which one in nine moves a run (benchmarks/graphs.py, "SEQ of 20"): 29 ms became 17.
        """
        if len(batch) == 1 and not batch.rows.has_columns:
            return self._load_one(batch)
        if self._last is not batch.rows:
            self._begin(batch.rows)
        self._extras = []
        if len(self._room) < len(batch):
            self._room = np.empty((len(batch), self._layout.width), np.int64)
        values = self._room[: len(batch)]
        values[rows] = self._blank
        moving = np.zeros(len(batch), bool)
        moving[rows] = True
        for conjunction, column in self._layout.unseen.items():
            values[rows, column] = np.where(batch.unseen(conjunction)[rows], NOTHING, UNKNOWN)
        if self._layout.late:
            times = np.maximum(batch.times[rows], UNKNOWN + 1)
            values[rows, self._layout.now] = times
            for time, column in self._layout.late.items():
                values[rows, column] = np.minimum(times, _LATEST - time) + time
        return values if all(self._enter_all(batch, c, moving, values) for c in self._layout.columns) else None

    def _load_one(self, batch: InstantBatch) -> np.ndarray | None:
        """As `load`, of a row whose solutions are mappings.

        PERF: a row of four terms took 26 µs by the arrays of `_enter_all` and `_enter`, 6 as a list.
        """
        self._last, self._extras = None, []
        row = self._nothing.copy()
        for conjunction, column in self._layout.unseen.items():
            row[column] = NOTHING if batch.unseen(conjunction)[0] else UNKNOWN
        if self._layout.late:
            now = row[self._layout.now] = max(batch.times.item(0), UNKNOWN + 1)
            for time, column in self._layout.late.items():
                row[column] = min(now + time, _LATEST)
        several: list[tuple[Columns, list[int], list[list[int]]]] = []
        for conjunction, columns in self._layout.columns.items():
            listed = self._list(batch, conjunction, (0,))
            if listed is None:
                return None
            if len(listed[0]) == 1:
                row[columns.present] = 1
                row[columns.read] = listed[1][0]
            elif listed[0]:
                several.append((columns, *listed))
        values = np.array([row], np.int64)
        for each in several:
            self._enter(values, *each)
        return values

    @property
    def extras(self) -> np.ndarray:
        """The further mappings of instants that have several: int64 (rows, columns)."""
        return np.concatenate(self._extras) if self._extras else self._no_extras

    def _enter_all(self, batch: InstantBatch, conjunction: Conjunction, moving: np.ndarray, values: np.ndarray) -> bool:
        """Enter the mappings that a conjunction has in the rows `moving` (bool (n,)); False if one has no codes."""
        columns = self._layout.columns[conjunction]
        solved = batch.rows.solutions(conjunction[0]) if len(conjunction) == 1 else None
        if solved is None:  # it has to be joined, or its rows were solved elsewhere
            holding = np.flatnonzero(batch.holds(conjunction) & moving).tolist() if len(batch) > 1 else (0,)
            listed = self._list(batch, conjunction, holding)
            if listed is not None and listed[0]:
                self._enter(values, columns, *listed)
            return listed is not None
        found: list[tuple[np.ndarray, np.ndarray]] = []
        for rows, solutions, places in solved:
            if not len(rows):
                continue
            low, high = np.searchsorted(rows, [batch.first, batch.first + len(batch)])
            own = rows[low:high] - batch.first
            read = np.flatnonzero(moving[own])
            if len(read):
                # What the rows have may grow with the next batches (`Rows.present_in`); it ends here then.
                dense = 2 * len(read) > len(own) and (not low or high < len(rows) or id(places) in self._wholes)
                whole = self._coded_whole(columns, solutions, places) if dense else None
                few = self._code(columns, solutions, places[low:high][read]) if whole is None else None
                codes = few if whole is None else whole[low:high][read]
                if codes is None:
                    return False
                found.append((own[read], codes))
        if found:
            self._enter(values, columns, *map(np.concatenate, zip(*found, strict=True)))
        return True

    def _coded_whole(self, columns: Columns, solutions: Solutions, places: np.ndarray) -> np.ndarray | None:
        """The codes of all solutions of the rows that batches are cut from: once, not for each batch (PERF)."""
        known = self._wholes.get(id(places))
        if known is None:
            known = self._wholes[id(places)] = places, self._code(columns, solutions, places)
        return known[1]

    def _enter(
        self, values: np.ndarray, columns: Columns, places: np.ndarray | list[int], mappings: np.ndarray | list[Any]
    ) -> None:
        """Enter the `mappings` (int64 (k, value columns)) that a conjunction has at `places` (int64 (k,)), which are
        rows of `values`: the first of each row there, the others as extras."""
        rows, present, read = np.asarray(places, np.int64), columns.present, columns.read
        codes = np.asarray(mappings, np.int64).reshape(len(rows), -1)
        if len(rows) == 1:
            values[rows[0], present] = 1
            values[rows[0], read] = codes[0]
            return
        if (rows[1:] > rows[:-1]).all():  # PERF: a third of the time, if no instant has several
            values[rows, present] = 1
            values[rows, read] = codes
            return
        order = np.lexsort((*codes.T[::-1], rows))
        rows, codes = rows[order], codes[order]
        same = rows[1:] == rows[:-1]
        if same.any():
            again = np.flatnonzero(same & (codes[1:] == codes[:-1]).all(axis=1)) + 1
            rows, codes = np.delete(rows, again), np.delete(codes, again, axis=0)
        firsts = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]]))[: len(rows)]
        instants = rows[firsts]
        values[instants, present] = 1
        values[instants, read] = codes[firsts]
        if len(firsts) == len(rows):
            return
        others = np.diff(np.append(firsts, len(rows))) - 1
        before = sum(map(len, self._extras))
        values[instants, columns.others] = others
        values[instants, columns.first] = before + np.cumsum(others) - others
        rest = np.delete(codes, firsts, axis=0)
        extras = np.full((len(rest), values.shape[1]), NOTHING, np.int64)
        extras[:, present] = 1
        extras[:, read] = rest
        if self._layout.late:
            timed = [self._layout.now, *self._layout.late.values()]
            extras[:, timed] = values[np.delete(rows, firsts)][:, timed]
        self._extras.append(extras)

    def _list(
        self, batch: InstantBatch, conjunction: Conjunction, rows: Iterable[int]
    ) -> tuple[list[int], list[list[int]]] | None:
        """The mappings that a conjunction has in some rows, one by one: the row and the codes of each."""
        found: tuple[list[int], list[list[int]]] = [], []
        for row in rows:
            for mapping in batch.mappings(conjunction, row):
                codes = self._codes_of(self._layout.columns[conjunction], dict(mapping))
                if codes is None:
                    return None
                found[0].append(row)
                found[1].append(codes)
        return found

    # -- the codes of mappings

    def _code(self, columns: Columns, solutions: Solutions, places: np.ndarray) -> np.ndarray | None:
        """The codes of the solutions at `places`: int64 (places, values); None if one has no code."""
        found = []
        for kind, what in columns.values:  # PERF: not of the rows that the GPM's own FILTERs stop
            if isinstance(what, Side):
                codes = self._sides.codes(what, solutions, places)
            elif kind == "round" and self.chains is not None:
                own = [self._solved.codes(solutions, places, name) for name in what.split()]
                table = np.array(own, np.int64).reshape(len(own), len(places)).T
                codes = self.chains.rounds_of(what.split(), table)
            elif kind == "near":
                codes = self._sides.near_codes(what, solutions, places)
            else:
                codes = self._solved.codes(solutions, places, what)
            if codes is None:
                return None
            found.append(codes)
        return np.stack(found, axis=1) if found else np.zeros((len(places), 0), np.int64)

    def _codes_of(self, columns: Columns, mapping: MappingABC[str, Term]) -> list[int] | None:
        """The codes of one mapping; None if one has no code."""
        codes: list[int] = []
        for kind, what in columns.values:
            if kind == "round" and self.chains is not None:
                names = str(what).split()
                codes.append(self.chains.round_of(names, [self._term_code(mapping, name) for name in names]))
                continue
            code = self._term_code(mapping, what.name if isinstance(what, Side) else what)
            found = self._sides.code(what, code) if isinstance(what, Side) else code
            if found is None:
                return None
            codes.append(self._sides.near_code(code) if kind == "near" else found)
        return codes

    def _term_code(self, mapping: MappingABC[str, Term], name: str) -> int:
        term = mapping.get(name)
        return NOTHING if term is None else self.terms.of(term)

    # -- questions, and back to rows

    def answer(self, number: int, codes: list[int], row: int) -> bool:
        """True if the FILTER of a question is true of these terms. See `Codes.answer`."""
        question = self._questions[number]
        bound = [(name, code) for name, code in zip(question.names, codes, strict=False) if code != NOTHING]
        mapping = freeze((name, self.terms.term(code)) for name, code in bound)
        return holds(question.condition, mapping, question.prologue)

    def row(self, codes: list[list[int]], state: int) -> Any:
        """The register row (`registers.Row`) of a run in a state of the automaton, or accepted."""
        omega = frozenset(freeze(self._pairs(row)) for row in codes)
        levels, owed = self._bound.get(state, ((frozenset(),), ()))
        since = [codes[0][at] - time for time, at in self._layout.deadlines.items() if codes[0][at] != NOTHING]
        return levels, omega, None if state == INITIAL else owed, *since

    def twin(self, row: Any, number: int) -> Any:
        """As of `Codes.twin`: every term has one code."""
        raise InternalError("two runs with the same mappings")

    def _pairs(self, row: list[int]) -> list[tuple[str, Any]]:
        """The terms in a row of registers by their variables, and the list of rounds by its name."""
        term, listed = self.terms.term, self._layout.list
        found: list[tuple[str, Any]] = [(n, term(row[i])) for n, i in self._layout.terms.items() if row[i] != NOTHING]
        if self.chains is not None and listed is not None and row[listed] != NOTHING:
            found.append((ROUNDS, self.chains.mappings(row[listed])))
        return found

    def columns(self, names: frozenset[str]) -> dict[str, int] | None:
        """The registers of `names`: of numbers of `terms`, `ROUNDS` of `chains`. None if two may be a term."""
        known = self._layout.terms if self._layout.list is None else {**self._layout.terms, ROUNDS: self._layout.list}
        return None if self.terms.has_aliases else {name: known[name] for name in names & known.keys()}

    # -- what is in use

    @property
    def full(self) -> bool:
        """True if it is time to `evict`."""
        return self.terms.full or self._sides.order.full or (self.chains is not None and self.chains.full)

    def full_before(self, batch: InstantBatch) -> bool:
        """As of `Codes.full_before`.

        PERF: the next piece of the same rows asks for all of their terms again. If these were more than are held, each
        piece numbered them anew; so the next one was made smaller, down to one row. 200,000 graphs in batches of 50,000
        took more than six minutes under a profiler, now 1 s.
        """
        if self._last is batch.rows and not self._sides.order.crowded:
            return self.chains is not None and self.chains.full
        return self.full

    def evict(self, held: np.ndarray) -> np.ndarray | None:
        """Let go of the terms that are in none of these registers: int64 (runs, registers). See `Codes.evict`."""
        if self.chains is not None:
            self.chains.keep(held[:, self._layout.list])
        self.terms.keep(self._used(held))
        self._forget()
        labels = self._sides.labels_in(self._layout.numbers)
        if not labels:
            return None
        held = held.copy()
        held[:, labels] = self._sides.order.keep(held[:, labels])
        return held

    def _used(self, held: np.ndarray) -> set[int]:
        """The numbers of terms in these registers, and the codes there for no term."""
        count = len(self._layout.terms)
        named = np.delete(held, [*range(count), *self._layout.deadlines.values()], axis=1)
        named = named[(named >= NAMES) & (named < NAMES + self.terms.next)] - NAMES
        listed = set() if self.chains is None else self.chains.terms_used()
        return {*apart(held[:, :count]).tolist(), *apart(named).tolist(), *listed}

    def _begin(self, rows: Rows | None) -> None:
        """Remember nothing of the rows that batches were cut from; the next are cut from `rows`."""
        self._wholes, self._last = {}, rows
        self._solved.forget()

    def _forget(self) -> None:
        """Remember nothing of numbers that may stand for nothing any more."""
        self._begin(None)
        self._sides.forget()

    def snapshot(self) -> Any:
        """The numbered terms, lists and sides that are ordered, as plain values."""
        terms, sides = self.terms.snapshot(), self._sides.snapshot()
        found = terms if self.chains is None else (terms, self.chains.snapshot())
        return found if sides is None else (found, *sides)

    def restore(self, state: Any, held: np.ndarray) -> None:
        """The opposite of `snapshot`; as of `Codes.restore`."""
        lists: Any = None
        sides: list[Any] = []
        if len(state) == 3:
            state, *sides = state
        if self.chains is not None:
            state, lists = state
        known = self.terms.restore(state)
        if self.chains is not None:
            self.chains.restore(lists, known, held[:, self._layout.list])
        self._sides.restore(sides, held, self._layout.numbers)
        self._forget()
        expect(self._used(held) <= {*known, NOTHING, UNKNOWN}, "a term for each number of one")
