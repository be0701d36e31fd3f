"""CEQL in Spark's SQL: `SELECT * FROM ceql(TABLE(events), 'SELECT …')`, a row for each match.

Spark calls `analyze` with the columns of the table and the other arguments, which are constants. It answers with the
columns of the rows, and asks Spark to send the table's rows by the key of the query, hashed to groups. A group comes
in the order of time, in Arrow batches, to an object of the function. The engine, the checks and the columns are those
of `spaseq.spark.match`.

PERF: a million logins of 20,000 users on two cores, processor time: 4.8 s to bring them to Python in Arrow batches, in
200 groups, 21 s as rows. So this needs Arrow's table functions (PySpark 4.1). A public way to make one that has
`analyze` is missing (SPARK-53286), hence the constructor of `UserDefinedTableFunction`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import NumericType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, OrderingColumn, PartitioningColumn, SelectedColumn
from pyspark.util import PythonEvalType

from spaseq.core.errors import EventError, OptionError, expect_type
from spaseq.core.events import EventOptions
from spaseq.core.events.timestamps import TimestampAssigner
from spaseq.language.query import Query
from spaseq.spark.front import query_of
from spaseq.spark.session.connecting import is_connect
from spaseq.spark.session.failures import MARK, carry, carrying
from spaseq.spark.session.tables import spark_schema
from spaseq.spark.session.versions import GRAPHS, pyspark_version
from spaseq.spark.tuples.frames import Layout, with_time
from spaseq.spark.tuples.match import check_tasks, planned_job, refuse_form
from spaseq.spark.tuples.plan import Plan
from spaseq.spark.tuples.rows import Job, Task

_GROUPS: Final = 200
_CALL: Final = "ceql(TABLE(events), 'SELECT …', time => 'ts')"


def register(spark: SparkSession) -> None:
    """Make the table function `ceql` and the data source `spaseq` known to a session of any kind.

    `SELECT * FROM ceql(TABLE(events), 'SELECT …', time => 'ts')` gives the rows and the columns of
    `events.transform(spaseq.spark.match('SELECT …', time='ts'))`. The query and the words are constants. `events`,
    `type_column`, `type`, `time`, `time_from`, `time_unit` and `interval` mean what they mean there. Besides:

    * `partitions`: into how many groups the keys of the query are hashed (200). A task finds the matches of some.
    * `order_by`: the column whose order is that of rows with equal times. Without it they have no order. If there is no
      column of times, rows count in this order.
    * `partitioned`: if true, the call has its own `PARTITION BY` and `ORDER BY (…)`, by time. Each partition is a
      stream of its own.

    The data source is as `docs/spark.md` has it; before PySpark 4.2 there is none. Wrong queries, words and columns are
    errors of Spark's analysis, whose text has ours; inside `clear_errors()` they are ours.
    """
    if is_connect(spark):
        from pyspark.sql.connect.udtf import UserDefinedTableFunction
    else:
        from pyspark.sql.udtf import UserDefinedTableFunction
    spark.udtf.register(
        "ceql", UserDefinedTableFunction(_class_with_mark(MARK), None, "ceql", PythonEvalType.SQL_ARROW_UDTF)
    )
    if pyspark_version() >= GRAPHS:
        from spaseq.spark.ingest.datasource import register_source  # older versions lack what it is made of

        register_source(spark)


@dataclass
class _Analysed(AnalyzeResult):
    """The answer to Spark, which hands it to each object of the function, with the work of a task."""

    job: Job | None = None


class _Function:
    """The function over one group of the table's rows. `mark`: of the driver, for errors
    (`spaseq.spark.session.failures`)."""

    mark = ""

    def __init__(self, analysed: _Analysed) -> None:
        assert analysed.job is not None
        job = analysed.job
        (self._clock,) = job.layout.clocks
        self._step = job.options.step
        self._times = TimestampAssigner(replace(job.options, type_column=None), "<events>", types=())
        self._columns = len(job.layout.kinds)
        self._task = Task(job)
        self._count = 0
        self._last: int | None = None

    def eval(self, input: pa.RecordBatch, *_: Any, **__: Any) -> Iterator[pa.Table]:
        """The rows that the next rows of the table complete."""
        return carry(self.mark, self._push, input)

    def terminate(self) -> Iterator[pa.Table]:
        """The rows that the end of the group completes."""
        return carry(self.mark, self._task.close)

    def _push(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        if not batch.num_rows:
            return
        if self._clock is None:
            places = np.arange(self._count, self._count + batch.num_rows) * self._step
            timed = batch.append_column("time", pa.array(places))
        else:
            given = batch.select(range(self._columns + 1))
            timed = with_time(given, self._times, (self._clock,), self._columns)
        self._count += batch.num_rows
        times = timed["time"].to_numpy()
        if (self._last is not None and times[0] < self._last) or (times[1:] < times[:-1]).any():
            raise EventError(
                "the rows of a group are not in the order of their times", source="<events>",
                attribute=self._clock or "",
                hint="ORDER BY (the column of times); of times in texts, TABLE(SELECT …) with CAST(… AS TIMESTAMP)",
            )  # fmt: skip
        self._last = int(times[-1])
        yield from self._task.push(timed)


def _class_with_mark(mark: str) -> type[_Function]:
    """The class that is sent: a local one travels with its attributes."""

    class Ceql(_Function):
        @staticmethod
        def analyze(input: AnalyzeArgument, query: AnalyzeArgument, **words: AnalyzeArgument) -> AnalyzeResult:
            with carrying(mark):
                return _analyse(input, query, words)

    Ceql.mark = mark
    return Ceql


def _analyse(table: AnalyzeArgument, query: AnalyzeArgument, words: Mapping[str, AnalyzeArgument]) -> _Analysed:
    """The columns of the rows, and the way of the table's rows to tasks. Runs nothing. Raises `OptionError` and
    `EventError` for wrong words and columns, and the errors of the language."""
    if not table.isTable:
        raise OptionError("the first argument of ceql is no table", _CALL)
    for name, word in {"query": query, **words}.items():
        if not word.isConstantExpression:
            raise OptionError(f"{name} of ceql is no constant", _CALL)
    expect_type("query of ceql", query.value, str, _CALL)
    given: dict[str, Any] = {name.lower(): word.value for name, word in words.items()}
    groups, ties = given.pop("partitions", _GROUPS), given.pop("order_by", None)
    events, partitioned = given.pop("events", False), given.pop("partitioned", False)
    options = EventOptions.parse(**given)
    refuse_form(options)
    check_tasks("partitions", groups)
    for name, value in (("events", events), ("partitioned", partitioned)):
        expect_type(name, value, bool, "it is true or false")
    compiled = query_of(query.value)
    if isinstance(compiled, Query):
        raise OptionError(
            "ceql takes queries over tuples, and this is one over graphs", "spaseq.spark.match takes both"
        )
    streams = compiled.stream_names(())
    if len(streams) > 1:
        several = ", ".join(streams)
        raise OptionError(
            f"the query reads several streams: {several}", "spaseq.spark.match takes a DataFrame for each"
        )
    found, job = planned_job(
        compiled, {streams[0]: table.dataType}, options, case_sensitive=False, events=events, positions=False
    )
    given_names = table.dataType.names
    names = {field.name: _quote(given_names[place]) for place, field in found[streams[0]].items()}
    schema = spark_schema(job.schema)
    (own,), (clock,) = job.layout.streams, job.layout.clocks
    select = [SelectedColumn(names[name], f"c{number}") for name, number in own.items()]
    if clock is not None:
        select.append(SelectedColumn(names[clock], "time"))
    if partitioned:
        # A call without PARTITION BY would have each task take what it has for a stream. So this reads the column that
        # Spark makes of PARTITION BY: without it the name is an error of the analysis.
        return _Analysed(schema, select=[*select, SelectedColumn("partition_by_0", "partition")], job=job)
    answer = _Analysed(schema, select=select or [SelectedColumn("1", "c")], job=job)
    order = [names[clock]] if clock is not None else []
    if ties is not None:
        expect_type("order_by", ties, str, "it is the name of a column")
        order.append(_quote(_column(given_names, ties)))
    if not order:
        hint = "time => 'COLUMN', or order_by => 'COLUMN', in whose order the rows count"
        raise OptionError("the table has no column of times, and its rows no order", hint)
    # With times from arrival, the places of rows are those in the whole table.
    key = None if clock is None else _key(Plan.of(compiled), job.layout, names)
    answer.orderBy = list(map(OrderingColumn, order))
    if key is None:
        answer.withSinglePartition = True
    else:
        answer.partitionBy = [PartitioningColumn(f"pmod(hash({key}), {groups})")]
    return answer


def _key(plan: Plan, layout: Layout, names: Mapping[str, str]) -> str | None:
    """Values that are the same for equal keys, as texts of SQL; None without a key, or if Spark compares its attributes
    in another way than the engine."""
    found = []
    for bracket in plan.keys:
        kinds = [(names[name], kind) for name in bracket for kind in layout.types(name)]
        if len({str(kind) for _, kind in kinds}) != 1 and not all(isinstance(kind, NumericType) for _, kind in kinds):
            return None
        if len(kinds) == 1:
            found.append(kinds[0][0])
        elif all(isinstance(kind, NumericType) for _, kind in kinds):  # NaN is NULL: the next attribute counts
            doubles = (f"nullif(CAST({name} AS DOUBLE), double('NaN'))" for name, _ in kinds)
            found.append(f"coalesce({', '.join(doubles)})")
        else:
            found.append(f"coalesce({', '.join(name for name, _ in kinds)})")
    return ", ".join(found) or None


def _column(names: Sequence[str], name: str) -> str:
    """The column of a table that is named so, but for case. `EventError` if there is none."""
    same = [each for each in names if each == name] or [each for each in names if each.casefold() == name.casefold()]
    if not same:
        raise EventError(f"no column {name!r}; there are: {', '.join(names)}", source="<events>", attribute=name)
    return same[0]


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
