"""Streams in order of time, together, and as instants; options and stream files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spaseq.core.errors import EventError, OptionError, in_reader_words
from spaseq.rdf import (
    GENERATED_AT,
    Counters,
    EventBy,
    GraphEvent,
    StreamOptions,
    StreamSource,
    StreamSpec,
    parse_streams_file,
)
from tests.support.data import DATA, needs
from tests.support.graph_events import open_streams, read_stream
from tests.support.graph_events_by_definition import in_order, instants, merge_streams

ORIGINAL = DATA / "spaseq-original"


def event(time: int, name: str = "urn:s", record: int = 1) -> GraphEvent:
    return GraphEvent(name, time, (), None, "f.nq", record)


def stream_file(folder: Path, name: str, times: list[int]) -> str:
    """N-Quads with a graph per time, its name the place in the file."""
    lines = [f'<urn:g{k}> <{GENERATED_AT}> "{time}" <urn:g{k}> .' for k, time in enumerate(times)]
    (folder / name).write_text("\n".join(lines))
    return str(folder / name)


class TestOrder:
    def test_going_back_is_an_error(self, tmp_path: Path) -> None:
        path = stream_file(tmp_path, "s.nq", [5, 10, 7])
        with pytest.raises(EventError) as error:
            list(read_stream("urn:s", [path], StreamOptions()))
        assert str(error.value) == (
            f"{path}:3: stream urn:s goes back in time by 3 s: 1970-01-01T00:00:07Z comes after "
            f"1970-01-01T00:00:10Z ({path}:2)\n"
            'hint: a lateness (lateness="5s") puts in order what comes late by no more than that; '
            'late="drop" leaves out what comes later and counts it'
        )

    def test_files_of_a_stream_follow_each_other(self, tmp_path: Path) -> None:
        a, b = stream_file(tmp_path, "a.nq", [1, 2]), stream_file(tmp_path, "b.nq", [2, 3])
        assert [e.time for e in read_stream("urn:s", [a, b], StreamOptions())] == [
            10**9,
            2 * 10**9,
            2 * 10**9,
            3 * 10**9,
        ]
        with pytest.raises(EventError, match=r"a\.nq:1: stream urn:s goes back"):
            list(read_stream("urn:s", [b, a], StreamOptions()))

    def test_within_the_lateness_it_is_put_in_order(self, tmp_path: Path) -> None:
        path = stream_file(tmp_path, "s.nq", [5, 10, 7, 7, 12])
        found = list(read_stream("urn:s", [path], StreamOptions.parse(lateness="3s")))
        assert [e.time // 10**9 for e in found] == [5, 7, 7, 10, 12]
        assert [str(e.graph) for e in found] == ["urn:g0", "urn:g2", "urn:g3", "urn:g1", "urn:g4"]
        with pytest.raises(EventError, match="more than the lateness of 2 s"):
            list(read_stream("urn:s", [path], StreamOptions.parse(lateness="2s")))

    def test_later_than_that_is_dropped_and_counted(self, tmp_path: Path) -> None:
        path = stream_file(tmp_path, "s.nq", [5, 10, 7, 9, 12])
        counters = Counters()
        found = list(read_stream("urn:s", [path], StreamOptions.parse(lateness="1s", late="drop"), counters))
        assert [e.time // 10**9 for e in found] == [5, 9, 10, 12]
        assert counters.late == 1
        assert counters.warnings() == ["1 event(s) dropped: they came later than the lateness allows"]

    def test_only_what_may_still_be_overtaken_is_held(self) -> None:
        pulled = []

        def source():  # type: ignore[no-untyped-def]
            for time in range(100):
                pulled.append(time)
                yield event(time)

        ordered = in_order(source(), StreamOptions(lateness=3), Counters())
        assert next(ordered).time == 0
        assert len(pulled) == 4


class TestInstants:
    def test_equal_times_keep_the_order_of_the_streams(self) -> None:
        a = [event(1, "urn:a", 1), event(2, "urn:a", 2), event(2, "urn:a", 3)]
        b = [event(0, "urn:b", 1), event(2, "urn:b", 2), event(3, "urn:b", 3)]
        merged = list(merge_streams([("urn:a", a), ("urn:b", b)]))
        assert [(e.time, e.stream[-1], e.record) for e in merged] == [
            (0, "b", 1), (1, "a", 1), (2, "a", 2), (2, "a", 3), (2, "b", 2), (3, "b", 3),
        ]  # fmt: skip
        found = list(instants(merged, StreamOptions(time=GENERATED_AT)))
        assert [(i.position, i.time, len(i.events)) for i in found] == [(0, 0, 1), (1, 1, 1), (2, 2, 3), (3, 3, 1)]

    @pytest.mark.parametrize("options", [StreamOptions(ties="arrival"), StreamOptions(time="arrival")])
    def test_every_graph_its_own_instant(self, options: StreamOptions) -> None:
        found = list(instants([event(1), event(1), event(2)], options))
        assert [(i.position, i.time, len(i.events)) for i in found] == [(0, 1, 1), (1, 1, 1), (2, 2, 1)]


class TestOpenStreams:
    def test_three_streams(self, tmp_path: Path) -> None:
        sources = [
            StreamSource(f"urn:{name}", (stream_file(tmp_path, f"{name}.nq", times),))
            for name, times in [("a", [1, 5]), ("b", [1, 2]), ("c", [4])]
        ]
        counters = Counters()
        merged, options = open_streams(sources, StreamOptions(), counters)
        found = [(i.time // 10**9, [e.stream for e in i.events]) for i in instants(merged, options)]
        assert found == [(1, ["urn:a", "urn:b"]), (2, ["urn:b"]), (4, ["urn:c"]), (5, ["urn:a"])]
        assert (counters.events, counters.triples) == (5, 5)
        assert counters.warnings() == []

    def test_clocks_that_cannot_be_compared(self, tmp_path: Path) -> None:
        graphs = StreamSource("urn:a", (stream_file(tmp_path, "a.nq", [1]),))
        (tmp_path / "b.nt").write_text('<urn:x> <urn:at> "3" .')
        triples = StreamSource("urn:b", (str(tmp_path / "b.nt"),))
        with pytest.raises(OptionError, match="their order is unknown"):
            open_streams([graphs, triples], StreamOptions())
        merged, options = open_streams([graphs, triples], StreamOptions(time="arrival"))
        assert [i.time for i in instants(merged, options)] == [0, 0]

    def test_a_name_given_twice(self, tmp_path: Path) -> None:
        source = StreamSource("urn:a", (stream_file(tmp_path, "a.nq", [1]),))
        with pytest.raises(OptionError, match="stream urn:a is given twice"):
            open_streams([source, source], StreamOptions())

    def test_arrival_counts_within_each_stream(self, tmp_path: Path) -> None:
        a = StreamSource("urn:a", (stream_file(tmp_path, "a.nq", [9, 8]), stream_file(tmp_path, "c.nq", [1])))
        b = StreamSource("urn:b", (stream_file(tmp_path, "b.nq", [1, 2]),))
        merged, _ = open_streams([a, b], StreamOptions.parse(time_from="arrival", interval="1s"))
        assert [(e.time // 10**9, e.stream[-1]) for e in merged] == [(0, "a"), (0, "b"), (1, "a"), (1, "b"), (2, "a")]


class TestOptions:
    def test_the_words_of_the_command_line(self) -> None:
        options = StreamOptions.parse(event_by="size:5", time="<http://e.org/at>", time_unit="ms", lateness="2 minutes")
        assert options == StreamOptions(
            event_by=EventBy("size", 5), time="http://e.org/at", time_unit="ms", lateness=120 * 10**9
        )
        assert StreamOptions.parse(time="http://e.org/at").time == "http://e.org/at"
        assert StreamOptions.parse() == StreamOptions()
        assert str(EventBy.parse("size:5")) == "size:5"
        assert str(EventBy.parse("subject")) == "subject"

    @pytest.mark.parametrize(
        ("words", "problem"),
        [
            ({"event_by": "size:0"}, "--event-by size:0: no such way"),
            ({"event_by": "size"}, "--event-by size: no such way"),
            ({"event_by": "triple"}, "--event-by triple: no such way"),
            ({"time": "at"}, "--time at: not an IRI"),
            ({"time": "<a b:c>"}, "--time <a b:c>: not an IRI"),
            ({"time": "urn:at", "time_from": "arrival"}, "contradict each other"),
            ({"time_from": "noon"}, "--time-from noon: no such clock"),
            ({"time_unit": "h"}, "--time-unit h: not one of s, ms, us, ns"),
            ({"interval": "soon"}, "--interval soon: not a duration"),
            ({"ties": "none"}, "--ties none: not one of instant, arrival"),
            ({"lateness": "-1s"}, "--lateness -1s: "),
            ({"late": "keep"}, "--late keep: not one of error, drop"),
        ],
    )
    def test_wrong_words(self, words: dict[str, Any], problem: str) -> None:
        with pytest.raises(OptionError) as error:
            StreamOptions.parse(**words)
        assert in_reader_words(problem) in str(error.value)


class TestStreamsFile:
    def test_paths_are_tried_in_three_places(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "streams.txt").write_text(
            "# the streams\n<urn:a> <./there/a.nt> 2\n\n<urn:b> <more/b.nt> 3\n<urn:c> c.nt 4\n"
        )
        for place in ("sub/a.nt", "sub/more/b.nt", "c.nt"):
            (tmp_path / place).parent.mkdir(exist_ok=True)
            (tmp_path / place).touch()
        monkeypatch.chdir(tmp_path)
        assert parse_streams_file(os.path.join("sub", "streams.txt")) == [
            StreamSpec("urn:a", os.path.join("sub", "a.nt"), 2),
            StreamSpec("urn:b", os.path.join("sub", "more", "b.nt"), 3),
            StreamSpec("urn:c", "c.nt", 4),
        ]
        assert StreamSpec("urn:c", "c.nt", 4).source() == StreamSource("urn:c", ("c.nt",), EventBy("size", 4))

    @pytest.mark.parametrize("line", [
            "<urn:a> <a.nt>", "urn:a a.nt 2", "<urn:a> <a.nt> two", "<urn:a> <a.nt> 0",
            "<urn:a> <a.nt> 9223372036854775808", "<urn:a> <a.nt> \u0662", f"<urn:a> <a.nt> {'9' * 5000}",
        ])  # fmt: skip
    def test_a_line_that_is_no_stream(self, tmp_path: Path, line: str) -> None:
        (tmp_path / "streams.txt").write_text(f"# one\n{line}\n", "utf-8")
        with pytest.raises(EventError, match=r"streams\.txt:2: not a stream: ") as error:
            parse_streams_file(str(tmp_path / "streams.txt"))
        assert error.value.record == 2

    def test_what_is_no_text(self, tmp_path: Path) -> None:
        (tmp_path / "streams.txt").write_bytes(b"<urn:a> \xff 2\n")
        with pytest.raises(EventError, match=r"streams\.txt: cannot read: this is not UTF-8 text$"):
            parse_streams_file(str(tmp_path / "streams.txt"))

    def test_files_that_are_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(EventError, match="no such file"):
            parse_streams_file(str(tmp_path / "streams.txt"))
        (tmp_path / "streams.txt").write_text("<urn:a> <a.nt> 2\n")
        with pytest.raises(EventError, match=r"streams\.txt:1: no such file: a\.nt"):
            parse_streams_file(str(tmp_path / "streams.txt"))


@needs(ORIGINAL)
class TestOriginalData:
    @pytest.mark.parametrize(
        ("folder", "sizes"),
        [
            ("conjunction", [3] * 4),
            ("disjunction", [2] * 3),
            ("externalknowledgebase", [2] * 3),
            ("kleeneplus", [2] * 5),
            ("multistreams-powergeneration", [5] * 12),
            ("negation", [2] * 3),
            ("optional", [2] * 3),
            ("skip-till-next", [2] * 4),
            ("strict-contiguity", [2] * 3),
        ],
    )
    def test_as_it_is(self, folder: str, sizes: list[int]) -> None:
        (path,) = (ORIGINAL / folder).glob("stream*.txt")
        counters = Counters()
        merged, options = open_streams([s.source() for s in parse_streams_file(str(path))], StreamOptions(), counters)
        assert [len(event.triples) for instant in instants(merged, options) for event in instant.events] == sizes
        assert counters.warnings() == []

    def test_times_that_claim_to_be_dates(self) -> None:
        source = StreamSource("urn:s", (str(ORIGINAL / "conjunction" / "dataConjunction.nt"),), EventBy("size", 3))
        merged, options = open_streams([source], StreamOptions(time="http://example/occursat"))
        assert [(i.time // 10**9, len(i.events)) for i in instants(merged, options)] == [(10, 1), (15, 2), (20, 1)]

    def test_card_records_are_two_triples_by_either_rule(self) -> None:
        path = str(ORIGINAL / "credit-card" / "card10k.n3.gz")
        runs = list(read_stream("urn:s", [path], StreamOptions(event_by=EventBy("subject"))))
        sizes = list(read_stream("urn:s", [path], replace(StreamOptions(), event_by=EventBy("size", 2))))
        assert runs == sizes
        assert len(runs) == 20001
