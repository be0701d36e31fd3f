"""The partial matches of a sequence that time out, by their definition, and random sequences to compare them on.

A partial match of step k is a match of the first k parts, with the conditions whose variables are all there. It timed
out if no event behind it, inside its window, ended its waiting. An event does that if the next part could begin with
it, or the NOT between forbids it; behind `:` any event does. Nothing of the engine is used, nor its parser.
Exponential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

Event = dict[str, Any]
Taken = tuple[tuple[int, ...], ...]
"""The positions that each part took."""
Row = tuple[str, int, int, dict[str, list[int]]]
"""The part waited for, the positions of the first and the last event, and the positions of each variable."""


@dataclass(frozen=True)
class Part:
    """`types` joined by OR, as one event, optional (`low` = 0) or repeated (`high` is None). `skip` joins it to the
    part before; `forbidden` is the type of the NOT between."""

    variable: str
    types: tuple[str, ...]
    skip: str = ";"
    forbidden: str | None = None
    low: int = 1
    high: int | None = 1
    rounds: str = ";"
    reluctant: str = ""

    @property
    def chooses(self) -> bool:
        """True if a run chooses between a round and the part behind."""
        return self.high is None and self.rounds == "->"

    @property
    def text(self) -> str:
        one = " OR ".join(self.types)
        one = one if len(self.types) == 1 else f"({one})"
        loop = "?" if self.low == 0 else "" if self.high == 1 else f"{self.rounds.removeprefix(';')}+{self.reluctant}"
        return f"{one}{loop} AS {self.variable}"


@dataclass(frozen=True)
class Below:
    """`left.x < right.x`, or `left[x < bound]` without `right`: of all events of both variables."""

    left: str
    right: str | None
    bound: int = 0

    @property
    def variables(self) -> frozenset[str]:
        return frozenset({self.left} if self.right is None else {self.left, self.right})

    @property
    def text(self) -> str:
        return f"{self.left}[x < {self.bound}]" if self.right is None else f"{self.left}.x < {self.right}.x"

    def holds(self, bound: dict[str, list[Event]]) -> bool:
        left = bound[self.left]
        if self.right is None:
            return all(event["x"] < self.bound for event in left)
        return all(one["x"] < two["x"] for one in left for two in bound[self.right])


@dataclass(frozen=True)
class Sequence:
    parts: tuple[Part, ...]
    conditions: tuple[Below, ...]
    window: int
    by_time: bool
    keyed: bool

    @property
    def text(self) -> str:
        formula = self.parts[0].text
        for part in self.parts[1:]:
            none = "" if part.forbidden is None else f" {part.skip} NOT {part.forbidden}"
            formula += f"{none} {part.skip} {part.text}"
        where = " AND ".join(condition.text for condition in self.conditions)
        by = "\nPARTITION BY [k]" if self.keyed else ""
        unit = "SECONDS" if self.by_time else "EVENTS"
        return f"SELECT *\nWHERE {formula}{' FILTER ' + where if where else ''}{by}\nWITHIN {self.window} {unit}"

    def rows(self, events: list[Event]) -> list[Row]:
        """The partial matches that time out over `events`, which the stream's end follows; in the order of rows, those
        of one start, step and end sorted by what they took."""
        keys = sorted({event["k"] for event in events}) if self.keyed else [None]
        found: list[tuple[int, int, int, Taken]] = []
        for key in keys:
            own = [p for p, event in enumerate(events) if key is None or event["k"] == key]
            for step, start, end, taken in self._partial([events[p] for p in own]):
                found.append((own[start], step, own[end], tuple(tuple(own[p] for p in ps) for ps in taken)))
        return [
            (self.parts[step].text, start, end,
             {part.variable: list(ps) for part, ps in zip(self.parts, taken, strict=False) if ps})
            for start, step, end, taken in sorted(set(found))
        ]  # fmt: skip

    def _partial(self, events: list[Event]) -> Iterator[tuple[int, int, int, Taken]]:
        for step in range(1, len(self.parts)):
            following = self.parts[step]
            if following.low == 0:
                continue  # the next step has them
            for taken in self._matches(events, step):
                places = [p for ps in taken for p in ps]
                start, end = min(places), max(places)
                behind = (p for p in range(end + 1, len(events)) if self._inside(events, start, p))
                if not any(self._ends(events, taken, following, p) for p in behind):
                    yield step, start, end, taken

    def _inside(self, events: list[Event], start: int, place: int) -> bool:
        length = events[place]["time"] - events[start]["time"] if self.by_time else place - start
        return bool(length <= self.window)

    def _ends(self, events: list[Event], taken: Taken, following: Part, place: int) -> bool:
        kind = events[place]["type"]
        return (
            following.skip == ":"
            or kind == following.forbidden
            or (kind in following.types and self._holds(events, (*taken, (place,))))
        )

    def _holds(self, events: list[Event], taken: Taken) -> bool:
        """True if the conditions on the first parts hold."""
        bound = {part.variable: [events[p] for p in ps] for part, ps in zip(self.parts, taken, strict=False)}
        return all(c.holds(bound) for c in self.conditions if c.variables <= bound.keys())

    def _matches(self, events: list[Event], count: int) -> Iterator[Taken]:
        """The matches of the first `count` parts inside the window."""
        for taken in self._ways(events, count):
            places = [p for ps in taken for p in ps]
            if places and self._inside(events, min(places), max(places)) and self._holds(events, taken):
                yield taken

    def _ways(self, events: list[Event], count: int) -> Iterator[Taken]:
        if count == 0:
            yield ()
            return
        part = self.parts[count - 1]
        if count > 1 and self.parts[count - 2].chooses:
            for before in self._ways(events, count - 2):
                for ps, end in self._runs(events, count - 2, before):
                    if end is not None:
                        yield (*before, ps, (end,))
            return
        for before in self._ways(events, count - 1):
            if not self._holds(events, before):
                continue
            if part.chooses:
                yield from ((*before, ps) for ps, end in self._runs(events, count - 1, before) if end is None)
                continue
            last = max((p for ps in before for p in ps), default=-1)
            for ps in self._rounds(events, part, before, last):
                between = events[last + 1 : ps[0]] if ps else []
                if not any(event["type"] == part.forbidden for event in between):
                    yield (*before, ps)

    def _rounds(self, events: list[Event], part: Part, before: Taken, last: int) -> Iterator[tuple[int, ...]]:
        if part.low == 0:
            yield ()

        def fits(place: int) -> bool:
            return events[place]["type"] in part.types and self._holds(events, (*before, (place,)))

        firsts: Iterator[int] = (p for p in range(last + 1, len(events)) if fits(p))
        if any(before) and part.skip == ":":
            firsts = (p for p in firsts if p == last + 1)
        elif any(before) and part.skip == "->":
            firsts = iter(list(firsts)[:1])
        for first in firsts:
            yield (first,)
            if part.high is None:
                yield from self._more(events, part, (first,), fits)

    def _runs(self, events: list[Event], number: int, before: Taken) -> Iterator[tuple[tuple[int, ...], int | None]]:
        """The runs through a repetition that chooses, as far as the window reaches: the rounds that each took, and the
        event of the part behind, None if none came."""
        part, following = self.parts[number], self.parts[number + 1]
        places = [p for ps in before for p in ps]
        last = max(places, default=-1)
        firsts = [p for p in range(last + 1, len(events)) if self._fits(events, part, before, (p,))]
        if places and part.skip == "->":
            firsts = firsts[:1]
        elif places and part.skip == ":":
            firsts = [p for p in firsts if p == last + 1]
        for first in firsts:
            if any(event["type"] == part.forbidden for event in events[last + 1 : first]):
                continue
            start, end = min([*places, first]), None
            taken: tuple[int, ...] = (first,)
            for place in range(first + 1, len(events)):
                if not self._inside(events, start, place):
                    break
                again = self._fits(events, part, before, (*taken, place))
                on = self._fits(events, following, (*before, taken), (place,))
                if on and (part.reluctant or not again):
                    end = place
                    break
                if again:
                    taken = (*taken, place)
            yield taken, end

    def _fits(self, events: list[Event], part: Part, before: Taken, taken: tuple[int, ...]) -> bool:
        return events[taken[-1]]["type"] in part.types and self._holds(events, (*before, taken))

    def _more(
        self, events: list[Event], part: Part, taken: tuple[int, ...], fits: Callable[[int], bool]
    ) -> Iterator[tuple[int, ...]]:
        for place in range(taken[-1] + 1, taken[-1] + 2 if part.rounds == ":" else len(events)):
            if place < len(events) and fits(place):
                yield (*taken, place)
                yield from self._more(events, part, (*taken, place), fits)


def draw(random: Random) -> Sequence:
    """A random sequence of two to four parts that has steps."""
    parts: list[Part] = []
    for number in range(random.choice((2, 2, 3, 3, 4))):
        types = tuple(sorted(random.sample("ABC", random.choice((1, 1, 1, 2)))))
        skip = random.choice((";", ";", "->", ":")) if parts else ";"
        after_optional = bool(parts) and parts[-1].low == 0
        if after_optional and skip == "->":
            skip = ";"
        forbidden = (
            random.choice("XA") if skip != ":" and parts and not after_optional and random.random() < 0.3 else None
        )
        low, high, rounds = 1, None if random.random() < 0.25 else 1, random.choice((";", ":"))
        if parts and forbidden is None and skip != "->" and random.random() < 0.15:
            low, high = 0, 1
        if skip == "->":
            high = 1
        arrow = bool(parts) and parts[-1].chooses
        if arrow:
            skip, forbidden, low, high = "->", None, 1, 1
            types = tuple(sorted(set("ABC") - set(parts[-1].types)))
        elif low == 1 and random.random() < 0.2 and (not parts or types != ("A", "B", "C")):
            high, rounds = None, "->"
        reluctant = "?" if rounds == "->" and random.random() < 0.5 else ""
        parts.append(Part(f"v{number}", types, skip, forbidden, low, high, rounds, reluctant))
    if parts[-1].chooses:
        parts.append(Part("end_", tuple(sorted(set("ABC") - set(parts[-1].types))), "->"))
    if all(part.low == 0 for part in parts[1:]):
        parts.append(Part("end_", ("C",)))
    conditions = []
    for _ in range(random.choice((0, 0, 1, 2))):
        left, right = random.sample([part.variable for part in parts], 2)
        conditions.append(Below(left, right if random.random() < 0.6 else None, random.randint(1, 4)))
    by_time = random.random() < 0.5
    return Sequence(tuple(parts), tuple(conditions), random.randint(1, 6), by_time, random.random() < 0.3)


def draw_events(random: Random) -> list[Event]:
    """A short stream; equal times are frequent."""
    now, events = 0, []
    for _ in range(random.randint(1, 9)):
        now += random.choice((0, 1, 1, 2, 4))
        events.append(
            {"type": random.choice("AABBCX"), "time": now, "x": random.randint(0, 4), "k": random.randint(0, 1)}
        )
    return events
