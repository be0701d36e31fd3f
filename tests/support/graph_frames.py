"""A stand-in for GraphFrames, whose Java part is not everywhere.

It has the calls that we make, with the meaning of their documentation, on graphs that fit into this process.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


class GraphFrame:
    """`called`: the names of the methods that were called, in order."""

    called: ClassVar[list[str]] = []

    def __init__(self, v: DataFrame, e: DataFrame) -> None:
        assert v.columns == ["id"] and e.columns[:2] == ["src", "dst"]
        assert v.distinct().count() == v.count()
        self._v, self._e = v, e

    def find(self, pattern: str) -> DataFrame:
        """A struct for each named vertex and edge."""
        self.called.append("find")
        found: DataFrame | None = None
        for text in pattern.split("; "):
            first, edge, last = re.fullmatch(r"\((\w+)\)-\[(\w+)\]->\((\w+)\)", text).groups()  # type: ignore[union-attr]
            step = self._e.select(F.struct(*self._e.columns).alias(edge))
            step = step.withColumn(first, F.struct(F.col(f"{edge}.src").alias("id")))
            if first == last:
                step = step.where(F.col(f"{edge}.src") == F.col(f"{edge}.dst"))
            else:
                step = step.withColumn(last, F.struct(F.col(f"{edge}.dst").alias("id")))
            shared = [] if found is None else [name for name in step.columns if name in found.columns]
            found = step if found is None else found.join(step, shared) if shared else found.crossJoin(step)
        assert found is not None
        return found

    def connectedComponents(self, use_local_checkpoints: bool) -> DataFrame:
        """`component`: a number."""
        self.called.append("connectedComponents")
        labels = {row.id: number for number, row in enumerate(self._v.collect())}
        edges = self._e.collect()
        while True:
            before = dict(labels)
            for row in edges:
                labels[row.src] = labels[row.dst] = min(labels[row.src], labels[row.dst])
            if labels == before:
                return self._v.sparkSession.createDataFrame(list(labels.items()), "id string, component long")

    def shortestPaths(self, landmarks: list[str], algorithm: str, use_local_checkpoints: bool) -> DataFrame:
        """`distances`: of each vertex to the landmarks that it reaches."""
        self.called.append("shortestPaths")
        edges = self._e.collect()
        found: dict[str, dict[str, int]] = {row.id: {} for row in self._v.collect()}
        for landmark in landmarks:
            found[landmark][landmark] = 0
            near, hops = {landmark}, 0
            while near:
                hops += 1
                near = {row.src for row in edges if row.dst in near and landmark not in found[row.src]}
                for name in near:
                    found[name][landmark] = hops
        return self._v.sparkSession.createDataFrame(list(found.items()), "id string, distances map<string, int>")


def installed(monkeypatch: Any) -> type[GraphFrame]:
    """The stand-in at the place from which GraphFrames is imported."""
    import graphframes

    from spaseq.spark.solving import graphs

    monkeypatch.setattr(graphframes, "GraphFrame", GraphFrame)
    monkeypatch.setattr(graphs, "has_graphframes", lambda spark: True)
    monkeypatch.setattr(GraphFrame, "called", [])
    return GraphFrame
