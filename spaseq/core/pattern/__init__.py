"""The pattern algebra, to which both languages lower their queries.

A `Pattern` is a formula of complex event logic over predicates that only the front ends understand. Nodes are frozen
and hashable. `push_filters` is the one rewrite applied before compilation.

Modules:

* `nodes`: The nodes of the pattern algebra.
* `borders`: All that must not come before and behind the matches of a pattern.
* `variables`: The variables that a pattern may bind.
* `takes`: Which variables of a match can be told from its positions alone.
* `balanced`: Many parts under one associative operator.
* `repetition`: Bounded repetition, written out.
* `push_filters`: Moves conditions over several variables to the smallest part of a pattern that has all of them.
"""

from __future__ import annotations

from spaseq.core.pattern.balanced import balance
from spaseq.core.pattern.borders import Border, Borders, KnownBorders, borders
from spaseq.core.pattern.nodes import (
    Absent,
    And,
    As,
    Atom,
    Batch,
    Bordered,
    Correlate,
    Excluding,
    Filter,
    Iterate,
    Lasting,
    NoneOf,
    Optional,
    Or,
    Pattern,
    Predicate,
    Preference,
    Project,
    Sequence,
    Skip,
    are_exclusive,
    skips_till_next,
)
from spaseq.core.pattern.push_filters import push_filters
from spaseq.core.pattern.repetition import repeat
from spaseq.core.pattern.takes import all_shown, told_by_positions
from spaseq.core.pattern.variables import variables

__all__ = [
    "Absent",
    "And",
    "As",
    "Atom",
    "Batch",
    "Border",
    "Bordered",
    "Borders",
    "Correlate",
    "Excluding",
    "Filter",
    "Iterate",
    "KnownBorders",
    "Lasting",
    "NoneOf",
    "Optional",
    "Or",
    "Pattern",
    "Predicate",
    "Preference",
    "Project",
    "Sequence",
    "Skip",
    "all_shown",
    "are_exclusive",
    "balance",
    "borders",
    "push_filters",
    "repeat",
    "skips_till_next",
    "told_by_positions",
    "variables",
]
