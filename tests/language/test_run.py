"""Running compiled queries: matches, incremental sessions, snapshots, windows, partitions."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from rdflib import Literal, URIRef

import spaseq
from spaseq.core.errors import EventError, InternalError, OptionError
from spaseq.gpm import Knowledge
from spaseq.language.results.match import Match
from spaseq.language.runtime.recogniser import Recogniser
from spaseq.language.solving.chunks import chunk_of
from spaseq.language.solving.solve import InstantSolutions
from spaseq.rdf import Counters, GraphEvent, Instant, StreamOptions

E = "http://example.org/"
SECOND = 10**9


def query(sequence: str, gpms: str, within: str = "WITHIN 100 SECONDS", select: str = "*", streams: str = "S") -> str:
    froms = "\n".join(f"FROM STREAM {name} <{E}{name}>" for name in streams.split())
    return f"PREFIX : <{E}>\nSELECT {select}\n{within}\n{froms}\nWHERE {{ SEQ ({sequence})\n{gpms} }}"


AB = "DEFINE GPM A ON S { ?a :a ?x } DEFINE GPM B ON S { ?b :b ?y }"


def event(time: float, *triples: str, stream: str = "S") -> GraphEvent:
    """An event with triples written `subject predicate object`; whole numbers are literals."""
    terms = [tuple(t.split()) for t in triples]
    parsed = tuple((URIRef(E + s), URIRef(E + p), _term(o)) for s, p, o in terms)
    return GraphEvent(E + stream, round(time * SECOND), parsed, None, "test", 1)


def _term(text: str) -> Any:
    return Literal(int(text)) if text.lstrip("-").isdigit() else URIRef(E + text)


def run(text: str, events: list[GraphEvent], **options: Any) -> list[Match]:
    """All matches of events pushed at once."""
    with spaseq.compile(text).open(**options) as session:
        return session.push(events) + session.close()


def seconds(matches: list[Match]) -> list[list[float]]:
    return sorted([t / SECOND for t in match.times] for match in matches)


EVENTS = [event(1, "u a 1"), event(2, "u b 2"), event(3, "u a 3"), event(5, "u b 4"), event(5, "v b 5")]


def test_a_match_says_what_it_is() -> None:
    (first, *rest) = run(query("A; B", AB, select="?x ?y"), EVENTS)
    assert (first.start, first.end, first.positions) == (0, 1, (0, 1))
    assert first.times == (SECOND, 2 * SECOND) and first.time == 2 * SECOND
    assert first.bindings == {"x": Literal(1), "y": Literal(2)}
    assert first.events == (EVENTS[0], EVENTS[1])
    assert [(m.positions, m.bindings["y"]) for m in rest] == [((2, 3), Literal(4)), ((2, 3), Literal(5))]
    assert rest[0].events == (EVENTS[2], EVENTS[3], EVENTS[4]), "all graphs of the instants"


@pytest.mark.parametrize("seed", range(5))
def test_any_cut_gives_the_same_matches_and_snapshots_go_on(seed: int) -> None:
    text = query("A; B+", AB)
    expected = run(text, EVENTS)
    randomness = random.Random(seed)
    compiled = spaseq.compile(text)
    session, found, rest = compiled.open(), [], list(EVENTS)
    while rest:
        size = randomness.randint(0, 2)
        found += session.push(rest[:size])
        rest = rest[size:]
        if randomness.random() < 0.5:
            session = compiled.open(session.snapshot())
    found += session.close()
    assert found == expected
    assert session.close() == []


def test_an_instant_waits_for_the_next_time() -> None:
    session = spaseq.compile(query("A & B", AB)).open()
    assert session.push([event(1, "u a 1")]) == []
    assert session.push([event(1, "u b 2")]) == []
    (match,) = session.push([event(2, "w w w")])
    assert match.positions == (0,)


def test_arrivals_are_instants_of_their_own() -> None:
    text = query("A, B", AB)
    events = [event(1, "u a 1"), event(1, "u b 2")]
    assert run(text, events) == []
    assert len(run(text, events, ties="arrival")) == 1
    session = spaseq.compile(text).open(options=StreamOptions.parse(time_from="arrival"))
    assert len(session.push(events)) == 1, "at once: nothing can join the instant"


def test_time_must_not_run_back() -> None:
    session = spaseq.compile(query("A", AB)).open()
    session.push([event(2, "u a 1")])
    with pytest.raises(EventError, match="goes back in time"):
        session.push([event(1, "u a 1")])


def test_unknown_streams_are_refused() -> None:
    session = spaseq.compile(query("A", AB)).open()
    with pytest.raises(EventError, match=f"does not read the stream <{E}T>"):
        session.push([event(2, "u a 1", stream="T")])


def test_nothing_is_pushed_into_a_closed_session() -> None:
    with spaseq.compile(query("A", AB)).open() as session:
        pass
    with pytest.raises(OptionError, match="closed"):
        session.push([])


@pytest.mark.parametrize(
    ("within", "expected"),
    [
        ("WITHIN 2 SECONDS", [[2, 3], [4, 5]]),  # [2, 4) and [4, 6)
        ("WITHIN 2 SECONDS STARTING AT 1", [[1, 2], [3, 4]]),
        ("WITHIN 1 SECOND SLIDING", [[1, 2], [2, 3], [3, 4], [4, 5]]),
        ("", [[1, 2], [2, 3], [3, 4], [4, 5]]),
    ],
)
def test_windows(within: str, expected: list[list[float]]) -> None:
    events = [event(t, "u a 1", "u b 1") for t in range(1, 6)]
    assert seconds(run(query("A; B", AB, within), events)) == expected


def test_the_unit_reads_the_start() -> None:
    compiled = spaseq.compile(query("A", AB, "WITHIN 2 SECONDS STARTING AT 1500"))
    assert compiled.compiled.window("ms").origin == 3 * SECOND // 2
    assert compiled.compiled.window("s").origin == 1500 * SECOND


def test_what_leaves_the_window_is_forgotten() -> None:
    session = spaseq.compile(query("A; B", AB, "WITHIN 2 SECONDS SLIDING")).open()
    for t in range(0, 3000, 1000):
        session.push([event(t + i, "u a 1") for i in range(1000)])
        assert len(session.recogniser._history) == 3


PARTITIONED = """DEFINE GPM A ON S { ?k :a ?x } DEFINE GPM B ON S { ?k :b ?y FILTER (?y > 0) }"""


def test_contiguity_is_within_the_partition() -> None:
    text = query("A, B", PARTITIONED, "WITHIN 9 SECONDS PARTITION BY (?k)")
    events = [event(1, "u a 1"), event(2, "v a 1"), event(3, "u b 2"), event(4, "v w 1"), event(5, "v b 3")]
    found = run(text, events)
    assert [(m.positions, m.bindings["k"]) for m in found] == [((0, 2), URIRef(E + "u")), ((1, 4), URIRef(E + "v"))]


def test_a_failed_filter_keeps_the_instant_in_its_partition() -> None:
    text = query("A, B", PARTITIONED, "WITHIN 9 SECONDS PARTITION BY (?k)")
    assert run(text, [event(1, "u a 1"), event(2, "u b 0"), event(3, "u b 2")]) == []


def test_partitions_that_agree_after_projection_give_one_match() -> None:
    text = query("A, B", PARTITIONED, "WITHIN 9 SECONDS PARTITION BY (?k)", select="?x")
    found = run(text, [event(1, "u a 1", "v a 1"), event(2, "u b 2", "v b 2")])
    assert [(m.positions, m.bindings) for m in found] == [((0, 1), {"x": Literal(1)})]


def test_what_only_one_alternative_binds_is_fresh_in_runs_of_the_other() -> None:
    gpms = """DEFINE GPM A ON S { ?a :a ?z } DEFINE GPM B ON S { ?b :b ?y } DEFINE GPM C ON S { ?c :c ?z }"""
    text = query("(A | B); C+", gpms, select="?z")
    rounds = [event(2, "u c 1"), event(3, "u c 2")]
    by_a = run(text, [event(1, "u a 1"), *rounds])
    assert [m.positions for m in by_a] == [(0, 1)], "?z is bound by A, so the second round does not join"
    by_b = run(text, [event(1, "u b 1"), *rounds])
    assert [m.positions for m in by_b] == [(0, 1), (0, 1, 2)], "the run through B binds ?z afresh in each round"
    assert by_b[1].bindings == {"z": Literal(2)}


def test_blank_nodes_of_two_events_never_join(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    time = "<http://www.w3.org/ns/prov#generatedAtTime>"
    path.write_text(f'<{E}g1> {time} "1" .\n_:b <{E}a> "1" <{E}g1> .\n<{E}g2> {time} "2" .\n_:b <{E}b> "2" <{E}g2> .\n')
    gpms = "DEFINE GPM A ON S { ?n :a ?x } DEFINE GPM B ON S { ?n :b ?y } DEFINE GPM C ON S { ?m :b ?y }"
    assert spaseq.compile(query("A; B", gpms)).run({"S": str(path)}).count() == 0
    assert spaseq.compile(query("A; C", gpms)).run({"S": str(path)}).count() == 1


def _file(tmp_path: Path, *lines: str) -> str:
    path = tmp_path / "s.nt"
    path.write_text("".join(f'<{E}{s}> <{E}{p}> "{o}" .\n' for s, p, o in (line.split() for line in lines)))
    return str(path)


def test_files_give_lazy_matches(tmp_path: Path) -> None:
    path = _file(tmp_path, "u a 1", "v b 2", "u a 3", "w b 4")
    compiled = spaseq.compile(query("A; B", AB, select="?x ?y"))
    matches = compiled.run({"S": path}, time_from="arrival")
    assert matches.count() == 2 == len(list(matches))
    assert isinstance(matches.counters, Counters) and matches.counters.events == 4
    table = matches.to_arrow()
    assert table.column_names == ["start", "end", "positions", "time", "x", "y"]
    assert table.to_pylist()[0] == {"start": 0, "end": 1, "positions": [0, 1], "time": 10**6, "x": '"1"', "y": '"2"'}
    assert list(matches.to_pandas()["y"]) == ['"2"', '"4"']
    assert compiled.run({E + "S": [path]}, keep_events=False, interval="1ms").solutions().__next__()[0] == 10**6


def test_variables_named_as_columns(tmp_path: Path) -> None:
    gpms = "DEFINE GPM A ON S { ?time :a ?end }"
    table = spaseq.compile(query("A", gpms)).run({"S": _file(tmp_path, "u a 1")}, time_from="arrival").to_arrow()
    assert table.column_names == ["start", "end", "positions", "time", "?end", "?time"]


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        ({}, "no file is given for stream S"),
        ({"S": "x.nt", "T": "y.nt"}, "the query has no stream T"),
        ({"S": "x.nt", E + "S": "y.nt"}, "is given twice"),
    ],
)
def test_streams_must_be_those_of_the_query(streams: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        spaseq.compile(query("A", AB)).run(streams)


def test_wrong_options_are_named() -> None:
    compiled = spaseq.compile(query("A", AB))
    with pytest.raises(OptionError, match="no option tiems"):
        compiled.open(tiems="arrival")  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="not both"):
        compiled.open(options=StreamOptions(), ties="arrival")
    with pytest.raises(OptionError, match="time_unit"):
        compiled.open(time_unit="years")


def test_a_query_pickles_and_explains_itself() -> None:
    compiled = spaseq.compile(query("A; B+", AB), source="q.rq")
    copy = pickle.loads(pickle.dumps(compiled))
    assert copy.checked == compiled.checked and copy.source == "q.rq"
    assert "GPM A" in compiled.explain() and "tumbling" in compiled.explain()
    assert compiled.automaton.states > 1
    with pytest.raises(spaseq.OptionError, match="there is no format png"):
        compiled.explain("png")


@pytest.mark.parametrize(("first", "second", "kept"), [
    ("", "", ()),
    ("FILTER(?q > ?p)", "", ("runs in state 1: a tree by",)),
    ("FILTER(?q > ?p)", "FILTER(?r > ?p)", ("runs in state 1: a tree by", "runs in state 2: a tree by")),
    ("", "FILTER(?p + ?q + ?r < 5)", ("runs in state 1: tried one by one", "runs in state 2: tried one by one")),
])  # fmt: skip
def test_explain_says_how_runs_are_kept(first: str, second: str, kept: tuple[str, ...]) -> None:
    text = f"""SELECT ?q WITHIN 100 SECONDS SLIDING FROM STREAM S <urn:s> WHERE {{ SEQ (A : B : C)
        DEFINE GPM A ON S {{ ?x <urn:a> ?p }}
        DEFINE GPM B ON S {{ ?y <urn:b> ?q {first} }}
        DEFINE GPM C ON S {{ ?z <urn:c> ?r {second} }} }}"""
    lines = [line for line in spaseq.compile(text).explain().splitlines() if line.startswith(("runs in", "once a"))]
    trees = [line for line in kept if "tree" in line]
    assert [line[: len(start)] for line, start in zip(lines, kept, strict=False)] == list(kept)
    assert len(lines) == len(kept) + bool(trees) and ("several solutions" in "".join(lines)) == bool(trees)


def test_rows_solved_elsewhere_give_the_same_matches() -> None:
    compiled = spaseq.compile(query("A; B", AB))
    solver = compiled.compiled.solver(Knowledge())
    instants = [Instant(i, e.time, (e,)) for i, e in enumerate(EVENTS[:4])]
    solved = solver.rows(chunk_of(instants, solver.solve_pushed))
    values = [{name: frozenset(solved.mappings(name, i.position)) for name in "AB"} for i in instants]
    rows = [InstantSolutions(i.position, i.time, None, own) for i, own in zip(instants, values, strict=True)]
    recogniser = Recogniser(compiled.checked, compiled.program(), None, keep_events=False)
    found = [match for row in rows for match in recogniser.push_rows([pickle.loads(pickle.dumps(row))])]
    assert [m.times for m in found] == [m.times for m in run(query("A; B", AB), EVENTS[:4])]
    with pytest.raises(InternalError):
        list(recogniser.push(instants))


@pytest.mark.parametrize("count", [2, 3, 70])
def test_files_of_one_stream_are_merged_by_time(count: int, tmp_path: Path) -> None:
    """Up to 64 of them, equal times in the order of the files; more must follow each other in time."""
    stated = "<http://www.w3.org/ns/prov#generatedAtTime>"
    for number in range(count):
        lines = []
        for step in range(3):
            graph, time = f"<{E}g{number}-{step}>", 10 * step + number // 2
            lines.append(f'{graph} {stated} "{time}" .\n<{E}u> <{E}p> "{number}" {graph} .\n')
        (tmp_path / f"s{number:02}.nq").write_text("".join(lines), "utf-8")
    found = spaseq.compile(query("A", "DEFINE GPM A ON S { ?a :p ?x }", "")).run({"S": str(tmp_path / "s*.nq")})
    if count > 64:
        with pytest.raises(spaseq.EventError, match="goes back in time"):
            list(found)
        return
    expected = sorted((10 * step + number // 2, str(number)) for number in range(count) for step in range(3))
    assert [(m.time // 10**9, str(m.bindings["x"])) for m in found] == expected
    assert found.counters.events == 3 * count


ILL_TYPED = (
    "?s :p ?x FILTER (?x > 1)",
    "?s :p ?x FILTER (YEAR(?x) > 1 || MONTH(?x) > 1 || DAY(?x) > 1 || HOURS(?x) > 1 || MINUTES(?x) > 1)",
    "?s :p ?x FILTER (ABS(?x) > 1 || CEIL(?x) > 1 || FLOOR(?x) > 1 || ROUND(?x) > 1 || SECONDS(?x) > 1)",
    "?s :p ?x FILTER (TZ(?x) = 'Z')",
    "?s :p ?x FILTER (-?x < 1 || ?x + 1 > 1 || xsd:integer(?x) > 1)",
)


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("pattern", ILL_TYPED)
def test_ill_typed_literals_are_errors_of_conditions_and_make_no_noise(
    pattern: str,
    reference: bool,
    tmp_path: Path,
    recwarn: pytest.WarningsRecorder,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Literals whose text does not fit their type: a condition on them is not true, and no library says a word."""
    xsd = "http://www.w3.org/2001/XMLSchema#"
    texts = [("abc", "integer"), ("x", "dateTime"), ("10", "date"), ("-", "decimal"), ("yes", "boolean")]
    lines = [f'<{E}s{i}> <{E}p> "{text}"^^<{xsd}{kind}> .\n' for i, (text, kind) in enumerate(texts)]
    (tmp_path / "s.nt").write_text("".join(lines))
    text = query("A", f"DEFINE GPM A ON S {{ {pattern} }}")
    assert list(spaseq.compile(text).run({"S": str(tmp_path / "s.nt")}, reference=reference, time_from="arrival")) == []
    everything = query("A", "DEFINE GPM A ON S { ?s :p ?x BIND (YEAR(?x) AS ?y) }") + " ORDER BY ?y ?x"
    found = list(
        spaseq.compile(everything).run({"S": str(tmp_path / "s.nt")}, reference=reference, time_from="arrival")
    )
    assert sorted(str(m.bindings["x"]) for m in found) == sorted(text for text, _ in texts)
    assert capfd.readouterr() == ("", "") and not caplog.records
    table = (
        spaseq.compile(everything)
        .run({"S": str(tmp_path / "s.nt")}, reference=reference, time_from="arrival")
        .to_arrow()
    )
    assert sorted(term.split('"')[1] for term in table["x"].to_pylist()) == sorted(text for text, _ in texts)
    assert not [str(warning.message) for warning in recwarn]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"streams": None}, "streams are given by name, not as a NoneType"),
        ({"streams": ["s.nt"]}, "streams are given by name, not as a list"),
        ({"streams": {"S": None}}, "a NoneType is no path"),
        ({"streams": {"S": [b"s.nt"]}}, "a bytes is no path"),
        ({"kb": "kb.ttl"}, "background knowledge is given by IRI, not as a str"),
        ({"kb": {E + "kb": 3}}, "a int is no background knowledge"),
        ({"lateness": "5"}, 'lateness="5": not a duration'),
        ({"event_by": 3}, 'event_by="3": no such way'),
    ],
)
def test_arguments_that_cannot_be_used(given: dict[str, Any], message: str) -> None:
    compiled = spaseq.compile(query("A", AB))
    with pytest.raises(OptionError, match=message):
        list(compiled.run(**{"streams": {"S": "s.nt"}, **given}))


@pytest.mark.parametrize("text", [None, 3, b"SELECT"])
def test_a_query_is_text(text: Any) -> None:
    with pytest.raises(OptionError, match="a query is text"):
        spaseq.compile(text)
