"""RDF streams: files become graph events in order of time.

    from spaseq.rdf.columns.reader import open_batches                              # loads numba

    sources = [StreamSource("http://example.org/power", ("power.nq",)), …]          # in the order of the FROM clause
    streams, options = open_batches(sources, StreamOptions.parse(lateness="5s"), counters)
    for name, batches in streams: …

`GraphBatch` holds events as columns, `GraphEvent` is one event as an object. `Followed` gives events as they come, from
files that grow. `load_knowledge` reads background knowledge, `build_knowledge` keeps it as a file. All memory is
bounded: by the lateness, by `StreamOptions.lookahead`, and by one event's size; a Turtle or TriG document is parsed as
it is read. Not here: matching graph patterns (`spaseq.gpm`).

The road: `files` gives bytes, `streams` the unit that makes an event in each file, `columns/` makes events of the
bytes. `statements` parses what the kernels there do not read.

Modules:

* `terms`: RDF terms: from the parser's to rdflib's, each distinct one built once.
* `triple_terms`: Terms of RDF 1.2 that rdflib does not have: triple terms, and strings with a base direction.
* `given`: Terms and graphs as a program gives them: of rdflib or of pyoxigraph. Anything else is refused by name.
* `memory/`: RDF that a program has in memory: its graphs become events, one graph one event.
* `model`: The public classes: graph events, instants, counters.
* `options`: Options for reading streams: the bounds of events, the source of their times, the lateness.
* `empty_graphs`: Empty graphs of TriG, `:g { }`, which the parser leaves out: each gets a statement for none.
* `files`: Input files as chunks of bytes: names and globs, standard input, gzip, zstd, and the format by the extension.
* `entities`: Entities of RDF/XML, bounded before a parser expands them.
* `statements`: Files as statements: subject, predicate, object, graph name and line.
* `streams`: Named streams: their files, the unit of an event in each, and their common clock.
* `hints`: The guesses of a reader about options not given, errors if they fail, and the contents of files.
* `columns/`: Graph events as columns: batches of numbered terms in arrays, instead of a Python object per triple.
* `iri`: IRIs of a query: relative to BASE, with escapes, and as prefixed names (SPARQL 1.1 §4.1.1; RFC 3986).
* `grouping`: Groups of entities that some properties connect, as background knowledge.
* `knowledge`: Background knowledge from tables of triples. `columns/` reads files.
"""

from __future__ import annotations

from spaseq.rdf.columns import (
    GraphBatch,
    GraphColumns,
    SchemaColumns,
    TermTable,
    build_knowledge,
    check_kept,
    close_owl_rl,
    close_rdfs,
    described_kept,
    is_kept,
    load_knowledge,
    open_kept,
    read_knowledge,
    read_part,
)
from spaseq.rdf.columns.follow import Followed
from spaseq.rdf.files import Format, byte_chunks, expand_files, format_of, has_lines
from spaseq.rdf.given import (
    PyoxigraphDataset,
    RdflibGraph,
    graph_as,
    graph_of,
    hash_of_terms,
    iri_of,
    is_dataset,
    named_graphs,
    term_of,
)
from spaseq.rdf.grouping import GROUP, Grouped, group_labels, group_triples
from spaseq.rdf.hints import guessed_events, guessed_unit, no_times, sampled_predicates, untimed_events
from spaseq.rdf.knowledge import is_table, table_knowledge
from spaseq.rdf.memory import REMEMBERED, GivenEvents, Time, check_given, given_batches, given_time, is_whole
from spaseq.rdf.model import Counters, GraphEvent, Instant
from spaseq.rdf.options import ARRIVAL, GENERATED_AT, EventBy, EventWords, StreamOptions, StreamWords
from spaseq.rdf.statements import Statement, parse_statements, read_statements
from spaseq.rdf.streams import (
    GivenSource,
    StreamSource,
    StreamSpec,
    file_options,
    merged_files,
    parse_streams_file,
    settle,
)
from spaseq.rdf.terms import (
    TERMS,
    Term,
    Terms,
    Triple,
    is_term_key,
    plain_literal,
    quiet_literals,
    term_bytes,
    term_from_key,
    term_key,
)
from spaseq.rdf.triple_terms import (
    DIRECTIONS,
    REIFIES,
    TRIPLE_END,
    DirectionalString,
    TripleTerm,
    has_blanks,
    is_triple_key,
    parts_of_key,
    split_tag,
    triple_key,
)

__all__ = [
    "ARRIVAL",
    "DIRECTIONS",
    "GENERATED_AT",
    "GROUP",
    "REIFIES",
    "REMEMBERED",
    "TERMS",
    "TRIPLE_END",
    "Counters",
    "DirectionalString",
    "EventBy",
    "EventWords",
    "Followed",
    "Format",
    "GivenEvents",
    "GivenSource",
    "GraphBatch",
    "GraphColumns",
    "GraphEvent",
    "Grouped",
    "Instant",
    "PyoxigraphDataset",
    "RdflibGraph",
    "SchemaColumns",
    "Statement",
    "StreamOptions",
    "StreamSource",
    "StreamSpec",
    "StreamWords",
    "Term",
    "TermTable",
    "Terms",
    "Time",
    "Triple",
    "TripleTerm",
    "build_knowledge",
    "byte_chunks",
    "check_given",
    "check_kept",
    "close_owl_rl",
    "close_rdfs",
    "described_kept",
    "expand_files",
    "file_options",
    "format_of",
    "given_batches",
    "given_time",
    "graph_as",
    "graph_of",
    "group_labels",
    "group_triples",
    "guessed_events",
    "guessed_unit",
    "has_blanks",
    "has_lines",
    "hash_of_terms",
    "iri_of",
    "is_dataset",
    "is_kept",
    "is_table",
    "is_term_key",
    "is_triple_key",
    "is_whole",
    "load_knowledge",
    "merged_files",
    "named_graphs",
    "no_times",
    "open_kept",
    "parse_statements",
    "parse_streams_file",
    "parts_of_key",
    "plain_literal",
    "quiet_literals",
    "read_knowledge",
    "read_part",
    "read_statements",
    "sampled_predicates",
    "settle",
    "split_tag",
    "table_knowledge",
    "term_bytes",
    "term_from_key",
    "term_key",
    "term_of",
    "triple_key",
    "untimed_events",
]
