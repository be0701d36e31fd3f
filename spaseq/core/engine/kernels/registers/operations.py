"""Operations of guards on one row of registers: tests of codes, stores of values, questions."""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.engine.kernels.registers.layout import (
    ABSOLUTE,
    ADD,
    AND,
    APPEND,
    ASK,
    AT_MOST,
    BOTH,
    CHAIN_LAST,
    CHAIN_NUMBER,
    CHAIN_PARENT,
    CHAIN_SLOT,
    CHAINS_COUNT,
    CHAINS_FULL,
    CHAINS_NEXT,
    CLASH,
    COLUMN,
    COMPARE,
    CONSTANT,
    COPY,
    DIFFERENT,
    DROP,
    EITHER,
    EQUAL,
    EXACT,
    GATHER,
    GIVEN,
    HELD,
    HUGE,
    KEEP,
    KEEP_GREATEST,
    KEEP_NEW,
    KEEP_OLD,
    KEEP_ONE,
    KEEP_SAME,
    LENIENT,
    LESS,
    MANY,
    MEAN,
    MULTIPLY,
    NAMED,
    NEGATE,
    NOT,
    NOTHING,
    OP,
    OR,
    REGISTER,
    REJECT,
    STRICT,
    SUBTRACT,
    SYMBOL,
    TEST,
    TINY,
    TOTAL,
    ULP,
    UNKNOWN,
    UNLESS,
)
from spaseq.core.engine.kernels.registers.totals import (
    admits_total,
    compare_values,
    constant_of,
    double_of,
    gather,
    number_of,
)
from spaseq.core.jit import hot, inline, kernel
from spaseq.core.tecs.kernels.layout import DONE


@hot
def admits(symbol, left, right):
    """True if `left symbol right` is known to hold, or has nothing to compare."""
    if left == NOTHING or right == NOTHING:
        return symbol < STRICT
    symbol = symbol & 7
    if left == UNKNOWN or right == UNKNOWN:
        return False
    return compare_values(symbol, left, right)


@hot
def remember(registers, at, rule, value):
    """Take `value` into a register by a rule; CLASH if one code does not do."""
    old = registers[at]
    if value == NOTHING:
        return DONE
    if old in (NOTHING, value) or rule == KEEP_NEW:
        registers[at] = value
    elif rule == KEEP_OLD:
        return DONE
    elif rule == KEEP_ONE:
        return CLASH
    elif old == UNKNOWN or value == UNKNOWN or rule == KEEP_SAME:
        registers[at] = UNKNOWN
    elif rule == KEEP_GREATEST:
        registers[at] = max(old, value)
    else:
        registers[at] = min(old, value)
    return DONE


@hot
def operand_of(ops, o, values, row):
    """The code that row `o` of `ops`, of a question, names."""
    code = NOTHING if ops[o, OP] == HELD else values[ops[o, COLUMN]]
    if code == NOTHING and ops[o, OP] != GIVEN:
        code = row[ops[o, REGISTER]]
    return code


@hot
def compare(symbol, left, left_off, right, right_off):
    """1 or 0, the truth of `left symbol right`, each off by `left_off` and `right_off` at most; -1 if too close."""
    gap = left - right
    if not abs(gap) > left_off + right_off + abs(gap) * ULP + TINY:
        return -1
    if symbol in (EQUAL, DIFFERENT):
        return symbol
    if symbol in (LESS, AT_MOST):
        return 1 if gap < 0 else 0
    return 1 if gap > 0 else 0


