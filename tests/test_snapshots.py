"""Snapshots: refused with one error unless they are what they should be, whole, and the same on the other side."""

from __future__ import annotations

import hashlib
import os
import pickle
import random
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import Literal, URIRef

import ceql
import spaseq
from spaseq.core.engine import Settings, Window
from spaseq.core.engine.program.window import Lows
from spaseq.core.errors import InternalError, OptionError, SpaseqError
from spaseq.core.events.batch import INSTANTS, Instant
from spaseq.core.snapshot import Unwritable, decode, encode, seal, unseal
from spaseq.language.results.step_values import StepValues
from spaseq.rdf import TERMS, GraphEvent
from tests.support.sizes import some

INT = URIRef("http://www.w3.org/2001/XMLSchema#integer")
HEAD = 8 + 16
CHECK = 32


def resealed(data: bytes) -> bytes:
    """`data` with the checksum that it should have: what somebody who makes up snapshots would do."""
    return data[:-CHECK] + hashlib.blake2b(data[:-CHECK], digest_size=CHECK).digest()


def contents_of(data: bytes) -> tuple[int, int]:
    """Where the contents begin and end."""
    front, body = struct.unpack("<IQ", data[12:HEAD])
    return HEAD + front, HEAD + front + body


# -- evaluations of every kind


@dataclass(frozen=True)
class Kept:
    """An evaluation to be broken off: `open` begins it or goes on from a snapshot, `parts` are pushed."""

    name: str
    open: Callable[..., Any]
    parts: tuple[Any, ...]

    def found(self, session: Any, since: int) -> list[Any]:
        """What the parts from `since` on complete, in one order."""
        matches = [match for part in self.parts[since:] for match in session.push(part)]
        return sorted(map(shown, [*matches, *session.close()]), key=repr)


def shown(match: Any) -> Any:
    if isinstance(match, dict):  # a partial match that timed out
        return sorted(match.items())
    if isinstance(match, int):  # an alert
        return match
    if isinstance(match, tuple):  # of a network
        return match[0], shown(match[1])
    if isinstance(match, ceql.Match):
        bindings = sorted((match.bindings or {}).items())
        events = [sorted(e.items()) for e in match.events]
        return match.start, match.end, tuple(match.positions), bindings, events, list(match.row.items())
    return match.start, match.end, match.positions, sorted(match.bindings.items()), match.times, len(match.events)


