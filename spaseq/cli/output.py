"""The results of `spaseq run` in the shapes that writers of formats ask for, and the writers of its own formats.

`table`, `csv`, `tsv` and `json` print the set of solutions of Definition 16: pairs of the time of the last matched
instant and the projected mapping, equal ones once. `jsonl` and `parquet` hold one match each line or row, with its
interval and positions.

In the solution formats the time is a column named `time` (`_time` if the query selects `?time`). Times from 1973 on are
written as xsd:dateTime in UTC. Smaller ones, which can only be offsets, are written as a number of seconds. The first
one decides for the whole output. `jsonl` gives the times of the first and the last matched instant, written alike
(numbers as JSON numbers). `parquet` gives nanoseconds and terms as text, with `--typed` timestamps, numbers and the
like.

An ASK is answered in the solution formats by one boolean. `json` and `xml` have it in SPARQL's result format, the
others as `true` or `false` on a line of its own. `jsonl` and `parquet` give the match that it found, if any.

`nquads` is for CONSTRUCT: one named graph for each solution, its time beside it in the default graph as
prov:generatedAtTime, as `spaseq run` reads streams. So the output of one query is a stream for the next.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice, repeat
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar
from xml.sax.saxutils import quoteattr

from spaseq.cli.formats import FORMATS
from spaseq.core.events.time import CALENDAR, format_time, format_times
from spaseq.gpm import Mapping as SolutionMapping
from spaseq.gpm import freeze
from spaseq.gpm.serialise import (
    json_of_keys,
    json_term,
    nquads_of_keys,
    nquads_term,
    plain_of_key,
    short_text,
    xml_term,
)  # fmt: skip
from spaseq.language.results.columns import FoundColumns, Texts, solution_blocks
from spaseq.language.results.gathered import Gathered
from spaseq.language.results.match import Match
from spaseq.language.results.solutions import distinct_solutions, match_table
from spaseq.language.results.timelines import prefixes_of
from spaseq.language.results.typed import typed_table
from spaseq.language.runtime.matches import Matches
from spaseq.rdf import term_from_key, term_key
from spaseq.tools.command.writers import Results

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from spaseq.language.query import Query

Solution = tuple[int, dict[str, Any]]
_JSON: Final = json.JSONEncoder(ensure_ascii=False).encode
_T = TypeVar("_T")
_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_XML_HEAD: Final = '<?xml version="1.0"?>\n<sparql xmlns="http://www.w3.org/2005/sparql-results#">\n'
_BOOLEANS: Final = {
    "json": '{"head": { }, "boolean": {}}\n',
    "xml": _XML_HEAD + "<head/>\n<boolean>{}</boolean>\n</sparql>\n",
}
"""A format's text for true or false, for `{}`; the others print the word alone."""
_GENERATED: Final = "http://www.w3.org/ns/prov#generatedAtTime"
_ROWS: Final = 10_000
"""Matches of one table of `tables`."""