@kernel
def decide(ops, first, last, values, row, stack):
    """Run ops[first:last], the program of a question: 1, 0, or -1 if it has none or cannot decide.

    `stack` (float64, (2, STACK)) holds numbers with a bound of their distance from what any of a language's
    arithmetics makes of exact operands: doubles, decimals, whole numbers. A truth is 1, 0 or -1.
    """
    depth = 0
    for o in range(first, last):
        kind = ops[o, OP]
        if kind <= EITHER:
            if ops[o, SYMBOL] == NAMED:
                continue
            code = operand_of(ops, o, values, row)
            if ops[o, SYMBOL] == EXACT:
                stack[0, depth] = number_of(code) if code > UNKNOWN else 0.0
                stack[1, depth] = 0.0 if code > UNKNOWN else np.inf
                depth += 1
                continue
            value = double_of(code) if code > UNKNOWN else 0.0
            stack[0, depth] = value
            stack[1, depth] = abs(value) * 4 * ULP if code > UNKNOWN else np.inf
            depth += 1
        elif kind == CONSTANT:
            value = constant_of(ops, o)
            stack[0, depth] = value
            stack[1, depth] = 0.0 if ops[o, SYMBOL] == EXACT else abs(value) * 4 * ULP
            depth += 1
        elif kind == NEGATE:
            stack[0, depth - 1] = -stack[0, depth - 1]
        elif kind == ABSOLUTE:
            stack[0, depth - 1] = abs(stack[0, depth - 1])
        elif kind == NOT:
            if stack[0, depth - 1] >= 0:
                stack[0, depth - 1] = 1 - stack[0, depth - 1]
        else:
            depth -= 1
            a = stack[0, depth - 1]
            b = stack[0, depth]
            a_off = stack[1, depth - 1]
            b_off = stack[1, depth]
            off = 0.0
            if kind == MEAN:
                a = a / b if b > 0 else a
                off = max(a_off, b_off)
            elif kind == COMPARE and ops[o, COLUMN] == EXACT and a_off + b_off == 0:
                a = 1.0 if compare_values(ops[o, SYMBOL], a, b) else 0.0
            elif kind == COMPARE:
                a = compare(ops[o, SYMBOL], a, a_off, b, b_off)
            elif kind == AND:
                a = 0.0 if a == 0 or b == 0 else min(a, b)
            elif kind == OR:
                a = 1.0 if a == 1 or b == 1 else min(a, b)
            else:
                if kind == ADD:
                    off = a_off + b_off
                    a = a + b
                elif kind == SUBTRACT:
                    off = a_off + b_off
                    a = a - b
                elif kind == MULTIPLY:
                    off = abs(a) * b_off + abs(b) * a_off + a_off * b_off
                    a = a * b
                elif abs(b) > 2 * b_off:
                    off = 2 * (a_off + abs(a / b) * b_off) / abs(b)
                    a = a / b
                else:
                    off = np.inf
                off += abs(a) * 2 * ULP + TINY if abs(a) < HUGE else np.inf
            stack[0, depth - 1] = a
            stack[1, depth - 1] = off
    return int(stack[0, 0]) if depth == 1 else -1


@hot
def mix(hashed, value):
    """One step of a hash: `hashed` so far, and the next value."""
    hashed = (hashed ^ value) * 0x9E3779B97F4A7C1
    return hashed ^ (hashed >> 29)


@hot
def question_slot(memo, question):
    """The slot of a question in the table of answers, or the free one where it belongs."""
    hashed = mix(question[0], 3)
    for r in range(2, question.shape[0]):
        hashed = mix(hashed, question[r])
    slot = hashed & (memo.shape[0] - 1)
    while memo[slot, 0] != 0:
        same = memo[slot, 0] == question[0]
        for r in range(2, question.shape[0]):
            same = same and memo[slot, r] == question[r]
        if same:
            break
        slot = (slot + 1) & (memo.shape[0] - 1)
    return slot


@kernel
def remember_answers(memo, questions):
    """Put questions with their answers (see `grant`) into the table, which has room for them."""
    for i in range(questions.shape[0]):
        slot = question_slot(memo, questions[i])
        for r in range(questions.shape[1]):
            memo[slot, r] = questions[i, r]


@kernel
def grant(ops, o, values, row, asking):
    """True if the question in row `o` of `ops` has the answer yes, by its program or by `memo`. If neither decides, it
    is noted in `questions`, and the answer is no for now.

    `memo` (int64, (slots, 2 + codes)): the question's number from 1 on, or 0 for a free slot, its answer, and the codes
    it is about. `questions` likewise, from row 1 on; [0, 0] is their number. Those without room come up again.
    """
    memo, questions = asking.memo, asking.questions
    last = o + 1 + ops[o, COLUMN]
    if ops[o, SYMBOL] == LENIENT:
        for i in range(o + 1, last):
            if ops[i, OP] <= EITHER and operand_of(ops, i, values, row) == NOTHING:
                return True
    found = decide(ops, o + 1, last, values, row, asking.figures)
    if found >= 0:
        return found > 0
    count = questions[0, 0]
    if count + 1 >= questions.shape[0]:
        return False
    question = questions[count + 1]
    question[0] = ops[o, REGISTER] + 1
    question[1] = 0
    width = 2
    for i in range(o + 1, last):
        if ops[i, OP] <= EITHER and ops[i, SYMBOL] == NAMED:
            question[width] = operand_of(ops, i, values, row)
            width += 1
    for r in range(width, question.shape[0]):
        question[r] = NOTHING
    slot = question_slot(memo, question)
    if memo[slot, 0] != 0:
        return memo[slot, 1] != 0
    questions[0, 0] = count + 1
    return False


@hot
def chain_slot(chains, parent, last):
    """The slot of the list `parent` with `last` behind it, or the free one where it belongs."""
    slot = mix(mix(parent, 3), last) & (chains.shape[0] - 1)
    while chains[slot, CHAIN_SLOT] != 0:
        row = chains[slot, CHAIN_SLOT]
        if chains[row, CHAIN_PARENT] == parent and chains[row, CHAIN_LAST] == last:
            break
        slot = (slot + 1) & (chains.shape[0] - 1)
    return slot