def trades(seed: int, count: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [{"type": rng.choice("ABCD"), "v": rng.randrange(6), "n": rng.choice(("x", "y", "z")), "time": i}
            for i in range(count)]  # fmt: skip


def ceql_kept(name: str, text: str, *, settings: Settings | None = None, single: bool = False, **words: Any) -> Kept:
    query = cache(lambda: ceql.compile(text) if settings is None else ceql.compile(text, settings=settings))
    events = trades(7, 90)
    cut = [events[at : at + 15] for at in range(0, 90, 15)]
    parts = tuple(event for part in cut for event in part) if single else tuple(cut)
    return Kept(name, lambda state=None: query().open(state) if state is not None else query().open(**words), parts)


def made_kept(name: str, make: Callable[[], Any], **words: Any) -> Kept:
    query = cache(make)
    events = trades(7, 90)
    parts = tuple(events[at : at + 15] for at in range(0, 90, 15))
    return Kept(name, lambda state=None: query().open(state) if state is not None else query().open(**words), parts)


def timed_out_kept(name: str, text: str, **words: Any) -> Kept:
    return made_kept(name, lambda: ceql.compile(text).timed_out(), **words)


def alerts_kept(name: str, text: str, **rule: Any) -> Kept:
    return made_kept(name, lambda: ceql.compile(text).alerts(**rule))


AUTO = Settings(evaluator="auto")
SEQUENCE = "SELECT * WHERE A AS a ; B AS b ; C AS c WITHIN 12 EVENTS"
GUARDED = "SELECT * WHERE (A AS a ; B AS b ; C AS c) FILTER a.v < c.v AND a.n = b.n WITHIN 12 SECONDS"
AGAIN = "SELECT * WHERE (A AS a ; B+ AS b ; C AS c) FILTER c.time > a.time + a.v AND c.time < a.time + 20"
"""With a value for each run, so that events move many at once."""
SUMS = "SELECT COUNT(*) AS k, SUM(a.v - 2) AS s, AVG(b.v / 2) AS m, MIN(b.v) AS lo"
CEQL = [
    ceql_kept("deterministic", SEQUENCE),
    ceql_kept("one by one", SEQUENCE, single=True),
    ceql_kept("all windows", "SELECT a, c WHERE A AS a ; B+ AS b ; C AS c"),
    ceql_kept("iteration", "SELECT * WHERE A AS a ; B+ AS b ; C AS c WITHIN 9 EVENTS"),
    ceql_kept("valuations", "SELECT * WHERE A AS a ; (B OR C) AS b WITHIN 9 EVENTS", valuations=True),
    ceql_kept("next", "SELECT NEXT * WHERE A AS a ; B+ AS b ; C AS c WITHIN 20 EVENTS"),
    ceql_kept("last", "SELECT LAST * WHERE A AS a ; B+ AS b ; C AS c WITHIN 20 EVENTS"),
    ceql_kept("maximal", "SELECT MAX * WHERE A AS a ; B+ AS b ; C AS c WITHIN 12 EVENTS"),
    ceql_kept("limit", f"{SEQUENCE} LIMIT 2"),
    ceql_kept("consumption", "SELECT * WHERE A AS a ; B AS b ; C AS c WITHIN 12 EVENTS CONSUME BY ANY"),
    ceql_kept("partitions", "SELECT * WHERE A AS a ; B AS b ; C AS c PARTITION BY [n] WITHIN 6 EVENTS"),
    ceql_kept("partitions over time", "SELECT * WHERE A AS a ; B AS b PARTITION BY [n], [v] WITHIN 60 SECONDS"),
    ceql_kept("registers", GUARDED),
    ceql_kept("registers, one by one", GUARDED, single=True),
    ceql_kept("questions", "SELECT * WHERE (A AS a ; B AS b ; C AS c) FILTER a.v + b.v > c.v WITHIN 12 EVENTS"),
    ceql_kept("texts", "SELECT * WHERE (A AS a ; B AS b) FILTER a.n != b.n AND a.v <= b.v WITHIN 12 EVENTS"),
    ceql_kept("row sets", "SELECT * WHERE (A AS a ; B+ AS b ; C AS c) FILTER AVG(b.v) < c.v WITHIN 10 EVENTS"),
    ceql_kept("compared again", f"{AGAIN} WITHIN 40 EVENTS"),
    ceql_kept("ordered texts", "SELECT * WHERE (A AS a ; B AS b) FILTER a.n < b.n WITHIN 12 EVENTS"),
    ceql_kept("fallback", SEQUENCE, settings=Settings(automaton_bytes=0)),
    ceql_kept("absence at the end", "SELECT * WHERE A AS a ; B AS b ; NOT D WITHIN 8 EVENTS"),
    ceql_kept("chain", GUARDED, settings=Settings(evaluator="chain")),
    ceql_kept("tree", GUARDED, settings=Settings(evaluator="tree")),
    ceql_kept("auto", GUARDED, settings=AUTO),
    ceql_kept("auto, partitions", "SELECT * WHERE A AS a ; B AS b ; C AS c PARTITION BY [n] WITHIN 9 EVENTS",
              settings=AUTO),
    ceql_kept("lateness", SEQUENCE, lateness="3s"),
    ceql_kept("sums", f"{SUMS} WHERE A AS a ; B+ AS b ; C AS c PARTITION BY [n] WITHIN 30 SECONDS GROUP BY EVENT"),
    ceql_kept("sums, nodes", f"{SUMS} WHERE (A AS a ; B+ AS b) FILTER a.v < b.v WITHIN 9 EVENTS GROUP BY EVENT"),
    ceql_kept("sums, listed", f"{SUMS} WHERE NOT D ; A AS a ; B+ AS b WITHIN 9 EVENTS GROUP BY EVENT"),
    ceql_kept("groups", f"{SUMS} WHERE A AS a ; B+ AS b ; C AS c PARTITION BY [n] GROUP BY KEY, 50 SECONDS"),
    ceql_kept("groups, nodes", f"{SUMS} WHERE (A AS a ; B AS b) FILTER a.v < b.v PARTITION BY [n] GROUP BY KEY"),
    alerts_kept("alerts", SEQUENCE),
    alerts_kept("alerts, registers", GUARDED),
    alerts_kept("alerts, compared again", f"{AGAIN} WITHIN 40 EVENTS"),
    alerts_kept("alerts, row sets", "SELECT * WHERE (A AS a ; B+ AS b ; C AS c) FILTER AVG(b.v) < c.v WITHIN 9 EVENTS"),
    alerts_kept("alerts, absence", "SELECT * WHERE A AS a ; B AS b ; NOT D WITHIN 8 EVENTS"),
    alerts_kept("alerts, thresholds", "SELECT * WHERE A ; B PARTITION BY [n] WITHIN 9 SECONDS CONSUME BY PARTITION",
                at_least=2, timeframe="9s", realert="5s"),
    made_kept("network", lambda: ceql.Network(
        {"ab": "SELECT b.v AS v, n WHERE A AS a ; B AS b PARTITION BY [n] WITHIN 9 SECONDS",
         "abc": "SELECT * WHERE ab AS x ; C AS c FILTER x.v < c.v WITHIN 9 SECONDS"})),
    timed_out_kept("timed out", SEQUENCE),
    timed_out_kept("timed out, registers", GUARDED.replace("*", "a.v AS v, b.v AS w"), lateness="3s"),
    timed_out_kept("timed out, partitions", "SELECT * WHERE A AS a ; B AS b PARTITION BY [n] WITHIN 9 SECONDS"),
]  # fmt: skip

S1, S2 = "http://example.org/S1", "http://example.org/S2"


def graph(seed: int, at: int, stream: str, mappings: int) -> GraphEvent:
    rng = random.Random(seed * 1000 + at)
    triples = []
    for _ in range(mappings):
        node = URIRef(f"http://example.org/{rng.choice('rst')}")
        triples.append((node, URIRef(f"http://example.org/{rng.choice('vwu')}"), Literal(rng.randrange(6))))
        triples.append((node, URIRef("http://example.org/name"), Literal(rng.choice("pq"), lang="en")))
    return GraphEvent(stream, at * 10**9, tuple(dict.fromkeys(triples)), None, "a", at)


def spaseq_kept(name: str, sequence: str, within: str, *, head: str = "SELECT *", tail: str = "", mappings: int = 2,
                **words: Any) -> Kept:  # fmt: skip
    text = f"""PREFIX : <http://example.org/>
        {head} {within} FROM STREAM S1 <{S1}> FROM STREAM S2 <{S2}> WHERE {{
            SEQ ({sequence})
            DEFINE GPM A ON S1 {{ ?x :v ?a }}
            DEFINE GPM B ON S1 {{ ?x :w ?b }}
            DEFINE GPM C ON S2 {{ ?x :u ?c . ?x :name ?n }}
            DEFINE GPM D ON S2 {{ ?x :u ?d . FILTER (?d > ?a) }}
        }} {tail}"""
    used = [line for line in text.split("\n") if not any(f"GPM {n} " in line and n not in sequence for n in "ABCD")]
    query = cache(lambda: spaseq.compile("\n".join(used)))
    events = [graph(3, at, S1 if at % 3 else S2, mappings) for at in range(48)]
    parts = tuple(events[at : at + 8] for at in range(0, 48, 8))
    return Kept(name, lambda state=None: query().open(state, **words), parts)


SLIDING, TUMBLING = "WITHIN 12 SECONDS SLIDING", "WITHIN 16 SECONDS"
SPASEQ = [
    spaseq_kept("codes", "A; B; C", SLIDING),
    spaseq_kept("one mapping", "A; B; C", "WITHIN 30 SECONDS SLIDING", mappings=1),
    spaseq_kept("tumbling", "A; B; C", TUMBLING),
    spaseq_kept("sets of rows", "A; B; C", SLIDING, mappings=3),
    spaseq_kept("no window", "A; C", ""),
    spaseq_kept("skip till any", "A: C", SLIDING),
    spaseq_kept("iteration", "A; B+; C", SLIDING),
    spaseq_kept("conditions between", "A; D", SLIDING),
    spaseq_kept("absence between", "A; B!; C", SLIDING),
    spaseq_kept("absence at the start", "B!; A; C", "WITHIN 9 SECONDS"),
    spaseq_kept("absence at the end", "A; C; B!", "WITHIN 9 SECONDS SLIDING"),
    spaseq_kept("partitions", "A; B; C", "WITHIN 12 SECONDS SLIDING PARTITION BY (?x)"),
    spaseq_kept("lists of rounds", "A+; C", TUMBLING, head="SELECT ?x (?a+ AS ?as)"),
    spaseq_kept("groups", "A; C", TUMBLING, head="SELECT ?x (COUNT(*) AS ?m)", tail="GROUP BY ?x"),
    spaseq_kept("counts", "A: C: C", TUMBLING, head="SELECT (COUNT(*) AS ?m)", tail=""),
    spaseq_kept("orders", "A; C", TUMBLING, head="SELECT DISTINCT ?x ?a", tail="ORDER BY ?a LIMIT 3"),
    spaseq_kept("no events", "A; C", SLIDING, keep_events=False),
]
BY_NAME = {"ceql": CEQL, "spaseq": SPASEQ}
EVERY = [pytest.param(kept, id=f"{language}: {kept.name}") for language, all_ in BY_NAME.items() for kept in all_]


@pytest.mark.parametrize("kept", EVERY)
def test_every_kind_of_evaluation_goes_on_where_its_snapshot_was_taken(kept: Kept) -> None:
    whole = kept.found(kept.open(), 0)
    assert whole
    for at in (0, 1, len(kept.parts) // 2, len(kept.parts) - 1):
        session = kept.open()
        found: list[str] = []
        for part in kept.parts[:at]:
            found += map(shown, session.push(part))
        first = session.snapshot()
        again = kept.open(first)
        assert again.snapshot() == kept.open(first).snapshot()
        assert sorted(found + kept.found(again, at), key=repr) == whole


def broken(kept: Kept) -> tuple[bytes, list[Any]]:
    """A snapshot amid the stream, and what comes of it."""
    session, at = kept.open(), len(kept.parts) // 2
    for part in kept.parts[:at]:
        session.push(part)
    state = session.snapshot()
    return state, kept.found(kept.open(state), at)


# -- refused


def refused(open: Callable[[Any], Any], state: Any) -> str:
    with pytest.raises(OptionError) as caught:
        open(state)
    return caught.value.problem


@pytest.mark.parametrize("kept", [CEQL[0], SPASEQ[0]], ids=["ceql", "spaseq"])
def test_what_is_no_snapshot_gets_one_error(kept: Kept) -> None:
    state, _ = broken(kept)
    for junk in (b"junk", bytes(500), pickle.dumps({"what": "ceql snapshot 2"}), pickle.dumps(1), "text", 5, [state]):
        assert "snapshot" in refused(kept.open, junk)
    assert "damaged" in refused(kept.open, state[:-1])
    assert "damaged" in refused(kept.open, state[:20])
    assert "damaged" in refused(kept.open, state + b"\0")
    assert "checksum" in refused(kept.open, state[:100] + bytes([state[100] ^ 4]) + state[101:])
    assert "format 14" in refused(kept.open, state[:8] + b"\x0e" + state[9:])


def test_a_snapshot_runs_no_code(tmp_path: Any) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "made"),)

    for kept in (CEQL[0], SPASEQ[0]):
        refused(kept.open, pickle.dumps(Evil()))
        state, _ = broken(kept)
        begin, _ = contents_of(state)
        for body in (pickle.dumps(Evil()), pickle.dumps({"recogniser": Evil()}, 0)):
            made = state[:16] + struct.pack("<Q", len(body)) + state[HEAD:begin] + body + bytes(CHECK)
            assert "damaged" in refused(kept.open, resealed(made))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (spaseq_kept("", "A; C; B", SLIDING), "query"),
        (spaseq_kept("", "A; B; C", "WITHIN 13 SECONDS SLIDING"), "query"),
        (spaseq_kept("", "A; B; C", "WITHIN 12 SECONDS SLIDING PARTITION BY (?x)"), "query"),
        (spaseq_kept("", "A; B; C", SLIDING, head="SELECT ?a"), "query"),
        (spaseq_kept("", "A; B; C", SLIDING, ties="arrival"), "ties"),
        (spaseq_kept("", "A; B; C", SLIDING, keep_events=False), "settings"),
        (CEQL[0], "language"),
    ],
)  # fmt: skip
def test_a_spaseq_snapshot_of_something_else_is_refused_with_what_differs(other: Kept, what: str) -> None:
    state, _ = broken(SPASEQ[0])
    assert f"other {what}" in refused(other.open, state)


