"""Graph pattern matching: the GPMs of a SPAseq query, compiled once and evaluated on each event.

`compile_pattern` turns a group graph pattern into a `GraphPattern`; a `PatternEvaluator` gives its mapping set for an
event graph; `Knowledge` is the background dataset. Plain patterns are evaluated directly, all others by rdflib's
algebra evaluator.
"""

from __future__ import annotations

from spaseq.gpm.comparison import Program, Side, compared_sides, is_name, near_number, number_of, number_program
from spaseq.gpm.direct import EventGraph
from spaseq.gpm.evaluate import Knowledge, PatternEvaluator, event_graph, holds, value_of
from spaseq.gpm.mappings import IDENTITY, Mapping, MappingSet, bound_everywhere, freeze, join, project, restrict
from spaseq.gpm.pattern import Condition, GraphPattern, Source, compile_pattern
from spaseq.gpm.results import list_literal
from spaseq.gpm.solutions import ROUNDS, Piece, SolutionPlan, Template, compile_solutions, compile_template

__all__ = [
    "IDENTITY",
    "ROUNDS",
    "Condition",
    "EventGraph",
    "GraphPattern",
    "Knowledge",
    "Mapping",
    "MappingSet",
    "PatternEvaluator",
    "Piece",
    "Program",
    "Side",
    "SolutionPlan",
    "Source",
    "Template",
    "bound_everywhere",
    "compared_sides",
    "compile_pattern",
    "compile_solutions",
    "compile_template",
    "event_graph",
    "freeze",
    "holds",
    "is_name",
    "join",
    "list_literal",
    "near_number",
    "number_of",
    "number_program",
    "project",
    "restrict",
    "value_of",
]
