"""A compiled pattern, ready to be evaluated any number of times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from spaseq.core.automata import CEA, INITIAL, compile_pattern, say_action
from spaseq.core.engine.program.around import Around
from spaseq.core.engine.program.lazy_plan import LazyPlan, planned, spare_plan
from spaseq.core.engine.program.marks import without_marks
from spaseq.core.engine.program.register_ops import MOST, Codes
from spaseq.core.engine.program.settings import After, AfterMatch, Choice, Consume, Registers, Selection, Settings
from spaseq.core.engine.program.simpler import cheaper_choice
from spaseq.core.engine.program.sums import Summed
from spaseq.core.engine.program.window import Window
from spaseq.core.errors import BudgetExceeded, InternalError, UnsupportedFeature
from spaseq.core.pattern import Pattern
from spaseq.core.watch import memory_of_machine


@dataclass(frozen=True, slots=True)
class Program:
    """An automaton with its window, the meaning of its guards, and budgets. Never changes; pickles if its parts do.

    `automaton` is the error instead if the automaton is too large (`conjunction_transitions`). Then `lazy` is a plan,
    which needs none.
    """

    automaton: CEA | BudgetExceeded
    window: Window
    choice: Choice
    registers: Registers | None
    settings: Settings
    around: Around = Around()  # noqa: RUF009 - frozen
    lazy: LazyPlan | str | None = None
    """For the lazy evaluators: a plan; or the reason why "auto" has none; None if they are not requested."""
    against: Program | None = None
    """Of matches that wait for their windows to close, those with one event more which calls them off."""
    asked: str = ""
    """The selection that `choice` stands for and the reason for it, if it is not the one that was asked for."""
    chosen: Choice | None = None
    """The choice among those matches that the events around them leave; then `choice` keeps all matches for it."""
    hides_labels: bool = False
    """True if the automaton's labels only tell the events of the variable of `Choice.after`: matches have none."""
    summed: Summed | None = None
    """The aggregates over all matches of an event that are reported in their place."""
    listed: str = ""
    """The reason for which these matches are listed to be aggregated; empty if they are not."""
    spare: LazyPlan | None = None
    """The plan with which an evaluator may be chosen while the stream runs, if the settings name none."""
    ranked: bool = False
    """True if the best matches of each event are found behind the engine, by the nodes that matches share."""

    @property
    def cea(self) -> CEA:
        """The automaton. Raises `BudgetExceeded` if it is too large to be built."""
        if isinstance(self.automaton, BudgetExceeded):
            raise self.automaton.with_traceback(None)
        return self.automaton

    @property
    def evaluator(self) -> str:
        """The evaluator that the settings ask for; "compact" for "auto" if there is no plan, and "chain" if there is no
        automaton."""
        if not isinstance(self.lazy, LazyPlan):
            return "compact"
        no_choice = not isinstance(self.automaton, CEA) and self.settings.evaluator in (None, "auto")
        return "chain" if no_choice else self.settings.evaluator or "compact"

    @property
    def choosable(self) -> LazyPlan | None:
        """The plan with which the evaluator is chosen while the stream runs; None if it is not."""
        if self.spare is not None and self.choice == Choice() and self.summed is None and not self.ranked:
            return self.spare
        return self.lazy if isinstance(self.lazy, LazyPlan) and self.evaluator == "auto" else None

    @property
    def why(self) -> str:
        """The reason for which "auto" does not choose between the evaluators; empty if it does, or is not asked."""
        if isinstance(self.lazy, str):
            return self.lazy
        chosen = self.settings.evaluator in (None, "auto") and self.evaluator == "chain"
        return f"no automaton: {str(self.automaton).splitlines()[0]}" if chosen else ""

    @property
    def why_listed(self) -> str:
        """The reason for which its matches must be listed to be aggregated or ranked; empty if they need not be."""
        choice, around = self.whole_choice, self.around
        if isinstance(self.lazy, LazyPlan):
            return "its evaluator lists matches"
        if around.decides or around.marked or around.quiets:
            return "events around a match decide about it"
        if choice.selection is not Selection.ALL or choice.limit is not None or choice.after is not None:
            return "matches are chosen among those of an event"
        return "only the first match counts" if choice.consume is Consume.ONCE else ""

    @property
    def adds_nodes(self) -> bool:
        """True if aggregates are added up over the nodes that matches share: with registers, runs of one state differ,
        and a row of numbers for each state is not enough."""
        aggregates = self.summed is not None and not self.listed and self.choice.selection is Selection.ALL
        return aggregates and self.cea.has_registers

    @property
    def writes_nodes(self) -> bool:
        """True if it gives nodes (`MatchBatch.nodes`) in place of matches."""
        return self.adds_nodes or (self.ranked and self.choice.selection is Selection.ALL)

    @property
    def adds_states(self) -> bool:
        """True if aggregates are rows of numbers for each state, and there are no nodes."""
        return self.summed is not None and not self.listed and not self.cea.has_registers

    @property
    def keeps_runs(self) -> bool:
        """True if runs live on behind their first event."""
        return not isinstance(self.automaton, CEA) or self.automaton.states > 1

    def describe(self) -> str:
        """The automaton as text, or the plan of the lazy evaluators if there is no automaton."""
        return self.cea.describe() if not isinstance(self.lazy, LazyPlan) or isinstance(self.automaton, CEA) else (
            self.lazy.describe())  # fmt: skip

    @property
    def ends_by_key(self) -> bool:
        """True if only a pause of its key ends a run."""
        return self.settings.forget_keys_after is not None and not self.window.is_bounded

    @property
    def keeps_roots(self) -> bool:
        """True if events around a match decide about it, and the compact structure holds it meanwhile: as nodes, not
        one by one. Such events decide by the ends and starts of the matches; with `against`, by their positions, and
        if alternatives differ, by their marks. What the runs themselves choose waits one by one."""
        apart = self.against is not None or bool(self.around.marked)
        return self.around.decides and not apart and self.choice in (Choice(), Choice(Selection.ENDS))

    @property
    def whole_choice(self) -> Choice:
        """The choice among all matches, by the runs or behind them."""
        return self.choice if self.chosen is None else self.chosen

    @property
    def reach(self) -> Window:
        """The window that holds all events that decide about a match, when it is reported. With a choice it may wait
        for a match with the same end, or an earlier one, that began a window later."""
        found = self.around.reach(self.window)
        later = self.chosen is not None and self.around.waits and found.is_bounded
        return replace(found, size=found.size + self.window.size) if later else found

    @property
    def labels(self) -> tuple[frozenset[str], ...] | None:
        """The sets of variables that `MatchBatch.labels` number; None if matches are not valuations."""
        labels = None if self.hides_labels else self.labels_written
        return labels if labels is None or not self.around.hidden else without_marks(labels, self.around.hidden)

    @property
    def labels_written(self) -> tuple[frozenset[str], ...] | None:
        """The labels that runs write, if they write matches or the roots of matches: also those that are hidden."""
        return self.automaton.labels if isinstance(self.automaton, CEA) else None

    def explain(self, per_second: int | None = None) -> str:
        """The automaton and how it is run, as text. `per_second`: how many units of the window's size a second has."""
        if not isinstance(self.automaton, CEA):
            how = "lazy: rare events first, frequent ones from a buffer"
        elif self.adds_states:
            how = "aggregates over matches, none of which is listed: numbers by state, in two stacks for the window"
        elif self.cea.has_registers and codes_of(self) is not None:
            how = "registers: conditions are tests of codes, and the kernel moves (states, codes held)"
        elif self.cea.has_registers:
            how = "registers: the structure hangs off sets of (state, register row), worked out event by event"
        else:
            budget = self.settings.automaton_bytes
            how = f"no registers: determinised lazily over symbol classes, within {budget:,} bytes; beyond, set by set"
        window: str = self.window.kind
        if self.window.is_bounded:
            if per_second is None or self.window.by_position:
                window += f" {self.window.size:,}"
            else:
                window += f" {self.window.size / per_second:,.12g} s"
        choice = self.whole_choice
        chosen = [f"selection: {self.asked or choice.selection.name}"]
        if choice.consume is not Consume.NONE:
            chosen.append(f"consume by: {choice.consume.name}")
        if choice.after is not None:
            after = choice.after
            chosen.append(f"after a match: {after.rule.name.replace('_', ' ')} {after.variable}".rstrip())
        if choice.limit is not None:
            chosen.append(f"limit: {choice.limit} per event")
        if self.chosen is not None:
            chosen.append("chosen among the matches that what must not come leaves, once that is known of an end")
        if self.lazy is not None:
            chosen.append(f"evaluator: {self.evaluator}" + (f" ({self.why})" if self.why else ""))
        if self.adds_nodes:
            chosen.append("aggregates over matches: none is listed, by the nodes they share; O(nodes) an event at most")
        if self.listed:
            chosen.append(f"aggregates over matches: of a list of them, O(matches), since {self.listed}")
        arena, output = self.settings.arena_bytes, self.settings.output_bytes
        budgets = f"budgets: arena_bytes {arena:,}, output_bytes {output:,}, of {memory_of_machine():,} bytes of memory"
        automaton = self.cea.describe(say_action) if isinstance(self.automaton, CEA) else self.describe()
        return "\n".join([automaton, f"window: {window}", *chosen, f"evaluation: {how}", budgets])