def test_a_ceql_snapshot_of_something_else_is_refused_with_what_differs() -> None:
    state, _ = broken(CEQL[0])
    problem = refused(CEQL[3].open, state)
    assert "another query" in problem and "B AS b" in problem and "B+ AS b" in problem
    assert "other settings" in refused(ceql_kept("", SEQUENCE, settings=AUTO).open, state)
    assert "another language" in refused(SPASEQ[0].open, state)


def test_a_snapshot_under_another_schema_is_refused() -> None:
    text = f"""PREFIX : <http://example.org/> SELECT * FROM STREAM S1 <{S1}> WHERE {{
        SEQ (A; B) DEFINE GPM A ON S1 {{ ?x a :Sensor }} DEFINE GPM B ON S1 {{ ?x :v ?y }} }}"""
    from rdflib import RDFS, Graph

    schemas = [Graph(), Graph()]
    for schema, below in zip(schemas, "TU", strict=True):
        schema.add((URIRef(f"http://example.org/{below}"), RDFS.subClassOf, URIRef("http://example.org/Sensor")))
    query = spaseq.compile(text)

    def opened(state: Any, number: int | None) -> Any:
        if number is None:
            return query.open(state)
        return query.open(state, kb={"http://example.org/kb": schemas[number]}, entailment="rdfs")

    state = opened(None, 0).snapshot()
    opened(state, 0)
    assert "another schema" in refused(lambda s: opened(s, 1), state)
    assert "another schema" in refused(lambda s: opened(s, None), state)


