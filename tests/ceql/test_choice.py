"""The choice of an evaluator on CEQL queries: as settings ask ("auto"), by default, and what `explain` says of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import ceql
from ceql.runtime.run import Run
from spaseq.core.engine import Settings
from spaseq.core.engine.choice import auto
from spaseq.core.engine.choice.auto import AutoEvaluator
from spaseq.core.engine.lazy import LazyEvaluator
from spaseq.core.errors import BudgetExceeded, EventError, OptionError
from spaseq.core.events import EventFeed, EventOptions
from tests.support.changing import changing
from tests.support.sizes import some


@pytest.mark.parametrize(("formula", "chosen"), [
    ("(A AS a ; B AS b) FILTER b.v > a.v", "compact"),
    ("(A AS a ; B AS b ; E) FILTER b.v > a.v", "compact"),
    ("(A AS a ; B AS b ; E AS e) FILTER b.v > a.v AND e.v > b.v", "compact"),
    ("(A AS a ; B AS b ; E AS e) FILTER b.v > a.v AND e.v > a.v", "compact"),
    ("(A AS a ; B AS b ; E AS e) FILTER a.v != b.v AND b.v != e.v AND a.v != e.v", "chain"),
])  # fmt: skip
def test_the_choice_knows_pools_and_comes_early(formula: str, chosen: str) -> None:
    """What pools keep costs little, whatever passes. Three values that differ have none: the rare end comes first."""
    rng = random.Random(41)
    events = [{"type": "E" if i % 1000 == 999 else rng.choice("ABCD"), "v": rng.random()} for i in range(4500)]
    text = f"SELECT * WHERE {formula} WITHIN 400 EVENTS"
    query = ceql.compile(text, settings=Settings(evaluator="auto"))
    run = Run(query.compiled.lowered, query.program())
    feed = EventFeed(query.stream_names(()), EventOptions())
    found = sum(run.count(batch) for i in range(0, 4500, 500) for batch in feed.push(events[i : i + 500]))
    evaluator = run.evaluator
    assert isinstance(evaluator, AutoEvaluator) and evaluator.evaluator == chosen
    assert found == ceql.compile(text).run(events).count()


def test_explain_says_if_an_evaluator_is_chosen() -> None:
    for select, condition, chosen in (
        ("*", "c.v > a.v + b.v", True), ("*", "c.v > a.v", False), ("NEXT *", "c.v > a.v", False),
        ("*", "c.v > b.v", False),
    ):  # fmt: skip
        text = f"SELECT {select} WHERE (A AS a ; B AS b ; C AS c) FILTER b.v > a.v AND {condition} WITHIN 99 EVENTS"
        assert ("a lazy chain or tree takes over" in ceql.compile(text).explain()) == chosen, text


SUM = "SELECT * WHERE (A AS a ; B AS b ; C AS c) FILTER a.v + b.v + c.v < 9 WITHIN 400 EVENTS"


def drawn(seed: int, count: int, rare: float = 0.01) -> list[dict[str, Any]]:
    """Events of four types, of which C is `rare`."""
    rng = random.Random(seed)
    return [{"type": "C" if rng.random() < rare else rng.choice("ABD"), "v": rng.randrange(20)} for _ in range(count)]


def session_of(text: str, **settings: Any) -> Any:
    return ceql.compile(text, settings=Settings(**settings)).open()


def in_charge(session: Any) -> str:
    evaluator = session._run.evaluator
    return evaluator.evaluator if isinstance(evaluator, AutoEvaluator) else "only compact"


def by_the_compact_structure(text: str, events: list[dict[str, Any]]) -> list[tuple[int, ...]]:
    query = ceql.compile(text, settings=Settings(evaluator="compact"))
    return sorted(match.positions for match in query.run(events))


@pytest.mark.parametrize(("text", "expected"), [
    (SUM, "chain"),
    (SUM.replace("a.v + b.v + c.v < 9", "a.v < b.v AND b.v < c.v"), "only compact"),
    (SUM.replace("a.v + b.v + c.v < 9", "a.v = b.v AND b.v = c.v"), "only compact"),
    (SUM.replace("*", "NEXT *"), "only compact"),
    (SUM + " CONSUME BY ANY", "only compact"),
    (SUM.replace("400", "16"), "only compact"),
    (SUM.replace("*", "COUNT(*)") + " GROUP BY EVENT", "only compact"),
])  # fmt: skip
def test_the_default_chooses_if_events_are_compared_with_all_runs(text: str, expected: str) -> None:
    session, events = session_of(text), drawn(1, 2000)
    found = [match for at in range(0, 2000, 500) for match in session.push(events[at : at + 500])] + session.close()
    assert in_charge(session) == expected
    if expected == "chain":
        assert sorted(match.positions for match in found) == by_the_compact_structure(text, events) != []


def test_the_progress_is_known_as_long_as_the_compact_structure_is_in_charge() -> None:
    session = session_of(SUM)
    session.push([{"type": "A", "v": 1}, {"type": "B", "v": 1}])
    progress = session._run.progress()
    assert isinstance(session._run.evaluator, AutoEvaluator) and progress is not None and progress.next is not None


def test_single_events_are_for_the_compact_structure() -> None:
    events = drawn(2, 1500)
    session = session_of(SUM)
    found = list(session.push(events[:1000]))
    assert in_charge(session) == "chain"
    for event in events[1000:1100]:
        found += session.push(event)
    assert in_charge(session) == "compact"
    session = ceql.compile(SUM).open(session.snapshot())
    found += [*session.push(events[1100:]), *session.close()]
    assert sorted(match.positions for match in found) == by_the_compact_structure(SUM, events)


def test_values_of_two_kinds_are_for_the_compact_structure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which pairs are compared, and so refused, must not depend on the rates of a stream."""
    monkeypatch.setattr(auto, "CLEAR", 1.0)
    text = SUM.replace("a.v + b.v + c.v < 9", "(a.v < b.v) OR (c.v = a.v AND b.v > c.v)")
    events = drawn(3, 1000, 0.002)
    late = [{**event, "v": str(event["v"])} for event in drawn(4, 300)]
    session = session_of(text)
    found = list(session.push(events))
    assert in_charge(session) == "chain"
    with pytest.raises(EventError, match="combined with a"):
        session.push(late)
    assert in_charge(session) == "compact"
    silent = [{"type": "D", "v": 0} for _ in range(401)]
    session = session_of(text)
    found = [*session.push(events), *session.push(silent), *session.push(late), *session.close()]
    assert in_charge(session) == "compact"
    assert sorted(match.positions for match in found) == by_the_compact_structure(text, [*events, *silent, *late])


