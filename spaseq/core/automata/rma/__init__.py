"""Register match automata ([RMA]): expressions, constructions, runs.

`build` makes an automaton of an expression (`event`, `Then`, `Where` …). Other functions use it:

* show it: `describe`, `to_dot`, `to_svg`;
* run it: `matches`, `accepts`, `Recogniser`;
* combine it: `union`, `concatenation`, `kleene_plus`;
* give it a window: `unroll`, `count_events`;
* make it deterministic: `determinise`, `complement`.

`from_pattern` takes the patterns that queries compile to. `docs/rma.md` is the guide.

An automaton has a fixed number of registers; expressions for which no number is enough are refused with the reason
(`check_bounded`). Every construction that may grow exponentially has a limit (`Limits`).

Modules:

* `limits`: Limits on the size of register match automata.
* `formulas`: Formulas, the conditions on transitions; their simplification, satisfiability and minterms.
* `automaton`: Register match automata ([RMA] §4).
* `epsilon`: Removes ε-transitions, and merges states with the same future ([RMA], end of the proof of Theorem 5.1).
* `expressions`: Expressions: core CEPL with n-ary formulas ([RMA] §3), and regular expressions with explicit registers.
* `unroll`: Windows: automata whose runs take at most w events from the first marked one on ([RMA] §6, Lemma 6.5).
* `construct`: From bounded expressions to register match automata ([RMA] Theorem 5.1, Algorithms 1, 3 and 4).
* `bridge`: From the patterns that queries compile to (`spaseq.core.pattern`) to register match automata.
* `closure`: Closure of register match automata under union, concatenation and Kleene⁺ ([RMA] Definition 5.4, Theorem
  5.5).
* `simulation`: The simulation relation between states; runs that another run covers are left out by it.
* `determinise`: Determinisation by minterms ([RMA] Theorem 5.5 and Algorithm 5; §6, Corollary 6.7), with registers
  renamed.
* `draw`: Automata as DOT for Graphviz, and as SVG with a layout of our own.
* `vocabulary`: The tests of an automaton: those on the event at hand alone, and those that read registers.
* `layout`: The values that runs keep in registers: the attributes that conditions read from them.
* `recognise`: The events at which matches end: all runs of an automaton over batches of events.
* `run`: Runs of an automaton over a stream of single events ([RMA] Definitions 4.3 to 4.5).
* `single_run`: The one run of an output-agnostic deterministic automaton over batches ([RMA] Definition 6.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaseq.core.automata.rma.automaton import RMA, Transition, check_registers, is_deterministic
from spaseq.core.automata.rma.bridge import from_pattern, to_expression
from spaseq.core.automata.rma.closure import concatenation, kleene_plus, union
from spaseq.core.automata.rma.construct import build, construct
from spaseq.core.automata.rma.determinise import complement, determinise, is_complete
from spaseq.core.automata.rma.draw import to_dot, to_svg
from spaseq.core.automata.rma.epsilon import eliminate_epsilon, merge_alike, single_final
from spaseq.core.automata.rma.expressions import (
    Either,
    Expression,
    Maybe,
    Plus,
    Read,
    RelationAs,
    Then,
    Where,
    Within,
    bound_names,
    check_bounded,
    event,
    read,
    show_expression,
    variables,
)
from spaseq.core.automata.rma.formulas import (
    CURRENT,
    FALSE,
    TRUE,
    Formula,
    Holds,
    Is,
    Relates,
    Relation,
    Test,
    compare,
    conjunction,
    disjunction,
    negation,
    relate,
)
from spaseq.core.automata.rma.limits import Limits
from spaseq.core.automata.rma.run import Acceptor, Configuration, accepting_runs, accepts, matches, show_run
from spaseq.core.automata.rma.unroll import count_events, unroll
from spaseq.core.lazy_names import loader

if TYPE_CHECKING:
    from spaseq.core.automata.rma.recognise import EventRows, Recogniser
    from spaseq.core.automata.rma.single_run import SingleRun, Steps

__all__ = [
    "CURRENT",
    "FALSE",
    "RMA",
    "TRUE",
    "Acceptor",
    "Configuration",
    "Either",
    "EventRows",
    "Expression",
    "Formula",
    "Holds",
    "Is",
    "Limits",
    "Maybe",
    "Plus",
    "Read",
    "Recogniser",
    "Relates",
    "Relation",
    "RelationAs",
    "SingleRun",
    "Steps",
    "Test",
    "Then",
    "Transition",
    "Where",
    "Within",
    "accepting_runs",
    "accepts",
    "bound_names",
    "build",
    "check_bounded",
    "check_registers",
    "compare",
    "complement",
    "concatenation",
    "conjunction",
    "construct",
    "count_events",
    "determinise",
    "disjunction",
    "eliminate_epsilon",
    "event",
    "from_pattern",
    "is_complete",
    "is_deterministic",
    "kleene_plus",
    "matches",
    "merge_alike",
    "negation",
    "read",
    "relate",
    "show_expression",
    "show_run",
    "single_final",
    "to_dot",
    "to_expression",
    "to_svg",
    "union",
    "unroll",
    "variables",
]


__getattr__, __dir__ = loader(
    __name__,
    {
        "spaseq.core.automata.rma.recognise": ("EventRows", "Recogniser"),
        "spaseq.core.automata.rma.single_run": ("SingleRun", "Steps"),
    },
)
