"""Predicates on one event, evaluated on whole batches; equal conditions make equal predicates, evaluated once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow.compute as pc

from ceql.expressions.vectorized import evaluate
from ceql.syntax import ast
from ceql.syntax.printer import print_expression
from ceql.syntax.walk import attributes_of
from spaseq.core.errors import EventError
from spaseq.core.events import EventBatch, TextColumn, text_array, truths_of


class _HasEvents(Protocol):
    @property
    def events(self) -> EventBatch: ...


@dataclass(frozen=True, slots=True)
class TypeIs:
    """The event is of this type."""

    name: str

    def excludes(self, other: object) -> bool:
        """True for another type: an event has one (`spaseq.core.pattern.Excluding`)."""
        return isinstance(other, TypeIs) and other.name != self.name

    def evaluate(self, batch: _HasEvents) -> np.ndarray:
        types = batch.events.types
        if types is None:
            return np.zeros(len(batch.events), bool)
        return types.where(truths_of(pc.equal(types.texts, text_array([self.name])[0])))

    def __str__(self) -> str:
        return f"type = {self.name}"


@dataclass(frozen=True, slots=True)
class StreamIs:
    """The event came on this stream."""

    name: str

    def excludes(self, other: object) -> bool:
        """True for another stream: an event comes on one."""
        return isinstance(other, StreamIs) and other.name != self.name

    def evaluate(self, batch: _HasEvents) -> np.ndarray:
        events = batch.events
        if events.stream_codes is None:
            return np.full(len(events), events.streams == (self.name,))
        if self.name not in events.streams:
            return np.zeros(len(events), bool)
        return np.asarray(events.stream_codes == events.streams.index(self.name))

    def __str__(self) -> str:
        return f"stream = {self.name}"


def _place_error(error: EventError, condition: ast.Condition, events: EventBatch) -> EventError:
    """`error` with the events' source and, if an attribute of the condition holds texts, the first of them: usually it
    is the value of the wrong kind."""
    for attribute in attributes_of(condition) if error.record is None else ():
        column = events.column(attribute.name)
        if isinstance(column, TextColumn) and (column.codes >= 0).any():
            row = int(np.argmax(column.codes >= 0))
            text = column.texts[int(column.codes[row])].as_py()
            return EventError(f"{error.problem}: {attribute.name} is {text!r} here", source=events.source,
                              record=int(events.positions[row]) + 1, counted="event", attribute=attribute.name,
                              hint=error.hint)  # fmt: skip
    return EventError(error.problem, source=events.source, record=error.record, counted="event",
                      attribute=error.attribute, hint=error.hint)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Satisfies:
    """The event satisfies a condition on its own attributes; `condition` names no variable."""

    condition: ast.Condition

    def evaluate(self, batch: _HasEvents) -> np.ndarray:
        try:
            return evaluate(self.condition, batch.events)
        except EventError as error:
            raise _place_error(error, self.condition, batch.events) from None

    def __str__(self) -> str:
        return print_expression(self.condition)
