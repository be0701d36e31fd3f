"""A query as it travels to the workers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

from spaseq.core.engine import Settings
from spaseq.core.queries.own_functions import Entry
from spaseq.core.snapshot import decode, encode
from spaseq.gpm import Knowledge
from spaseq.gpm.entail import Schema
from spaseq.language.query import Query
from spaseq.language.runtime.compiled import CompiledQuery
from spaseq.language.runtime.knowledge import close_under
from spaseq.rdf import SchemaColumns


@dataclass(frozen=True, slots=True)
class QueryText:
    """A query as text, compiled once per process. `schema`: what entailment has GPMs follow (`spaseq.gpm.entail`),
    by `spaseq.core.snapshot.encode`; empty without. `reference`: whether rdflib's evaluator does the graph patterns.
    `own`: the functions of the user that it calls."""

    text: str
    source: str
    settings: Settings
    schema: bytes = b""
    reference: bool = False
    own: tuple[tuple[str, Entry], ...] = field(default=(), compare=False)

    @staticmethod
    def of(query: Query) -> QueryText:
        """A query without entailment, by our own evaluator."""
        compiled = query.compiled
        return QueryText(query.text, query.source, query.settings, own=compiled.own.among(compiled.functions))

    def compiled(self) -> CompiledQuery:
        """The query, its GPMs rewritten if there is a schema. Its functions are registered in this process."""
        CompiledQuery.own.take(self.own)
        return _compiled(self)


@lru_cache(8)
def _compiled(query: QueryText) -> CompiledQuery:
    compiled = CompiledQuery(query.text, query.source, query.settings)
    return compiled.under(Schema(SchemaColumns(*decode(query.schema)))) if query.schema else compiled


def under_entailment(
    query: Query, knowledge: Knowledge, entailment: str | None, *, reference: bool = False
) -> tuple[QueryText, Knowledge]:
    """The query and the knowledge as entailment has them. See
    `spaseq.language.runtime.knowledge.with_entailment`."""
    text = replace(QueryText.of(query), reference=reference)
    if entailment is None:
        return text, knowledge
    closed, schema = close_under(knowledge, entailment, query.settings.closed_triples)
    columns = schema.columns
    parts = (columns.keys, columns.classes, columns.properties, columns.domains, columns.ranges)
    return replace(text, schema=encode(parts)), closed
