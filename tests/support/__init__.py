"""The common parts of the suites: naive evaluators to compare with, random cases, roads from a query to answers.

An `oracle` evaluates by the definitions and imports nothing of the engine. `strategies` and `graph_patterns` draw
queries and events. `harness` runs a case by an oracle or the engine, `roads` by every way, and `proof` compares them.

* `algebra_by_definition`: The SPARQL algebra by definition (SPARQL 1.1 §18), bottom up over lists of mappings, for one
  graph.
* `changing`: An evaluator that is exchanged for another one at nearly every batch.
* `drawn_functions`: Random expressions with the functions of CEQL, as texts, and random events for them.
* `engine_patterns`: Random patterns as the oracle's formulas, and their translation to the core's algebra.
* `graph_patterns`: Random graph patterns as the naive evaluator's data (`oracle_sparql`), with a printer and shrinking.
* `harness`: Cases and the evaluators that run them: the naive one, the engine whole and in batches, and Spark.
* `micro_batches`: A streaming query without Spark: the same parts, parcels, buckets and snapshots, in random
  micro-batches.
* `oracle`: The naive evaluator of CEQL: the papers' definitions, written down as they stand.
* `oracle_ceql_text`: A reader of CEQL text for the naive evaluator: recursive descent, not the engine's parser.
* `oracle_functions`: The functions of CEQL on single values, for the naive evaluator.
* `oracle_rma`: The meaning of expressions with registers, from the definitions of [RMA] §3 and §6, naively; nothing of
  the engine.
* `oracle_sparql`: The naive evaluator of graph patterns: SPARQL 1.1 §17 and §18, read off the syntax, over one small
  graph.
* `oracle_spaseq`: The naive evaluator of SPAseq: [SPAseq] §5, Definitions 5 to 16, and `docs/semantics.md`.
* `oracle_spaseq_results`: The naive evaluator of result forms: SPARQL 1.1 §18.2.4, §18.2.5 and §16, and
  `docs/semantics.md`, on solutions.
* `oracle_spaseq_text`: A reader of SPAseq queries and of Turtle-like graphs for the naive evaluator, independent of the
  engine's parsers.
* `oracle_tokens`: The common part of the oracles' readers of query texts: tokens, and arithmetic over them.
* `prose`: A counter of unclear prose in docstrings, comments, names and documents (`tests/test_words.py`).
* `proof`: The standing proof: random queries on every road of `roads.py`, against the definitions. Deterministic by
  seed.
* `rma_expressions`: Random bounded expressions as the oracle's tuples, and their translation to the library's nodes.
* `roads`: Every way into the engine, as one table: a road takes a case and gives the answers that the engine gives
  there.
* `snapshots`: Snapshots of parts of an evaluation, for tests.
* `strategies`: Random queries and streams: CEQL formulas as the naive evaluator's data with a printer, SPAseq queries
  as text.
* `words`: The ends of a query's words: helpers of both languages' tests of their keywords, for a text and its tree.
"""

__all__ = [
    "algebra_by_definition",
    "engine_patterns",
    "graph_patterns",
    "harness",
    "micro_batches",
    "oracle",
    "oracle_ceql_text",
    "oracle_rma",
    "oracle_sparql",
    "oracle_spaseq",
    "oracle_spaseq_results",
    "oracle_spaseq_text",
    "oracle_tokens",
    "proof",
    "prose",
    "rma_expressions",
    "roads",
    "snapshots",
    "strategies",
    "words",
]
