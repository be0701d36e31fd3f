"""A SPAseq query as a Spark batch job: the same matches as `Query.run`.

    files ─► events and their solutions ─► instants, ordered ─► with knowledge ─► engine ─► matches
             solved                        solved, events       solutions         job

`table` is what comes before the engine, and says which streams go another way there. `layout` decides what is joined by
Spark, and where the table of solutions may be cut for the engine.

Up to the numbering of the instants the job runs when `run` is called: the number of an instant depends on all before
it, and so wrong input is an error of `run`. The rest runs when somebody asks for the DataFrame's rows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Final, NamedTuple, Unpack

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spaseq.core.errors import OptionError
from spaseq.gpm import Knowledge
from spaseq.language.query import Query, compile_query
from spaseq.language.results.match import Match
from spaseq.language.results.solutions import match_table
from spaseq.rdf import Counters, term_from_key
from spaseq.spark.batch.form import Form, as_terms
from spaseq.spark.batch.parts import matches_in_parts
from spaseq.spark.batch.slices import SMALL, hindrance, planned_slices, sliced_matches
from spaseq.spark.ingest.frames import Streams
from spaseq.spark.ingest.time_ranges import rows_of
from spaseq.spark.session.bar import progress_bar
from spaseq.spark.session.collecting import collect
from spaseq.spark.session.connecting import task_count
from spaseq.spark.session.failures import clear_errors
from spaseq.spark.session.layout import Layout, lay_out
from spaseq.spark.session.options import KNOWLEDGE_ROWS, NOT_IN_TASKS, QueryOptions, QueryWords, refuse_limits
from spaseq.spark.session.query_text import QueryText, under_entailment
from spaseq.spark.session.session import local_session
from spaseq.spark.session.tables import TERM_MATCHES
from spaseq.spark.solving.join_side import Sides, sides_of
from spaseq.spark.solving.knowledge import known_of
from spaseq.spark.solving.solutions import Graphs, graph_keys
from spaseq.spark.solving.table import Job, table_of

_LOG: Final = logging.getLogger("spaseq.spark")
_PLANS: Final = ("auto", "slices", "table")
_INSTANTS: Final = 256  # rows of the table before the engine is called


def run(
    query: Query | str,
    spark: SparkSession,
    streams: Streams,
    kb: Knowledge | Mapping[str, Any] | None = None,
    *,
    format: str | None = None,
    partitions: int | None = None,
    progress: bool | None = False,
    counters: Counters | None = None,
    quarantine: str = "",
    plan: str = "auto",
    **words: Unpack[QueryWords],
) -> DataFrame:
    """The matches over files, as a DataFrame with the columns and values of `Query.run(…).to_arrow()`, in no order.

    With an ORDER BY there is a further column, `?rank`, a number by which the rows are to be sorted.

    Args:
        query: compiled, or its text.
        streams: as for `Query.run`. The workers must be able to open the streams' files. Or DataFrames: see
            `spaseq.spark.ingest.frames`.
        kb: as for `Query.run`, and DataFrames: see `spaseq.spark.solving.knowledge`.
        partitions: how many tasks a stage has; by default as many as the session runs at a time.
        progress: show a bar on stderr while the streams are read: True, False, or None for only on a terminal.
        counters: is given what was read, late or malformed.
        quarantine: a folder for lines that cannot be read, each with its number, in one file for each input file;
            they are counted as malformed. Like the streams' files it must be within the workers' reach.
        plan: "slices" has each task run the whole query on a slice of time, without a shuffle, and is an OptionError
            where that cannot be; "table" shuffles the solutions; "auto" chooses (`spaseq.spark.batch.slices`).
        words: `entailment`, `knowledge_rows`, `graphs`, `reference`: see `spaseq.spark.session.options`. And
            `options`, or in its place `format` and other words of the command line, as for `Query.run`.

    Raises `OptionError` and `EventError` as the local engine does. What goes wrong in the last step, which runs when
    rows are asked for, comes out as clearly only through `collect`.
    """
    job = prepare(query, spark, kb, QueryOptions.of(format, **words), partitions)
    form = _form(job, match_table, match_table([], job.compiled.variables).schema)
    return _found(job, streams, form, plan, progress, counters, quarantine)


def matches(
    query: Query | str,
    spark: SparkSession,
    streams: Streams,
    kb: Knowledge | Mapping[str, Any] | None = None,
    *,
    format: str | None = None,
    partitions: int | None = None,
    progress: bool | None = False,
    counters: Counters | None = None,
    quarantine: str = "",
    plan: str = "auto",
    **words: Unpack[QueryWords],
) -> Iterator[Match]:
    """The matches over files as the local engine's objects, without their events, in order of their ends. See `run`."""
    job = prepare(query, spark, kb, QueryOptions.of(format, **words), partitions)
    frame = _found(job, streams, _form(job, as_terms, TERM_MATCHES), plan, progress, counters, quarantine)
    found = collect(frame, progress=progress)
    variables = job.compiled.variables
    for batch in found.to_batches():
        for start, end, positions, times, terms in rows_of([batch]):
            bound = sorted((name, key) for name, key in zip(variables, terms, strict=True) if key is not None)
            bindings = {name: term_from_key(key) for name, key in bound}
            yield Match(start, end, tuple(positions), bindings, tuple(times), ())


