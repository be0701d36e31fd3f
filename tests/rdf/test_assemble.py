"""From statements to events: what belongs together and when it happened."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import BNode

from spaseq.core.errors import EventError
from spaseq.rdf import (
    GENERATED_AT,
    Counters,
    EventBy,
    GraphEvent,
    StreamOptions,
    StreamSource,
)
from spaseq.rdf.columns.kernels.assembly import NESTED
from spaseq.rdf.columns.reader import ColumnFiles
from tests.support.graph_events import events_of
from tests.support.sizes import some

SECOND = 10**9
GRAPHS = StreamOptions(event_by=EventBy("graph"), time=GENERATED_AT)
RUNS = StreamOptions(event_by=EventBy("subject"), time="arrival")
PROV = f"<{GENERATED_AT}>"


def events(text: str, options: StreamOptions, counters: Counters | None = None) -> list[GraphEvent]:
    """The events in N-Quads `text`."""
    return list(events_of([text.encode()], "f.nq", options, counters))


def shape(found: list[GraphEvent]) -> list[tuple[float, int]]:
    """Seconds and number of triples of each event."""
    return [(event.time / SECOND, len(event.triples)) for event in found]


def quads(text: str) -> str:
    """N-Quads from a shorthand: `a p 1 g` per line, `.` for the default graph, `prov` for the time predicate."""
    lines = []
    for line in text.strip().splitlines():
        words = [f'"{w}"' if w[0].isdigit() or w[0] == "-" else f"<urn:{w}>" for w in line.split()]
        words[1] = PROV if words[1] == "<urn:prov>" else words[1]
        lines.append(" ".join(words).replace(" <urn:.>", "") + " .")
    return "\n".join(lines) + "\n"


class TestGraphs:
    def test_time_stands_in_the_graph_before_it_or_after_it(self) -> None:
        text = quads("""
            g1 prov 10 g1
            a p 1 g1
            g2 prov 20 .
            a p 2 g2
            a p 3 g3
            g3 prov 30 .
            a p 4 g4
            a p 5 g5
            g4 prov 40 .
            g5 prov 50 .
        """)
        found = events(text, GRAPHS)
        assert shape(found) == [(10, 2), (20, 1), (30, 1), (40, 1), (50, 1)]
        assert [str(event.graph) for event in found] == [f"urn:g{k}" for k in range(1, 6)]
        assert [event.record for event in found] == [1, 4, 5, 7, 8]

    def test_all_times_before_all_graphs_and_after_all_graphs(self) -> None:
        graphs = [f"a p {k} g{k}" for k in range(50)]
        times = [f"g{k} prov {k} ." for k in range(50)]
        expected = [(k, 1) for k in range(50)]
        assert shape(events(quads("\n".join(times + graphs)), GRAPHS)) == expected
        assert shape(events(quads("\n".join(graphs + times)), GRAPHS)) == expected

    def test_default_graph_statements_do_not_end_a_graph(self) -> None:
        counters = Counters()
        found = events(quads("a p 1 g\ng prov 7 .\nx y z .\na q 2 g"), GRAPHS, counters)
        assert shape(found) == [(7, 2)]
        assert counters.ignored == 1
        assert counters.triples == 4

    def test_the_time_predicate_may_be_on_any_subject_and_the_graphs_own_name_comes_first(self) -> None:
        assert shape(events(quads("a prov 3 g\na p 1 g"), GRAPHS)) == [(3, 2)]
        assert shape(events(quads("a prov 3 g\ng prov 4 g"), GRAPHS)) == [(4, 2)]
        assert shape(events(quads("g prov 9 .\na prov 3 g"), GRAPHS)) == [(3, 1)]
        assert shape(events(quads("a prov 3 g\ng prov 9 ."), GRAPHS)) == [(3, 1)]

    def test_a_name_that_comes_again_is_another_event_and_is_counted(self) -> None:
        counters = Counters()
        found = events(quads("g prov 1 g\nh prov 2 h\ng prov 3 g"), GRAPHS, counters)
        assert shape(found) == [(1, 1), (2, 1), (3, 1)]
        assert counters.reopened == 1
        assert any("should stand together" in line for line in counters.warnings())

    def test_a_graph_whose_statements_are_scattered_has_no_second_time(self) -> None:
        with pytest.raises(EventError, match="those of one graph must stand together") as error:
            events(quads("g prov 1 .\na p 1 g\nh prov 2 h\na p 2 g"), GRAPHS)
        assert error.value.record == 4

    def test_no_time(self) -> None:
        with pytest.raises(EventError) as error:
            events(quads("g prov 1 g\na p 1 h"), GRAPHS)
        assert str(error.value) == (
            f"f.nq:2: graph urn:h has no time: there is no {PROV} in it, nor about it in the default graph\n"
            'hint: time="PREDICATE" names the predicate that holds times; time_from="arrival" counts the events '
            "instead, 1 ms apart"
        )

    def test_two_times(self) -> None:
        with pytest.raises(EventError, match=r"f.nq:1: graph urn:g has 2 times: 1, 2"):
            events(quads("a prov 1 g\nb prov 2 g"), GRAPHS)
        with pytest.raises(EventError, match=r"f.nq:2: graph urn:g has two times; the other is on line 1"):
            events(quads("g prov 1 .\ng prov 2 .\na p 1 g"), GRAPHS)
        assert shape(events(quads("a prov 1 g\nb prov 1.0 g"), GRAPHS)) == [(1, 2)]

    def test_a_time_for_no_graph_is_counted(self) -> None:
        counters = Counters()
        events(quads("x prov 1 .\ng prov 2 g"), GRAPHS, counters)
        assert counters.ignored == 1

    def test_what_waits_is_bounded(self) -> None:
        graphs = "\n".join(f"a p {k} g{k}" for k in range(10))
        times = "\n".join(f"g{k} prov {k} ." for k in range(10))
        few = replace(GRAPHS, lookahead=5)
        with pytest.raises(EventError, match="graph urn:g0 has no time"):
            events(quads(graphs + "\n" + times), few)
        with pytest.raises(EventError, match="graph urn:g0 has no time"):
            events(quads(times + "\n" + graphs), few)

    def test_no_named_graph(self) -> None:
        with pytest.raises(EventError, match="no named graph in the file") as error:
            events(quads("a p 1 ."), GRAPHS)
        assert "--event-by subject" in error.value.hint
        assert events("", GRAPHS) == []

    def test_arrival_counts_from_the_first(self) -> None:
        arrival = replace(GRAPHS, time="arrival", interval=5)
        counters = Counters()
        found = events(quads("g prov 90 .\na p 1 g\nb p 1 h"), arrival, counters)
        assert [event.time for event in found] == [0, 5]
        assert counters.ignored == 0


class TestTimeLiterals:
    @pytest.mark.parametrize(
        ("literal", "unit", "expected"),
        [
            ('"10"^^<http://www.w3.org/2001/XMLSchema#date>', "s", 10 * SECOND),
            ('"2026-01-01T00:00:00Z"', "s", 1767225600 * SECOND),
            ('"2026-01-01T01:00:00+01:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>', "ms", 1767225600 * SECOND),
            ('"21620006349311"^^<http://www.w3.org/2001/XMLSchema#date>', "ns", 21620006349311),
            ('"1.5"^^<http://www.w3.org/2001/XMLSchema#double>', "s", 1_500_000_000),
            ('"0010"^^<http://www.w3.org/2001/XMLSchema#integer>', "us", 10_000),
        ],
    )
    def test_the_lexical_form_decides(self, literal: str, unit: str, expected: int) -> None:
        options = replace(GRAPHS, time="urn:at", time_unit=unit)
        assert events(f"<urn:a> <urn:at> {literal} <urn:g> .", options)[0].time == expected

    @pytest.mark.parametrize("value", ['"soon"', "<urn:x>", '"2026-13-01T00:00:00Z"'])
    def test_what_is_no_time(self, value: str) -> None:
        with pytest.raises(EventError, match=r"^f\.nq:1: ") as error:
            events(f"<urn:a> <urn:at> {value} <urn:g> .", replace(GRAPHS, time="urn:at"))
        assert error.value.attribute == "urn:at"


class TestSubjectRuns:
    def test_a_new_subject_begins_an_event(self) -> None:
        assert shape(events(quads("a p 1 .\na q 2 .\nb p 1 .\na p 1 ."), RUNS)) == [(0, 2), (0.001, 1), (0.002, 1)]

    def test_a_predicate_that_comes_again_begins_an_event(self) -> None:
        found = events(quads("a id 3 .\na amount 68 .\na id 3 .\na amount 267 ."), RUNS)
        assert [len(event.triples) for event in found] == [2, 2]
        assert [len(event.triples) for event in events(quads("a p 1 .\na p 1 .\na p 2 ."), RUNS)] == [1, 1, 1]

    def test_types_may_be_several(self) -> None:
        a = "<urn:a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
        text = f'{a} <urn:T> .\n{a} <urn:U> .\n<urn:a> <urn:p> "1" .\n{a} <urn:T> .\n<urn:a> <urn:p> "2" .\n'
        assert [len(event.triples) for event in events(text, RUNS)] == [3, 2]

    def test_a_new_graph_begins_an_event(self) -> None:
        found = events(quads("a p 1 g\na q 2 h"), RUNS)
        assert [str(event.graph) for event in found] == ["urn:g", "urn:h"]

    def test_time_from_a_predicate(self) -> None:
        found = events(quads("a p 1 .\na at 5 .\na p 2 .\na at 6 ."), replace(RUNS, time="urn:at"))
        assert shape(found) == [(5, 2), (6, 2)]
        with pytest.raises(EventError, match=r"f.nq:3: event 2 has no time: there is no <urn:at> in it"):
            events(quads("a p 1 .\na at 5 .\na p 2 ."), replace(RUNS, time="urn:at"))

    def test_a_time_of_nearly_that_name_is_named(self) -> None:
        with pytest.raises(
            EventError, match=r"no <urn:at> in it\nhint: did you mean <urn:att>\? time=\"PREDICATE\" names the"
        ):
            events(quads("a p 1 .\na att 5 ."), replace(RUNS, time="urn:at"))

    def test_a_node_without_a_time_is_said_to_be_an_event(self) -> None:
        text = quads("a at 5 .") + '<urn:a> <urn:result> _:c .\n_:b <urn:value> "1" .\n'
        with pytest.raises(EventError, match=r"f.nq:3: event 2 has no time.*\nhint: its subject is a blank node"):
            events(text, replace(RUNS, time="urn:at"))


def runs(text: str, **more: object) -> list[list[str]]:
    """The events by subject of Turtle, each with the last letters of its statements, blank nodes as `_`."""
    options = replace(RUNS, **more)  # type: ignore[arg-type]
    found = events_of([f"@prefix : <urn:> . {text}".encode()], "f.ttl", options)
    shown: list[list[str]] = []
    for event in found:
        triples = [["_" if isinstance(term, BNode) else str(term)[-1] for term in triple] for triple in event.triples]
        shown.append(["".join(triple) for triple in triples])
    return shown


class TestNodesOfASubject:
    def test_a_node_belongs_to_the_subject_that_points_at_it(self) -> None:
        assert runs(":a :r [ :v 1 ] ; :t 5 . :b :r [ :v 2 ] .") == [["_v1", "ar_", "at5"], ["_v2", "br_"]]
        assert runs(":a :t 5 ; :r [ :v 1 ; :u [ :w 2 ; :x 3 ] ; :y 4 ] . :b :t 6 .") == [
            ["at5", "_v1", "_w2", "_x3", "_u_", "_y4", "ar_"],
            ["bt6"],
        ]

    def test_nodes_with_labels_before_and_behind(self) -> None:
        assert runs(":a :r _:x . _:x :v 1 . :a :t 5 . :b :t 6 .") == [["ar_", "_v1", "at5"], ["bt6"]]
        assert runs("_:x :v 1 . _:y :v 2 . :a :r _:x . :a :s _:y . :b :t 6 .") == [
            ["_v1", "_v2", "ar_", "as_"],
            ["bt6"],
        ]
        assert runs(":a :r _:x . _:x :u _:y . _:y :v 1 . :b :t 6 .") == [["ar_", "_u_", "_v1"], ["bt6"]]

    def test_a_node_that_nothing_points_at_is_an_event(self) -> None:
        assert runs("[] :v 1 . :a :t 5 . [] :v 3 . :a :t 6 .") == [["_v1"], ["at5"], ["_v3"], ["at6"]]
        assert runs("[] :r [ :v 1 ] ; :t 5 . [] :r [ :v 2 ] ; :t 6 .") == [["_v1", "_r_", "_t5"], ["_v2", "_r_", "_t6"]]

    def test_a_node_that_several_point_at_is_in_the_first_and_others_have_nodes_of_their_own(self) -> None:
        assert runs("_:x :v 1 . :a :r _:x . :b :r _:x .") == [["_v1", "ar_"], ["br_"]]

    def test_a_list(self) -> None:
        assert [len(triples) for triples in runs(":a :l ( 1 2 3 ) ; :t 5 . :b :l ( [ :v 1 ] [ :v 2 ] ) .")] == [8, 7]

    def test_values_of_a_node_are_not_cut(self) -> None:
        assert runs(":a :r [ :v 1, 2 ] ; :t 5 .") == [["_v1", "_v2", "ar_", "at5"]]
        assert runs(":a :r [ :v 1 ], [ :v 2 ] .") == [["_v1", "ar_"], ["_v2", "ar_"]]

    def test_time_in_a_node(self) -> None:
        text = ":a :p [ :t 5 ] . :b :v 1 ; :p [ :q [ :t 6 ] ] ."
        assert runs(text, time="urn:t") == [["_t5", "ap_"], ["bv1", "_t6", "_q_", "bp_"]]
        with pytest.raises(EventError, match="event 1 has 2 times: 5, 6"):
            runs(":a :p [ :t 5 ] ; :t 6 .", time="urn:t")

    def test_no_more_than_a_few_nodes_wait(self) -> None:
        lines = [f'_:b{number} <urn:p> "1" .\n' for number in range(100)]
        files = ColumnFiles(StreamSource("urn:s", ("f.nt",)), RUNS, Counters(), None, ordered=False)
        read = files.read("f.nt", map(str.encode, lines), last=True, has_more=lambda: False)
        made = [(len(batch), int(batch.records[0])) for batch in read]
        assert made == [*((1, number + 1) for number in range(100 - NESTED)), (NESTED, 100 - NESTED + 1)]


@st.composite
def described(draw: st.DrawFn, depth: int) -> tuple[str, list[tuple[str, object]]]:
    """A predicate-object list of Turtle, and what it says: a value is a list of such where it is a node."""
    said: list[tuple[str, object]] = []
    words = []
    for predicate in draw(st.lists(st.sampled_from("pqrs"), min_size=1, max_size=3, unique=True)):
        if depth and draw(st.booleans()):
            word, inside = draw(described(depth - 1))
            words.append(f":{predicate} [ {word} ]")
            said.append((f"urn:{predicate}", inside))
        else:
            value = draw(st.sampled_from("123"))
            words.append(f":{predicate} {value}")
            said.append((f"urn:{predicate}", value))
    return " ; ".join(words), said


@given(st.lists(st.tuples(st.booleans(), described(3)), min_size=1, max_size=5))
def test_an_event_has_what_its_subject_reaches_by_blank_nodes(
    records: list[tuple[bool, tuple[str, list[tuple[str, object]]]]],
) -> None:
    """As trees: from the subject down, with nothing left over."""

    def tree(graph: dict[object, list[tuple[str, object]]], node: object) -> object:
        return sorted((p, tree(graph, o)) for p, o in graph.pop(node)) if node in graph else str(o_text(node))

    def o_text(node: object) -> str:
        return str(node)

    def expected(said: list[tuple[str, object]]) -> object:
        return sorted((p, expected(value) if isinstance(value, list) else value) for p, value in said)

    text = "@prefix : <urn:> .\n" + "\n".join(
        f"{f':n{number}' if named else '[]'} {word} ." for number, (named, (word, _)) in enumerate(records)
    )
    found = list(events_of([text.encode()], "f.ttl", RUNS))
    assert len(found) == len(records)
    for event, (_, (_, said)) in zip(found, records, strict=True):
        graph: dict[object, list[tuple[str, object]]] = {}
        for s, p, o in event.triples:
            graph.setdefault(s, []).append((str(p), o))
        pointed = {o for _, _, o in event.triples}
        (root,) = [node for node in graph if node not in pointed]
        assert tree(graph, root) == expected(said)
        assert not graph


class TestSizes:
    def test_n_statements_make_an_event(self) -> None:
        options = replace(RUNS, event_by=EventBy("size", 2))
        found = events(quads("a p 1 .\nb p 1 .\na p 1 .\na p 1 ."), options)
        assert shape(found) == [(0, 2), (0.001, 1)]

    def test_a_rest_is_malformed(self) -> None:
        options = replace(RUNS, event_by=EventBy("size", 2))
        with pytest.raises(EventError, match=r"f.nq:3: the last event has 1 triple\(s\), and an event has 2"):
            events(quads("a p 1 .\na q 1 .\na p 2 ."), options)
        counters = Counters()
        assert len(events(quads("a p 1 .\na q 1 .\na p 2 ."), replace(options, malformed="drop"), counters)) == 1
        assert counters.malformed == 1

    def test_comments_and_blank_lines_do_not_count(self) -> None:
        text = '# one\n\n<urn:a> <urn:p> "1" . # here\n  \n  # two\n<urn:a> <urn:q> "1" .\n'
        found = events(text, replace(RUNS, event_by=EventBy("size", 1)))
        assert [event.record for event in found] == [3, 6]


def test_events_share_no_blank_node() -> None:
    text = "\n".join(f'_:x <urn:p> _:y <urn:g{k}> .\n_:y {PROV} "{k}" <urn:g{k}> .' for k in range(3))
    found = events(text, GRAPHS)
    nodes = [{term for triple in event.triples for term in triple if isinstance(term, BNode)} for event in found]
    assert [len(own) for own in nodes] == [2, 2, 2]
    assert len(set().union(*nodes)) == 6
    again = events(re.sub("_:([xy])", r"_:other\1", text), GRAPHS)
    assert again == found


def test_a_blank_graph_name_is_the_node_inside_the_graph() -> None:
    found = events(f'_:g {PROV} "5" .\n_:g <urn:p> "1" _:g .\n', GRAPHS)
    assert shape(found) == [(5, 1)]
    assert found[0].graph == found[0].triples[0][0]


def test_a_graph_is_a_set_in_the_order_of_the_source() -> None:
    found = events(quads("b p 2 g\na p 1 g\nb p 2 g\ng prov 1 g"), GRAPHS)
    assert [(str(s), str(o)) for s, _, o in found[0].triples] == [("urn:b", "2"), ("urn:a", "1"), ("urn:g", "1")]


# Any order and cut the rules allow ------------------------------------------------------------------------------------

PLACES = st.sampled_from(["inside", "before", "after", "end"])


@st.composite
def timed_graphs(draw: st.DrawFn) -> tuple[str, list[tuple[int, int]]]:
    """Graphs whose times stand in different places, in the shorthand of `quads`, and (time, triples) of each."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=8))
    lines: list[str] = []
    late: list[str] = []
    expected = []
    for k, size in enumerate(sizes):
        place = draw(PLACES)
        body = [f"a p {j} g{k}" for j in range(size)]
        about = f"g{k} prov {k} {f'g{k}' if place == 'inside' else '.'}"
        if place == "before":
            body.insert(0, about)
        elif place == "end":
            late.append(about)
        else:
            body.insert(draw(st.integers(0, len(body))) if place == "inside" else len(body), about)
        lines += body
        expected.append((k * SECOND, size + (place == "inside")))
    return quads("\n".join(lines + late)), expected


