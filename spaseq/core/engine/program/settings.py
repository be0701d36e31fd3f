"""The settings of a program besides the pattern and its window: the matches reported, and its budgets."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from spaseq.core.after import AfterText
from spaseq.core.errors import OptionError
from spaseq.core.watch import TEXT_LENGTH, memory_of_machine


class Selection(enum.Enum):
    """The complex events that are reported of those with one end, in one partition and in the window ([CEL] §4)."""

    ALL = "all"
    ANY = "any"
    """One of them, unspecified which."""
    NEXT = "next"
    """The one that holds the smallest position of the symmetric difference with any other."""
    LAST = "last"
    """The one that holds the greatest."""
    MAX = "max"
    """Those whose positions are not a proper subset of another's."""
    LARGEST = "largest"
    """The one that holds the positions of all others, of an automaton that always has one
    (`spaseq.core.automata.inclusion.find_largest`, with `single`). NEXT, LAST and MAX are then that."""
    ENDS = "ends"
    """Only the existence of a match: one without positions, with the start of one of the matches. A configuration then
    holds the latest start of its runs, one number, instead of the compact structure."""


class Consume(enum.Enum):
    """The events that are forgotten after an event completes matches, once all its matches are reported."""

    NONE = "none"
    ANY = "any"
    """Every run so far, in all partitions."""
    PARTITION = "partition"
    """Every run so far in its partition."""
    ONCE = "once"
    """Every run of its partition, so far and to come."""


class After(enum.Enum):
    """The runs and matches of its partition that a reported match discards (`docs/semantics.md`, after a match).

    Matches that end at one event are taken in the order of NEXT, and each discards before the next one is taken. Every
    rule but `ONCE` discards by the start.
    """

    PAST_LAST = "past last"
    """Those that began at its end or earlier."""
    TO_NEXT = "to next"
    """Those that began with its first event."""
    TO_FIRST = "to first"
    """Those that began before the first event that a variable took; none if the variable took none."""
    TO_LAST = "to last"
    """Those that began before the last event that a variable took; none if the variable took none."""
    ONCE = "once"
    """All others, and all that begin later."""


@dataclass(frozen=True, slots=True)
class AfterMatch:
    """A rule for what a match discards. `variable` is that of TO_FIRST and TO_LAST. `keyed`: False if events have no
    partitions; then the memory of discarded runs is free at once."""

    rule: After
    variable: str = ""
    keyed: bool = True

    @staticmethod
    def of(clause: AfterText | None, variable: str, *, once: bool, keyed: bool) -> AfterMatch | None:
        """The rule of a query with this clause, or of one that reports a match `once`; None if nothing is discarded."""
        if once:
            return AfterMatch(After.ONCE, keyed=keyed)
        if clause is None or clause is AfterText.NO_SKIP:
            return None
        return AfterMatch(After[clause.name], variable, keyed)

    @property
    def on_variable(self) -> bool:
        """True if the rule depends on the events that the variable took."""
        return self.rule in (After.TO_FIRST, After.TO_LAST)


@dataclass(frozen=True, slots=True)
class Choice:
    """The matches that are reported. `limit`: the most per completing event, most recent starts first. `after`: what a
    match discards; only with ALL, and without consumption and limit."""

    selection: Selection = Selection.ALL
    consume: Consume = Consume.NONE
    limit: int | None = None
    after: AfterMatch | None = None

    @property
    def forgets(self) -> bool:
        """True if matches depend on those reported before them."""
        return self.consume is not Consume.NONE or self.after is not None


def _part(parts: int, most: int | None = None) -> Any:
    """A default that depends on the memory of the machine: its bytes by `parts`, but no more than `most`."""

    def default() -> int:
        share = memory_of_machine() // parts
        return share if most is None else min(share, most)

    return field(default_factory=default)