def test_budgets_may_change_between_taking_and_opening() -> None:
    state, expected = broken(CEQL[0])
    more = ceql_kept("", SEQUENCE, settings=Settings(live_runs=17, partitions=3))
    assert more.found(more.open(state), 3) == expected


def test_states_that_no_run_was_in_yet_do_not_damage_a_snapshot() -> None:
    """Events without a partition bring symbol classes, and with them states, that no cell was made for."""
    query = ceql.compile("SELECT * WHERE A ; ((B ; X) OR (C ; Y) OR (D ; Z) OR (E ; V) OR (F ; U)) PARTITION BY [n]")
    session = query.open()
    session.push([{"type": "A", "n": 1}])
    session.push([{"type": kind} for kind in "BCDEF"])
    again = query.open(session.snapshot())
    assert len(again.push([{"type": kind, "n": 1} for kind in "BX"])) == 1


# -- values


def test_values_come_back_as_they_were() -> None:
    value: dict[Any, Any] = {
        "none": None, "numbers": [0, -1, 2**62, -(2**63), 2**200, -(2**70)], "doubles": (0.0, -0.0, 1e300),
        "texts": ["", "a\nb", "\u00fc\U0001f600", "\ud800"], "bytes": [b"", b"\0"], "truths": [True, False],
        ("a", 1): {1, 2}, "frozen": frozenset({("a", 1), ("b", frozenset())}), "empty": [[], (), {}, set()],
        "rows": [{"a": i, "b": str(i)} for i in range(3)], "ragged": [{"a": 1}, {}, {"b": None}],
        "pairs": [(i, f"{i}") for i in range(3)], "instants": [Instant(5), 5, Instant(6)],
        "terms": [URIRef("x"), Literal("x"), Literal("x", lang="en"), Literal("x", lang="EN")],
        "numbers as written": [Literal("01", datatype=INT)],
    }  # fmt: skip
    kinds = (INSTANTS, TERMS)
    back = decode(encode(value, kinds), kinds)
    assert back == value and list(back) == list(value) and str(back["doubles"]) == str(value["doubles"])
    assert list(map(type, back["instants"])) == [Instant, int, Instant]
    assert [t.n3() for t in back["terms"]] == [t.n3() for t in value["terms"]]
    arrays: list[np.ndarray] = [np.arange(6).reshape(2, 3) - 2**40, np.zeros((0, 4), np.int32), np.array([True]),
              np.array(["2020"], "M8[ns]")]  # fmt: skip
    for array in arrays:
        found = decode(encode(array))
        assert found.dtype == array.dtype and found.shape == array.shape and (found == array).all()
    for unknown in (object(), print, Settings(), np.array([object()]), type("Text", (str,), {})("x")):
        with pytest.raises(Unwritable):
            encode([unknown])