@given(timed_graphs())
def test_a_time_may_stand_anywhere(case: tuple[str, list[tuple[int, int]]]) -> None:
    text, expected = case
    assert [(event.time, len(event.triples)) for event in events(text, GRAPHS)] == expected


LINES = st.lists(
    st.one_of(
        st.sampled_from(["", "  ", "# a comment", "\t# another"]),
        st.tuples(st.sampled_from("ab"), st.sampled_from("pq"), st.sampled_from(["1", "é", "\U0001f600"])).map(
            lambda t: f'<urn:{t[0]}> <urn:{t[1]}> "{t[2]}" .'
        ),
    ),
    max_size=30,
)


@settings(max_examples=some(200))
@given(LINES, st.sampled_from(["nt", "ttl"]), st.lists(st.integers(0, 600), max_size=10), st.booleans())
def test_any_cut_of_the_bytes_gives_the_same_events(lines: list[str], form: str, cuts: list[int], end: bool) -> None:
    data = ("\n".join(lines) + ("\n" if end else "")).encode()
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    chunks = [data[a:b] for a, b in pairwise(edges)]

    def run(pieces: list[bytes]) -> list[GraphEvent]:
        return list(events_of(pieces, f"f.{form}", RUNS))

    whole = run([data])
    assert run(chunks) == whole
    starts = [event.record for event in whole]
    assert starts == sorted(starts)
    assert all(lines[record - 1].startswith("<urn:") for record in starts)
