"""Parts of one's own for the engine, with types of their own: type checkers must find that they fit the protocols."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ceql
from spaseq.core.automata import rma
from spaseq.core.engine import Program, compile_program
from spaseq.core.pattern import Pattern


@dataclass(frozen=True)
class Parity:
    """A relation on one event."""

    attribute: str

    def __call__(self, event: Mapping[str, Any]) -> bool:
        return bool(event[self.attribute] % 2 == 0)

    def show(self, *names: str) -> str:
        return f"even({names[0]}.{self.attribute})"

    def reads(self, place: int) -> tuple[str, ...] | None:
        return (self.attribute,)

    @property
    def excludes(self) -> Hashable | None:
        return None


@dataclass(frozen=True)
class Near:
    """A guard."""

    distance: float


class Prices:
    """A batch."""

    def __init__(self, prices: list[float]) -> None:
        self.prices = prices


class Last:
    """Registers whose row is the last price."""

    empty: float = -1.0

    def __init__(self) -> None:
        self.prices: list[float] = []

    def load(self, batch: Prices) -> None:
        self.prices = batch.prices

    def take(self, row: float, guard: Near, variables: frozenset[str], event: int) -> float | None:
        price = self.prices[event]
        return price if row < 0 or abs(price - row) <= guard.distance else None

    def leave(self, row: float, guard: Near) -> float:
        return row

    def again(self, row: float, action: str) -> float:
        return row


def relation() -> rma.Formula:
    return rma.Test(Parity("price"), ("x",))


def program(pattern: Pattern) -> Program:
    return compile_program(pattern, registers=Last())


def on_spark(frame: Any, events: Sequence[Mapping[str, Any]]) -> Any:
    import spaseq.spark

    query = ceql.compile("SELECT * WHERE A ; B")
    return spaseq.spark.match(query)(frame), query.run(events)
