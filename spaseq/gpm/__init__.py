"""Graph pattern matching: the GPMs of a SPAseq query, compiled once and evaluated on each event.

`compile_pattern` turns a group graph pattern into a `GraphPattern`; `Knowledge` is the background dataset. There are
two evaluators. The plan over columns (`columnar/`) computes a pattern's mapping sets on all events of a batch, which
may be one event. `PatternEvaluator` computes the mapping set on one event by definition: for patterns that the plan
does not cover, and as the reference that tests compare the plan with.

The way of a pattern: `sparql` has rdflib parse it, and checks the rules of `legal`. `pattern` compiles its `algebra`.
`columnar/` evaluates it on batches, `evaluate` on one event, by the rules of `reference`.

Modules:

* `algebra`: The SPARQL algebra as our own frozen, typed nodes (SPARQL 1.1 §18.2).
* `functions/`: The functions of SPARQL expressions, of terms and of numbers: one table, a row each.
* `expressions`: Expressions on one solution (SPARQL 1.1 §17).
* `comparison`: Comparisons by the rules of SPARQL 1.1 §17.3.
* `aggregates`: The rules of aggregates (SPARQL 1.1 §18.5.1), for both evaluators and for the result clauses.
* `mappings`: Solution mappings and sets of them ([SPAseq] §5, Definition 5).
* `legal`: The rules of SPARQL 1.1 that its grammar does not express, checked on rdflib's parse tree.
* `grammar`: rdflib's SPARQL grammar with positions, literals as written, and fewer alternatives to try.
* `sparql`: From SPARQL in a query's text to rdflib's algebra; only here rdflib parses and translates.
* `triple_patterns`: Triple terms in graph patterns and templates, as the algebra of SPARQL 1.1 with functions.
* `pattern`: Compile the group graph pattern of a GPM ([SPAseq] §4.2, Definitions 7 and 15).
* `property_paths`: Property paths as values, and questions about them that need no graph.
* `ways`: Property paths on one of rdflib's graphs (SPARQL 1.1 §18.4), for the reference.
* `reference`: Evaluates graph patterns as SPARQL 1.1 §18 defines it.
* `evaluate`: Evaluates compiled GPMs by `reference`, one event graph at a time, and conditions on one mapping.
* `columnar/`: Graph patterns over whole batches of events: tables of numbered terms instead of a mapping at a time.
* `inline`: Rows of inline data that are kept as columns, for VALUES of many IRIs.
* `entail`: RDFS entailment: knowledge is closed and graph patterns are rewritten; streams need no change.
* `result_clauses`: SELECT expressions, GROUP BY, HAVING, ORDER BY over solutions, and CONSTRUCT templates.
* `scope`: The variables of a GPM's nested parts, which cannot have the value of another GPM.
* `containment/`: Conditions that imply each other, and graphs that triple patterns fit, to compare two queries.
* `serialise`: RDF terms and mappings as text, in the syntaxes of result formats.
"""

from __future__ import annotations

from spaseq.gpm.comparison import (
    Program,
    Side,
    compared_sides,
    is_name,
    near_number,
    number_of,
    number_program,
    order_code,
)
from spaseq.gpm.evaluate import Closed, EventGraph, Knowledge, PatternEvaluator, event_graph, holds, value_of
from spaseq.gpm.mappings import IDENTITY, Mapping, MappingSet, bound_everywhere, freeze, join, project
from spaseq.gpm.pattern import Condition, GraphPattern, Source, compile_pattern
from spaseq.gpm.result_clauses import (
    ROUNDS,
    Piece,
    SolutionPlan,
    Template,
    compile_solutions,
    compile_template,
    in_columns,
)
from spaseq.gpm.serialise import list_literal

__all__ = [
    "IDENTITY",
    "ROUNDS",
    "Closed",
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
    "in_columns",
    "is_name",
    "join",
    "list_literal",
    "near_number",
    "number_of",
    "number_program",
    "order_code",
    "project",
    "value_of",
]