def ends_only(program: Program) -> Program:
    """The same program, reduced to the events at which matches end (`Selection.ENDS`); the compact structure evaluates
    it.

    The existence of a match does not depend on the choice among matches with one end, nor on their number. So only
    CONSUME BY is left of the choice. With `absent`, a match waits until its window has closed. The structure then
    reports for each root if one of its matches is left (`keeps_roots`). A program whose matches wait one by one stays
    as it is. So does one with a choice and silences inside the window (`Repeated`): the start of the match that is
    chosen says how many there are. With the first silence behind a match its end is known.
    """
    repeated = program.around.repeated
    if repeated is not None:
        program = replace(program, around=replace(program.around, repeated=replace(repeated, most=1)))
    choice = program.whole_choice
    by_start = repeated is not None and program.window.is_bounded
    if program.against is not None or program.around.marked or (by_start and choice.selection is not Selection.ALL):
        return replace(program, lazy=None)
    if choice.after is not None and choice.consume is Consume.NONE:
        if choice.after.rule not in (After.PAST_LAST, After.ONCE):
            return replace(program, lazy=None)  # the latest start may be dead, and an earlier one of its cell alive
        choice = Choice(consume=_consumption(choice.after))
    if program.chosen is None:
        return replace(program, choice=Choice(Selection.ENDS, choice.consume), lazy=None)
    chosen = None if choice.consume is Consume.NONE else Choice(consume=choice.consume)
    return replace(program, choice=Choice(Selection.ENDS), chosen=chosen, lazy=None)


