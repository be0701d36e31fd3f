"""Graph pattern matching: the GPMs of a SPAseq query, compiled once and evaluated on each event.

`compile_pattern` turns a group graph pattern into a `GraphPattern`; `Knowledge` is the background dataset. One plan
over columns (`columnar/`) gives a pattern's mapping set on each event of a batch, be that one event or many; a
`PatternEvaluator` gives it on one, by rdflib's algebra evaluator: what the plan does not cover, and the reference.
"""

from __future__ import annotations

from spaseq.gpm.comparison import Program, Side, compared_sides, is_name, near_number, number_of, number_program
from spaseq.gpm.evaluate import EventGraph, Knowledge, PatternEvaluator, event_graph, holds, value_of
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
