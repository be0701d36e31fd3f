"""`spaseq run NETWORK.toml`: several queries, of which some read the graphs that others construct."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from spaseq.cli.formats import FORMATS
from spaseq.cli.inputs import graphs_of, grouped_files, knowledge_files, stream_files, stream_options_of
from spaseq.cli.output import clock_for
from spaseq.core.errors import OptionError
from spaseq.core.files.beside import check_output
from spaseq.gpm.serialise import json_term, nquads_term
from spaseq.tools.command import (
    accounted,
    bounded,
    chosen_format,
    clock_of,
    late_file,
    note,
    opened,
    query_file,
    report,
    warn,
)
from spaseq.tools.command.colours import say
from spaseq.tools.command.frame import compiled_by, end_interrupted, held_back
from spaseq.tools.command.options import settings_of
from spaseq.tools.command.writers import Results

if TYPE_CHECKING:
    from spaseq.language.network import Network
    from spaseq.language.query import Query
    from spaseq.language.runtime.network import Found

_FORMATS: Final = {name: FORMATS[name] for name in ("table", "csv", "tsv", "jsonl")}


def load_network(options: argparse.Namespace) -> Network:
    """The network that the options name; warnings of its queries are printed on standard error."""
    from spaseq.language.network import Network

    network = compiled_by(options, lambda settings: Network.of_file(options.query, settings=settings))
    warn(line for query in network.queries.values() for line in query.warnings)
    return network


def check_network(options: argparse.Namespace) -> int:
    """Check the network that the options name, and say what its queries may have overlooked; the exit code."""
    network = load_network(options)
    knowledge = _knowledge(options, network)
    with bounded(settings_of(options)):
        for name, query in network.queries.items():
            closing = query.compiled.closing(_own(query, knowledge), options.entailment)
            note((*query.advice, *(f"{name}: {line}" for line in (*query.growth, *closing))))
    say(f"{options.query}: ok\n")
    return 0


def run_network(options: argparse.Namespace) -> int:
    """Run the network that the options name, and write its matches; the exit code."""
    if options.engine == "spark":
        raise OptionError("--engine spark is for one query, and this is a network", "leave it out")
    if options.gpm == "rdflib" or options.typed:
        raise OptionError("--gpm rdflib and --typed are for one query, and this is a network", "leave them out")
    if options.format is not None and options.format not in _FORMATS:
        hint = f"those of a network are told with their names: {', '.join(_FORMATS)}"
        raise OptionError(f"--format {options.format} is for the results of one query", hint)
    default = "jsonl" if options.follow else "table"
    form = _FORMATS[chosen_format(_FORMATS, options.format, options.output, default, live=options.follow)]
    network = load_network(options)
    network.expect_given(text.partition("=")[0] for text in options.stream)
    streams, knowledge = stream_files(network, options.stream, options.streams), _knowledge(options, network)
    _check_output(options, streams)
    words: dict[str, Any] = {
        "options": stream_options_of(options), "entailment": options.entailment, "keep_events": False,
    }  # fmt: skip
    with bounded(settings_of(options)):
        if options.follow:
            source: Any = network.follow(streams, knowledge, clock=clock_of(options), **words)
        else:
            source = network.run(streams, knowledge, **words)
        rows = _Rows(source, network, options.limit, live=options.follow)
        try:
            with (
                accounted(lambda: source.counters.events, lambda: rows.written, "matches"),
                opened(options.output, form) as out,
            ):
                rows.out = out
                form.load()(rows, out)
        except KeyboardInterrupt as error:
            if not options.follow:
                raise
            code = end_interrupted(error)
            warn(held_back(source.held_back()))
            report(source, rows.written)
            return code
        finally:
            if options.memory:
                note(source.counters.memory.told())
    report(source, rows.written)
    return 0


def _check_output(options: argparse.Namespace, streams: dict[str, Any]) -> None:
    known = (part for text in options.kb for part in text.partition("=")[2].split(","))
    read = (file for source in streams.values() for file in source.files)
    inputs = list(filter(None, [query_file(options.query), options.streams, *read, *known]))
    for output in (options.output, late_file(options)):
        check_output(output, inputs)


def _knowledge(options: argparse.Namespace, network: Network) -> dict[str, Any]:
    named = {iri for query in network.queries.values() for iri in graphs_of(query)}
    return grouped_files(knowledge_files(named, options.kb), options.groups)


def _own(query: Query, knowledge: dict[str, Any]) -> dict[str, Any]:
    """The knowledge that a query names."""
    return {iri: value for iri, value in knowledge.items() if iri in graphs_of(query)}


class _Rows(Results):
    """The first `limit` matches: the name of the query, the time of the match, its bindings, and the graph that the
    query constructs."""

    def __init__(self, matches: Iterable[Found], network: Network, limit: int | None, *, live: bool) -> None:
        self.live = live
        self.out: Any = None
        self._matches = matches
        self._queries = network.queries
        self._limit = limit

    def objects(self) -> Iterator[dict[str, Any]]:
        """`query`, `time` and `bindings`; of a CONSTRUCT also `graph`, its triples in the syntax of N-Triples."""
        if self.live:
            self.out.flush()
        clock: Callable[[int], str] | None = None
        for name, match in islice(self._matches, self._limit):
            query = self._queries[name]
            clock = clock or clock_for(match.time)
            found: dict[str, Any] = {
                "query": name,
                "time": clock(match.time),
                "bindings": {v: json_term(match.bindings[v]) for v in query.variables if v in match.bindings},
            }
            if query.checked.clauses.template is not None:
                found["graph"] = [" ".join(map(nquads_term, triple)) for triple in query.construct(match)]
            yield found
            self.written += 1
            if self.live:
                self.out.flush()

    def cells(self) -> Iterator[Sequence[Any]]:
        """`query`, `time`, and the bindings or the triples as text."""
        yield ("query", "time", "match")
        for found in self.objects():
            text = (
                " . ".join(found["graph"])
                if "graph" in found
                else json.dumps({name: term["value"] for name, term in found["bindings"].items()}, ensure_ascii=False)
            )
            yield (found["query"], found["time"], text)

    def closing(self, written: int) -> str:
        """The number of matches."""
        return f"{written:,} match{'' if written == 1 else 'es'}\n"
