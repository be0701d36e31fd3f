"""JSON Lines: what pyarrow's reader must not be given, and that both ways of reading a block agree."""

from __future__ import annotations

import datetime
import json
import pathlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ceql
from spaseq.core.errors import EventError
from spaseq.core.events.readers import tables

_DEEP = b"[" * 100_000 + b"]" * 100_000


def _read(path: pathlib.Path, block: bytes) -> list[dict[str, Any]]:
    file = path / "e.jsonl"
    file.write_bytes(block)
    return [event for table in tables(str(file)) for event in table.to_pylist()]


@pytest.mark.parametrize(
    ("block", "line", "what"),
    [
        (b'null\n{"type":"A"}\n', 1, "not an object"),
        (b'{"type":"A"}\nnull\n', 2, "not an object"),
        (b'{"type":"A"} null\n', 1, "not JSON"),
        (b'{"type":"A"}\n\n{"type":"A"}{"type":"B"}\n', 3, "not JSON"),
        (b'{"type":"A","x":"\xff"}\n', 1, "not UTF-8"),
        (b'{"type":"A"}\n{"type":"A","\xff":1}\n', 2, "not UTF-8"),
        (b'{"type":"A"}\n{"type":"A","x":"\\ud800"}\n', 2, "no Unicode text"),
        (b'{"type":"A","x":' + _DEEP + b"}\n", 1, "nested too deeply"),
    ],
)
def test_what_is_no_line_of_json_is_an_error(tmp_path: pathlib.Path, block: bytes, line: int, what: str) -> None:
    """The first one ended the process, the next three were events that nobody sent."""
    with pytest.raises(EventError, match=what) as raised:
        _read(tmp_path, block)
    assert raised.value.record == line


def test_a_name_that_is_no_text(tmp_path: pathlib.Path) -> None:
    with pytest.raises(EventError, match="no Unicode text"):
        _read(tmp_path, b'{"type":"A","\\ud800":1}\n')


def test_nulls_in_lists_of_objects_stay_in_their_line(tmp_path: pathlib.Path) -> None:
    lines = [{"type": "A", "x": [None, {"b": None}]}, {"type": "A", "x": [{"b": 1}]}]
    assert _read(tmp_path, "\n".join(map(json.dumps, lines)).encode()) == lines


def test_objects_without_attributes_are_counted(tmp_path: pathlib.Path) -> None:
    (tmp_path / "e.jsonl").write_bytes(b"{}\n{}\n")
    assert [table.num_rows for table in tables(str(tmp_path / "e.jsonl"))] == [2]


@pytest.mark.parametrize("value", [["2020-01-01"], {"a": "2020-01-01T00:00:00Z"}, [{"a": ["2020-01-01"]}, {}]])
def test_texts_in_lists_and_objects_are_no_times(value: Any, tmp_path: pathlib.Path) -> None:
    """As in dicts that are pushed. They became times, unless a line beside them had to be read by itself."""
    (found,) = _read(tmp_path, json.dumps({"type": "A", "time": "2020-01-01", "x": value}).encode())
    plain = json.dumps(found["x"], default=repr)
    assert plain == json.dumps(value).replace("{}", '{"a": null}')
    assert isinstance(found["time"], datetime.datetime)


_SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x", "null", "{", "]}", "2020-01-01"])
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)


@given(
    st.lists(st.dictionaries(st.sampled_from("uv"), _VALUES, max_size=2), min_size=1, max_size=4),
    st.sampled_from(["\n", "\r\n", "\n\n", " \n\t", "          \n"]),
)
def test_a_block_reads_as_its_lines_do(
    tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, Any]], between: str
) -> None:
    """A line that must be read by itself, here for its depth, does not change what the others are."""
    deep = {"type": "A", "w": [[]] * 300}
    folder = tmp_path_factory.mktemp("lines")
    try:
        found = _read(folder, between.join(map(json.dumps, events)).encode())
    except EventError as error:
        assert error.record is not None  # values of several kinds
        return
    slow = _read(folder, between.join(map(json.dumps, [*events, deep])).encode())[:-1]
    named = {name for event in events for name in event}
    assert [{name: event.get(name) for name in named} for event in slow] == found


@pytest.mark.parametrize("depth", [1, 64, 65, 150, 199, 250])
def test_lists_lie_as_deep_in_one_another_as_in_events_of_python(depth: int, tmp_path: pathlib.Path) -> None:
    """Arrow's reader took 199 levels, where 64 are what an event may have."""
    lists: Any = 1
    objects: Any = 1
    for _ in range(depth):
        lists, objects = [lists], {"a": objects}
    query = ceql.compile("SELECT * WHERE A")
    for value in (lists, objects):
        events = [{"type": "A", "v": value}] * 2
        (tmp_path / "e.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
        for way in (events, str(tmp_path / "e.jsonl")):
            if depth <= 64:
                assert len(list(query.run(way))) == 2
            else:
                with pytest.raises(EventError, match="attribute v holds values of no known kind") as caught:
                    list(query.run(way))
                assert caught.value.record == 1


def test_a_null_ends_the_command_with_one_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "e.jsonl").write_bytes(b'null\n{"type":"A"}\n')
    with pytest.raises(EventError, match=r"e\.jsonl:1: this is JSON, but not an object"):
        list(ceql.compile("SELECT * WHERE A").run(str(tmp_path / "e.jsonl")))


def test_an_event_without_attributes_is_no_event_that_nobody_sees() -> None:
    with pytest.raises(EventError, match="no column 'type'"):
        list(ceql.compile("SELECT * WHERE A").run([{}]))
