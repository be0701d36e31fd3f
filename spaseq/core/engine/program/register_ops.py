"""The operations of guards on registers, for guards evaluated in the kernels.

A register holds a code: an int64 that compares like the value it stands for. A guard is a list of operations on
registers and on the codes of the event, its *columns*. The front end gives the operations and the codes (`Codes`).
`rows_of` makes the rows of them that kernels read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from typing import Any, Final, Protocol, TypeGuard

import numpy as np

from spaseq.core.automata import ACCEPT, Transition
from spaseq.core.engine.kernels.registers import layout as k
from spaseq.core.engine.kernels.registers.layout import NOTHING as NOTHING
from spaseq.core.engine.kernels.registers.layout import POOLED as POOLED
from spaseq.core.engine.kernels.registers.layout import UNKNOWN as UNKNOWN

MOST: Final = 62
"""States and registers of an automaton that is evaluated so: sets of them are bits of a word."""


@dataclass(frozen=True, slots=True)
class Test:
    """The run goes on only if `register symbol column`. `symbol`: =, !=, <, <=, > or >=.

    If one of them holds nothing, there is nothing to compare and it goes on; not if `strict`.
    """

    symbol: str
    register: int
    column: int
    strict: bool = False


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """The run goes on only if `left symbol right`, two columns."""

    symbol: str
    left: int
    right: int


class MergeRule(Enum):
    """The contents of a register after it took in a code, if it may hold one already."""

    OVERWRITE = "the new code, if the column holds one"
    SET = "the new code; the column always holds one"
    GREATEST = "the greater of both"
    LEAST = "the lesser of both"
    SAME = "the code, if both are the same, else UNKNOWN"
    OLD = "the code that it holds already"
    ONE = "the code, if both are the same; else the evaluation goes on with sets of register rows"


@dataclass(frozen=True, slots=True)
class Keep:
    """The register takes the column in, if that holds something."""

    rule: MergeRule
    register: int
    column: int


class Total(Enum):
    """The total that a register gathers of the columns of several events. UNKNOWN columns add nothing. A register that
    has met no other column holds UNKNOWN."""

    COUNT = "the sum of the codes themselves, up to `Gather.most`"
    SUM = "the sum of the numbers; if it has no exact code, the evaluation goes on with sets of register rows"
    GREATEST = "the greatest of the numbers"
    LEAST = "the least of the numbers"


@dataclass(frozen=True, slots=True)
class Gather:
    """The register takes the column in, as a part of a total. Codes of numbers are typed, see
    `spaseq.core.engine.kernels.registers.totals`; those that COUNT adds are counts. `most`: the greatest count
    that differs from others, at most 2^27; 0 for no bound."""

    rule: Total
    register: int
    column: int
    most: int = 0


@dataclass(frozen=True, slots=True)
class TotalTest:
    """The run goes on only if `left symbol right`, compared as numbers. A side is a register with a typed code
    (`Gather`), or two for their quotient, a mean; or a double.

    It also goes on if a register holds nothing, else not if one is UNKNOWN.
    """

    symbol: str
    left: tuple[int, ...]
    right: tuple[int, ...] | float

    @property
    def registers(self) -> tuple[int, ...]:
        return self.left if isinstance(self.right, float) else (*self.left, *self.right)


@dataclass(frozen=True, slots=True)
class Drop:
    """The register holds nothing any more."""

    register: int


@dataclass(frozen=True, slots=True)
class Copy:
    """The register holds what another one holds."""

    register: int
    source: int


@dataclass(frozen=True, slots=True)
class Append:
    """The register holds the number of a list (`Codes.chains`), or nothing for the empty one: the column's code is put
    behind it. Equal lists have one number."""

    register: int
    column: int


@dataclass(frozen=True, slots=True)
class Operand:
    """The code in a column, or in a register; of both, the register's if the column holds nothing. `exact`: in a
    program, the code is typed (`Gather`) and stands for the value itself."""

    register: int | None = None
    column: int | None = None
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Value:
    """A number in a program that is exactly this double."""

    number: float


@dataclass(frozen=True, slots=True)
class ResidualTest:
    """The run goes on only if `Codes.answer` says yes to question `number` about the codes of `about`.

    The question is asked once about the same codes, and not at all if `program` can answer it. `program` is in postfix
    notation over operands (codes in the order of doubles, as close as doubles are to the value), numbers, `+ - * / neg
    abs`, comparisons, `not`, `and`, `or`. `mean` is a quotient of doubles, and `exact <` and so on compare operands
    that are the values (`Operand.exact`, `Value`) or such quotients. `lenient`: the run also goes on if some operand
    holds nothing.
    """

    number: int
    about: tuple[Operand, ...]
    program: tuple[Operand | Value | float | str, ...] = ()
    lenient: bool = False

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (*self.about, *(step for step in self.program if isinstance(step, Operand)))


@dataclass(frozen=True, slots=True)
class Unless:
    """The run goes on only if one of `tests` does not hold."""

    tests: tuple[Test | ColumnTest | ResidualTest, ...]


@dataclass(frozen=True, slots=True)
class ForEachValue:
    """The operations behind it, up to the next `ForEachValue`, are done for each of the values that the event has at
    once.

    The column `others` gives the number of rows of `Codes.extras` that it has besides its own, the column `first` their
    place. A run then holds all the rows that its registers may hold, a set. A transition fires if the tests let one row
    pass.
    """

    others: int
    first: int


Op = Test | ColumnTest | TotalTest | ResidualTest | Keep | Gather | Drop | Copy | Append | Unless | ForEachValue


class Chains(Protocol):
    """The lists that registers hold the numbers of: `array` is `chains` of `spaseq.core.engine.kernels.registers`."""

    array: np.ndarray

    def grow(self) -> None:
        """Make room for as many again."""


class Codes(Protocol):
    """The guards of an evaluation as operations, and the values of events as codes.

    `registers`: their number, at most 62. `outputs`: those that tell matches apart, and come with them. `extras`: the
    further values of events that have several (`ForEachValue`), of the batch loaded last: int64 (rows, columns).
    `asked`: the most codes that a question is about (`ResidualTest`), 0 if there are none. `terms`: the texts or terms
    that codes stand for, with their numbers, for reports of memory. `chains`: the place of the lists of `Append`, None
    if there is none.
    """

    @property
    def registers(self) -> int: ...

    @property
    def outputs(self) -> Iterable[int]: ...

    @property
    def extras(self) -> np.ndarray: ...

    @property
    def asked(self) -> int: ...

    @property
    def terms(self) -> Any: ...

    @property
    def chains(self) -> Chains | None: ...

    def ops(self, transition: Transition) -> tuple[Op, ...]:
        """The operations of a transition's actions, in their order."""

    def load(self, batch: Any, rows: np.ndarray) -> np.ndarray | None:
        """The codes of each event: int64 (n, columns), of which only `rows` (ascending) will be read, before the next
        call. None if the values of these rows cannot be compared with earlier values as numbers. With `full`, None may
        mean only that `evict` has to come first."""

    def answer(self, number: int, codes: list[int], row: int) -> bool:
        """The answer to a question about these codes, which came up at a row of the batch loaded last."""

    def row(self, codes: list[list[int]], state: int) -> Any:
        """The register row (as of `Registers`) of a run in a state of the automaton, or ACCEPT, with these rows of
        codes: one, unless events have several values."""

    def twin(self, row: Any, number: int) -> Any:
        """A row that means the same as `row`, but is not equal to it, nor to its twins of other numbers: codes tell
        values apart that are equal as values."""

    @property
    def full(self) -> bool:
        """True if `evict` should be called: many values are held that no run may have any more, or codes have become
        scarce."""

    def full_before(self, batch: Any) -> bool:
        """`full`, except if the batch would only use values that are held already."""

    def evict(self, held: np.ndarray) -> np.ndarray | None:
        """Free all codes except those in `held`, int64 (runs, registers). Returns the codes that replace them, each
        register's in the same order as before; None if all stay as they are."""

    def snapshot(self) -> Any:
        """The values that the codes stand for, as plain values."""

    def restore(self, state: Any, held: np.ndarray) -> None:
        """The opposite of `snapshot`. `held`: the codes that are in use, int64 (runs, registers); raises `OptionError`
        for one that stands for nothing."""


