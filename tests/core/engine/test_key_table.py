"""Numbers of keys in a table of arrays: as those of a dict, whatever keys come, and in whatever order."""

from __future__ import annotations

import random
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ceql
from ceql.runtime.batch import Partition
from spaseq.core import jit
from spaseq.core.engine import Partitions, Window
from spaseq.core.engine.kernels.keys import FACTOR
from spaseq.core.engine.program import partitions as numbering
from spaseq.core.engine.program.partitions import KeyTable
from spaseq.core.events import EventBatch
from spaseq.core.snapshot import decode, encode

LEAST, MOST = -(1 << 63), (1 << 63) - 1
ALL = np.zeros(0, np.bool_)


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "BUDGET", 0.0)


integers = st.one_of(st.integers(-3, 12), st.sampled_from([LEAST, MOST, 0, 1 << 32, -(1 << 32)]))
others = st.one_of(
    integers,
    integers.map(float),
    st.sampled_from([0.5, -0.0, 1e300, 1 << 64, "a", "1", ("truth", True), ("time", 1), (1,)]),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("integers"), st.lists(st.one_of(integers, st.none()), max_size=30)),
        st.tuples(st.just("integers"), st.lists(st.one_of(integers, st.none()), max_size=30)),
        st.tuples(st.sampled_from(["reach", "reach", "restore"]), st.integers(0, 6)),
        st.tuples(st.sampled_from(["of", "one"]), st.lists(others, min_size=1, max_size=3)),
    ),
    max_size=25,
)


def numbers_of(partitions: Partitions, keys: list[int | None]) -> list[int]:
    known = np.array([key is not None for key in keys], np.bool_)
    values, numbers = np.array([key or 0 for key in keys], np.int64), np.empty(len(keys), np.int64)
    if not partitions.takes_integers:
        own = iter(partitions.of([key for key in keys if key is not None]))
        return [-1 if key is None else next(own) for key in keys]
    partitions.of_integers(values, ALL if known.all() else known, numbers)
    return numbers.tolist()


def held(partitions: Partitions) -> dict[Any, tuple[int, bool]]:
    keys, numbers, seen, *_ = partitions.snapshot()
    return {key: (number, mark) for key, number, mark in zip(keys, numbers, seen, strict=True)}


@given(taken=steps)
@mock.patch.object(Partitions, "worth", 0)
def test_the_table_and_the_dict_hold_the_same_keys(taken: list[tuple[str, Any]]) -> None:
    """A key keeps its number as long as it is held, no two have the same, and both forget the same keys."""
    window = Window("span", 4)
    both = [Partitions(window), Partitions(window)]
    both[1]._tables = False
    place = 0
    for step, own in taken:
        before = [held(partitions) for partitions in both]
        if step == "reach":
            place += own
            assert both[0].reach(place, place) == both[1].reach(place, place)
        for which, partitions in enumerate(both):
            if step == "restore":
                state = decode(encode(partitions.snapshot()))
                both[which] = Partitions(window)
                both[which].restore(state, 1_000)
                both[which]._tables = which == 0
            elif step != "reach":
                keys = [key for key in own if key is not None]
                if step == "integers":
                    found = numbers_of(partitions, own)
                else:
                    found = partitions.of(own) if step == "of" else [partitions.number(key) for key in own]
                assert [number for number in found if number >= 0] == [held(partitions)[key][0] for key in keys]
                assert [number < 0 for number in found] == [key is None for key in own]
        after = [held(partitions) for partitions in both]
        assert {key: mark for key, (_, mark) in after[0].items()} == {key: mark for key, (_, mark) in after[1].items()}
        for partitions, old, new in zip(both, before, after, strict=True):
            assert len(partitions) == len(new) == len({number for number, _ in new.values()})
            assert all(new[key][0] == number for key, (number, _) in old.items() if key in new)
    sizes = [max((number for number, _ in held(partitions).values()), default=-1) for partitions in both]
    assert max(sizes) < 60


def test_numbers_are_as_small_as_can_be() -> None:
    """Each window has other keys, and the numbers of the ones before are given again."""
    partitions = Partitions(Window("span", 10))
    numbers = np.empty(5_000, np.int64)
    assert partitions.takes_integers
    for turn in range(30):
        partitions.reach(20 * turn, 20 * turn)
        partitions.of_integers(np.arange(5_000) * 7 - turn * 10**9, ALL, numbers)
        assert len(set(numbers.tolist())) == 5_000
        assert numbers.max() < 10_000
    assert len(partitions) <= 10_000


def meeting() -> np.ndarray:
    products = [(n << 50) * pow(FACTOR, -1, 1 << 64) % (1 << 64) for n in range(6_000)]
    return np.array([x ^ x >> 32 for x in products if x < 1 << 63], np.int64)


def test_keys_that_meet_in_one_slot_go_to_the_dict() -> None:
    partitions = Partitions(Window("none"))
    assert partitions.takes_integers
    first, keys = np.empty(9, np.int64), meeting()
    partitions.of_integers(np.arange(9), ALL, first)
    numbers = np.empty(len(keys), np.int64)
    partitions.of_integers(keys, ALL, numbers)
    assert not partitions.takes_integers
    assert numbers.tolist() == partitions.of(keys.tolist())
    assert len(partitions) == len({*keys.tolist(), *range(9)})
    assert partitions.of(list(range(9))) == first.tolist()
    assert KeyTable.holding(keys, np.arange(len(keys)), np.zeros(len(keys), bool)) is None


