"""Options for reading streams: the limits of events, the source of their times, and the lateness allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypedDict, Unpack

from spaseq.core.errors import OptionError
from spaseq.core.events.options import (
    ARRIVAL,
    UNSAID,
    Duration,
    OnLate,
    TimeOptions,
    drop_late,
    from_arrival,
    length_of,
    one_of,
    text_of,
)

__all__ = ["ARRIVAL", "GENERATED_AT", "EventBy", "EventWords", "StreamOptions", "StreamWords"]

GENERATED_AT: Final = "http://www.w3.org/ns/prov#generatedAtTime"
_DIGITS: Final = 9
"""Of the triples of an event: rows are numbered in int32, and an event is held whole."""

EventKind: TypeAlias = Literal["graph", "file", "subject", "size"]


@dataclass(frozen=True, slots=True)
class EventBy:
    """The unit of an event: a named `graph`, a whole `file`, a run of one `subject`, or `size` triples."""

    kind: EventKind
    size: int = 0

    @staticmethod
    def parse(text: str) -> EventBy:
        """`graph`, `subject` or `size:N`; OptionError otherwise."""
        kind, colon, number = str(text).strip().partition(":")
        if kind == "graph" and not colon:
            return EventBy("graph")
        if kind == "subject" and not colon:
            return EventBy("subject")
        if kind == "size" and number.isascii() and number.isdecimal() and len(number) <= _DIGITS and int(number):
            return EventBy("size", int(number))
        raise OptionError(
            f"--event-by {text}: no such way to make events", "use graph, subject or size:N (N triples, below 10^9)"
        )

    def __str__(self) -> str:
        return f"size:{self.size}" if self.kind == "size" else self.kind


class EventWords(TypedDict, total=False):
    """The options for reading events, in the words of the command line."""

    event_by: str | None
    time: str | None
    time_from: str | None
    time_unit: str | None
    interval: Duration | None
    ties: str | None
    lateness: Duration | None
    late: str | None
    on_late: OnLate | None
    malformed: str | None


class StreamWords(EventWords, total=False):
    """The words of `StreamOptions.parse`, as `run`, `follow` and `open` take them."""

    format: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions(TimeOptions):
    """Options for reading streams.

    * `event_by`: None takes graphs from N-Quads and TriG, runs of a subject from N-Triples, whole files from Turtle.
    * `time`: IRI of the predicate whose value is an event's time, or `"arrival"`. None: `prov:generatedAtTime` if
      events are named graphs. Otherwise arrival, if nothing needs times: triples do not show the predicate of a time.
    * `ties`: `"instant"` puts graphs of equal time into one instant, `"arrival"` gives each its own.
    * `malformed`: `"error"`, or `"drop"` a line of N-Triples or N-Quads that cannot be read, and count.
    * `format`: overrides the file's extension (`nt`, `nq`, `trig`, `ttl`).
    * `lookahead`: the number of graphs that may wait for a time that stands further on in the default graph, and of
      times that may wait for their graph.
    * `merge`: the files of one stream are merged by time up to so many; more are read one after another.
    """

    event_by: EventBy | None = None
    ties: Literal["instant", "arrival"] = "instant"
    malformed: Literal["error", "drop"] = "error"
    format: str | None = None
    lookahead: int = 250_000
    merge: int = 64

    def __post_init__(self) -> None:
        TimeOptions.__post_init__(self)
        one_of("--ties", self.ties, "instant", "arrival")
        one_of("--malformed", self.malformed, "error", "drop")

    @property
    def apart(self) -> bool:
        """True if each event is an instant of its own."""
        return self.time == ARRIVAL or self.ties == "arrival"

    @property
    def counts(self) -> bool:
        """True if the caller said that events without times are to be counted."""
        return self.time == ARRIVAL or self.interval is not None

    @property
    def by_graph(self) -> bool:
        """True if events are named graphs, of which some may be empty."""
        return self.event_by is not None and self.event_by.kind == "graph"

    @staticmethod
    def parse(*, format: str | None = None, **words: Unpack[EventWords]) -> StreamOptions:
        """Options from the words of the command line; `time` is a predicate's IRI, bare or in angle brackets.

        OptionError names the option that cannot be understood.
        """
        given: dict[str, Any] = {**words}
        time, time_from = text_of("--time", given.pop("time", None)), given.pop("time_from", None)
        given["time"] = ARRIVAL if from_arrival(time, time_from) else None if time is None else _predicate(time)
        drop_late(given)
        if given.get("event_by") is not None:
            given["event_by"] = EventBy.parse(given["event_by"])
        given = {word: value for word, value in given.items() if value is not None or word not in UNSAID}
        for word in given.keys() & {"interval", "lateness"}:
            given[word] = length_of(f"--{word}", given[word])
        return StreamOptions(format=format, **given)


def _predicate(time: str) -> str:
    iri = time.strip()
    if iri.startswith("<") and iri.endswith(">"):
        iri = iri[1:-1]
    if ":" not in iri or any(c in iri for c in '<>"{}|^`\\ \t\n'):
        raise OptionError(f"--time {time}: not an IRI", "write the predicate in full: --time http://example.org/at")
    return iri