def explain(
    query: Query | str,
    kb: Knowledge | Mapping[str, Any] | None = None,
    *,
    spark: SparkSession | None = None,
    streams: Streams | None = None,
    **words: Unpack[QueryWords],
) -> str:
    """The layout of the query by `run`, a line on each decision.

    Given `kb`, also the joins of its knowledge, and the sizes of the answers to what the query asks of it. `spark`
    works them out, by default the running session. Given `streams`, the plan that `run` chooses for them: some of their
    times are read. `words` as of `run`.
    """
    query = compile_query(query) if isinstance(query, str) else query
    lines: Iterable[str] = lay_out(query.compiled).explain()
    plan = _plan_lines(query)
    if kb is not None or streams is not None:
        session = spark or SparkSession.getActiveSession() or local_session()
        options = QueryOptions.of(None, **words).of_query(query)
        found = prepared(session, query, kb, options)
        lines = found.lines
        if streams is not None:
            plan = _chosen_plan(_job_of(session, found, options, None), streams)
    return "\n".join([*plan, *_stream_lines(query), *lines, *_limit_lines(query, words)])


def _chosen_plan(job: Job, streams: Streams) -> Iterator[str]:
    with clear_errors():
        found = planned_slices(job, streams, "", forced=False)
    if isinstance(found, str):
        yield f"plan 'table', a table of solutions is shuffled: {found}"
    else:
        yield (
            f"plan 'slices', {len(found)} slices of time, each read and matched by one task, with the answers of the "
            "knowledge broadcast; if one is found to be out of order, plan 'table'"
        )


def _plan_lines(query: Query) -> Iterator[str]:
    """What decides between the plans."""
    if why := hindrance(query.compiled):
        yield f"a table of solutions is shuffled, and not the query run on slices of time: {why}"
        return
    yield (
        f"plan 'slices', for files in order of time, {SMALL >> 20} MB of them or more: each task seeks a slice of time "
        "in each file and runs the whole query on it, without a shuffle, with the answers of the knowledge broadcast"
    )
    yield "plan 'table', otherwise: a table of solutions is shuffled, as follows"


def _limit_lines(query: Query, words: QueryWords) -> Iterator[str]:
    """What each task, and the driver, may use."""
    elsewhere = (*NOT_IN_TASKS, "closed_triples", "threads")
    settings = {name: value for name, value in asdict(query.settings).items()
                if isinstance(value, (int, float)) and name not in elsewhere}  # fmt: skip
    said = ", ".join(f"{name} {value:,}" for name, value in settings.items())
    yield f"limits of the engine in each task (spaseq.Settings, --set): {said}"
    rows = words.get("knowledge_rows", KNOWLEDGE_ROWS)
    yield f"limit of an answer of the knowledge on the driver (knowledge_rows, --knowledge-rows): {rows:,} rows"
    if words.get("entailment") is not None:
        most = query.settings.closed_triples
        yield f"limit of a graph that is closed on the driver (closed_triples, --set): {most:,} triples"