class FoundResults(Results):
    """The first `limit` solutions of matches; `objects` and `tables` are of the matches themselves. With `live`, for
    streams that go on, each is written to `out`, the file of the writer, as soon as it is known. `typed`: `tables` have
    numbers and times in place of terms."""

    line_end = "\r\n"

    def __init__(
        self, matches: Iterable[Match], query: Query, limit: int | None, live: bool, *, typed: bool = False
    ) -> None:
        self.query = query
        self.typed = typed
        self.variables = query.variables
        self.time_name = "_time" if "time" in query.variables else "time"
        self.live = live
        self._matches = matches
        self.out: Any = None
        self.without_graph: int = 0
        self._limit = limit
        self._clock: Callable[[int], str] | None = None

    def left_out(self) -> list[str]:
        """The results found and not written, in words: solutions from which CONSTRUCT makes no graph."""
        count = self.without_graph
        if not count:
            return []
        template = self.query.checked.clauses.template
        if template is None or not template.triples:
            why = "the template of CONSTRUCT has no triple"
        else:
            why = "in each triple of the template a variable is not bound, or bound to a term that cannot stand there"
        return [f"{count:,} solution{'s' if count > 1 else ''} made no graph: {why}"]

    def solutions(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The time of each solution as text, and its bindings."""
        clock: Callable[[int], str] | None = None
        if self.live:
            found = _as_they_come(self._matches)
        else:
            ordered = self.query.checked.clauses.ordered
            found = distinct_solutions(self._matches, self.variables, ordered=ordered, limit=self._limit)
        for time, bindings in self._first(found):
            clock = clock or clock_for(time)
            yield clock(time), bindings

    def _first(self, items: Iterable[_T]) -> Iterator[_T]:
        if self.live:  # the head is out before the first result is waited for
            self.out.flush()
        for item in islice(items, self._limit):
            yield item
            self.written += 1
            if self.live:
                self.out.flush()

    def objects(self) -> Iterator[dict[str, Any]]:
        """A match with its interval and positions."""
        yield from map(self._object, self._first(self._matches))

    def _object(self, match: Match) -> dict[str, Any]:
        self._clock = clock = self._clock or clock_for(match.time)
        span = [clock(time) for time in (match.times[0], match.times[-1])]
        return {
            "start": match.start,
            "end": match.end,
            "positions": list(match.positions),
            "bindings": {n: json_term(match.bindings[n]) for n in self.variables if n in match.bindings},
            "time": span if clock is format_time else [json.loads(seconds) for seconds in span],
        }

    def lines(self) -> Iterator[str]:
        if not isinstance(self._matches, Matches) or self.live or self.query.checked.clauses.ask:
            return super().lines()
        return self._first(self._lines(self._matches))

    def _lines(self, matches: Matches) -> Iterator[str]:
        """PERF: a term's text is made once, not for each match: 45 µs a match became 6."""
        texts = Texts(json_of_keys)
        names = {name: _JSON(name) + ": " for name in self.variables}
        for found in matches.blocks():
            if not isinstance(found, FoundColumns):
                yield from map(_JSON, map(self._object, found))
                continue
            self._clock = clock = self._clock or clock_for(int(found.times[0]))
            own = [[text and names[v] + text for text in found.texts(v, texts)] for v in self.variables]
            rows = zip(*own, strict=True) if own else repeat(())
            starts, ends, offsets = found.start.tolist(), found.end.tolist(), found.offsets.tolist()
            places = found.positions.tolist()
            firsts, lasts = (_span(clock, times) for times in (found.first_times(), found.times))
            for i, row in zip(range(len(starts)), rows, strict=False):
                yield (
                    f'{{"start": {starts[i]}, "end": {ends[i]}, "positions": {places[offsets[i] : offsets[i + 1]]}, '
                    f'"bindings": {{{", ".join(filter(None, row))}}}, "time": [{firsts[i]}, {lasts[i]}]}}'
                )

    def cells(self) -> Iterator[Sequence[str | None]]:
        """As in SPARQL 1.1 Query Results CSV; None for a variable that is not bound."""
        yield [self.time_name, *self.variables]
        for time, texts in self.rendered(_each(plain_of_key)):
            yield [time, *texts]

    def texts(self) -> Iterator[Sequence[str]]:
        """Terms with the query's prefixes."""
        prefixes = prefixes_of(self.query.checked)
        yield [self.time_name, *("?" + v for v in self.variables)]
        for time, texts in self.rendered(_each(lambda key: short_text(term_from_key(key), prefixes))):
            yield [time, *("" if text is None else text for text in texts)]

    def rendered(self, of_keys: Callable[[Sequence[str]], Sequence[str]]) -> Iterator[tuple[str, Sequence[str | None]]]:
        """The time of each solution as text, and the result of `of_keys` for the keys of its terms, in order of the
        variables. None for a variable that is not bound."""
        clauses = self.query.checked.clauses
        if not isinstance(self._matches, Matches) or self.live or clauses.ask or self._limit is not None:
            for time, bindings in self.solutions():
                yield time, self._texts_of(bindings, of_keys)
            return
        yield from self._first(self._render(self._matches, of_keys))

    def _texts_of(
        self, bindings: dict[str, Any], of_keys: Callable[[Sequence[str]], Sequence[str]]
    ) -> list[str | None]:
        """One solution of `rendered`."""
        bound = [v for v in self.variables if v in bindings]
        made = dict(zip(bound, of_keys([term_key(bindings[v]) for v in bound]), strict=True))
        return list(map(made.get, self.variables))

    def _render(
        self, matches: Matches, of_keys: Callable[[Sequence[str]], Sequence[str]]
    ) -> Iterator[tuple[str, Sequence[str | None]]]:
        """PERF: as `_lines`. If a time has several matches, these are made distinct and ordered by their terms."""
        texts = Texts(of_keys)
        clock: Callable[[int], str] | None = None
        ordered = self.query.checked.clauses.ordered
        for found in matches.blocks() if ordered else solution_blocks(matches.blocks(), self.variables):
            if isinstance(found, FoundColumns):
                if not len(found):
                    continue
                clock = clock or clock_for(int(found.times[0]))
                columns = [found.texts(v, texts) for v in self.variables]
                rows = zip(*columns, strict=True) if columns else repeat(())
                yield from zip(_clock_texts(clock, found.times), rows, strict=False)
                continue
            for time, bindings in distinct_solutions(found, self.variables, ordered=ordered):
                clock = clock or clock_for(time)
                yield clock(time), self._texts_of(bindings, of_keys)

    def closing(self, written: int) -> str:
        """The text is printed only if no results stand above it."""
        return "" if written else "no match\n"

    def tables(self) -> Iterator[pa.Table]:
        """The columns of `match_table`, first none; or all of `typed_table`, whose types are known only at the end."""
        import pyarrow as pa

        if self.typed:
            gathered = Gathered(self.variables)
            for found in self._blocks():
                gathered.add(found)
            yield typed_table(gathered, self.variables, terms=False)
            return
        yield pa.Table.from_batches([match_table([], self.variables)])
        texts = dict[str, Texts]()
        for found in self._blocks():
            if isinstance(found, FoundColumns):
                yield pa.Table.from_batches([found.table(self.variables, texts)])
            else:
                yield pa.Table.from_batches([match_table(found, self.variables)])

    def _blocks(self) -> Iterator[FoundColumns | list[Match]]:
        """The first `limit` matches."""
        if isinstance(self._matches, Matches) and not self.query.checked.clauses.ask:
            left = self._limit
            for found in self._matches.blocks() if left != 0 else ():
                some: FoundColumns | list[Match]
                if isinstance(found, FoundColumns):
                    some = found if left is None else found.cut(0, min(left, len(found)))
                else:
                    some = list(islice(found, left))
                yield some
                left = None if left is None else left - len(some)
                self.written += len(some)
                if left == 0:  # the next block is not asked for
                    return
            return
        rows = islice(iter(self._matches), self._limit)
        while batch := list(islice(rows, _ROWS)):
            yield batch
            self.written += len(batch)


def write_results(form: str, found: FoundResults, out: Any) -> int:
    """Writes results, or for an ASK its boolean; `jsonl` and `parquet` give its match. Returns how many."""
    if found.query.checked.clauses.ask and form not in ("jsonl", "parquet"):
        answer = next(found.solutions(), None) is not None
        out.write(_BOOLEANS.get(form, "{}\n").replace("{}", "true" if answer else "false"))
        return 1
    return int(FORMATS[form].load()(found, out))


def _each(make: Callable[[str], str]) -> Callable[[Sequence[str]], Sequence[str]]:
    return lambda keys: list(map(make, keys))


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


def clock_for(first: int) -> Callable[[int], str]:
    """The way to write times of which this is the first: dates, or seconds if it can only be an offset."""
    return format_time if abs(first) >= CALENDAR else _seconds


def _clock_texts(clock: Callable[[int], str], times: np.ndarray) -> list[str]:
    return format_times(times) if clock is format_time else [clock(time) for time in times.tolist()]


def _span(clock: Callable[[int], str], times: np.ndarray) -> list[str]:
    """The times as JSON."""
    texts = _clock_texts(clock, times)
    return [f'"{text}"' for text in texts] if clock is format_time else [_JSON(json.loads(text)) for text in texts]


def _seconds(time: int) -> str:
    return format(Decimal(time).scaleb(-9).normalize(), "f")


def write_json(found: FoundResults, out: IO[str]) -> int:
    """SPARQL 1.1 Query Results JSON."""
    head = json.dumps({"vars": [found.time_name, *found.variables]}, ensure_ascii=False)
    out.write(f'{{"head": {head}, "results": {{"bindings": [')
    count = 0
    names = [_JSON(name) + ": " for name in found.variables]
    clock = _JSON(found.time_name) + ": "
    try:
        for time, texts in found.rendered(json_of_keys):
            kind = "dateTime" if "T" in time else "decimal"
            pairs = [f'{clock}{{"type": "literal", "value": "{time}", "datatype": "{_XSD}{kind}"}}']
            pairs += [name + text for name, text in zip(names, texts, strict=True) if text is not None]
            out.write(f"{',' if count else ''}\n{{{', '.join(pairs)}}}")
            count += 1
    finally:
        out.write("\n]}}\n")
    return count


def write_xml(found: FoundResults, out: IO[str]) -> int:
    """SPARQL Query Results XML."""
    names = "".join(f"<variable name={quoteattr(name)}/>" for name in [found.time_name, *found.variables])
    out.write(f"{_XML_HEAD}<head>{names}</head>\n<results>")
    count = 0
    try:
        for time, texts in found.rendered(_each(lambda key: xml_term(term_from_key(key)))):
            kind = "dateTime" if "T" in time else "decimal"
            cells = [f'<binding name="{found.time_name}"><literal datatype="{_XSD}{kind}">{time}</literal></binding>']
            cells += [
                f"<binding name={quoteattr(name)}>{text}</binding>"
                for name, text in zip(found.variables, texts, strict=True)
                if text is not None
            ]
            out.write("\n<result>" + "".join(cells) + "</result>")
            count += 1
    finally:
        out.write("\n</results>\n</sparql>\n")
    return count


def write_tsv(found: FoundResults, out: IO[str]) -> int:
    """SPARQL 1.1 Query Results TSV."""
    out.write("\t".join("?" + name for name in [found.time_name, *found.variables]) + "\n")
    count = 0
    for time, texts in found.rendered(nquads_of_keys):
        kind = "dateTime" if "T" in time else "decimal"
        out.write("\t".join([f'"{time}"^^<{_XSD}{kind}>', *("" if text is None else text for text in texts)]) + "\n")
        count += 1
    return count


def write_nquads(found: FoundResults, out: IO[str]) -> int:
    """A graph per solution that gives a triple. Blank nodes of the data keep their labels; those of the template are
    fresh in each graph."""
    count = 0
    for time, bindings in found.solutions():
        triples = found.query.construct(bindings, count + 1)
        if not triples:
            found.without_graph += 1
            continue
        count += 1
        label = f"<urn:spaseq:event:{count}>"
        kind = "dateTime" if "T" in time else "decimal"
        lines = [f'{label} <{_GENERATED}> "{time}"^^<{_XSD}{kind}> .\n']
        lines += [" ".join(map(nquads_term, triple)) + f" {label} .\n" for triple in triples]
        out.write("".join(lines))
    return count