def simplify(choice: Choice, cea: CEA) -> Choice:
    """The same choice by selection and consumption alone, if these can say what a match discards.

    PAST LAST reports one match an event, the first in the order of NEXT, and discards what began so far. So it is NEXT
    with CONSUME BY PARTITION, except among matches with equal positions and different starts: of these NEXT reports
    all. There are none if every run marks its first event, as then the least position is the start.
    """
    after = choice.after
    if after is None or after.rule not in (After.PAST_LAST, After.ONCE):
        return choice
    if not all(t.marks for t in cea.transitions[INITIAL]):
        return choice
    return replace(choice, selection=Selection.NEXT, consume=_consumption(after))


def choices(cea: CEA, choice: Choice, around: Around, *, related: bool) -> tuple[Choice, Choice | None, str]:
    """The choice of the runs, that behind them (`Program.chosen`), and the reason why the first is not the one asked
    for, if it is not (`cheaper_choice`).

    What must not come around a match leaves, of the matches with one end, those that start before a bound; for a time
    behind the end, all or none. So a choice of the runs may come first, if its matches are left whenever the others
    are. For a time behind the end any does, as far as it forgets nothing. If each run marks its first event, NEXT has
    the earliest start, and a match of MAX lies within none that starts later: then these do. If events behind a match
    are `related` to it, or alternatives differ, nothing is known.
    """
    if around.marked and choice != Choice():  # events that only marks take are none of a match
        return Choice(), choice, ""
    if related and choice != Choice():
        return Choice(), simplify(choice, cea), ""
    found, asked = cheaper_choice(cea, simplify(choice, cea))
    if not around.decides or found == Choice():
        return found, None, asked
    marked = all(t.marks for t in cea.transitions[INITIAL])
    decided_by_end = around.patience is not None and around.before is None
    first = found.selection in (Selection.NEXT, Selection.MAX, Selection.LARGEST) and found.limit is None and marked
    if not found.forgets and (decided_by_end or first):
        return found, None, asked
    simple = simplify(choice, cea)
    if marked and found.selection is Selection.LARGEST:
        return Choice(), replace(found, selection=Selection.NEXT), asked
    return Choice(), found if marked else simple, asked if marked else ""