# Registers that operations read and write


def writes(op: Op) -> set[int]:
    """The registers that an operation writes."""
    return {op.register} if isinstance(op, Drop | Copy | Keep | Gather | Append) else set()


def overwrites(op: Op) -> TypeGuard[Drop | Copy | Keep]:
    """True if an operation writes a register whatever it held."""
    return isinstance(op, Drop | Copy) or (isinstance(op, Keep) and op.rule is MergeRule.SET)


def reads(ops: tuple[Op, ...]) -> set[int]:
    """The registers that a transition reads."""
    tests = [t for op in ops for t in (op.tests if isinstance(op, Unless) else (op,))]
    asked = {o.register for t in tests if isinstance(t, ResidualTest) for o in t.operands if o.register is not None}
    totals = {r for t in tests if isinstance(t, TotalTest) for r in t.registers}
    copied = {op.source for op in ops if isinstance(op, Copy)}
    return {t.register for t in tests if isinstance(t, Test | Append)} | asked | totals | copied


def needed_registers(
    states: int, transitions: Sequence[Transition], ops: Sequence[tuple[Op, ...]], outputs: Iterable[int]
) -> list[set[int]]:
    """For each state, the registers that some way on from it reads before it drops them. `ops`: the operations of each
    transition. `outputs`: the registers that matches need."""
    alive: list[set[int]] = [set() for _ in range(states)]
    effects = [(reads(some), {op.register for op in some if overwrites(op)}) for some in ops]
    changed, accepted = True, set(outputs)
    while changed:
        changed = False
        for t, (read, drops) in zip(transitions, effects, strict=True):
            needed = read | ((accepted if t.target == ACCEPT else alive[t.target]) - drops)
            changed |= not needed <= alive[t.source]
            alive[t.source] |= needed
    return alive


