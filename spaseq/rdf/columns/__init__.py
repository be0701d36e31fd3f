"""Graph events as columns: batches of numbered terms in arrays, instead of a Python object per triple.

    batch = GraphBatch.of(events)                  # events of one stream, in any way they were made
    batch.triples, batch.offsets, batch.times      # int32 (n, 3), int64 (m + 1,), int64 (m,)
    batch.terms.term(7), batch.terms.id_of(term), batch.terms.numbers()
    batch.event(0)                                 # back to a GraphEvent

    from spaseq.rdf.columns.reader import open_batches         # files to batches; loads numba
    streams, options = open_batches(sources, options, counters)

A batch holds many events of one stream and knows its own terms only: numbers of two batches do not compare.

How files become batches:

* `scanner`, bytes of lines and of documents to rows of numbered terms (`kernels`, `dictionary`, `memory`);
* `parts`, the same for parts of a file, each with terms of its own, so that threads read several at once;
* `drafts`, rows to events with times (`assembly`, `literals`, `names`); `wrong_events`, the words of its errors;
* `ordering`, events in order of time to batches (`gathering`);
* `reader`, files and streams, and quads of tables;
* `follow`, streams that go on: files that grow, folders that get files, standard input; `arrivals`, their batches in
  order of time over all streams.

Not here: matching (`spaseq.gpm`).

Besides:

* `values`: The values of a batch's literals, as columns; the same as `rdflib.Literal.value`.
* `knowledge`: Background knowledge: files of RDF in any format as one graph ([SPAseq] Definition 15).
* `kept`: Knowledge kept as a file: a graph's arrays as they are in memory, mapped when it is opened.
* `triples`: A graph as columns: different triples over numbered terms, those of a predicate together.
* `closing`: Entailment by the classes and properties that graphs describe (RDFS).
* `owl`: Entailment by OWL 2 RL. `pairs`, the joins of both; `inherited`, their search along hierarchies.
* `model`: The data model: the terms of one batch, numbered, and the events of one batch over those numbers.
"""

from __future__ import annotations

from spaseq.rdf.columns.closing import SchemaColumns, close_rdfs
from spaseq.rdf.columns.kept import KeptKnowledge, check_kept, described_kept, is_kept, open_kept
from spaseq.rdf.columns.knowledge import build_knowledge, load_knowledge, read_knowledge, read_part
from spaseq.rdf.columns.model import BLANK, IRI, LITERAL, BatchLimits, GraphBatch, Kinds, LiteralColumns, TermTable
from spaseq.rdf.columns.owl import close_owl, close_owl_rl
from spaseq.rdf.columns.triples import GraphColumns
from spaseq.rdf.columns.values import empty_columns, number_of_term, set_value, set_values, values_of_keys

__all__ = [
    "BLANK",
    "IRI",
    "LITERAL",
    "BatchLimits",
    "GraphBatch",
    "GraphColumns",
    "KeptKnowledge",
    "Kinds",
    "LiteralColumns",
    "SchemaColumns",
    "TermTable",
    "build_knowledge",
    "check_kept",
    "close_owl",
    "close_owl_rl",
    "close_rdfs",
    "described_kept",
    "empty_columns",
    "is_kept",
    "load_knowledge",
    "number_of_term",
    "open_kept",
    "read_knowledge",
    "read_part",
    "set_value",
    "set_values",
    "values_of_keys",
]
