"""Background knowledge in a stream: what GPMs found is joined with it by Spark, and sent after the parcels.

`send_parcels` gives parcels and, as rows of their own, the solutions that still want knowledge. They go through the
joins together (the outer joins let pass what is not theirs), so the events are read once; then each task makes of the
joined rows further parcels, *attached* to those that have the times. So a bucket sees what it would have seen if the
tasks had had the knowledge. What the query asks of it is worked out once, when the query starts: a small answer is
broadcast to the tasks of each batch, a large one is divided by the variables of its join.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from spaseq.gpm.algebra import certain
from spaseq.spark.session.failures import carried
from spaseq.spark.session.layout import Layout
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.session.tables import PARCELS, PLACE, spark_schema
from spaseq.spark.solving.bucket_rows import Row, key_of
from spaseq.spark.solving.join_side import Sides, join_rows
from spaseq.spark.solving.solutions import satisfies
from spaseq.spark.streaming.bucket_messages import Cut, Parcel, parcel_batch

_PLACE = (*PLACE.names, "part")


def attach_knowledge(
    mixed: DataFrame, query: QueryText, layout: Layout, cut: Cut, sides: Sides, tasks: int
) -> DataFrame:
    """PARCELS of MIXED (`spaseq.spark.session.tables`), the knowledge of the layout's `joined` GPMs joined."""
    patterns = query.compiled().checked.patterns
    for name in layout.joined:
        pattern, place = patterns[name], layout.gpms.index(name)
        sure = certain(pattern.event)
        for side in sides[name]:
            mixed = join_rows(mixed, place, layout.variables[place], sure, side.kept(tasks), (*_PLACE, "bucket"))
            sure |= side.sure
    return mixed.mapInArrow(carried(_attach, _Attach(query, layout, cut)), spark_schema(PARCELS))


@dataclass(frozen=True, slots=True)
class _Attach:
    query: QueryText
    layout: Layout
    cut: Cut


def _attach(job: _Attach, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The parcels as they are; of joined rows, the attached parcels."""
    for batch in batches:
        whole = pc.equal(batch.column("gpm"), -1)
        parcels = batch.filter(whole)
        if parcels.num_rows:
            yield parcels.select(PARCELS.names)
        yield from _packed(job, batch.filter(pc.invert(whole)))


def _packed(job: _Attach, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    partition = job.query.compiled().checked.partition
    found: dict[tuple[Any, ...], dict[int, list[Row]]] = {}
    columns = [rows.column(name).to_pylist() for name in (*_PLACE, "gpm", "number", "time", "terms")]
    for feed, file, start, part, gpm, number, time, terms in zip(*columns, strict=True):
        if not satisfies(job.query, job.layout, gpm, terms):
            continue
        key = key_of(job.layout, partition, gpm, terms) if partition else None
        if partition and key is None:
            continue
        bucket = job.cut.buckets[job.cut.of(time, key)]
        own = found.setdefault((feed, file, start, part), {}).setdefault(bucket, [])
        own.append((number, key, [(gpm, tuple(terms))]))
    none = np.zeros(0, np.int64)
    for (*head, part), by_bucket in found.items():
        bodies = [Parcel(none, none, own, "", None, True).pack() for own in by_bucket.values()]
        yield parcel_batch(tuple(head), part, bodies, list(by_bucket))
