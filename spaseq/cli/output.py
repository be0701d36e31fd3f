"""Write matches in the formats of `spaseq run`.

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

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import Any, Final, Protocol, TextIO, TypeVar
from xml.sax.saxutils import quoteattr

from spaseq.cli.formats import FORMATS
from spaseq.command import Table
from spaseq.errors import OptionError
from spaseq.events.time import format_time
from spaseq.gpm import Mapping as SolutionMapping
from spaseq.gpm import freeze
from spaseq.gpm.serialise import json_term, nquads_term, plain_text, short_text, xml_term
from spaseq.language.evaluation.run import Match, distinct_solutions, match_table

__all__ = ["Sink", "write_matches", "write_parquet"]

Solution = tuple[int, dict[str, Any]]
_T = TypeVar("_T")
_CALENDAR: Final = 10**17
"""ns: 1973-03-03. A time before it is an offset, not a date."""
_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_XML_HEAD: Final = '<?xml version="1.0"?>\n<sparql xmlns="http://www.w3.org/2005/sparql-results#">\n'
_BOOLEANS: Final = {
    "json": '{"head": { }, "boolean": {}}\n',
    "xml": _XML_HEAD + "<head/>\n<boolean>{}</boolean>\n</sparql>\n",
}
"""How a format says true or false, for `{}`; the others just say it."""
_GENERATED: Final = "http://www.w3.org/ns/prov#generatedAtTime"


class Sink(Protocol):
    """What the text formats need to know: where to write, and what the query calls things."""

    @property
    def out(self) -> TextIO: ...

    @property
    def variables(self) -> Sequence[str]: ...

    @property
    def prefixes(self) -> Sequence[tuple[str, str]]: ...

    @property
    def ordered(self) -> bool: ...

    @property
    def asks(self) -> bool: ...

    @property
    def live(self) -> bool:
        """Whether the streams go on, so that each result is written as soon as it is known."""
        ...

    def construct(self, bindings: Mapping[str, Any], number: int) -> Sequence[tuple[Any, Any, Any]]: ...


def write_matches(form: str, matches: Iterable[Match], sink: Sink, limit: int | None) -> int:
    """Writes matches (or solutions) in a text format; at most `limit` of them. Returns how many were written."""
    write = FORMATS[form].load()
    if form == "jsonl":
        return int(write(_flushed(islice(matches, limit), sink), sink))
    if sink.asks:
        answer = next(iter(matches), None) is not None
        sink.out.write(_BOOLEANS.get(form, "{}\n").replace("{}", "true" if answer else "false"))
        return 1
    if sink.live:
        solutions = _as_they_come(matches)
    else:
        solutions = distinct_solutions(matches, sink.variables, ordered=sink.ordered)
    return int(write(_flushed(islice(solutions, limit), sink), sink))


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


def _flushed(items: Iterable[_T], sink: Sink) -> Iterator[_T]:
    """`items`; where the streams go on, what was written of one is out before the next is waited for."""
    for item in items:
        yield item
        if sink.live:
            sink.out.flush()


def write_parquet(matches: Iterable[Match], variables: Sequence[str], path: str, limit: int | None) -> int:
    """Writes matches as the columns of `match_table`. Returns how many were written."""
    import pyarrow.parquet as pq

    schema = match_table([], variables).schema
    rows, count = islice(iter(matches), limit), 0
    try:
        with pq.ParquetWriter(path, schema) as writer:
            while batch := list(islice(rows, 10_000)):
                writer.write_batch(match_table(batch, variables))
                count += len(batch)
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror or error}") from error
    return count


def _time_name(variables: Sequence[str]) -> str:
    return "_time" if "time" in variables else "time"


def _clock(first: int) -> Callable[[int], str]:
    return format_time if abs(first) >= _CALENDAR else _seconds


def _seconds(time: int) -> str:
    return format(Decimal(time).scaleb(-9).normalize(), "f")


def _timed(solutions: Iterable[Solution]) -> Iterator[tuple[str, dict[str, Any]]]:
    clock: Callable[[int], str] | None = None
    for time, bindings in solutions:
        clock = clock or _clock(time)
        yield clock(time), bindings


def write_jsonl(matches: Iterable[Match], sink: Sink) -> int:
    """A match a line."""
    count = 0
    clock: Callable[[int], str] | None = None
    for match in matches:
        clock = clock or _clock(match.time)
        span = [clock(time) for time in (match.times[0], match.times[-1])]
        record = {
            "start": match.start,
            "end": match.end,
            "positions": list(match.positions),
            "bindings": {name: json_term(match.bindings[name]) for name in sink.variables if name in match.bindings},
            "time": span if clock is format_time else [json.loads(seconds) for seconds in span],
        }
        sink.out.write(json.dumps(record, ensure_ascii=False) + "\n")
        count += 1
    return count


def write_json(solutions: Iterable[Solution], sink: Sink) -> int:
    """SPARQL 1.1 Query Results JSON."""
    time_name = _time_name(sink.variables)
    head = json.dumps({"vars": [time_name, *sink.variables]}, ensure_ascii=False)
    sink.out.write(f'{{"head": {head}, "results": {{"bindings": [')
    count = 0
    for time, bindings in _timed(solutions):
        kind = "dateTime" if "T" in time else "decimal"
        record = {time_name: {"type": "literal", "value": time, "datatype": _XSD + kind}}
        record |= {name: json_term(bindings[name]) for name in sink.variables if name in bindings}
        sink.out.write((",\n" if count else "\n") + json.dumps(record, ensure_ascii=False))
        count += 1
    sink.out.write("\n]}}\n")
    return count


def write_xml(solutions: Iterable[Solution], sink: Sink) -> int:
    """SPARQL Query Results XML."""
    time_name = _time_name(sink.variables)
    names = "".join(f"<variable name={quoteattr(name)}/>" for name in [time_name, *sink.variables])
    sink.out.write(f"{_XML_HEAD}<head>{names}</head>\n<results>")
    count = 0
    for time, bindings in _timed(solutions):
        kind = "dateTime" if "T" in time else "decimal"
        cells = [f'<binding name="{time_name}"><literal datatype="{_XSD}{kind}">{time}</literal></binding>']
        cells += [
            f"<binding name={quoteattr(name)}>{xml_term(bindings[name])}</binding>"
            for name in sink.variables
            if name in bindings
        ]
        sink.out.write("\n<result>" + "".join(cells) + "</result>")
        count += 1
    sink.out.write("\n</results>\n</sparql>\n")
    return count


def write_csv(solutions: Iterable[Solution], sink: Sink) -> int:
    """SPARQL 1.1 Query Results CSV."""
    writer = csv.writer(sink.out, lineterminator="\r\n")
    writer.writerow([_time_name(sink.variables), *sink.variables])
    count = 0
    for time, bindings in _timed(solutions):
        writer.writerow([time, *(plain_text(bindings[v]) if v in bindings else "" for v in sink.variables)])
        count += 1
    return count


def write_tsv(solutions: Iterable[Solution], sink: Sink) -> int:
    """SPARQL 1.1 Query Results TSV."""
    sink.out.write("\t".join("?" + name for name in [_time_name(sink.variables), *sink.variables]) + "\n")
    count = 0
    for time, bindings in _timed(solutions):
        kind = "dateTime" if "T" in time else "decimal"
        cells = (nquads_term(bindings[v]) if v in bindings else "" for v in sink.variables)
        sink.out.write("\t".join([f'"{time}"^^<{_XSD}{kind}>', *cells]) + "\n")
        count += 1
    return count


def write_nquads(solutions: Iterable[Solution], sink: Sink) -> int:
    """A graph per solution that gives a triple. Blank nodes of the data keep their labels; those of the template are
    fresh in each graph."""
    count = 0
    for time, bindings in _timed(solutions):
        triples = sink.construct(bindings, count + 1)
        if not triples:
            continue
        count += 1
        label = f"<urn:spaseq:event:{count}>"
        kind = "dateTime" if "T" in time else "decimal"
        sink.out.write(f'{label} <{_GENERATED}> "{time}"^^<{_XSD}{kind}> .\n')
        for triple in triples:
            sink.out.write(" ".join(nquads_term(term) for term in triple) + f" {label} .\n")
    return count


def write_table(solutions: Iterable[Solution], sink: Sink) -> int:
    """Aligned columns."""
    table = Table(sink.out, [_time_name(sink.variables), *("?" + v for v in sink.variables)], live=sink.live)
    written = 0
    for time, bindings in _timed(solutions):
        table.row([time, *(short_text(bindings[v], sink.prefixes) if v in bindings else "" for v in sink.variables)])
        written += 1
    if written:
        table.flush()
    else:
        sink.out.write("no match\n")
    return written
