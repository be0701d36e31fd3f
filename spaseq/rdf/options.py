"""How streams are to be read: where one event ends and the next begins, what gives its time, how late it may come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from spaseq.errors import OptionError, SpaseqError
from spaseq.events.time import parse_duration

__all__ = ["ARRIVAL", "GENERATED_AT", "EventBy", "StreamOptions"]

GENERATED_AT: Final = "http://www.w3.org/ns/prov#generatedAtTime"
ARRIVAL: Final = "arrival"
_DIGITS: Final = 9
"""Of the triples of an event: rows are numbered in int32, and an event is held whole."""

EventKind: TypeAlias = Literal["graph", "file", "subject", "size"]


@dataclass(frozen=True, slots=True)
class EventBy:
    """What makes an event: a named `graph`, a whole `file`, a run of one `subject`, or `size` triples."""

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


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How to read streams.

    * `event_by`: None takes graphs from N-Quads and TriG, runs of one subject from N-Triples, and whole files from
      Turtle.
    * `time`: IRI of the predicate whose value is an event's time, or `"arrival"`. None: `prov:generatedAtTime` where
      events are named graphs, arrival otherwise (a triple format gives no hint where a time could be).
    * `time_unit`: `s`, `ms`, `us` or `ns`, for times that are plain numbers. `interval`: ns between two arrivals.
    * `ties`: `"instant"` puts graphs of equal time into one instant, `"arrival"` gives each its own.
    * `lateness`: by how many ns an event may come after a later one; it is put in order. `late`: what to do with one
      that comes later than that: `"error"`, or `"drop"` it and count.
    * `malformed`: `"error"`, or `"drop"` a line of N-Triples or N-Quads that cannot be read, and count.
    * `format`: overrides the file's extension (`nt`, `nq`, `trig`, `ttl`).
    * `lookahead`: how many graphs may wait for a time that stands further on in the default graph, and how many times
      may wait for their graph.
    * `merge`: the files of one stream are merged by time up to so many; more are read one after another.
    """

    event_by: EventBy | None = None
    time: str | None = None
    time_unit: str = "s"
    interval: int = 1_000_000
    ties: Literal["instant", "arrival"] = "instant"
    lateness: int = 0
    late: Literal["error", "drop"] = "error"
    malformed: Literal["error", "drop"] = "error"
    format: str | None = None
    lookahead: int = 250_000
    merge: int = 64

    @property
    def by_graph(self) -> bool:
        """Whether events are named graphs, of which some may be empty."""
        return self.event_by is not None and self.event_by.kind == "graph"

    @staticmethod
    def parse(
        *,
        event_by: str | None = None,
        time: str | None = None,
        time_from: str | None = None,
        time_unit: str = "s",
        interval: str = "1ms",
        ties: str = "instant",
        lateness: str = "0s",
        late: str = "error",
        malformed: str = "error",
        format: str | None = None,
    ) -> StreamOptions:
        """Options from the words of the command line. `time` is a predicate's IRI, bare or in angle brackets.

        OptionError names the option that cannot be understood.
        """
        return StreamOptions(
            event_by=None if event_by is None else EventBy.parse(event_by),
            time=_time(time, time_from),
            time_unit=_one_of("--time-unit", time_unit, "s", "ms", "us", "ns"),
            interval=_duration("--interval", interval),
            ties=_one_of("--ties", ties, "instant", "arrival"),  # type: ignore[arg-type]
            lateness=_duration("--lateness", lateness),
            late=_one_of("--late", late, "error", "drop"),  # type: ignore[arg-type]
            malformed=_one_of("--malformed", malformed, "error", "drop"),  # type: ignore[arg-type]
            format=format,
        )


def _time(predicate: str | None, time_from: str | None) -> str | None:
    if time_from is not None:
        if time_from != ARRIVAL:
            raise OptionError(f"--time-from {time_from}: no such clock", "use --time-from arrival, or --time PREDICATE")
        if predicate is not None:
            raise OptionError("--time and --time-from arrival contradict each other", "give one of them")
        return ARRIVAL
    if predicate is None:
        return None
    iri = predicate.strip()
    if iri.startswith("<") and iri.endswith(">"):
        iri = iri[1:-1]
    if ":" not in iri or any(c in iri for c in '<>"{}|^`\\ \t\n'):
        raise OptionError(
            f"--time {predicate}: not an IRI", "write the predicate in full: --time http://example.org/at"
        )
    return iri


def _one_of(option: str, value: str, *allowed: str) -> str:
    if value not in allowed:
        raise OptionError(f"{option} {value}: not one of {', '.join(allowed)}")
    return value


def _duration(option: str, text: str) -> int:
    try:
        length = parse_duration(str(text))
    except (SpaseqError, ValueError) as error:
        raise OptionError(f"{option} {text}: not a duration", "write for example 5s, 100ms or 2 minutes") from error
    if length < 0:
        raise OptionError(f"{option} {text}: must not be negative")
    return length
