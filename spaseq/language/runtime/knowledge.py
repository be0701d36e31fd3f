"""The background knowledge of a run, from files, graphs and tables, with its entailments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, TypeAlias

from spaseq.core.errors import OptionError
from spaseq.gpm import Closed, Knowledge
from spaseq.gpm.entail import Schema, close_knowledge, entail
from spaseq.language.semantics.check import CheckedQuery
from spaseq.rdf import (
    GraphColumns,
    Grouped,
    close_owl_rl,
    graph_of,
    group_triples,
    iri_of,
    is_dataset,
    is_table,
    named_graphs,
    read_knowledge,
    table_knowledge,
)

Known: TypeAlias = Knowledge | Mapping[Any, Any] | Iterable[Any] | None
"""Background knowledge as `knowledge_of` takes it: a mapping, or a dataset."""


def knowledge_of(kb: Known) -> Knowledge:
    """Background knowledge by the IRI that GRAPH names.

    Each is one of these, or a list of the first:

    * a path or a glob to RDF of any format;
    * a Graph or Dataset of rdflib, a Store of pyoxigraph, or triples or quads of the terms of either;
    * a table of triples (pyarrow, pandas, Polars) with the columns `subject`, `predicate` and `object`, see
      `spaseq.rdf.table_knowledge`.

    Named graphs are merged. `Grouped` adds groups to any of them.

    A Dataset of rdflib, or a Store or Dataset of pyoxigraph, in place of the mapping gives its named graphs by their
    names. Its default graph has none, so no GRAPH names it. `OptionError` if it has no other.
    """
    if isinstance(kb, Knowledge):
        return kb
    if is_dataset(kb):
        return Knowledge({_name(name): GraphColumns.of(triples) for name, triples in _graphs_by_name(kb).items()})
    if kb is not None and not isinstance(kb, Mapping):
        return Knowledge(kb)  # type: ignore[arg-type]  # its error lists the accepted kinds
    return Knowledge({_name(iri): _graph(value) for iri, value in (kb or {}).items()})


def _name(iri: Any) -> str:
    return iri_of(iri, "the name of a graph of background knowledge").removeprefix("<").removesuffix(">")


def _graphs_by_name(dataset: Any) -> dict[Any, Any]:
    found = named_graphs(dataset, "background knowledge")
    if not found:
        problem = f"a {type(dataset).__name__} without named graphs, and GRAPH names those of background knowledge"
        raise OptionError(problem, "give the graph a name: kb={IRI: graph}")
    return found


def _graph(value: Any) -> Any:
    if isinstance(value, Grouped):
        triples = list(_graph(value.knowledge))
        return GraphColumns.of(chain(triples, group_triples(triples, value.by)))
    if isinstance(value, str):
        return read_knowledge(value)
    if isinstance(value, os.PathLike):
        return read_knowledge(os.fspath(value))
    if isinstance(value, (list, tuple)) and all(isinstance(path, str | os.PathLike) for path in value):
        return read_knowledge([str(path) for path in value])
    if is_table(value):
        return table_knowledge(value)
    if isinstance(value, GraphColumns):
        return value
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        return GraphColumns.of(graph_of(value, "background knowledge"))
    hint = "give a path, a list of paths, a graph or triples of rdflib or pyoxigraph, or a table"
    raise OptionError(f"a {type(value).__name__} is no background knowledge", hint)


def with_entailment(
    query: CheckedQuery, knowledge: Knowledge, entailment: str | None, most: int
) -> tuple[CheckedQuery, Knowledge]:
    """The query and the knowledge under an entailment; `most` is the setting `closed_triples`.

    * `rdfs`: subclasses, sub-properties, domains and ranges, in the knowledge and on the events, by the schema that the
      knowledge holds (`spaseq.gpm.entail`).
    * `owl-rl`: the knowledge is closed under OWL 2 RL first (each graph by itself, `spaseq.rdf.close_owl_rl`). Events
      get the consequences for classes and properties as with `rdfs`.
    * None: both unchanged.

    Raises `OptionError` for another word, if there is no knowledge, and if owlrl is missing. Raises
    `UnsupportedFeature` for a pattern that cannot be rewritten, and `BudgetExceeded` if more than `most` triples are in
    a closed graph.
    """
    if entailment is None:
        return query, knowledge
    closed, schema = close_under(knowledge, entailment, most)
    return with_schema(query, schema), closed


def close_under(knowledge: Knowledge, entailment: str, most: int) -> tuple[Knowledge, Schema]:
    """The closed knowledge, with a report of its closing, and its schema. Raises as `with_entailment`."""
    if not isinstance(entailment, str) or entailment not in ("rdfs", "owl-rl"):
        raise OptionError(f"--entailment {entailment}: not known", "use rdfs or owl-rl")
    if not knowledge.graphs:
        raise OptionError(
            f"--entailment {entailment} without background knowledge",
            "what follows is told by classes and properties: --kb IRI=ONTOLOGY.ttl",
        )
    graphs = {iri: knowledge.columns(iri) for iri in knowledge.graphs}
    why = dict.fromkeys(graphs, "")
    if entailment == "owl-rl":
        for iri, graph in graphs.items():
            graphs[iri], why[iri] = close_owl_rl(graph, most, f"<{iri}>")
    closed, schema = close_knowledge(graphs, most)
    told = {iri: Closed(entailment, len(knowledge.columns(iri)), len(closed[iri]), why[iri]) for iri in graphs}
    return Knowledge(closed, told), schema


def with_schema(query: CheckedQuery, schema: Schema) -> CheckedQuery:
    """The query with its GPMs rewritten: they find on events the consequences under `schema`."""
    patterns = {name: entail(pattern, schema) for name, pattern in query.patterns.items()}
    return replace(query, patterns=patterns, schema=schema.described())
