"""Columns, codes and statuses of the register machine. Without numba."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spaseq.core.tecs.kernels.layout import Pools

NOTHING = -(1 << 63)  # nothing was taken or bound: all tests hold
UNKNOWN = NOTHING + 1  # NULL, or an error: none holds
GREATEST = (1 << 63) - 1  # of all codes
POOLED = UNKNOWN + 1  # in the register of a pool: its runs have a value each
INFINITE = 0x7FF << 52  # the code of the infinite double; typed codes beyond it are whole numbers
WHOLE = 1 << 51  # the greatest whole number that has a typed code

# symbols of tests
EQUAL = 0
DIFFERENT = 1
LESS = 2
AT_MOST = 3
GREATER = 4
AT_LEAST = 5
STRICT = 8  # added to a symbol: not where there is nothing to compare

# rules of what to keep of an old code and a new one
KEEP_SAME = 0  # two different ones are UNKNOWN
KEEP_ONE = 1  # two different ones are a CLASH
KEEP_GREATEST = 2
KEEP_LEAST = 3
KEEP_NEW = 4  # unless there is none
KEEP_OLD = 5

# columns of `ops`, what a transition does to the registers
OP = 0
REGISTER = 1
COLUMN = 2
SYMBOL = 3
TEST = 0  # go on only if `register symbol column`
BOTH = 1  # the same of two columns
KEEP = 2
DROP = 3
UNLESS = 4  # go on only if one of the tests in the next REGISTER rows does not hold
EACH = 5  # what follows, up to the next EACH, is done for the event's own values and for COLUMN others of `extras`,
# from the one on whose number is in the column REGISTER
ASK = 6  # go on only if question REGISTER, in the next COLUMN rows, has the answer yes; LENIENT ones have where
# something was not taken or bound
APPEND = 7  # the register's list, with the column's code behind it
GATHER = 8  # the register takes the column in, as a part of a total: a rule, and 8 times the greatest count
TOTAL = 9  # go on only if a total, REGISTER and unless -1 divided by COLUMN, compares by SYMBOL with the next row: HELD
# for a total, CONSTANT for a double
COPY = 10  # the register holds what the register COLUMN does

# rules of totals
GATHER_COUNT = 0
GATHER_SUM = 1
GATHER_GREATEST = 2
GATHER_LEAST = 3

# columns of `chains`, a list in each row but the first; row 0 has how many there are, and the number of the next
CHAIN_PARENT = 0  # the number of the list without its last element, or NOTHING where that is its only one
CHAIN_LAST = 1  # the code of its last element
CHAIN_NUMBER = 2  # ascending from row to row
CHAIN_SLOT = 3  # of the hash table over parent and last, as long as `chains`: the row of a list, or 0
CHAINS_COUNT = 0
CHAINS_FULL = 1  # a list did not find room
CHAINS_NEXT = 2

# rows of a question, distinct from operations: its subjects, and a program in postfix notation that may decide it
HELD = 16  # the register REGISTER
GIVEN = 17  # the column COLUMN
EITHER = 18  # the column, or the register where that holds nothing
ADD = 19
SUBTRACT = 20
MULTIPLY = 21
DIVIDE = 22
NEGATE = 23
ABSOLUTE = 24
CONSTANT = 25  # a double, its bits in REGISTER (low) and COLUMN
COMPARE = 26  # of two numbers, by SYMBOL
NOT = 27
AND = 28
OR = 29
MEAN = 30  # a quotient of doubles, exactly that of the language

# what HELD, GIVEN and EITHER are for
NAMED = 0  # part of what the question is about
NUMBER = 1  # an operand: a code in the order of doubles, close to the value
EXACT = 2  # an operand: a typed code, the value itself; in the column COLUMN of COMPARE: both sides are values

LENIENT = 1
STACK = 32  # how high the stack of programs may grow
ULP = 1.2e-16  # more than half the distance between doubles, relatively
TINY = 1e-300
HUGE = 9e18  # from where on a sum of whole numbers may be too great for a language

# columns of `arcs`, the automaton's transitions
ARC_LABEL = 0  # or -1: does not mark
ARC_TARGET = 1
ARC_RANK = 2
ARC_OPS = 3
ARC_OPS_END = 4
ARC_MEMBER = 5  # the state it leaves

# columns of `movers`, the sets of states that may move on a class
MOVER = 0
ARCS = 1  # of `able`
ARCS_END = 2
REACH = 3  # which configurations of the set can move: ALL_OF_THEM, or by its index; STARTS: the run that starts here
ALL_OF_THEM = 0
SAME = 1  # register equal to the event's value
BELOW = 2  # register less than it (or equal)
ABOVE = 3
STARTS = 4
SAME_AT_HOME = 5  # those of the home, as SAME
LOOKED_UP = 4  # the column that is looked up
LOOKED_EACH = 5  # where that is one of several: the columns of its EACH, else -1
LOOKED_FIRST = 6
ONLY_ENDS = 7  # runs of the set that move complete and do not go on
HOME = 8  # the set whose list has the pools with runs of this one, if that is another set; else NIL
HOME_REACH = 9  # which of these can move: ALL_OF_THEM, or by their index SAME_AT_HOME
MOVER_COLUMNS = 10

# columns of `confs`, one row per cell; the registers follow
CONF_KEY = 0  # partition
CONF_STATE = 1  # number of the set of states, or NIL: the cell is free
CONF_CHAIN = 2  # next of the same hash; next free cell
CONF_NEXT = 3  # of the same partition and set of states
CONF_BEFORE = 4
CONF_EQUAL = 5  # next of the same hash of indexed value
CONF_LEVELS = 6  # height in the skip list
CONF_TARGET = 7  # the row of the batch at which a move last led to it
CONF_ROWS = 8  # rows it holds
CONF_MORE = 9  # the second of them, in `held`
CONF_HASH = 10
CONF_VALUE = 11  # what it is indexed by: the same in all rows, or NOTHING
REGISTERS = 12

# columns of `held`; the registers follow
HELD_NEXT = 0
HELD_REGISTERS = 1

# columns of `groups`, what a configuration does under one label; the registers follow, then those it accepts with
GROUP_LABEL = 0
GROUP_STATES = 1  # bits of the states reached
GROUP_ALIVE = 2  # bits of the registers that some of them needs
GROUP_ACCEPTS = 3
GROUP_FIRST = 4  # where its rows are in `sets`, if there are several, and how many
GROUP_ROWS = 5
GROUP_TAKEN = 6  # likewise those it accepts with
GROUP_TAKEN_ROWS = 7
GROUP_REGISTERS = 8

LEVELS = 8
REJECT = -1
CLASH = 2
MANY = 3

# more slots of `st`
CONF_FREE = 24
CONF_COUNT = 25
SWEEP_AT = 26
ACCEPTED = 28  # rows of `accepted` in use
ANSWERS = 29  # and of `answers`
HELD_FREE = 30  # first free row of `held`
HELD_LEFT = 31  # how many there are

# more statuses
GROW_MOVES = 8
GROW_CELLS = 9
NEED_SETS = 10
GROW_ACCEPTED = 11
GROW_HELD = 12
GROW_SETS = 13
NEED_ANSWERS = 14
GROW_CHAINS = 15
IN_SETS = -100


class Automaton(NamedTuple):
    """The effects of transitions, and the registers that states need."""

    able: np.ndarray
    """int32: numbers of transitions, those that one configuration tries one behind the other, state by state."""
    arcs: np.ndarray
    """int64, (transitions, 6): see the columns ARC_LABEL and so on."""
    ops: np.ndarray
    """int32, (operations, 4): OP, REGISTER, COLUMN, SYMBOL."""
    alive: np.ndarray
    """int64, (states,): bits of the registers still needed in a state."""
    outputs: int
    """Bits of the registers that distinguish matches."""
    known: np.ndarray
    """int64, (a power of two, 2): the hash table of the sets of states met so far, bits (0: free) and number."""
    movers_from: np.ndarray
    """int64, (classes + 1,): the first in `movers` of the sets that may move on each class."""
    movers: np.ndarray
    """int64, (k, MOVER_COLUMNS): see the columns MOVER and so on."""


class Configurations(NamedTuple):
    """The configurations, one to a cell, and how they are found."""

    confs: np.ndarray
    """int64, (cells, REGISTERS + registers): see the columns CONF_KEY and so on."""
    table: np.ndarray
    """int64, (a power of two,): the hash table of their contents, chained by CONF_CHAIN."""
    heads: np.ndarray
    """int64, (buckets,): the list of those of each bucket, partition times sets of states plus set, by CONF_NEXT."""
    equals: np.ndarray
    """int64, (a power of two,): the hash table of the values that index them, chained by CONF_EQUAL."""
    links: np.ndarray
    """int32, (cells, LEVELS): the next one at each level of a skip list."""
    tops: np.ndarray
    """int32, (buckets, LEVELS): the first one at each level of a bucket's skip list."""
    indexed: np.ndarray
    """int32, (sets of states, 2): the index of the configurations of a set (ALL_OF_THEM and so on), its register."""
    path: np.ndarray
    """int64, (LEVELS,): scratch, the way down a skip list."""


