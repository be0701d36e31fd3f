"""The results of `spaseq run` in the shapes that writers of formats ask for, and the writers of its own formats.

`table`, `csv`, `tsv` and `json` print the set of solutions of Definition 16: pairs of the time of the last matched
instant and the projected mapping, equal ones once. `jsonl` and `parquet` hold one match each line or row, with its
interval and positions.

In the solution formats the time is a column named `time` (`_time` if the query selects `?time`). Times from 1973 on are
written as xsd:dateTime in UTC, smaller ones, which can only be offsets, as a number of seconds; the first one decides
for the whole output. `jsonl` gives the times of the first and the last matched instant, written alike (numbers as JSON
numbers); `parquet` gives nanoseconds.

An ASK is answered in the solution formats by one boolean: in `json` and `xml` as SPARQL's results have it, in the
others as `true` or `false` on a line of its own. `jsonl` and `parquet` give the match that it found, if any.

`nquads` is for CONSTRUCT: one named graph for each solution, its time beside it in the default graph as
prov:generatedAtTime, as `spaseq run` reads streams. So the output of one query is a stream for the next.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar
from xml.sax.saxutils import quoteattr

from spaseq.cli.formats import FORMATS
from spaseq.command.writers import Results
from spaseq.events.time import format_time
from spaseq.gpm import Mapping as SolutionMapping
from spaseq.gpm import freeze
from spaseq.gpm.serialise import json_term, nquads_term, plain_text, short_text, xml_term
from spaseq.language.evaluation.run import Match, distinct_solutions, match_table

if TYPE_CHECKING:
    import pyarrow as pa

    from spaseq.language.query import Query

__all__ = ["CALENDAR", "FoundResults", "prefixes_of", "write_results"]

Solution = tuple[int, dict[str, Any]]
_T = TypeVar("_T")
CALENDAR: Final = 10**17
"""ns: 1973-03-03. A time before it is an offset, not a date."""
_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_XML_HEAD: Final = '<?xml version="1.0"?>\n<sparql xmlns="http://www.w3.org/2005/sparql-results#">\n'
_BOOLEANS: Final = {
    "json": '{"head": { }, "boolean": {}}\n',
    "xml": _XML_HEAD + "<head/>\n<boolean>{}</boolean>\n</sparql>\n",
}
"""How a format says true or false, for `{}`; the others just say it."""
_GENERATED: Final = "http://www.w3.org/ns/prov#generatedAtTime"
_ROWS: Final = 10_000
"""Matches of one table of `tables`."""


class FoundResults(Results):
    """The first `limit` solutions of matches; `objects` and `tables` are of the matches themselves. With `live`, where
    the streams go on, each is written to `out` as soon as it is known."""

    line_end = "\r\n"

    def __init__(self, matches: Iterable[Match], query: Query, out: Any, limit: int | None, live: bool) -> None:
        self.query = query
        self.variables = query.variables
        self.time_name = "_time" if "time" in query.variables else "time"
        self.live = live
        self._matches = matches
        self._out = out
        self._limit = limit

    def solutions(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The time of each solution as text, and its bindings."""
        clock: Callable[[int], str] | None = None
        if self.live:
            found = _as_they_come(self._matches)
        else:
            found = distinct_solutions(self._matches, self.variables, ordered=self.query.checked.clauses.ordered)
        for time, bindings in self._first(found):
            clock = clock or _clock(time)
            yield clock(time), bindings

    def _first(self, items: Iterable[_T]) -> Iterator[_T]:
        for item in islice(items, self._limit):
            yield item
            if self.live:
                self._out.flush()

    def objects(self) -> Iterator[dict[str, Any]]:
        """A match with its interval and positions."""
        clock: Callable[[int], str] | None = None
        for match in self._first(self._matches):
            clock = clock or _clock(match.time)
            span = [clock(time) for time in (match.times[0], match.times[-1])]
            yield {
                "start": match.start,
                "end": match.end,
                "positions": list(match.positions),
                "bindings": {n: json_term(match.bindings[n]) for n in self.variables if n in match.bindings},
                "time": span if clock is format_time else [json.loads(seconds) for seconds in span],
            }

    def cells(self) -> Iterator[Sequence[str]]:
        """As in SPARQL 1.1 Query Results CSV."""
        yield [self.time_name, *self.variables]
        for time, bindings in self.solutions():
            yield [time, *(plain_text(bindings[v]) if v in bindings else "" for v in self.variables)]

    def texts(self) -> Iterator[Sequence[str]]:
        """Terms with the query's prefixes."""
        prefixes = prefixes_of(self.query)
        yield [self.time_name, *("?" + v for v in self.variables)]
        for time, bindings in self.solutions():
            yield [time, *(short_text(bindings[v], prefixes) if v in bindings else "" for v in self.variables)]

    def closing(self, written: int) -> str:
        """Only said where there is nothing above it."""
        return "" if written else "no match\n"

    def tables(self) -> Iterator[pa.Table]:
        """The columns of `match_table`, first none."""
        import pyarrow as pa

        rows, batch = islice(iter(self._matches), self._limit), list[Match]()
        while True:
            yield pa.Table.from_batches([match_table(batch, self.variables)])
            if not (batch := list(islice(rows, _ROWS))):
                return


