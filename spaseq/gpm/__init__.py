"""Graph pattern matching: the GPMs of a SPAseq query, compiled once and evaluated on each event.

`compile_pattern` turns a group graph pattern into a `GraphPattern`; `Knowledge` is the background dataset. One plan
over columns (`columnar/`) gives a pattern's mapping set on each event of a batch, be that one event or many; a
`PatternEvaluator` gives it on one, by rdflib's algebra evaluator: what the plan does not cover, and the reference.

The road: `sparql` has rdflib parse a pattern, under the rules of `legal`; `pattern` compiles its `algebra`; `columnar/`
evaluates it on batches, `evaluate` on one event, by the rules of `reference`.

Modules:

* `algebra`: The SPARQL algebra as our own frozen, typed nodes (SPARQL 1.1 §18.2).
* `regex` (`Pattern`, `found`, `pattern_of`, `replaced`): Regular expressions of REGEX and REPLACE (XPath Functions
  §5.6.1), in time linear in the text.
* `functions`: Arithmetic, casts and functions of strings as SPARQL 1.1 §17 and XPath have them, in place of rdflib's.
* `comparison` (`SIGNS`, `compares`, `order_place`, `settle`, `term_place`): Comparisons as SPARQL 1.1 §17.3 has them,
  in place of rdflib's.
* `aggregates` (`LENIENT`, `PLACES`, `Aggregate`, `aggregate_of`, `aggregated`, `combined`): Aggregates (SPARQL 1.1
  §18.5.1): their rules, for graph patterns over columns, by rdflib, and for the result clauses.
* `mappings`: Solution mappings and sets of them ([SPAseq] §5, Definition 5).
* `legal` (`PLACED`, `UNGROUPED`, `Breach`, `breaches`, `check_labels`): The rules of SPARQL 1.1 that its grammar leaves
  to prose, over rdflib's parse tree.
* `grammar` (`Query`): rdflib's grammar of SPARQL as it is used here: with places in its tree, literals as written, and
  fewer vain tries.
* `sparql` (`Piece`, `Source`, `literals_as_written`, `prepared`, `settled`, `translated`): SPARQL inside a query's text
  to rdflib's algebra: the one place where rdflib parses and translates.
* `pattern` (`Condition`, `GraphPattern`, `Part`, `Source`, `compile_pattern`): Compile the group graph pattern of a GPM
  ([SPAseq] §4.2, Definitions 7 and 15).
* `ways` (`ways`): Property paths on one of rdflib's graphs (SPARQL 1.1 §18.4), for the reference.
* `reference`: rdflib's algebra, evaluated as SPARQL 1.1 §18 defines it: the reference for the plan over columns, and
  what evaluates the little that the plan does not cover.
* `evaluate`: Evaluate compiled GPMs by rdflib's algebra evaluator, an event graph at a time: what the columnar plan
  does not cover, and the reference that it is held against. And ask an expression of one mapping (`holds`, `verdict`).
* `columnar/`: Graph patterns over whole batches of events: tables of numbered terms instead of a mapping at a time.
* `entail` (`Schema`, `close_knowledge`, `entailed`): RDFS entailment for graph patterns: knowledge is closed, patterns
  are rewritten, streams stay as they are.
* `result_clauses` (`ROUNDS`, `Piece`, `SolutionPlan`, `Template`, `compile_solutions`, `compile_template`): SELECT
  expressions, aggregates, GROUP BY, HAVING and ORDER BY over solutions, and CONSTRUCT templates.
* `scope` (`hidden_variables`): Which variables of a GPM stand where another GPM's value cannot reach them.
* `serialise`: RDF terms and mappings as people and programs read them.
"""

from __future__ import annotations

from spaseq.gpm.comparison import Program, Side, compared_sides, is_name, near_number, number_of, number_program
from spaseq.gpm.evaluate import EventGraph, Knowledge, PatternEvaluator, event_graph, holds, value_of
from spaseq.gpm.mappings import IDENTITY, Mapping, MappingSet, bound_everywhere, freeze, join, project, restrict
from spaseq.gpm.pattern import Condition, GraphPattern, Source, compile_pattern
from spaseq.gpm.result_clauses import ROUNDS, Piece, SolutionPlan, Template, compile_solutions, compile_template
from spaseq.gpm.serialise import list_literal

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