def _stream_lines(query: Query) -> Iterator[str]:
    """What becomes of each stream."""
    for name, iri in query.streams:
        gpms = [pattern.name for pattern in query.checked.patterns.values() if iri in pattern.streams]
        if gpms:
            yield (
                f"stream {name} <{iri}>: its files are divided among tasks, which evaluate {', '.join(gpms)} on its "
                "events; these go into ranges of time with those of the other streams"
            )
        else:
            yield f"stream {name} <{iri}>: no GPM reads it"


# -- the job


def prepare(query: Query | str, spark: SparkSession, kb: Any, options: QueryOptions, partitions: int | None) -> Job:
    """Checks what was given, before the streams are read."""
    if partitions is not None and partitions < 1:
        raise OptionError(f"partitions={partitions}: a stage has at least one task")
    query = compile_query(query) if isinstance(query, str) else query
    options = options.of_query(query)
    found = prepared(spark, query, kb, options)
    for line in found.lines:
        _LOG.info(line)
    return _job_of(spark, found, options, partitions)


def _job_of(spark: SparkSession, found: Prepared, options: QueryOptions, partitions: int | None) -> Job:
    tasks = partitions or task_count(spark)
    return Job(spark, found.text, found.layout, found.graphs, found.sides, options.events, tasks)


class Prepared(NamedTuple):
    """A query before the streams are read: as it travels, how it is laid out, the knowledge that tasks are sent, what
    Spark joins, and what was decided."""

    text: QueryText
    layout: Layout
    graphs: Graphs
    sides: Sides
    lines: tuple[str, ...]


def prepared(spark: SparkSession, query: Query, kb: Any, options: QueryOptions) -> Prepared:
    """The query with its knowledge, as entailment has them. OptionError for a graph that is not given, and for limits
    that no task looks at."""
    refuse_limits(query.settings)
    plain, rows, whole = QueryText.of(query), options.knowledge_rows, options.entailment is not None
    known = known_of(spark, kb, plain, lay_out(query.compiled), rows=rows, whole=whole, way=options.graphs)
    text, closed = under_entailment(query, known.knowledge, options.entailment, reference=options.reference)
    known = replace(known, knowledge=closed)
    layout = lay_out(text.compiled())
    known.check(text.compiled().checked.patterns.values(), layout.joined)
    sides = sides_of(spark, text, layout, known, rows, options.graphs)
    lines = (*layout.explain(), *known.lines, *closed.told(), *(side.line for own in sides.values() for side in own))
    return Prepared(text, layout, graph_keys(text, layout, closed), sides, lines)


def _form(job: Job, shape: Any, table: pa.Schema) -> Form:
    return Form(job.query, job.options.unit, shape, table, job.layout.ordered)


def _found(
    job: Job, streams: Streams, form: Form, plan: str, progress: bool | None, counters: Counters | None, quarantine: str
) -> DataFrame:
    """The matches, by the plan that is asked for, or that is the better one."""
    if plan not in _PLANS:
        raise OptionError(f"plan={plan!r}: no such plan", f"one of {', '.join(_PLANS)}")
    if plan != "table":
        read = Counters()
        with progress_bar(job.spark, "finding matches", enabled=progress), clear_errors():
            slices = planned_slices(job, streams, quarantine, forced=plan == "slices")
            found = slices if isinstance(slices, str) else sliced_matches(job, slices, form, read)
        if not isinstance(found, str):
            _LOG.info("%d slices of time, each read and matched by one task", len(slices))
            if counters is not None:
                counters.add(read)
            return found
        if plan == "slices":
            raise OptionError(f"plan='slices': {found}", "plan='auto'")
        _LOG.info("not in slices of time without a shuffle: %s", found)
    table, times = table_of(job, streams, progress, counters, quarantine)
    return matches_in_parts(table, times, job.layout, form, job.tasks)
