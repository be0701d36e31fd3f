"""The Spark data source `spaseq`: RDF files as triples or as graph events, in batch and as a stream.

    spaseq.spark.register(spark)
    spark.read.format("spaseq").option("path", "power/*.nq").load()                       # triples
    spark.readStream.format("spaseq").option("path", "power/*.nq").option("rows", "events").load()

Options (all texts; those of reading are the command line's):

* `path`: a file, or a glob; several apart by commas. `stream`: the IRI of the stream (default: the path).
* `rows`: `triples` (STATEMENTS of `spaseq.spark.session.tables`), `events` (EVENTS), or `parts` (PARTS): what is to be
  read, for a task that reads it itself.
* `format`, `event_by`, `time`, `time_unit`: see `spaseq.rdf.StreamOptions`. Time from arrival is not to be had: what
  is read in parts has no count of its events.
* `malformed`: `error`, `drop` (and count), or `quarantine:FOLDER`: each line that cannot be read is written there, in
  one file for each part, under the name and the line where it stood.
* `counted=true`: whoever reads takes the times from arrival himself; those of the rows count from 0 in each part.
* `partitions`: for how many tasks the files are cut, where events begin (default 2). `whole=true`: files are not cut.
* `hadoop`: JSON of [[[setting, value], …], [jar, …]], for files that are not on this machine; without it what the
  configuration on Java's class path says (HADOOP_CONF_DIR).
* for streams: `growing`, `max_files`, `max_bytes` (see `spaseq.spark.ingest.feed`), and `closing=true`: what is there
  is all; once it is read the stream is closed.

The terms of `triples` are in N-Triples form, those of `events` as `spaseq.rdf.term_key` has them (without escapes).

A row without triples (`graph` and `terms` null) tells, in `counts`, what a part held: see `Told`. With
`rows=triples` there are none of these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from spaseq.core.errors import EventError, OptionError
from spaseq.core.files.places import is_elsewhere
from spaseq.rdf import ARRIVAL, EventBy, StreamOptions, StreamSource, settle, term_key
from spaseq.spark.ingest.feed import Feed, FeedPart, Listing, Place, advance, listing, parts_between
from spaseq.spark.ingest.quarantine import counted
from spaseq.spark.ingest.reading import event_batches, part_statements, quarantine_names
from spaseq.spark.ingest.terms import ntriples
from spaseq.spark.ingest.told import Told
from spaseq.spark.session.failures import MARK, carry, carrying
from spaseq.spark.session.storage import Access
from spaseq.spark.session.tables import EVENTS, PARTS, STATEMENTS, batch_of, spark_schema

_TABLES: Final = {"triples": STATEMENTS, "events": EVENTS, "parts": PARTS}
_ROWS: Final = 10_000
_READING: Final = ("event_by", "time", "time_unit", "ties", "lateness", "late", "format")


def register_source(spark: SparkSession) -> None:
    """Make the data source known to a session."""

    class Marked(SpaseqSource):  # a local class travels with its attributes
        mark = MARK

    spark.dataSource.register(Marked)


class SpaseqSource(DataSource):
    """See the module. `mark`: of the driver, for errors (`spaseq.spark.session.failures`)."""

    mark = ""

    @classmethod
    def name(cls) -> str:
        return "spaseq"

    def schema(self) -> StructType:
        with carrying(self.mark):
            return spark_schema(_TABLES[_rows(self.options)])

    def reader(self, schema: Any) -> DataSourceReader:
        with carrying(self.mark):
            return _Reader(_Plan.of(self.options), self.mark)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        with carrying(self.mark):
            return _StreamReader(_Plan.of(self.options), self.mark)


def _rows(options: Mapping[str, str]) -> str:
    rows = options.get("rows", "triples")
    if rows not in _TABLES:
        raise OptionError(f"rows {rows}: not known", ", ".join(_TABLES))
    return rows


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to read, and how. `options`: those it is made of, as JSON."""

    options: str
    feeds: tuple[Feed, ...]
    rows: str
    tasks: int
    closing: bool
    quarantine: str

    @staticmethod
    def of(options: Mapping[str, str]) -> _Plan:
        """From the options of the data source. `streams` is JSON of [IRI, [path, …], event_by or null] for several."""
        reading: dict[str, Any] = {name: options[name] for name in _READING if name in options}
        policy, _, folder = options.get("malformed", "error").partition(":")
        if policy == "quarantine" and not folder:
            raise OptionError("malformed quarantine: where?", "malformed=quarantine:FOLDER")
        kept = StreamOptions.parse(**reading, malformed="drop" if policy == "quarantine" else policy)
        sources = _sources(options)
        access = _access(options, sources)
        if access is not None:
            access.use()
        counted = _flag(options, "counted")
        events = _rows(options) != "triples"
        guess = events and kept.time is None and not counted
        settled = settle(kept, sources) if guess else replace(kept, time=ARRIVAL) if counted else kept
        if events and settled.time == ARRIVAL and not counted:
            raise OptionError(
                "the times of these events would be taken from arrival, and parts of a stream have no common count",
                "name the predicate that gives the time: --time IRI",
            )
        how = _flag(options, "growing"), _flag(options, "whole")
        limits = _number(options, "max_bytes", 0), _number(options, "max_files", 0)
        feeds = tuple(Feed(i, source, settled, *how, *limits, access) for i, source in enumerate(sources))
        return _Plan(json.dumps(dict(options)), feeds, _rows(options), _number(options, "partitions", 2),
                     _flag(options, "closing"), folder)  # fmt: skip


