"""How Spark is to run a SPAseq query, in a batch as in a stream: a frozen value, made of a function's keywords."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Unpack

from spaseq.core.errors import OptionError
from spaseq.core.events import TimeOptions
from spaseq.language.runtime.opened import stream_options
from spaseq.rdf import EventWords, StreamOptions

if TYPE_CHECKING:
    from spaseq.core.engine import Settings
    from spaseq.language.query import Query

KNOWLEDGE_ROWS: Final = 100_000
NOT_IN_TASKS: Final = {
    "time_limit": "leave it out, and cancel Spark's job, or stop the stream; `spaseq run` takes --set time_limit",
    "text_length": "leave it out: tasks make texts of up to 1,000,000 characters",
    "memory_limit": "leave it out; spark.executor.pyspark.memory is what a Python process of Spark's may hold",
}
"""Limits of an evaluation in one process, and what there is on Spark in their place."""


def refuse_limits(settings: Settings) -> None:
    """Raises `OptionError` for a limit that no task looks at: an evaluation is there many processes, at work whenever
    somebody asks for rows. The other budgets hold in each task."""
    for name, hint in NOT_IN_TASKS.items():
        if getattr(settings, name) != type(settings).__dataclass_fields__[name].default:
            raise OptionError(f"{name} does not hold in Spark's tasks", hint)


def refuse_on_late(options: TimeOptions) -> None:
    """Raises `OptionError` if late events are to be given to a function: tasks are in other processes."""
    if options.on_late is not None:
        raise OptionError("on_late is of the local engine", "start and start_tuples take late_output=FOLDER")


class QueryWords(EventWords, total=False):
    """Keywords of which `QueryOptions` is made: `options`, or the words above in its place, and its other fields."""

    options: StreamOptions | None
    entailment: str | None
    knowledge_rows: int
    graphs: str
    reference: bool


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """How streams are read and graph patterns evaluated.

    * `events`: how events are read.
    * `entailment`: `rdfs` or `owl-rl`, as for `Query.run`.
    * `knowledge_rows`: up to so many rows of an answer of the knowledge, or of triples where a graph must be in one
      place, come to the driver; what has more stays on Spark (`spaseq.spark.solving.knowledge`).
    * `graphs`: the way of motifs, and of paths over many edges, in knowledge that stays on Spark: "graphframes",
      "joins", or "auto", GraphFrames if the session has it (`spaseq.spark.solving.graphs`).
    * `reference`: whether rdflib's evaluator does all graph patterns that tasks evaluate, for comparison.
    """

    events: StreamOptions
    entailment: str | None = None
    knowledge_rows: int = KNOWLEDGE_ROWS
    graphs: str = "auto"
    reference: bool = False

    @staticmethod
    def of(format: str | None, **words: Unpack[QueryWords]) -> QueryOptions:
        """The value that keywords say; `format` is that of the streams. OptionError for what is not understood."""
        given: dict[str, Any] = {"format": format, **words}
        own = {name: given.pop(name) for name in _OWN if name in given}
        events = stream_options(given.pop("options", None), given)
        refuse_on_late(events)
        return QueryOptions(events, **own)

    def of_query(self, query: Query) -> QueryOptions:
        """The same, with what a query's prefixes say."""
        return replace(self, events=query.compiled.reading(self.events))


_OWN: Final = ("entailment", "knowledge_rows", "graphs", "reference")