def _consumption(after: AfterMatch) -> Consume:
    if after.rule is After.ONCE:
        return Consume.ONCE
    return Consume.PARTITION if after.keyed else Consume.ANY


def codes_of(program: Program) -> Codes | None:
    """The guards of a program as operations on codes, if they are that and the kernel can run them; else None."""
    registers: Any = program.registers
    if program.choice.selection is Selection.MAX or not hasattr(registers, "codes") or program.cea.states > MOST:
        return None
    codes: Codes | None = registers.codes(program.cea)
    return codes if codes is not None and codes.registers <= MOST else None


def compile_program(
    pattern: Pattern,
    window: Window = Window("none"),  # noqa: B008 - frozen
    *,
    strict: bool = False,
    choice: Choice = Choice(),  # noqa: B008 - frozen
    registers: Registers | None = None,
    settings: Settings = Settings(),  # noqa: B008 - frozen
    around: Around = Around(),  # noqa: B008 - frozen
    against: Program | None = None,
    valuations: bool = False,
    shown: frozenset[str] | None = None,
) -> Program:
    """Compile `pattern`; guards need `registers`. `strict` keeps only matches whose positions are an interval.

    `around`: what must not come in front of a match or behind it; `choice` is among the matches that this leaves, and
    `against` goes with selection ALL alone. Matches that wait are reported as their windows close, or their patience
    ends. `against`, with it, is a program whose matches are those of `pattern`, with all of their positions, and one
    more event. Such matches of `pattern` are not reported.

    With `valuations`, matches are valuations ([CEL] §3): two that differ only in the positions of a variable are two,
    and `MatchBatch.labels` tells them apart. If `shown` is given, only these variables count. Selection compares
    positions as ever, so valuations of one complex event are reported together or not at all; ANY and LIMIT count
    valuations.
    """
    if around.patiences and (not around.waits or window.by_position):
        raise InternalError("only an absence behind a match has a time of its own, in windows of time")
    if choice.after is not None and choice != Choice(after=choice.after):
        raise InternalError("a rule for what a match discards goes with selection ALL, without consumption or limit")
    of_variable = choice.after is not None and choice.after.on_variable
    hides_labels = (of_variable or bool(around.hidden)) and not valuations
    if hides_labels:
        shown = frozenset((choice.after.variable,)) if of_variable and choice.after is not None else frozenset()
    try:
        automaton: CEA | BudgetExceeded = compile_pattern(
            pattern, strict=strict, valuations=valuations or hides_labels, negated=settings.negated_conditions,
            shown=shown, first=[(one.border, one.quiet) for one in around.silences],
            products=settings.conjunction_transitions,
            marks={(one.behind, one.border): one.mark for one in around.marked if one.mark}, kept=around.time_variables,
        )  # fmt: skip
    except BudgetExceeded as error:
        if error.setting != "conjunction_transitions":
            raise
        automaton = error
    try:
        lazy = planned(settings.evaluator, pattern, strict=strict, choice=choice, registers=registers,
                       valuations=valuations, timed=around.is_timed, several=bool(around.marks),
                       alone=not isinstance(automaton, CEA))  # fmt: skip
    except UnsupportedFeature as refused:
        if isinstance(automaton, CEA):
            raise
        lazy = refused.problem
    if against is not None and settings.evaluator == "auto":
        lazy = "what must not come at the end has conditions on what came before"
    asked, chosen, spare = "", None, None
    if isinstance(automaton, CEA):
        apart = valuations or hides_labels or not around.is_empty or against is not None
        if settings.evaluator is None and settings.forget_keys_after is None and not apart:
            spare = spare_plan(pattern, strict=strict, choice=choice, registers=registers)
        choice, chosen, asked = choices(automaton, choice, around, related=against is not None)
    elif not isinstance(lazy, LazyPlan):
        raise _with_reason(automaton, lazy) from None
    return Program(automaton, window, choice, registers, settings, around, lazy, against, asked, chosen, hides_labels,
                   spare=spare)  # fmt: skip


def _with_reason(error: BudgetExceeded, reason: str | None) -> BudgetExceeded:
    """The error with the reason for which no lazy evaluator takes the pattern instead, if one was asked for."""
    if reason is None:
        return error
    hint = f"{reason}; raise {error.setting}, or write fewer parts"
    return BudgetExceeded(error.setting, error.limit, error.used, error.unit, hint)
