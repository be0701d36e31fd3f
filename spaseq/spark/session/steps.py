"""What tasks do, under names that Spark shows: in `explain()`, and on the pages of its jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spaseq.language.runtime.compiled import CompiledQuery
from spaseq.spark.session.failures import carried


def step(name: str, function: Callable[..., Any], *given: Any) -> Callable[[Any], Any]:
    """`function` of batches, its first arguments `given`, for `mapInArrow`. Spark's plan shows it as `name`."""
    found = carried(function, *given)
    found.__name__ = name
    return found


def streams_and_patterns(query: CompiledQuery) -> str:
    """The streams of a query by name, each with the GPMs that read it: `S1: A, S2: B`."""
    readers = {
        name: [pattern.name for pattern in query.checked.patterns.values() if iri in pattern.streams]
        for name, iri in query.streams
    }
    return ", ".join(f"{name}: {' '.join(gpms)}" for name, gpms in readers.items() if gpms)