def _sources(options: Mapping[str, str]) -> tuple[StreamSource, ...]:
    if "streams" in options:
        return tuple(
            StreamSource(iri, tuple(files), EventBy.parse(by) if by else None)
            for iri, files, by in json.loads(options["streams"])
        )
    if not options.get("path"):
        raise OptionError("no path to read from", 'option("path", "FILE-OR-GLOB")')
    return (StreamSource(options.get("stream", options["path"]), tuple(options["path"].split(","))),)


def _access(options: Mapping[str, str], sources: Sequence[StreamSource]) -> Access | None:
    """How files elsewhere are read, where there are some."""
    if not any(is_elsewhere(path) for source in sources for path in source.files):
        return None
    settings, jars = json.loads(options.get("hadoop", "[[], []]"))
    return Access(tuple((name, value) for name, value in settings), tuple(jars))


def _flag(options: Mapping[str, str], name: str) -> bool:
    value = options.get(name, "false").lower()
    if value not in ("true", "false"):
        raise OptionError(f"{name} {value}: true or false")
    return value == "true"


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    value = options.get(name, str(default))
    if not (value.isascii() and value.isdecimal()):
        raise OptionError(f"{name} {value}: not a count")
    return int(value)


class _Reader(DataSourceReader):
    def __init__(self, plan: _Plan, mark: str) -> None:
        self.plan = plan
        self.mark = mark

    def partitions(self) -> Sequence[InputPartition]:
        found: list[FeedPart] = []
        with carrying(self.mark):
            for feed in self.plan.feeds:
                if not (among := listing(feed)):
                    raise EventError("no such file", source=", ".join(feed.source.files))
                end = advance(feed, Place(), limited=False, closing=True, among=among)
                found += parts_between(feed, Place(), end, self.plan.tasks)
        return [InputPartition(part) for part in found]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return carry(self.mark, _read, self.plan, partition.value)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets: for each feed, by its number, a `Place`."""

    def __init__(self, plan: _Plan, mark: str) -> None:
        self.plan = plan
        self.mark = mark
        self.among: list[Listing | None] = [None] * len(plan.feeds)

    def initialOffset(self) -> dict[str, Any]:
        return {str(feed.number): Place().to_dict() for feed in self.plan.feeds}

    def getDefaultReadLimit(self) -> ReadLimit:
        # Its value is not looked at: the limits in bytes and files are our own, and hold for each stream.
        return ReadMaxBytes(max(1, self.plan.feeds[0].max_bytes))

    def prepareForTriggerAvailableNow(self) -> None:
        with carrying(self.mark):
            self.among = [listing(feed) for feed in self.plan.feeds]

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        with carrying(self.mark):
            return self._latest(start)

    def _latest(self, start: dict[str, Any]) -> dict[str, Any]:
        pairs = [
            (feed, Place.of(start.get(str(feed.number))), among)
            for feed, among in zip(self.plan.feeds, self.among, strict=True)
        ]
        ends = [advance(feed, place, among=among) for feed, place, among in pairs]
        if self.plan.closing and ends == [place for _, place, _ in pairs]:
            ends = [advance(feed, place, closing=True, among=among) for feed, place, among in pairs]
        return {str(feed.number): end.to_dict() for (feed, _, _), end in zip(pairs, ends, strict=True)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        parts: list[InputPartition] = []
        with carrying(self.mark):
            for feed in self.plan.feeds:
                number = str(feed.number)
                between = parts_between(feed, Place.of(start.get(number)), Place.of(end.get(number)), self.plan.tasks)
                parts += map(InputPartition, between)
        return parts

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return carry(self.mark, _read, self.plan, partition.value)


def _read(plan: _Plan, part: FeedPart) -> Iterator[pa.RecordBatch]:
    """The rows of one part as record batches."""
    feed = plan.feeds[part.feed]
    if feed.access is not None:
        feed.access.use()
    rows = _MAKERS[plan.rows](plan, feed, part)
    while held := list(islice(rows, _ROWS)):
        yield batch_of(_TABLES[plan.rows], held)


def _triple_rows(plan: _Plan, feed: Feed, part: FeedPart) -> Iterator[tuple[Any, ...]]:
    if part.last:
        return
    with counted(plan.quarantine, quarantine_names(part)) as counters:
        for s, p, o, g, line in part_statements(feed, part, counters):
            graph = None if g is None else term_key(g)
            yield feed.source.iri, part.path, line, graph, *(ntriples(term_key(term)) for term in (s, p, o))


def _event_rows(plan: _Plan, feed: Feed, part: FeedPart) -> Iterator[tuple[Any, ...]]:
    head = (part.feed, *part.order, feed.source.iri)
    with counted(plan.quarantine, quarantine_names(part)) as counters:
        for batch in () if part.last else event_batches(feed, part, None, counters):
            for event in map(batch.event, range(len(batch))):
                terms = [term_key(term) for triple in event.triples for term in triple]
                graph = None if event.graph is None else term_key(event.graph)
                yield (*head, event.time, part.path, event.record, graph, terms, None)
    yield (*head, None, part.path, None, None, None, Told(counters, int(part.last)).row())


def _part_rows(plan: _Plan, feed: Feed, part: FeedPart) -> Iterator[tuple[Any, ...]]:
    yield part_row(plan.options, part)


_MAKERS: Final = {"triples": _triple_rows, "events": _event_rows, "parts": _part_rows}


def part_row(options: str, part: FeedPart) -> tuple[Any, ...]:
    """The row of PARTS for a part. `options`: those of the data source, as JSON."""
    return part.feed, *part.order, json.dumps([options, asdict(part)])


def planned_part(body: str) -> tuple[Feed, FeedPart, str]:
    """Of the body of a row of PARTS: the feed, the part, and the folder of the quarantine (empty: none)."""
    options, given = json.loads(body)
    plan = _planned(options)
    part = FeedPart(**{**given, "order": tuple(given["order"])})
    return plan.feeds[part.feed], part, plan.quarantine


@lru_cache(8)
def _planned(options: str) -> _Plan:
    return _Plan.of(json.loads(options))