@dataclass(frozen=True, slots=True)
class Settings:
    """Budgets. Each raises `BudgetExceeded` with its name if it is reached and nothing can be forgotten.

    Some are parts of the memory by default: that of the machine, or of the container (`memory_of_machine`).
    Raises `OptionError` for a value that is no count, or no number of seconds.
    """

    automaton_bytes: int = 64 << 20
    """Deterministic states and transitions kept: cleared and rebuilt when full. If the states alive at one time are too
    many by themselves, the evaluation goes on without them (slower; `statistics` has `fell_back`)."""
    arena_bytes: int = _part(4)
    """The compact structure: grows with the window's events and the pattern's states and, with conditions over several
    events, with the runs that events complete. A quarter of the memory."""
    live_runs: int = 1_000_000
    """Different (state, register row) sets at one time, for patterns with conditions over several events."""
    event_runs: int = 100_000
    """(State, register row) pairs that one event may move if conditions are decided in Python: aggregates, sets of
    mappings. Some 20 microseconds each."""
    partitions: int = _part(2_000, 10_000_000)
    """Keys of PARTITION BY at a time: of those seen in a window of time, or, without one, of all. One for 2,000 bytes
    of memory, up to ten million."""
    forget_keys_after: float | None = None
    """Seconds, by the times of events, after which a key that no event had is forgotten, with its runs: its next event
    is the first of a new key. None: only once the window has passed. Of a query that has keys."""
    output_bytes: int = _part(8)
    """Matches that one push may return at once (iterating in chunks needs no more than a buffer). An eighth of the
    memory."""
    variants: int = 256
    """Sequences that one sequence with optional elements stands for; each becomes a part of the automaton."""
    negated_conditions: int = 8
    """Alternatives under one negation with conditions over several events: a waiting state has two loops for each,
    and these multiply."""
    repeated_events: int = 1_000
    """The number of events that a pattern may have once bounded repetition is written out."""
    conjunction_transitions: int = 30_000
    """Transitions that are made for the conjunctions of a pattern. AND of n parts of one event each makes about n 2^n
    if the types of their events differ, else up to 3^n and half as many again. Lazy evaluators need none."""
    filter_alternatives: int = 256
    """Alternatives that the ORs of a FILTER may stand for: each is a part of the automaton."""
    rewrite_size: int = 2_000
    """Nodes that a rewritten formula may have; rewrites that need not be done stop before it."""
    solution_rows: int = _part(400, 50_000_000)
    """Solutions that one step of a graph pattern may have in a batch of events. One for 400 bytes of memory, up to
    fifty million."""
    closed_triples: int = _part(400, 50_000_000)
    """Triples that a graph of background knowledge may have once it is closed under its entailment (SPAseq). As many as
    `solution_rows`."""
    text_length: int = TEXT_LENGTH
    """Characters of a text that CONCAT, REPLACE or GROUP_CONCAT makes (SPAseq)."""
    threads: int | None = None
    """SPAseq: threads that read and match the files of a run, the caller's included; 1: that alone. None: one for each
    processor of the process, up to two. Answers do not depend on it."""
    compared_steps: int = 100_000
    """Steps of the product of two automata that `compare` makes: an event from a pair of sets of their states. With
    registers it counts once more for each value they hold."""
    evaluator: str | None = None
    """The evaluator: "compact" (the compact structure), "chain" or "tree" (lazily), "auto" (the cheapest). None: it is
    "auto" if each event would be compared with all runs, and else "compact"."""
    time_limit: float | None = None
    """Seconds that an evaluation may take: all of a run or of a followed stream, including the caller's work between
    two matches; of a session, each call by itself. None: any. Raises `LimitReached`."""
    memory_limit: int | None = None
    """Bytes of memory that the process may hold while it evaluates. None: any. Raises `LimitReached`."""

    def __post_init__(self) -> None:
        for name, kind in self.__annotations__.items():
            value = getattr(self, name)
            if "None" in kind and value is None:
                continue
            known = (int, float) if "float" in kind else str if kind.startswith("str") else int
            fits = isinstance(value, known) and not isinstance(value, bool)
            if not fits or (not isinstance(value, str) and not value >= 0):
                raise OptionError(f"Settings({name}={value!r}): this is not a {_KINDS[kind]}")
        if self.threads == 0:
            raise OptionError("threads is 0: the thread of the caller is one of them", "1 is that thread alone")

    @staticmethod
    def given(settings: Settings | None) -> Settings:
        """The settings, or those by default. Raises `OptionError` for values that are no settings."""
        if settings is None:
            return Settings()
        if not isinstance(settings, Settings):
            problem = f"settings are spaseq.Settings, and this is a {type(settings).__name__}"
            raise OptionError(problem, "for example settings=Settings(live_runs=10_000)")
        return settings


_KINDS: Final = {"int": "count", "str | None": "name", "int | None": "count", "float | None": "number of seconds"}
"""The names of the kinds of fields of `Settings`, by their annotation."""


class Registers(Protocol):
    """The state of a pattern's guards. Rows are hashable, never None; runs in one state with equal rows are one."""

    @property
    def empty(self) -> Any:
        """The row of a run that has taken nothing."""

    def load(self, batch: Any) -> None:
        """`event` below counts in `batch` from now on."""

    def take(self, row: Any, guard: Any, variables: frozenset[str], event: int) -> Any | None:
        """The row once a run with `row` takes the event for `variables`, or None if `guard` rejects it."""

    def leave(self, row: Any, guard: Any) -> Any | None:
        """The row without the values that `guard` needed, or None if the guard, with all its values, rejects the
        run."""

    def again(self, row: Any, action: Any) -> Any:
        """The row as another round of an iteration begins."""
