"""Runs as codes: what the kernels need to join mappings themselves.

`spaseq.language.guards.registers` says what the guards of a query mean, on sets of mappings. Here a mapping is a
code per variable: terms are numbered as they come, a join is a test for equality, and a FILTER `?a < ?b` between GPMs
one of codes in the order of the values (`spaseq.language.guards.sides`). Any other FILTER between GPMs is a question
about the terms of its variables, asked once about the same terms, and not at all where it compares sums and products of
numbers that are not too close to each other.
Where a GPM has several mappings, they are further values of the instant, and Ω is a set of rows of codes.
`term_codes` gives the guards of an automaton in that form, where they have it. A FILTER `?a < ?b` over values of
several kinds makes the engine go on with sets of rdflib's terms.

A list of rounds is a code, too (`spaseq.language.guards.round_lists`).

Not in this form: FILTERs between GPMs with RAND and the like, a Kleene+ whose variables an earlier
element binds on some of its ways only, and alternatives of which not all wait for the same to stay absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingABC
from typing import TYPE_CHECKING, Any

import numpy as np

from spaseq.core.automata import CEA, INITIAL, Action, Again, Avoid, Transition
from spaseq.core.automata import Take as TakeAction
from spaseq.core.engine.program import register_ops as do
from spaseq.core.engine.program.register_ops import NOTHING, UNKNOWN, Op
from spaseq.core.errors import InternalError
from spaseq.core.integers import apart
from spaseq.core.snapshot import expect
from spaseq.gpm import (
    ROUNDS,
    GraphPattern,
    Side,
    freeze,
    holds,
    number_program,
)
from spaseq.gpm.columnar import unsteady
from spaseq.language.guards.bound import Bound, MayBind, bound_in_states, freed_by_rounds, transitions
from spaseq.language.guards.compared import Asked, Compared, comparison_of
from spaseq.language.guards.guards import Free, Meets, Pass, Take, conjunctions_of
from spaseq.language.guards.round_lists import RoundLists
from spaseq.language.guards.sides import NAMES, SideCodes
from spaseq.language.guards.terms import NumberedTerms
from spaseq.language.semantics.expand import Conjunction
from spaseq.language.semantics.filters import conditions, conjunction_binds
from spaseq.rdf import Term

if TYPE_CHECKING:
    from spaseq.gpm.columnar.evaluate import Solutions
    from spaseq.gpm.columnar.table import Space
    from spaseq.language.solving.instants import InstantBatch, Rows

__all__ = ["TermCodes", "term_codes"]

_Kind = str
"""What a column or a register holds of a variable: "term", "number" (of a `Side`) or "near", its nearest double; and
"round", of several."""


def term_codes(patterns: MappingABC[str, GraphPattern], cea: CEA) -> TermCodes | None:
    """The guards of `cea` on codes of terms; None where one of them needs the terms themselves."""
    guards = [a.guard for t in transitions(cea) for a in t.actions if isinstance(a, TakeAction | Avoid)]
    takes = _takes(cea)
    compared: dict[Conjunction, tuple[Compared, ...]] = {}
    asked: dict[Conjunction, tuple[Asked, ...]] = {}
    for conjunction in dict.fromkeys(c for guard in guards for c in conjunctions_of(guard)):
        outer = list(conditions(patterns, conjunction, inner=False))
        if any(unsteady(condition.expression) for condition, _ in outer):
            return None
        found = [comparison_of(patterns, conjunction, condition) for condition, _ in outer]
        compared[conjunction] = tuple(one for one in found if one is not None)
        before = sum(map(len, asked.values()))
        others = [one for one, comparison in zip(outer, found, strict=True) if comparison is None]
        asked[conjunction] = tuple(
            Asked(before + i, condition, prologue, tuple(sorted(condition.variables)),
                   number_program(condition.expression) or ())
            for i, (condition, prologue) in enumerate(others)
        )  # fmt: skip
    bound = bound_in_states(patterns, cea)
    freed = None if bound is None else freed_by_rounds(cea, patterns, bound)
    if bound is None or freed is None:
        return None
    return TermCodes(patterns, compared, asked, frozenset().union(*(take.keep for take in takes)), bound, freed, cea)


def _takes(cea: CEA) -> list[Take]:
    guards = [a.guard for t in transitions(cea) for a in t.actions if isinstance(a, TakeAction)]
    return [guard for guard in guards if isinstance(guard, Take)]


class TermCodes:
    """`spaseq.core.engine.Codes` of a query: a register for each variable that is kept, and for each number compared
    later.

    `outputs` are the former: the mapping that a match was accepted with. What is compared is a `Side`: a variable, or
    arithmetic on one. Programs of questions take doubles near to the values of variables.
    """

    def __init__(
        self,
        patterns: MappingABC[str, GraphPattern],
        compared: MappingABC[Conjunction, tuple[Compared, ...]],
        asked: MappingABC[Conjunction, tuple[Asked, ...]],
        kept: frozenset[str],
        bound: MappingABC[int, Bound],
        freed: MappingABC[frozenset[str], frozenset[str]],
        cea: CEA,
    ) -> None:
        self._patterns = patterns
        self._compared = compared
        self._asked = asked
        self._questions = [question for all_of in asked.values() for question in all_of]
        self.asked: int = max((len(question.names) for question in self._questions), default=0)
        self._bound = bound
        self._freed = freed
        self._may_bind = MayBind(patterns, freed, cea)
        # PERF: `keep` of a step names what later ones bind, too. A sequence of 20 GPMs of four variables, of which they
        # share one, has 2 registers; it had 59, and one of 21 GPMs more than the kernel takes.
        kept &= frozenset().union(*map(self._may_bind.behind, transitions(cea)))
        self._ids = {name: i for i, name in enumerate(sorted(kept))}
        comparisons = [c for all_of in compared.values() for c in all_of]
        outer = dict.fromkeys(c.outer for c in comparisons)
        self._numbers = {side: len(self._ids) + i for i, side in enumerate(outer)}
        near = sorted(frozenset().union(*(q.numbers for q in self._questions)) & kept)
        self._near = {name: len(self._ids) + len(self._numbers) + i for i, name in enumerate(near)}
        self.registers: int = len(self._ids) + len(self._numbers) + len(self._near)
        self.outputs: tuple[int, ...] = tuple(range(len(self._ids)))
        self.terms: NumberedTerms = NumberedTerms()
        self._sides = SideCodes(comparisons, self.terms, next(iter(patterns.values())).prologue)
        self._collected: dict[Conjunction, set[str]] = {}
        """For each conjunction the variables, in order and with blanks between, that its rounds are made of."""
        for take in _takes(cea):
            if take.collect:
                names = take.collect & conjunction_binds(patterns, take.conjunction)
                self._collected.setdefault(take.conjunction, set()).add(" ".join(sorted(names)))
        collected = {name for every in self._collected.values() for names in every for name in names.split()}
        self.chains: RoundLists | None = RoundLists(self.terms, sorted(collected)) if self._collected else None
        self._list = self.registers
        if self.chains is not None:
            self.registers += 1
            self.outputs = (*self.outputs, self._list)
        before = dict.fromkeys(c for take in _takes(cea) for c in take.before)
        self._columns: dict[tuple[Conjunction, _Kind, str | Side], int] = {}
        for conjunction in compared:
            for kind, name in self._read(conjunction):
                self._columns[conjunction, kind, name] = len(self._columns)
        self._before = {conjunction: len(self._columns) + i for i, conjunction in enumerate(before)}
        self._width = len(self._columns) + len(self._before)
        self._values_read = {conjunction: self._read(conjunction)[3:-1] for conjunction in compared}
        self._values_at = {
            conjunction: [self._columns[conjunction, kind, name] for kind, name in read]
            for conjunction, read in self._values_read.items()
        }
        self._blank = np.full((1, self._width), NOTHING, np.int64)
        for conjunction in compared:
            self._blank[0, self._columns[conjunction, "others", ""]] = 0
            self._blank[0, self._columns[conjunction, "present", ""]] = UNKNOWN
        self._nothing: list[int] = self._blank[0].tolist()
        self._no_extras = np.zeros((0, self._width), np.int64)
        self._spaces: dict[int, tuple[Space, np.ndarray]] = {}
        self._last: Rows | None = None
        self._wholes: dict[int, tuple[np.ndarray, np.ndarray | None]] = {}
        self._room = np.empty((0, self._width), np.int64)
        self._extras: list[np.ndarray] = []

    def _read(self, conjunction: Conjunction) -> list[tuple[_Kind, str | Side]]:
        """The columns of a conjunction: of its `ForEachValue`, whether it has a mapping, terms, numbers and rounds."""
        binds = conjunction_binds(self._patterns, conjunction)
        inner = [c.inner for c in self._compared[conjunction]]
        compared = dict.fromkeys([*inner, *(side for side in self._numbers if side.name in binds)])
        asked = self._asked[conjunction]
        names = dict.fromkeys([*self._ids, *(name for question in asked for name in question.names)])
        terms = [("term", name) for name in names if name in binds]
        numbers = [("number", side) for side in compared]
        close = dict.fromkeys([*self._near, *(name for question in asked for name in sorted(question.numbers))])
        near = [("near", name) for name in close if name in binds]
        rounds = [("round", names) for names in sorted(self._collected.get(conjunction, ()))]
        return [("others", ""), ("first", ""), ("present", ""), *terms, *numbers, *near, *rounds, ("nothing", "")]

    def _each(self, conjunction: Conjunction) -> do.ForEachValue:
        return do.ForEachValue(self._columns[conjunction, "others", ""], self._columns[conjunction, "first", ""])

    # -- the guards

    def ops(self, transition: Transition) -> tuple[Op, ...]:
        """What the actions of a transition do to the registers."""
        ops: list[Op] = []
        known = self._may_bind.before(transition)
        for action in transition.actions:
            if transition.source == INITIAL:
                unseen = [self._before[c] for c in getattr(getattr(action, "guard", None), "before", ())]
                ops += [do.ColumnTest("=", column, column) for column in unseen]
            ops += self._ops(action, known)
            known = self._may_bind.after(known, action)
        return tuple(ops)

    def _ops(self, action: Action, known: frozenset[str]) -> tuple[Op, ...]:
        match action:
            case TakeAction(Take(conjunction, keep, collect=collect)):
                return self._take(conjunction, keep, known) + self._append(conjunction, collect)
            case TakeAction(Pass(conjunctions)):
                return tuple(op for c in conjunctions for op in self._unless(c, known))
            case Avoid(Meets(conjunction)):
                return self._unless(conjunction, known)
            case Again(Free(names)):
                freed = self._freed[names]
                return tuple(do.Drop(register) for name, register in self._registers() if name in freed)
            case _:
                raise InternalError(f"no operations for {action}")

    def _take(self, conjunction: Conjunction, keep: frozenset[str], known: frozenset[str]) -> tuple[Op, ...]:
        ops: list[Op] = [self._each(conjunction), *self._joins(conjunction, known)]
        binds = conjunction_binds(self._patterns, conjunction)
        certain = frozenset().union(*(self._patterns[name].certain for name in conjunction))
        columns: list[tuple[_Kind, str | Side]] = [("term", name) for name in self._ids]
        columns += [*(("number", side) for side in self._numbers), *(("near", name) for name in self._near)]
        for (name, register), (kind, what) in zip(self._registers(), columns, strict=True):
            if name not in keep:
                ops.append(do.Drop(register))
            elif name in binds:
                rule = do.MergeRule.SET if name in certain else do.MergeRule.OVERWRITE
                ops.append(do.Keep(rule, register, self._columns[conjunction, kind, what]))
        return tuple(ops)

    def _append(self, conjunction: Conjunction, collect: frozenset[str]) -> tuple[Op, ...]:
        """That the list of rounds goes on with the one that `collect` says."""
        names = " ".join(sorted(collect & conjunction_binds(self._patterns, conjunction)))
        return (do.Append(self._list, self._columns[conjunction, "round", names]),) if collect else ()

    def _registers(self) -> Iterator[tuple[str, int]]:
        """Each register with the variable that it is about."""
        yield from self._ids.items()
        yield from ((side.name, register) for side, register in self._numbers.items())
        yield from self._near.items()

    def _joins(self, conjunction: Conjunction, known: frozenset[str]) -> tuple[do.Test | do.ResidualTest, ...]:
        """That the run's mapping and the conjunction's are compatible, and satisfy the FILTERs over both."""
        column, shared = self._columns, known & conjunction_binds(self._patterns, conjunction)
        same = [do.Test("=", register, column[conjunction, "term", name]) for name, register in self._ids.items()
                if name in shared]  # fmt: skip
        filters = [do.Test(c.turned, self._numbers[c.outer], column[conjunction, "number", c.inner], strict=True)
                   for c in self._compared[conjunction]]  # fmt: skip
        # Always true, and no way to look runs up. Sets of mappings, where they take over, need the term that a number
        # was of: what is read is kept.
        nothing = column[conjunction, "nothing", ""]
        outer = [c.outer.name for c in self._compared[conjunction]]
        whole = [do.Test("!=", self._ids[name], nothing) for name in outer if name in self._ids]
        asks = [self._ask(conjunction, question) for question in self._asked[conjunction]]
        return (*same, *filters, *asks, *whole)

    def _ask(self, conjunction: Conjunction, question: Asked) -> do.ResidualTest:
        """A question of the values that an event gives a conjunction, and else of the run's."""

        certain = frozenset().union(*(self._patterns[name].certain for name in conjunction))

        def operand(kind: _Kind, name: str) -> do.Operand:
            registers = self._ids if kind == "term" else self._near
            register = None if name in certain else registers.get(name)
            column = self._columns.get((conjunction, kind, name))
            if register is None and column is None:  # no run has it
                column = self._columns[conjunction, "nothing", ""]
            return do.Operand(register, column)

        def step(of: str | float) -> do.Operand | str | float:
            return operand("near", of[1:]) if isinstance(of, str) and of.startswith("?") else of

        about = tuple(operand("term", name) for name in question.names)
        return do.ResidualTest(question.number, about, tuple(map(step, question.program)))

    def _unless(self, conjunction: Conjunction, known: frozenset[str]) -> tuple[Op, ...]:
        present = self._columns[conjunction, "present", ""]
        has_mapping = do.ColumnTest("=", present, present)
        return self._each(conjunction), do.Unless((has_mapping, *self._joins(conjunction, known)))

    # -- the values

    def load(self, batch: InstantBatch, rows: np.ndarray) -> np.ndarray | None:
        """int64 (n, columns), as of `Codes.load`; None where a FILTER compares something else than numbers.

        PERF: only `rows` are written, in an array that is kept: a sequence of 20 GPMs has 145 columns. 25,000 instants
        of which one in nine moves a run (benchmarks/graphs.py, "SEQ of 20"): 29 ms became 17.
        """
        if len(batch) == 1 and not batch.rows.has_columns:
            return self._load_one(batch)
        if self._last is not batch.rows:
            self._spaces, self._wholes, self._last = {}, {}, batch.rows
        self._extras = []
        if len(self._room) < len(batch):
            self._room = np.empty((len(batch), self._width), np.int64)
        values = self._room[: len(batch)]
        values[rows] = self._blank
        moving = np.zeros(len(batch), bool)
        moving[rows] = True
        for conjunction, column in self._before.items():
            values[rows, column] = np.where(batch.unseen(conjunction)[rows], NOTHING, UNKNOWN)
        entered = (self._enter_all(batch, conjunction, moving, values) for conjunction in self._compared)
        return values if all(entered) else None

    def _load_one(self, batch: InstantBatch) -> np.ndarray | None:
        """As `load`, of a row whose solutions are mappings.

        PERF: a row of four terms took 26 µs by the arrays of `_enter_all` and `_enter`, 6 as a list.
        """
        self._last, self._extras = None, []
        row = self._nothing.copy()
        for conjunction, column in self._before.items():
            row[column] = NOTHING if batch.unseen(conjunction)[0] else UNKNOWN
        several: list[tuple[Conjunction, list[list[int]]]] = []
        for conjunction, read in self._values_read.items():
            found = []
            for mapping in batch.mappings(conjunction, 0):
                codes = self._codes_of(conjunction, read, dict(mapping))
                if codes is None:
                    return None
                found.append(codes)
            if len(found) == 1:
                row[self._columns[conjunction, "present", ""]] = 1
                for column, code in zip(self._values_at[conjunction], found[0], strict=True):
                    row[column] = code
            elif found:
                several.append((conjunction, found))
        values = np.array([row], np.int64)
        for conjunction, found in several:
            whole = np.array(found, np.int64).reshape(len(found), -1)
            self._enter(values, conjunction, np.zeros(len(found), np.int64), whole)
        return values

    @property
    def extras(self) -> np.ndarray:
        """The further mappings of instants that have several: int64 (rows, columns)."""
        return np.concatenate(self._extras) if self._extras else self._no_extras

    @staticmethod
    def _solutions(
        batch: InstantBatch, conjunction: Conjunction
    ) -> list[tuple[np.ndarray, Solutions, np.ndarray]] | None:
        """The solutions of a conjunction as columns; None where it has to be joined, or has none such."""
        return batch.rows.solutions(conjunction[0]) if len(conjunction) == 1 else None

    def _enter_all(self, batch: InstantBatch, conjunction: Conjunction, moving: np.ndarray, values: np.ndarray) -> bool:
        """Enter the mappings that a conjunction has in the rows `moving` (bool (n,)); False where one has no codes."""
        solved = self._solutions(batch, conjunction)
        if solved is None:
            return self._one_by_one(batch, conjunction, moving, values)
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
                whole = self._coded_whole(conjunction, solutions, places) if dense else None
                few = self._coded(conjunction, solutions, places[low:high][read]) if whole is None else None
                codes = few if whole is None else whole[low:high][read]
                if codes is None:
                    return False
                found.append((own[read], codes))
        if found:
            self._enter(values, conjunction, np.concatenate([rows for rows, _ in found]),
                        np.concatenate([codes for _, codes in found]))  # fmt: skip
        return True

    def _coded_whole(self, conjunction: Conjunction, solutions: Solutions, places: np.ndarray) -> np.ndarray | None:
        """`_coded` of all that the rows have which batches are cut from: once, not for each of many batches (PERF)."""
        known = self._wholes.get(id(places))
        if known is None:
            known = self._wholes[id(places)] = places, self._coded(conjunction, solutions, places)
        return known[1]

    def _coded(self, conjunction: Conjunction, solutions: Solutions, places: np.ndarray) -> np.ndarray | None:
        """The codes of the solutions at `places`: int64 (places, value columns); None if a number is asked of what is
        none."""
        columns = []
        for kind, what in self._values_read[conjunction]:  # PERF: not of the rows that the GPM's own FILTERs stop
            if isinstance(what, Side):
                codes = self._sides.codes(what, solutions, places, self._term_codes)
            elif kind == "round":
                codes = self._round_codes(solutions, places, what.split())
            elif kind == "near":
                codes = self._sides.near_codes(what, solutions, places, self._term_codes)
            else:
                codes = self._term_codes(solutions, places, what)
            if codes is None:
                return None
            columns.append(codes)
        return np.stack(columns, axis=1) if columns else np.zeros((len(places), 0), np.int64)

    def _enter(self, values: np.ndarray, conjunction: Conjunction, rows: np.ndarray, codes: np.ndarray) -> None:
        """Enter the mappings `codes` (int64 (k, value columns)) that a conjunction has in `rows` (int64 (k,)) of
        `values`: the first of each row there, the others as extras."""
        at = self._values_at[conjunction]
        if len(rows) == 1:
            values[rows[0], self._columns[conjunction, "present", ""]] = 1
            values[rows[0], at] = codes[0]
            return
        if (rows[1:] > rows[:-1]).all():  # PERF: a third of the time, where no instant has several
            values[rows, self._columns[conjunction, "present", ""]] = 1
            values[rows[:, None], at] = codes
            return
        order = np.lexsort((*codes.T[::-1], rows))
        rows, codes = rows[order], codes[order]
        same = rows[1:] == rows[:-1]
        if same.any():
            again = np.flatnonzero(same & (codes[1:] == codes[:-1]).all(axis=1)) + 1
            rows, codes = np.delete(rows, again), np.delete(codes, again, axis=0)
        firsts = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]]))[: len(rows)]
        instants = rows[firsts]
        values[instants, self._columns[conjunction, "present", ""]] = 1
        values[instants[:, None], at] = codes[firsts]
        if len(firsts) == len(rows):
            return
        others = np.diff(np.append(firsts, len(rows))) - 1
        before = sum(map(len, self._extras))
        values[instants, self._columns[conjunction, "others", ""]] = others
        values[instants, self._columns[conjunction, "first", ""]] = before + np.cumsum(others) - others
        rest = np.delete(codes, firsts, axis=0)
        extras = np.full((len(rest), values.shape[1]), NOTHING, np.int64)
        extras[:, self._columns[conjunction, "present", ""]] = 1
        extras[:, at] = rest
        self._extras.append(extras)

    def _term_codes(self, solutions: Solutions, places: np.ndarray, name: str) -> np.ndarray:
        """The code of a variable's term in each solution at `places`: int64, NOTHING where it is not bound."""
        found = solutions.column(name)
        if found is None:
            mappings = (dict(solutions.mapping(i, (name,))) for i in places.tolist())
            return np.array([self.terms.of(m[name]) if name in m else NOTHING for m in mappings], np.int64)
        numbers, space = found[0][places], found[1]
        memo = self._spaces.get(id(space))
        if memo is None or len(memo[1]) < len(space) + 1:
            fresh = np.full(len(space) + 1, UNKNOWN, np.int64)
            fresh[-1] = NOTHING  # of what is not bound, number -1
            if memo is not None:
                fresh[: len(memo[1]) - 1] = memo[1][:-1]
            memo = self._spaces[id(space)] = space, fresh
        codes = memo[1][numbers]
        unknown = codes == UNKNOWN
        if unknown.any():
            unseen = apart(numbers[unknown])
            memo[1][unseen] = self.terms.of_keys(space.all_keys(unseen))
            codes = memo[1][numbers]
        return codes

    def _round_codes(self, solutions: Solutions, places: np.ndarray, names: list[str]) -> np.ndarray:
        """The number of the round that each solution at `places` is, of the variables `names`: int64."""
        assert self.chains is not None
        own = [self._term_codes(solutions, places, name) for name in names]
        return self.chains.rounds_of(names, np.array(own, np.int64).reshape(len(names), len(places)).T)

    def _one_by_one(
        self, batch: InstantBatch, conjunction: Conjunction, moving: np.ndarray, values: np.ndarray
    ) -> bool:
        """As `_enter_all`, from the mapping sets of a conjunction of several GPMs, or of rows solved elsewhere."""
        read = self._values_read[conjunction]
        rows: list[int] = []
        codes: list[list[int]] = []
        for row in np.flatnonzero(batch.holds(conjunction) & moving).tolist() if len(batch) > 1 else (0,):
            for mapping in map(dict, batch.mappings(conjunction, row)):
                found = self._codes_of(conjunction, read, mapping)
                if found is None:
                    return False
                rows.append(row)
                codes.append(found)
        if rows:
            self._enter(values, conjunction, np.array(rows), np.array(codes, np.int64).reshape(len(rows), len(read)))
        return True

    def _codes_of(
        self, conjunction: Conjunction, read: Sequence[tuple[_Kind, str | Side]], mapping: MappingABC[str, Term]
    ) -> list[int] | None:
        """What the value columns of a conjunction hold of a mapping; None if something has no code."""
        codes = []
        for kind, what in read:
            name = what.name if isinstance(what, Side) else what
            if kind == "round" and self.chains is not None:
                own = [mapping.get(one) for one in name.split()]
                terms = [NOTHING if term is None else self.terms.of(term) for term in own]
                codes.append(self.chains.round_of(name.split(), terms))
                continue
            term = mapping.get(name)
            code = NOTHING if term is None else self.terms.of(term)
            if isinstance(what, Side):
                compared = self._sides.code(what, code)
                if compared is None:
                    return None
                code = compared
            elif kind == "near":
                code = self._sides.near_code(code)
            codes.append(code)
        return codes

    # -- questions

    def answer(self, number: int, codes: list[int], row: int) -> bool:
        """Whether the FILTER of a question is true of these terms. See `Codes.answer`."""
        question = self._questions[number]
        bound = [(name, code) for name, code in zip(question.names, codes, strict=False) if code != NOTHING]
        return holds(
            question.condition, freeze((name, self.terms.term(code)) for name, code in bound), question.prologue
        )

    # -- back to rows

    def row(self, codes: list[list[int]], state: int) -> Any:
        """The register row (`lower.Row`) of a run in a state of the automaton, or accepted."""
        omega = frozenset(freeze([*self._held_terms(row), *self._held_rounds(row)]) for row in codes)
        bound, pending, owed = self._bound.get(state, (frozenset(), frozenset(), ()))
        return bound, pending, omega, None if state == INITIAL else owed

    def _held_terms(self, row: list[int]) -> list[tuple[str, Term]]:
        return [(name, self.terms.term(row[i])) for name, i in self._ids.items() if row[i] != NOTHING]

    def _held_rounds(self, row: list[int]) -> list[tuple[str, Any]]:
        """The list of rounds in a row of registers, if there is one, under its name."""
        if self.chains is None or row[self._list] == NOTHING:
            return []
        return [(ROUNDS, self.chains.mappings(row[self._list]))]

    def columns(self, names: frozenset[str]) -> dict[str, int] | None:
        """The registers of `names`: of numbers of `terms`, `ROUNDS` of `chains`. None if two may be a term."""
        known = self._ids if self.chains is None else {**self._ids, ROUNDS: self._list}
        return None if self.terms.has_aliases else {name: known[name] for name in names & known.keys()}

    @property
    def full(self) -> bool:
        """Whether it is time to `evict`."""
        return self.terms.full or self._sides.order.full or (self.chains is not None and self.chains.full)

    def full_before(self, batch: InstantBatch) -> bool:
        """As of `Codes.full_before`.

        PERF: the next piece of the same rows asks for all of their terms again. Where these were more than are held,
        each piece numbered them anew, and so took so long that the next one was made smaller, down to one row: 200,000
        graphs in batches of 50,000 took more than six minutes where a profiler slowed the process down, now 1 s.
        """
        if self._last is batch.rows and not self._sides.order.crowded:
            return self.chains is not None and self.chains.full
        return self.full

    def evict(self, held: np.ndarray) -> np.ndarray | None:
        """Let go of the terms that are in none of these registers: int64 (runs, registers). See `Codes.evict`."""
        if self.chains is not None:
            self.chains.keep(held[:, self._list])
        self.terms.keep(self._used(held))
        self._forget()
        labels = self._sides.labels_in(self._numbers)
        if not labels:
            return None
        held = held.copy()
        held[:, labels] = self._sides.order.keep(held[:, labels])
        return held

    def _used(self, held: np.ndarray) -> set[int]:
        """The numbers of terms in these registers, and what stands there for no term."""
        named = held[:, len(self._ids) :]
        named = named[(named >= NAMES) & (named < NAMES + self.terms.next)] - NAMES
        listed = set() if self.chains is None else self.chains.terms_used()
        return {*apart(held[:, : len(self._ids)]).tolist(), *apart(named).tolist(), *listed}

    def _forget(self) -> None:
        """Nothing is remembered of numbers that may stand for nothing any more."""
        self._spaces, self._wholes, self._last = {}, {}, None
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
            self.chains.restore(lists, known, held[:, self._list])
        self._sides.restore(sides, held, self._numbers)
        self._forget()
        expect(self._used(held) <= {*known, NOTHING, UNKNOWN}, "a term for each number of one")