@pytest.mark.parametrize("error", [BudgetExceeded("live_runs", 1, 2), EventError("no")])
def test_what_a_lazy_evaluator_cannot_do_the_compact_structure_does(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: LazyEvaluator, batch: Any) -> Iterator[Any]:
        if batch.positions[0] >= 1000:
            raise error
        return stream(self, batch)

    stream = LazyEvaluator.stream
    monkeypatch.setattr(LazyEvaluator, "stream", refuse)
    events = drawn(5, 2000)
    session = session_of(SUM)
    found = [*session.push(events[:1000]), *session.push(events[1000:1500])]
    session.push(events[1500])
    assert in_charge(session) == "compact"
    found += [*session.push(events[1501:]), *session.close()]
    wanted = by_the_compact_structure(SUM, events)
    assert sorted(match.positions for match in found) == [match for match in wanted if match[-1] != 1500]
    assert ceql.compile(SUM).run(events).count() == len(wanted)


@pytest.mark.parametrize("seed", range(some(12)))
def test_any_change_of_the_evaluator_gives_the_same_matches(seed: int) -> None:
    rng = random.Random(seed)
    condition = rng.choice((
        "a.v + b.v + c.v < 20", "a.v + b.v = c.v", "a.v != b.v AND b.v != c.v AND c.v != a.v",
        "(a.v - b.v) * (b.v - c.v) > 30", "a.v + b.v < c.v OR a.v = c.v",
    ))  # fmt: skip
    text = f"SELECT * WHERE (A AS a ; B AS b ; D AS c) FILTER {condition} WITHIN {rng.randrange(17, 60)} EVENTS"
    text += rng.choice(("", " PARTITION BY [k]"))
    events = [{**event, "k": rng.randrange(3)} for event in drawn(seed, 400)]
    with changing():
        query, found = ceql.compile(text), []
        session, at, before = query.open(), 0, set()
        while at < len(events):
            if rng.random() < 0.1:
                found += session.push(events[at])
                at += 1
            else:
                end = at + rng.randrange(1, 40)
                found += session.push(events[at:end])
                at = end
            before.add(in_charge(session))
            if rng.random() < 0.1:
                session = query.open(session.snapshot())
        found += session.close()
    assert before >= {"compact"} and len(before) > 1
    assert sorted(match.positions for match in found) == by_the_compact_structure(text, events)


def test_a_snapshot_belongs_to_the_settings_it_was_taken_under() -> None:
    session = session_of(SUM)
    session.push(drawn(6, 1000))
    assert in_charge(session) == "chain"
    for evaluator in ("compact", "auto", "tree"):
        with pytest.raises(OptionError, match="evaluator"):
            ceql.compile(SUM, settings=Settings(evaluator=evaluator)).open(session.snapshot())