# As kernels read them

_SYMBOLS = {"=": k.EQUAL, "!=": k.DIFFERENT, "<": k.LESS, "<=": k.AT_MOST, ">": k.GREATER, ">=": k.AT_LEAST}
_RULES = {
    MergeRule.SAME: k.KEEP_SAME,
    MergeRule.OLD: k.KEEP_OLD,
    MergeRule.ONE: k.KEEP_ONE,
    MergeRule.GREATEST: k.KEEP_GREATEST,
    MergeRule.LEAST: k.KEEP_LEAST,
    MergeRule.OVERWRITE: k.KEEP_NEW,
    MergeRule.SET: k.KEEP_NEW,
}
_TOTALS = {
    Total.COUNT: k.GATHER_COUNT,
    Total.SUM: k.GATHER_SUM,
    Total.GREATEST: k.GATHER_GREATEST,
    Total.LEAST: k.GATHER_LEAST,
}
_STEPS = {
    "+": k.ADD,
    "-": k.SUBTRACT,
    "*": k.MULTIPLY,
    "/": k.DIVIDE,
    "neg": k.NEGATE,
    "abs": k.ABSOLUTE,
    "not": k.NOT,
    "and": k.AND,
    "or": k.OR,
    "mean": k.MEAN,
}


def rows_of(op: Op) -> list[tuple[int, int, int, int]]:
    """An operation as rows of `ops`."""
    match op:
        case Test(symbol, register, column, _):
            return [(k.TEST, register, column, _SYMBOLS[symbol] + (k.STRICT if op.strict else 0))]
        case ColumnTest(symbol, left, right):
            return [(k.BOTH, left, right, _SYMBOLS[symbol])]
        case Keep(rule, register, column):
            return [(k.KEEP, register, column, _RULES[rule])]
        case TotalTest(symbol, left, right):
            first = (k.TOTAL, left[0], left[1] if len(left) > 1 else -1, _SYMBOLS[symbol])
            if isinstance(right, float):
                return [first, _constant(right, 0)]
            return [first, (k.HELD, right[0], right[1] if len(right) > 1 else -1, 0)]
        case Gather(rule, register, column, most):
            return [(k.GATHER, register, column, _TOTALS[rule] + 8 * most)]
        case Drop(register):
            return [(k.DROP, register, 0, 0)]
        case Copy(register, source):
            return [(k.COPY, register, source, 0)]
        case Append(register, column):
            return [(k.APPEND, register, column, 0)]
        case Unless(tests):
            rows = [row for test in tests for row in rows_of(test)]
            return [(k.UNLESS, len(rows), 0, 0), *rows]
        case ResidualTest(number, about, program, lenient):
            steps = [_step(step) for step in program] if _height(program) <= k.STACK else []
            rows = [_operand(o, k.NAMED) for o in about] + steps
            return [(k.ASK, number, len(rows), k.LENIENT if lenient else 0), *rows]
        case ForEachValue(others, first):
            return [(k.EACH, first, others, 0)]


def _operand(operand: Operand, role: int) -> tuple[int, int, int, int]:
    register, column = operand.register, operand.column
    kind = k.HELD if column is None else k.GIVEN if register is None else k.EITHER
    return kind, register or 0, column or 0, role


def _height(program: tuple[Operand | Value | float | str, ...]) -> int:
    """The most values that there are at a time."""
    changes = (1 if not isinstance(s, str) else 0 if s in ("neg", "abs", "not") else -1 for s in program)
    return max(accumulate(changes), default=0)


def _step(step: Operand | Value | float | str) -> tuple[int, int, int, int]:
    match step:
        case Operand():
            return _operand(step, k.EXACT if step.exact else k.NUMBER)
        case str():
            if step in _STEPS:
                return _STEPS[step], 0, 0, 0
            symbol = step.removeprefix("exact ")
            return k.COMPARE, 0, 0 if symbol == step else k.EXACT, _SYMBOLS[symbol]
        case _:
            return _constant(step.number, k.EXACT) if isinstance(step, Value) else _constant(step, 0)


def _constant(number: float, role: int) -> tuple[int, int, int, int]:
    low, high = np.array([number], np.float64).view(np.int32).tolist()
    return k.CONSTANT, low, high, role