def test_nested_and_huge_values_are_refused_before_memory_is_taken() -> None:
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(Unwritable):
        encode(deep)
    state, limit = encode([[1]] * 3), struct.pack("<q", 2**62)
    for at in range(len(state) - 8):
        try:
            decode(state[:at] + limit + state[at + 8 :])
        except (ValueError, TypeError):
            continue
    identity = {"language": "x", "query": "y"}
    assert unseal(seal(identity, [1, 2]), identity, (), list) == [1, 2]


# -- mutated


def mutated(state: bytes, rng: random.Random) -> bytes:
    """`state` with some bytes changed; half of the time with a checksum that fits, then changed in its contents."""
    begin, end = contents_of(state)
    forged = rng.random() < 0.5
    changed = bytearray(state)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = rng.randrange(begin, end) if forged else rng.randrange(len(changed))
        changed[at] = rng.choice((changed[at] ^ 1 << rng.randrange(8), rng.randrange(256), 0, 255))
    if not forged and rng.random() < 0.3:
        del changed[rng.randrange(len(changed)) :]
    return resealed(bytes(changed)) if forged else bytes(changed)


def check_mutations(language: str, count: int, seed: int) -> dict[str, int]:
    """Open and run mutated snapshots. `AssertionError` for one that goes wrong in another way than it may."""
    rng, said = random.Random(seed), {"refused": 0, "equal": 0, "forged": 0}
    taken = [(kept, *broken(kept)) for kept in BY_NAME[language]]
    for _ in range(count):
        kept, state, expected = rng.choice(taken)
        other = mutated(state, rng)
        try:
            session = kept.open(other)
        except OptionError:
            said["refused"] += 1
            continue
        try:
            found: Any = kept.found(session, len(kept.parts) // 2)
        except SpaseqError as error:
            found = error
        if found == expected:
            said["equal"] += 1
        else:  # somebody made up contents that could have been: other texts, other numbers
            assert other != state and other[-CHECK:] != state[-CHECK:], kept.name
            said["forged"] += 1
    return said


@pytest.mark.parametrize("language", ["ceql", "spaseq"])
def test_some_mutated_snapshots(language: str) -> None:
    said = check_mutations(language, some(150), 1)
    assert said["refused"] > some(100)


@pytest.mark.random
@pytest.mark.parametrize("language", ["ceql", "spaseq"])
def test_mutated_snapshots(language: str) -> None:
    said = check_mutations(language, 2000, 2)
    assert said["refused"] > 1200


# -- made up: contents that decode, with a part that is another


def made_up(state: bytes, kinds: tuple[Any, ...], rng: random.Random) -> bytes | None:
    """`state` with one part of its contents changed, and all sums right. None where the change cannot be written."""
    begin, end = contents_of(state)
    value = decode(state[begin:end], kinds)
    path = rng.choice(list(_paths(value)))
    path = path[: rng.randrange(len(path) + 1)] if rng.random() < 0.5 else path
    try:
        return with_contents(state, encode(_put(value, path, rng), kinds))
    except (Unwritable, TypeError):  # a key that is none
        return None


def with_contents(state: bytes, body: bytes) -> bytes:
    begin, end = contents_of(state)
    lengths = struct.pack("<IQ", begin - HEAD, len(body))
    return resealed(state[:12] + lengths + state[HEAD:begin] + body + state[end:])


def without_values(self: StepValues) -> Any:
    """`StepValues.snapshot` of no instant."""
    none = np.zeros(0, np.int64)
    return [(none, (none,) * len(names)) for names in self._names.values()], self.terms.snapshot()


@pytest.mark.parametrize("name", ["codes", "no window"])
def test_values_that_a_snapshot_leaves_out_are_an_error_of_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A match to come asks for them: an IndexError then."""
    (kept,) = (kept for kept in BY_NAME["spaseq"] if kept.name == name)
    session, half = kept.open(), len(kept.parts) // 2
    for part in kept.parts[:half]:
        session.push(part)
    with monkeypatch.context() as context:
        context.setattr(StepValues, "snapshot", without_values)
        state = session.snapshot()
    with pytest.raises(OptionError, match="the values of the instants of a match"):
        kept.found(kept.open(state), half)


@pytest.mark.parametrize("name", ["deterministic", "chain", "auto"])
def test_a_snapshot_whose_last_event_lies_behind_the_next_is_refused(name: str) -> None:
    """The next event was a bug then: positions ran backwards."""
    (kept,) = (kept for kept in CEQL if kept.name == name)
    state, _ = broken(kept)
    begin, end = contents_of(state)
    value = decode(state[begin:end], (INSTANTS,))
    engine = value["run"]["engine"]
    evaluation = engine.get("current", engine)
    evaluation["last"] = (10**6, evaluation["last"][1])
    with pytest.raises(OptionError, match="snapshot"):
        kept.open(with_contents(state, encode(value, (INSTANTS,))))


@pytest.mark.parametrize("name", ["absence at the start", "partitions"])
def test_a_snapshot_whose_last_instant_lies_behind_the_next_is_refused(name: str) -> None:
    (kept,) = (kept for kept in SPASEQ if kept.name == name)
    state, _ = broken(kept)
    begin, end = contents_of(state)
    value = decode(state[begin:end], (TERMS,))
    value["position"] = 0
    assert "damaged" in refused(kept.open, with_contents(state, encode(value, (TERMS,))))


def test_an_evaluation_that_aggregates_never_goes_on_set_by_set() -> None:
    """Its matches had no sums then: an AssertionError."""
    (kept,) = (kept for kept in CEQL if kept.name == "groups")
    state, _ = broken(kept)
    begin, end = contents_of(state)
    value = decode(state[begin:end], (INSTANTS,))
    value["run"]["engine"]["handed_over"] = True
    with pytest.raises(OptionError, match="damaged"):
        kept.open(with_contents(state, encode(value, (INSTANTS,))))


@pytest.mark.parametrize(("field", "value"), [(0, None), (1, 2**70), (2, ((None, None, None),)), (2, 5), (4, None)])
def test_an_event_that_is_none_is_damage(field: int, value: Any) -> None:
    """The error was about the arguments of a GraphEvent, which nobody had made."""
    (kept,) = (kept for kept in SPASEQ if kept.name == "partitions")
    state, _ = broken(kept)
    begin, end = contents_of(state)
    made = decode(state[begin:end], (TERMS,))
    events = made["recogniser"]["events"]
    events[0] = (*events[0][:field], value, *events[0][field + 1 :])
    assert "damaged" in refused(kept.open, with_contents(state, encode(made, (TERMS,))))


@pytest.mark.parametrize("name", ["chain", "tree"])
@pytest.mark.parametrize("part", ["floors", "counts"])
def test_a_lazy_buffer_without_its_partitions_is_refused(name: str, part: str) -> None:
    """The next event was an IndexError then."""
    (kept,) = (kept for kept in CEQL if kept.name == name)
    state, _ = broken(kept)
    begin, end = contents_of(state)
    value = decode(state[begin:end], (INSTANTS,))
    space = value["run"]["engine"]["started"]["space"]
    space[part] = space[part][:0]
    with pytest.raises(OptionError, match="damaged"):
        kept.open(with_contents(state, encode(value, (INSTANTS,))))


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    for key, part in parts:
        yield from _paths(part, (*path, key))


def _put(value: Any, path: tuple[Any, ...], rng: random.Random) -> Any:
    if not path:
        return _other(value, rng)
    key, *rest = path
    if isinstance(value, dict):
        return {**value, key: _put(value[key], tuple(rest), rng)}
    parts = list(value)
    parts[key] = _put(parts[key], tuple(rest), rng)
    return type(value)(parts)


def _other(value: Any, rng: random.Random) -> Any:
    """A value that might stand for it, and often may not."""
    match value:
        case bool():
            return rng.choice((not value, None, 3))
        case int():
            return rng.choice((value + 1, value - 1, 0, -1, 2**40, -(2**62), None, "x", value + rng.randrange(-5, 6)))
        case str():
            return rng.choice(("", value + "x", None, 7))
        case float():
            return rng.choice((float("nan"), -value, None, 1))
        case np.ndarray():
            return _other_array(value, rng)
        case list() | tuple() if value:
            at = rng.randrange(len(value))
            parts = [*value[:at], *rng.choice(((), (value[at], value[at]), (value[0],))), *value[at + 1 :]]
            return type(value)(parts)
        case dict() if value:
            keys = list(value)
            one, other = rng.choice(keys), rng.choice(keys)
            changed = {**value, one: value[other], other: value[one]}
            return {k: v for k, v in changed.items() if k != one or rng.random() < 0.5}
        case _:
            return rng.choice((None, 0, -1, 1, "", [], ()))


def _other_array(array: np.ndarray, rng: random.Random) -> np.ndarray:
    if not array.size or rng.random() < 0.2:
        return array[:-1] if rng.random() < 0.5 else np.concatenate([array, array[-1:]])
    flat = array.copy().reshape(-1)
    at = rng.randrange(len(flat))
    if flat.dtype.kind == "i":
        limits = np.iinfo(flat.dtype)
        other = int(flat[at]) + rng.choice((1, -1, 5, -5))
        flat[at] = rng.choice((min(max(other, limits.min), limits.max), 0, -1, 100, limits.max))
    elif flat.dtype.kind == "b":
        flat[at] = not flat[at]
    return flat.reshape(array.shape)


def check_made_up(language: str, count: int, seed: int) -> Counter[str]:
    """Open and run snapshots that somebody made up: refused by name, or they are states like others."""
    rng, said = random.Random(seed), Counter[str]()
    taken = [(kept, *broken(kept)) for kept in BY_NAME[language]]
    for _ in range(count):
        kept, state, expected = rng.choice(taken)
        other = made_up(state, (INSTANTS,) if language == "ceql" else (TERMS,), rng)
        if other is None:
            continue
        try:
            found = kept.found(kept.open(other), len(kept.parts) // 2)
        except SpaseqError as error:
            assert not isinstance(error, InternalError), kept.name
            said["refused"] += 1
        else:
            said["equal" if found == expected else "another"] += 1
    return said


@pytest.mark.parametrize("language", ["ceql", "spaseq"])
def test_some_snapshots_that_are_made_up(language: str) -> None:
    assert check_made_up(language, some(150), 1)["refused"] > some(50)


@pytest.mark.parametrize("last", [2**63 - 1, -1])
def test_the_positions_of_a_window_have_one_behind_them(last: int) -> None:
    lows = Lows(Window("events", 9), partitioned=False)
    state = {"times": np.array([37]), "positions": np.array([last]), "recent": {}}
    with pytest.raises(OptionError, match="positions are out of range"):
        lows.restore(state)
    lows.restore({**state, "positions": np.array([2**63 - 2])})
    assert lows.positions.dtype == np.int64


@pytest.mark.random
@pytest.mark.parametrize("language", ["ceql", "spaseq"])
def test_snapshots_that_are_made_up(language: str) -> None:
    assert check_made_up(language, 2000, 2)["refused"] > 800


_EDGES = st.sampled_from([0, 1, -1, 1 << 8, 1 << 16, 1 << 32, (1 << 63) - 1, (1 << 63) - (1 << 32), -(1 << 63)])
_WHOLE = st.one_of(st.integers(), st.tuples(_EDGES, st.integers(-3, 3)).map(sum))
_PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), _WHOLE, st.floats(allow_nan=False), st.text(), st.binary()),
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.lists(_WHOLE), st.dictionaries(st.text(), inner)
    ),
)


@given(_PLAIN)
def test_plain_values_come_back(value: Any) -> None:
    """Numbers near the ends of int64 too: distances from the least of them stay inside."""
    found = decode(encode(value))
    assert found == value and repr(found) == repr(value)
