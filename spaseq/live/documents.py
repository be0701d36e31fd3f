"""The graphs of messages: each payload is a document of RDF, and becomes a graph event."""

from __future__ import annotations

import time as clock
from typing import Any

import pyoxigraph

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events.time import parse_time
from spaseq.live.payloads import Decode
from spaseq.rdf import GraphEvent

_FORMATS = {
    "turtle": pyoxigraph.RdfFormat.TURTLE,
    "nquads": pyoxigraph.RdfFormat.N_QUADS,
    "ntriples": pyoxigraph.RdfFormat.N_TRIPLES,
    "trig": pyoxigraph.RdfFormat.TRIG,
    "jsonld": pyoxigraph.RdfFormat.JSON_LD,
    "rdfxml": pyoxigraph.RdfFormat.RDF_XML,
}


def graphs(stream: str, *, time: str | None = None, time_unit: str = "s", format: str = "turtle") -> Decode:
    """A decoder: the graph event of a payload, of the stream with the IRI `stream`.

    `time` is the IRI of the predicate whose object is the time of the event, a number in `time_unit` or an
    xsd:dateTime. Without it the event has the time at which it is decoded, another one each time that it is delivered.
    `format`: turtle, ntriples, nquads, trig, jsonld or rdfxml. If there is a named graph, its triples are the event's,
    and those of the default graph are about it. A payload with several named graphs, or without its time, is an
    `EventError`; blank nodes get new labels.
    """
    if format not in _FORMATS:
        raise OptionError(f"format {format!r} is none of RDF", f"one of {', '.join(_FORMATS)}")

    def decode(payload: bytes) -> list[Any]:
        try:
            quads = list(pyoxigraph.parse(payload, format=_FORMATS[format], rename_blank_nodes=True))
        except (SyntaxError, ValueError) as error:
            raise EventError(f"the payload is no {format}: {error}") from None
        default = pyoxigraph.DefaultGraph()
        named = [quad for quad in quads if quad.graph_name != default]
        if len({quad.graph_name for quad in named}) > 1:
            raise EventError("the payload has several named graphs", hint="a message is one event, so one graph")
        moment = clock.time_ns() if time is None else _time_of(quads, time, time_unit)
        name = named[0].graph_name if named else None
        return [GraphEvent(stream, moment, [quad.triple for quad in named or quads], name)]

    return decode


def _time_of(quads: list[Any], predicate: str, unit: str) -> int:
    for quad in quads:
        if quad.predicate.value == predicate and isinstance(quad.object, pyoxigraph.Literal):
            return parse_time(quad.object.value, unit)
    raise EventError(f"the payload has no time: no literal behind <{predicate}>")