@kernel
def append(chains, parent, last):
    """The number of the list `parent` (NOTHING: the empty one) with `last` behind it: the same for the same list.

    Without room (half of `chains`, int64 (a power of two, 4)), CHAINS_FULL is set, and it is `parent` for now.
    """
    slot = chain_slot(chains, parent, last)
    row = chains[slot, CHAIN_SLOT]
    if row == 0:
        row = chains[0, CHAINS_COUNT] + 1
        if 2 * row >= chains.shape[0]:
            chains[0, CHAINS_FULL] = 1
            return parent
        chains[0, CHAINS_COUNT] = row
        chains[row, CHAIN_PARENT] = parent
        chains[row, CHAIN_LAST] = last
        chains[row, CHAIN_NUMBER] = chains[0, CHAINS_NEXT]
        chains[0, CHAINS_NEXT] += 1
        chains[slot, CHAIN_SLOT] = row
    return chains[row, CHAIN_NUMBER]


@kernel
def index_chains(chains):
    """Fill the hash table, which is empty, with the lists there are."""
    for row in range(1, chains[0, CHAINS_COUNT] + 1):
        chains[chain_slot(chains, chains[row, CHAIN_PARENT], chains[row, CHAIN_LAST]), CHAIN_SLOT] = row


@kernel
def chain_row(chains, number):
    """The row of a list, by its number: numbers ascend from row to row."""
    low, high = 1, chains[0, CHAINS_COUNT]
    while low < high:
        middle = (low + high) >> 1
        if chains[middle, CHAIN_NUMBER] < number:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def chain_lengths(chains, numbers, lengths):
    """Writes how many elements each of the lists `numbers`, int64 (n,), has into `lengths`, int64 (n,)."""
    for i in range(numbers.shape[0]):
        number, length = numbers[i], 0
        while number != NOTHING:
            number = chains[chain_row(chains, number), CHAIN_PARENT]
            length += 1
        lengths[i] = length


@kernel
def chain_elements(chains, numbers, ends, elements):
    """The elements of some lists, from the first to the last: int64, one list behind the other. `ends`: their ends."""
    for i in range(numbers.shape[0]):
        number, place = numbers[i], ends[i]
        while number != NOTHING:
            row = chain_row(chains, number)
            place -= 1
            elements[place] = chains[row, CHAIN_LAST]
            number = chains[row, CHAIN_PARENT]


@inline
def follow(ops, first, last, values, row, asking, chains):
    """Do ops[first:last] to a row of registers: 1, 0 if a test fails, REJECT if the transition must not fire, CLASH, or
    MANY at an EACH of several values."""
    o = first
    while o < last:
        kind = ops[o, OP]
        if kind == UNLESS:
            stop = o + ops[o, REGISTER]
            holds = True
            while o < stop:
                o += 1
                if asking is not None and ops[o, OP] == ASK:
                    holds = holds and grant(ops, o, values, row, asking)
                    o += ops[o, COLUMN]
                    continue
                left = row[ops[o, REGISTER]] if ops[o, OP] == TEST else values[ops[o, REGISTER]]
                holds = holds and admits(ops[o, SYMBOL], left, values[ops[o, COLUMN]])
            if holds:
                return REJECT
        elif asking is not None and kind == ASK:
            if not grant(ops, o, values, row, asking):
                return 0
            o += ops[o, COLUMN]
        elif kind == TEST:
            if not admits(ops[o, SYMBOL], row[ops[o, REGISTER]], values[ops[o, COLUMN]]):
                return 0
        elif kind == BOTH:
            if not admits(ops[o, SYMBOL], values[ops[o, REGISTER]], values[ops[o, COLUMN]]):
                return 0
        elif kind == KEEP:
            if remember(row, ops[o, REGISTER], ops[o, SYMBOL], values[ops[o, COLUMN]]) == CLASH:
                return CLASH
        elif kind == GATHER:
            if gather(row, ops[o, REGISTER], ops[o, SYMBOL], values[ops[o, COLUMN]]) == CLASH:
                return CLASH
        elif kind == TOTAL:
            if not admits_total(ops, o, row):
                return 0
            o += 1
        elif kind == DROP:
            row[ops[o, REGISTER]] = NOTHING
        elif kind == COPY:
            row[ops[o, REGISTER]] = row[ops[o, COLUMN]]
        elif chains is not None and kind == APPEND:
            row[ops[o, REGISTER]] = append(chains, row[ops[o, REGISTER]], values[ops[o, COLUMN]])
        elif values[ops[o, COLUMN]] != 0:
            return MANY
        o += 1
    return 1
