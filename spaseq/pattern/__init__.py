"""The pattern algebra both languages lower to: nodes, questions about them, rewrites.

A `Pattern` is a formula of complex event logic over predicates that nobody below the front ends looks into. Nodes are
frozen and hashable. `push_filters` is the one rewrite applied before compilation.

Modules:

* `nodes`: The pattern algebra: what both languages lower to.
* `variables`: Which variables a pattern may bind.
* `push_filters`: Move conditions over several variables to the smallest part of a pattern that has all their variables.
"""

from __future__ import annotations

from spaseq.pattern.nodes import (
    And,
    As,
    Atom,
    Correlate,
    Filter,
    Iterate,
    NoneOf,
    Or,
    Pattern,
    Predicate,
    Project,
    Sequence,
    Skip,
)
from spaseq.pattern.push_filters import push_filters
from spaseq.pattern.variables import variables

__all__ = [
    "And",
    "As",
    "Atom",
    "Correlate",
    "Filter",
    "Iterate",
    "NoneOf",
    "Or",
    "Pattern",
    "Predicate",
    "Project",
    "Sequence",
    "Skip",
    "push_filters",
    "variables",
]