def test_more_keys_than_a_table_can_hold_go_to_the_dict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbering, "_MOST_NUMBERS", 3_000)
    partitions = Partitions(Window("none"))
    numbers = np.empty(4_000, np.int64)
    assert partitions.takes_integers
    known = np.arange(4_000) % 9 > 0
    partitions.of_integers(np.arange(4_000), known, numbers)
    assert not partitions.takes_integers
    assert (numbers[~known] == -1).all()
    assert numbers[known].tolist() == partitions.of(np.flatnonzero(known).tolist())


def test_a_key_that_pauses_is_in_the_dict() -> None:
    assert not Partitions(Window("none"), 1.0).takes_integers


def test_keys_of_a_dict_move_to_the_table_if_they_are_whole() -> None:
    for keys, whole in (([1, 2.0, -5], True), ([1, 2.5], False), (["1"], False), ([1 << 63], False), ([1e300], False),
                        ([float("inf")], False), ([(1,)], False), ([], True)):  # fmt: skip
        partitions = Partitions(Window("none"))
        numbers = partitions.of(list(keys))
        assert partitions.takes_integers == whole, keys
        if whole:
            found = np.empty(len(keys), np.int64)
            partitions.of_integers(np.array(keys, np.int64), ALL, found)
            assert found.tolist() == numbers


COLUMNS: dict[str, list[pa.Array]] = {
    "integers": [pa.array([3, 1, 3, None, 1 << 40]), pa.array([7, 3, 1])],
    "doubles": [pa.array([3.0, None, -0.0, 1.0]), pa.array([0, 3, 5]), pa.array([float("nan"), 5.0])],
    "decimals": [pa.array([3, 4]), pa.array([3.0, 3.5]), pa.array([3, 4])],
    "texts": [pa.array([3, 4]), pa.array(["3", "4", None]), pa.array([4])],
    "truths": [pa.array([1, 0]), pa.array([True, False]), pa.array([1.0, 0.0])],
    "large": [pa.array([1 << 63, 5], pa.uint64()), pa.array([5, 6], pa.uint8()), pa.array([2.0**63, 6.0])],
    "nothing": [pa.array([1, 2]), pa.array([None, None], pa.int64()), pa.array([None], pa.null()), pa.array([2])],
}  # fmt: skip


def firsts(numbers: list[int]) -> list[int]:
    """The first row of each key; -1 for none."""
    return [numbers.index(number) if number >= 0 else -1 for number in numbers]


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_have_the_keys_of_the_dict(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """1, 1.0 and 1 of another width are one key; NULL is none, true and texts are others."""
    found = []
    for applies in (True, False):
        monkeypatch.setattr(KeyTable, "applies", staticmethod(lambda applies=applies: applies))
        partition, place, numbers = Partition((("k", "l"),), Partitions(Window("none"))), 0, []
        for keys in COLUMNS[name]:
            for others in (None, pa.array([9 if row % 2 else None for row in range(len(keys))], pa.int64())):
                table = pa.table({"k": keys} if others is None else {"k": keys, "l": others})
                places = np.arange(place, place + len(keys))
                numbers += partition.keys(EventBatch(table, ("A",), places, places, ("S",)), places).tolist()
                place += len(keys)
        found.append((firsts(numbers), partition.kinds))
    assert found[0] == found[1]
    assert found[0][1]


@pytest.mark.parametrize("window", ["6 SECONDS", "5 EVENTS"])
@pytest.mark.parametrize("seed", range(4))
def test_sessions_find_the_same_matches_with_a_table(seed: int, window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of integers, of decimals and of texts, single events, and snapshots between them."""
    rng = random.Random(seed)
    monkeypatch.setattr(Partitions, "worth", 1)
    query = ceql.compile(f"SELECT * WHERE A ; B PARTITION BY [k] WITHIN {window}")
    pushes: list[list[dict[str, Any]]] = []
    time = 0
    for number in range(40):
        mixed = number > 25
        size = rng.choice([1, 20, 40])
        events = []
        for _ in range(size):
            time += rng.random() < 0.3
            key: Any = (
                rng.choice([rng.randrange(8) + time // 4, 3.0, 1.5, "x", True])
                if mixed
                else time // 3 + rng.randrange(6)
            )
            events.append({"type": rng.choice("AB"), "time": time, "k": key if rng.random() < 0.9 else None})
        pushes.append(events)
    found = []
    for applies in (True, False):
        monkeypatch.setattr(KeyTable, "applies", staticmethod(lambda applies=applies: applies))
        session, matches = query.open(time="time"), []
        for number, events in enumerate(pushes):
            whole = all(type(event["k"]) in (int, type(None)) for event in events)
            given: Any = pa.Table.from_pylist(events) if len(events) > 1 and whole else events
            matches += [(m.start, m.end, tuple(m.positions)) for m in session.push(given)]
            if number % 7 == 3:
                session = query.open(session.snapshot())
        found.append(sorted(matches))
    assert found[0] == found[1]
    assert found[0]