class Several(NamedTuple):
    """Rows of configurations behind their first; None instead if no event can have several values at once."""

    held: np.ndarray
    """int64, (h, HELD_REGISTERS + registers): these rows, linked by HELD_NEXT."""
    sets: np.ndarray
    """int64, (s, registers): scratch, sets of rows."""


class Asking(NamedTuple):
    """Questions of guards and their answers, see `operations.granted`; None instead if no guard asks one."""

    memo: np.ndarray
    """int64, (m, 2 + codes): the answers."""
    questions: np.ndarray
    """int64, (q, 2 + codes): the questions without one."""
    figures: np.ndarray
    """float64, (2, STACK): scratch, the stack of a program."""


class Effects(NamedTuple):
    """The effects of an event on a configuration, and the rows that runs were accepted with."""

    groups: np.ndarray
    """int64, (labels + 1, GROUP_REGISTERS + 2 * registers): scratch, see the columns GROUP_LABEL and so on."""
    out: np.ndarray
    """int64, (2, registers): scratch, registers while they change; the second row is that of a run that starts."""
    accepted: np.ndarray
    """int64, (a, 2): at the tag of a match, one more if the event was not marked: first row in `answers`, and how many
    rows; only if there are `outputs`."""
    answers: np.ndarray
    """int64, (b, registers): the rows that runs were accepted with."""
    pools: Pools | None
    """The runs of configurations that are pools; None if there are none. Not in `Configurations`, which calls copy."""
