"""Searches over few edges: each task is sent all of them, and searches from its own sources.

One job does it, however long the paths are, and pairs leave a task as it finds them. The kernel is the local engine's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from spaseq.core.errors import BudgetExceeded
from spaseq.core.jit import attempt_rows
from spaseq.spark.session.connecting import share, task_count
from spaseq.spark.session.failures import carried

_PAIRS: Final = "src string, dst string"
_ROWS: Final = 1 << 16
"""Pairs that leave a task at once, or as many as one source may reach."""


@dataclass(frozen=True, slots=True)
class Edges:
    """`sources` and `targets`: int32 each, numbers of `terms` (keys); sorted by the sources."""

    terms: pa.Array
    sources: np.ndarray
    targets: np.ndarray

    @staticmethod
    def collect(edges: DataFrame, most: int) -> Edges | None:
        """The edges of a DataFrame (`src`, `dst`), or None if it has more than `most` rows. Runs a job."""
        table = edges.limit(most + 1).toArrow()
        if table.num_rows > most:
            return None
        chunks = [chunk for name in ("src", "dst") for chunk in table.column(name).chunks]
        coded = pa.chunked_array(chunks, pa.string()).combine_chunks().dictionary_encode()
        numbers = coded.indices.to_numpy()
        sources, targets = numbers[: table.num_rows], numbers[table.num_rows :]
        order = np.argsort(sources, kind="stable")
        return Edges(coded.dictionary, sources[order], targets[order])

    def __len__(self) -> int:
        return len(self.sources)


def pairs_within(
    spark: SparkSession, edges: Edges, start: str | None, seeds: DataFrame | None, most_rows: int
) -> DataFrame:
    """The pairs (`src`, `dst`) with a path of one or more edges from `start`, else from `seeds` (a column `src`), else
    from any source; each once.

    Runs no job. A task raises BudgetExceeded (`solution_rows`) when it finds more than `most_rows` pairs. Cost: for
    each source the edges that it reaches.
    """
    if start is not None:
        sources = spark.createDataFrame([(start,)], "src string")
    else:
        own = pa.table({"src": edges.terms.take(pa.array(np.unique(edges.sources)))})
        sources = spark.createDataFrame(own, "src string") if seeds is None else seeds.distinct()
        sources = sources.repartition(task_count(spark))
    return sources.mapInArrow(carried(_search, share(spark, edges), most_rows), _PAIRS)


def _search(shared: Any, most_rows: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The pairs from the sources of `batches`; those that no edge leaves have none."""
    from spaseq.gpm.columnar.kernels import close_pairs  # loads the kernels

    edges: Edges = shared.value
    places, found = np.zeros(len(edges), np.int32), 0
    queue = np.zeros(len(edges.terms), np.int32)
    out = np.zeros((max(len(edges.terms), _ROWS), 3), np.int32)
    for batch in batches:
        seeds = pc.index_in(batch.column(0), value_set=edges.terms).drop_null().to_numpy()
        marks, state = np.full(len(edges.terms), -1, np.int32), np.zeros(2, np.int64)
        while state[0] < len(seeds):
            attempt_rows(close_pairs, 8 * len(seeds) * len(edges), places, edges.sources, edges.targets,
                         np.zeros(len(seeds), np.int32), seeds, state, marks, queue, out)  # fmt: skip
            found += int(state[1])
            if found > most_rows:
                raise BudgetExceeded("solution_rows", most_rows, found, "rows")
            columns = [edges.terms.take(pa.array(out[: state[1], i])) for i in (1, 2)]
            state[1] = 0
            yield pa.RecordBatch.from_arrays(columns, ["src", "dst"])
