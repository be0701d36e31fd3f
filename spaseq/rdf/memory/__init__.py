"""RDF that a program has in memory: its graphs become events, one graph one event.

* `texts`: RDF as a text that a program has, a message say: its syntax, and its statements.
* `events`: Events of the graphs that a program gives: pushed to a session, or given to `run` in place of files.
* `batches`: The events of a stream in memory as batches, in order of time.
"""

from __future__ import annotations

from spaseq.rdf.memory.batches import given_batches
from spaseq.rdf.memory.events import REMEMBERED, GivenEvents, Time, check_given, given_time, is_whole

__all__ = ["REMEMBERED", "GivenEvents", "Time", "check_given", "given_batches", "given_time", "is_whole"]