def write_results(form: str, found: FoundResults, out: Any) -> int:
    """Writes results, or for an ASK whether there is one; `jsonl` and `parquet` give its match. Returns how many."""
    if found.query.checked.clauses.ask and form not in ("jsonl", "parquet"):
        answer = next(found.solutions(), None) is not None
        out.write(_BOOLEANS.get(form, "{}\n").replace("{}", "true" if answer else "false"))
        return 1
    return int(FORMATS[form].load()(found, out))


def prefixes_of(query: Query) -> tuple[tuple[str, str], ...]:
    """The query's own prefixes, the longest IRI first."""
    declared = [(p.label, p.iri) for p in query.checked.tree.prologue if p.label is not None]
    return tuple(sorted(declared, key=lambda pair: -len(pair[1])))


def _as_they_come(matches: Iterable[Match]) -> Iterator[Solution]:
    """The distinct solutions, those of one time in the order they are found."""
    seen: set[SolutionMapping] = set()
    last: int | None = None
    for match in matches:
        if match.time != last:
            seen, last = set(), match.time
        if (solution := freeze(match.bindings)) not in seen:
            seen.add(solution)
            yield match.time, match.bindings


def _clock(first: int) -> Callable[[int], str]:
    return format_time if abs(first) >= CALENDAR else _seconds


def _seconds(time: int) -> str:
    return format(Decimal(time).scaleb(-9).normalize(), "f")


def write_json(found: FoundResults, out: IO[str]) -> int:
    """SPARQL 1.1 Query Results JSON."""
    head = json.dumps({"vars": [found.time_name, *found.variables]}, ensure_ascii=False)
    out.write(f'{{"head": {head}, "results": {{"bindings": [')
    count = 0
    for time, bindings in found.solutions():
        kind = "dateTime" if "T" in time else "decimal"
        record = {found.time_name: {"type": "literal", "value": time, "datatype": _XSD + kind}}
        record |= {name: json_term(bindings[name]) for name in found.variables if name in bindings}
        out.write((",\n" if count else "\n") + json.dumps(record, ensure_ascii=False))
        count += 1
    out.write("\n]}}\n")
    return count


def write_xml(found: FoundResults, out: IO[str]) -> int:
    """SPARQL Query Results XML."""
    names = "".join(f"<variable name={quoteattr(name)}/>" for name in [found.time_name, *found.variables])
    out.write(f"{_XML_HEAD}<head>{names}</head>\n<results>")
    count = 0
    for time, bindings in found.solutions():
        kind = "dateTime" if "T" in time else "decimal"
        cells = [f'<binding name="{found.time_name}"><literal datatype="{_XSD}{kind}">{time}</literal></binding>']
        cells += [
            f"<binding name={quoteattr(name)}>{xml_term(bindings[name])}</binding>"
            for name in found.variables
            if name in bindings
        ]
        out.write("\n<result>" + "".join(cells) + "</result>")
        count += 1
    out.write("\n</results>\n</sparql>\n")
    return count


def write_tsv(found: FoundResults, out: IO[str]) -> int:
    """SPARQL 1.1 Query Results TSV."""
    out.write("\t".join("?" + name for name in [found.time_name, *found.variables]) + "\n")
    count = 0
    for time, bindings in found.solutions():
        kind = "dateTime" if "T" in time else "decimal"
        cells = (nquads_term(bindings[v]) if v in bindings else "" for v in found.variables)
        out.write("\t".join([f'"{time}"^^<{_XSD}{kind}>', *cells]) + "\n")
        count += 1
    return count


def write_nquads(found: FoundResults, out: IO[str]) -> int:
    """A graph per solution that gives a triple. Blank nodes of the data keep their labels; those of the template are
    fresh in each graph."""
    count = 0
    for time, bindings in found.solutions():
        triples = found.query.construct(bindings, count + 1)
        if not triples:
            continue
        count += 1
        label = f"<urn:spaseq:event:{count}>"
        kind = "dateTime" if "T" in time else "decimal"
        out.write(f'{label} <{_GENERATED}> "{time}"^^<{_XSD}{kind}> .\n')
        for triple in triples:
            out.write(" ".join(nquads_term(term) for term in triple) + f" {label} .\n")
    return count
