"""Which part of a query took which event (`match.steps`), and matches on a time axis (`matches.timeline()`)."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import Literal, URIRef

import ceql
import spaseq
from spaseq.core.drawing import Mark, Span, Timeline
from spaseq.core.drawing.html import matches_html
from spaseq.core.errors import LimitReached, OptionError
from spaseq.core.measure import shorten, width_of
from spaseq.core.steps import Step
from tests.support.sizes import some

ROOT = Path(__file__).resolve().parent.parent
SVG = "{http://www.w3.org/2000/svg}"
HEAD = (
    "PREFIX : <urn:e#> SELECT ?x WITHIN 100 SECONDS SLIDING FROM STREAM S <urn:s> FROM STREAM T <urn:t> WHERE { SEQ ("
)
GPMS = """)
DEFINE GPM A ON S { ?x :a ?v } DEFINE GPM B ON S { ?x :b ?w } DEFINE GPM C ON T { ?x :c ?u }
DEFINE GPM N ON S { ?x :n ?m }
}"""


def _graph(kind: str, second: int, subject: str = "x", stream: str = "s") -> spaseq.GraphEvent:
    triple = (URIRef(f"urn:{subject}"), URIRef(f"urn:e#{kind}"), Literal(second))
    return spaseq.GraphEvent(f"urn:{stream}", second * 10**9, (triple,))


def _steps(sequence: str, *events: spaseq.GraphEvent) -> list[list[tuple[str, int, int]]]:
    with spaseq.compile(HEAD + sequence + GPMS).open() as session:
        found = [*session.push(events), *session.close()]
    return [[(step.name, step.position, step.time // 10**9) for step in match.steps] for match in found]


def test_gpms_and_the_events_that_they_took() -> None:
    assert _steps("A ; B", _graph("a", 1), _graph("n", 2), _graph("b", 3)) == [[("A", 0, 1), ("B", 2, 3)]]
    kleene = _steps("A , B+ , C", _graph("a", 1), _graph("b", 2), _graph("b", 3), _graph("c", 4, stream="t"))
    assert kleene == [[("A", 0, 1), ("B", 1, 2), ("B", 2, 3), ("C", 3, 4)]]
    both = _steps("A ; (B & C)", _graph("a", 1), _graph("b", 2), _graph("c", 2, stream="t"))
    assert both == [[("A", 0, 1), ("B", 1, 2), ("C", 1, 2)]]
    assert _steps("A ; (B | N)", _graph("a", 1), _graph("n", 2)) == [[("A", 0, 1), ("N", 1, 2)]]


def test_what_must_not_come_is_no_step() -> None:
    assert _steps("A , N! , B", _graph("a", 1), _graph("a", 2, "y"), _graph("b", 3)) == [[("A", 0, 1), ("B", 2, 3)]]
    assert _steps("A ; N! ; B", _graph("a", 1), _graph("b", 3)) == [[("A", 0, 1), ("B", 1, 3)]]


def test_of_events_of_one_time_those_that_agree() -> None:
    events = (_graph("a", 1), _graph("b", 2, "y"), _graph("b", 2))
    with spaseq.compile(HEAD + "A ; B" + GPMS).open() as session:
        (match,) = [*session.push(events), *session.close()]
    assert len(match.events) == 3
    assert [str(step.event.triples[0][0]) for step in match.steps] == ["urn:x", "urn:x"]


DISTRICTS = """PREFIX : <urn:e#> SELECT %s WITHIN 100 SECONDS %s FROM STREAM S <urn:s> FROM STREAM T <urn:t>
WHERE { SEQ (%s)
DEFINE GPM A ON S { ?a :loc ?l ; :of ?x } DEFINE GPM B ON T { ?b :area ?l } DEFINE GPM C ON S { ?c :loc ?l } }"""


def _placed(subject: str, second: int, district: int) -> spaseq.GraphEvent:
    """A house (a…, c…) or the weather (b…) of a district."""
    node = URIRef(f"urn:{subject}")
    triples = [(node, URIRef("urn:e#area" if subject[0] == "b" else "urn:e#loc"), URIRef(f"urn:L{district}"))]
    triples += [(node, URIRef("urn:e#of"), URIRef("urn:x"))] if subject[0] == "a" else []
    return spaseq.GraphEvent("urn:t" if subject[0] == "b" else "urn:s", second * 10**9, tuple(triples))


def test_events_that_do_not_join_are_no_steps() -> None:
    """A match in one district listed the weather of another one at the same time."""
    events = [_placed("a1", 1, 1), _placed("a2", 1, 2), _placed("b1", 2, 1), _placed("b2", 2, 2), _placed("b3", 2, 2)]
    for partition in ("", "PARTITION BY (?l)"):
        with spaseq.compile(DISTRICTS % ("?a", partition, "A ; B")).open() as session:
            session.push(events)
        found = {str(m.bindings["a"]): [str(step.event.triples[0][0]) for step in m.steps] for m in session.rest}
        assert found == {"urn:a1": ["urn:a1", "urn:b1"], "urn:a2": ["urn:a2", "urn:b2", "urn:b3"]}


placed = st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.integers(0, 2))
SHAPES = {
    "A : B": "?a ?b",
    "A ; B : C": "?a ?b ?c",
    "A : (B & C)": "?a ?b ?c",
    "A : (B | C)": "?a ?b ?c",
}


@settings(max_examples=some(25), deadline=None)
@given(st.lists(placed, min_size=2, max_size=9), st.sampled_from(sorted(SHAPES)), st.booleans(), st.booleans())
def test_steps_are_the_events_of_the_join(
    drawn: list[tuple[str, int, int]], shape: str, by_key: bool, shows: bool
) -> None:
    """Every event has a subject of its own: a query that selects all of them says which events its matches join."""
    events = [_placed(f"{kind}{n}", second, district) for n, (kind, second, district) in enumerate(drawn)]
    events.sort(key=lambda event: event.time)
    partition = "PARTITION BY (?l)" if by_key else ""

    def matches(selected: str) -> list[spaseq.Match]:
        with spaseq.compile(DISTRICTS % (selected, partition, shape)).open() as session:
            pushed = session.push(events)
        return [*pushed, *session.rest]

    joined: dict[object, set[str]] = {}
    for match in matches(SHAPES[shape]):
        taken = {str(term) for term in match.bindings.values()}
        joined.setdefault((match.positions, match.bindings["a"] if shows else None), set()).update(taken)
    for match in matches("?a" if shows else "?x"):
        told = {str(step.event.triples[0][0]) for step in match.steps}
        whole = joined[match.positions, match.bindings["a"] if shows else None]
        if "|" in shape:  # one of the ways is told
            assert told <= whole and len({step.position for step in match.steps}) == 2
        else:
            assert told == whole


def test_every_match_of_an_example_has_its_steps() -> None:
    place = ROOT / "examples" / "smart-grid"
    query = spaseq.compile((place / "query.rq").read_text())
    streams = {"S1": place / "power.nq", "S2": place / "weather.nq", "S3": place / "storage.nq"}
    matches = list(
        query.run({k: str(v) for k, v in streams.items()}, {"http://smartgrid.org/db": str(place / "kb.ttl")})
    )
    assert len(matches) == 23
    for match in matches:
        steps = match.steps
        assert {step.position for step in steps} == set(match.positions)
        order = "".join(dict.fromkeys(step.name for step in steps))
        assert order == "ABC" and [step.name for step in steps] == sorted(step.name for step in steps)


CLAUSES = ["?x ((?v + 1) AS ?more)", "?x (?w+ AS ?all)", "?x (SUM(?w) AS ?sum)", "DISTINCT ?x ?v"]


@pytest.mark.parametrize("selected", CLAUSES)
@pytest.mark.parametrize("ending", ["", pytest.param("ORDER BY DESC(?v) LIMIT 1000", marks=pytest.mark.slow)])
def test_matches_that_clauses_made_rows_of_have_their_steps(selected: str, ending: str) -> None:
    """Many, as few of them are computed one by one; they knew no step since they were computed as columns."""
    head = HEAD.replace("SELECT ?x", f"SELECT {selected}").replace("100 SECONDS SLIDING", "10 SECONDS")
    own = GPMS.splitlines()[1].split(" DEFINE GPM C")[0]
    query = spaseq.compile(f"{head.replace('FROM STREAM T <urn:t> ', '')}A , B+){own} }} {ending}")
    events = [_graph("b" if i % 4 else "a", i) for i in range(400)]
    with query.open() as session:
        found = [*session.push(events), *session.close()]
    assert len(found) >= 100
    for match in found:
        assert "".join(step.name for step in match.steps) == "A" + "B" * (len(match.positions) - 1)


def test_without_its_events_a_match_says_so(tmp_path: Path) -> None:
    (tmp_path / "s.nq").write_text('<urn:x> <urn:e#a> "1" <urn:g> .\n<urn:g> <urn:at> "1" .\n')
    query = spaseq.compile(HEAD.replace("FROM STREAM T <urn:t> ", "") + "A ) DEFINE GPM A ON S { ?x :a ?v } }")
    (match,) = query.run({"S": str(tmp_path / "s.nq")}, time="urn:at", keep_events=False)
    with pytest.raises(OptionError, match="does not know its events"):
        match.steps  # noqa: B018
    (match,) = query.run({"S": str(tmp_path / "s.nq")}, time="urn:at")
    assert [step.name for step in match.steps] == ["A"]


def test_variables_of_valuations_else_types() -> None:
    query = ceql.compile("SELECT x, y WHERE A AS x ; B+ AS y")
    events = [{"type": kind, "time": i} for i, kind in enumerate("ABB")]

    def told(match: ceql.Match) -> list[tuple[str, int]]:
        return [(step.name, step.position) for step in match.steps]

    valuations = sorted(told(match) for match in query.run(events, valuations=True))
    assert valuations == [[("x", 0), ("y", 1)], [("x", 0), ("y", 1), ("y", 2)], [("x", 0), ("y", 2)]]
    assert sorted(told(match) for match in query.run(events))[0] == [("A", 0), ("B", 1)]
    with query.open(valuations=True) as session:
        pushed = sorted(told(match) for event in events for match in session.push(event))
    assert pushed == valuations
    (match,) = ceql.compile("SELECT * WHERE A AS x").run(events, valuations=True)
    assert match.steps[0].event == events[0] and match.steps[0].time == 0


# -- timelines


def _boxes(svg: str) -> list[tuple[str, float, float, float, float]]:
    """Of each text its left, right, top and bottom, as wide as its letters are in most fonts."""
    found = []
    for text in ET.fromstring(svg).iter(f"{SVG}text"):
        wide = 6.7 * width_of(text.text or "")
        x, y = float(text.get("x", "0")), float(text.get("y", "0"))
        left = x - wide / 2 if text.get("text-anchor") == "middle" else x
        found.append((text.text or "", left, left + wide, y - 10, y + 3))
    return found


def _check(timeline: Timeline) -> None:
    svg = timeline.svg()
    width, height = map(float, (ET.fromstring(svg).get("width", "0"), ET.fromstring(svg).get("height", "0")))
    boxes = _boxes(svg)
    for label, left, right, top, bottom in boxes:
        assert left >= 0 and right <= width and top >= 0 and bottom <= height, label
    for one, other in combinations(boxes, 2):
        apart = one[2] <= other[1] or other[2] <= one[1] or one[4] <= other[3] or other[4] <= one[3]
        assert apart or not (one[0] and other[0]), (one, other)


texts = st.text(max_size=70)
places = st.one_of(st.integers(0, 10**6).map(float), st.integers(0, 4 * 10**9).map(float))
spans = st.builds(
    lambda ats, name, label: Span(tuple(Mark(at, name, "event") for at in sorted(ats)), label),
    st.lists(places, max_size=5), texts, texts,
)  # fmt: skip


@settings(max_examples=some(30), deadline=None)
@given(st.lists(spans, max_size=6).map(tuple), texts, st.booleans())
def test_no_text_of_a_timeline_lies_on_another(found: tuple[Span, ...], title: str, dates: bool) -> None:
    _check(Timeline(found, title, dates=dates))


def test_timelines_of_both_languages(tmp_path: Path) -> None:
    wicked = "<script>alert(1)</script>"
    events = [
        {"type": kind, "time": f"2026-01-01T00:00:0{i}Z", "u": wicked} for i, kind in enumerate(["A", wicked, "B"])
    ]
    timeline = ceql.compile(f"SELECT * WHERE A AS x ; `{wicked}` AS y ; B").run(events, valuations=True).timeline()
    svg = timeline.svg()
    assert len(timeline.spans) == 1 and "<script" not in svg and "<script" not in timeline.html()
    assert "<title>x: 2026-01-01T00:00:00Z</title>" in svg and "time (UTC)" in svg
    assert timeline._repr_html_() == svg
    _check(timeline)
    many = ceql.compile("SELECT * WHERE A").run([{"type": "A"}] * 300)
    assert len(many.timeline().spans) == 200 and len(many.timeline(3).spans) == 3
    timeline.save(tmp_path / "t.html")
    assert (tmp_path / "t.html").read_text().startswith("<!doctype html>")
    with pytest.raises(OptionError, match="cannot write"):
        timeline.save(tmp_path / "none" / "t.svg")


def test_texts_are_shortened_by_their_width() -> None:
    assert shorten("abc", 3) == "abc" and shorten("abcd", 3) == "ab…"
    assert width_of("寿司") == 4 and shorten("寿司寿司", 5) == "寿司…" and shorten("a\nb", 9) == "a b"


# -- notebooks


WICKED = "<script>alert('x')</script>"


def test_what_a_notebook_shows_is_escaped_and_bounded() -> None:
    query = ceql.compile(
        f'SELECT * WHERE A AS x ; B AS y FILTER x[u = "{WICKED.replace(chr(39), "")}"] WITHIN 100 EVENTS'
    )
    assert "<script" not in query._repr_html_() and "&lt;script&gt;" in query._repr_html_() and len(repr(query)) <= 80
    events = [{"type": "A", "u": WICKED.replace("'", "")}, *({"type": "B", "u": WICKED} for _ in range(30))]
    matches = query.run(events, valuations=True)
    assert matches.count() == 30
    before = matches.counters
    html = matches._repr_html_()
    assert html.count("<tr>") == 11 and "the first 10 matches." in html and "<td" in html
    assert matches.counters is before, "looking is a use of its own"
    match = next(iter(matches))
    assert "<script" not in match._repr_html_() and "&lt;script&gt;" in match._repr_html_()
    head = re.findall(r'<th style="text-align:(\w+)">([^<]*)', html)
    assert ("right", "start") in head and ("left", "positions") in head, "as the values below"
    none = ceql.compile("SELECT * WHERE A AS x ; Z AS z").run(events)._repr_html_()
    assert "0 matches." in none and "no event has the type Z" in none
    once = query.run(iter([events]), valuations=True)
    assert "read only once" in once._repr_html_() and once.count() == 30, "and it was not read"


@pytest.mark.parametrize(
    "late, said", [(0, "1 match."), (1, "1 match."), (2, "no match so far; nothing was looked for beyond 20 seconds.")]
)
def test_a_notebook_looks_again_where_the_first_look_found_none(late: int, said: str) -> None:
    """As that one waits for kernels to be compiled, on a fresh installation."""
    looks: list[int] = []

    class Late:
        def __iter__(self) -> Iterator[int]:
            looks.append(len(looks))
            if len(looks) <= late:
                raise LimitReached("time_limit", 2, 2, "seconds")
            yield 7

    html = matches_html(Late(), ["n"], lambda match: [match])
    assert f"<p>{said}</p>" in html and (">7</td>" in html) == (late < 2)
    assert len(looks) == min(late + 1, 2)


def test_a_notebook_shows_graphs_and_terms(tmp_path: Path) -> None:
    text = HEAD.replace("FROM STREAM T <urn:t> ", "") + "A ) DEFINE GPM A ON S { ?x :a ?v } }"
    query = spaseq.compile(text)
    assert ">PREFIX : &lt;urn:e#&gt;" in query._repr_html_() and len(repr(query)) <= 80
    (tmp_path / "s.nq").write_text('<urn:x&y> <urn:e#a> "<b>" <urn:g> .\n<urn:g> <urn:at> "1" .\n')
    matches = query.run({"S": str(tmp_path / "s.nq")}, time="urn:at")
    assert "1 match." in matches._repr_html_() and "urn:x&amp;y" in matches._repr_html_()
    (match,) = matches
    assert "urn:x&amp;y urn:e#a &lt;b&gt;" in match._repr_html_(), "of IRIs with // the last part"
    assert "&lt;b&gt;" in match._repr_html_() and "<b>" not in match._repr_html_()
    (match,) = query.run({"S": str(tmp_path / "s.nq")}, time="urn:at", keep_events=False)
    assert "1 s" in match._repr_html_()
    broken = query.run({"S": str(tmp_path / "s.nq")}, time="urn:none")
    assert broken._repr_html_().startswith("<pre ")


def test_automata_steps_and_matches_say_in_a_line_what_they_are() -> None:
    query = ceql.compile("SELECT * WHERE A AS x ; B AS y FILTER y.v > x.v WITHIN 9 EVENTS")
    found = query.run([{"type": "A", "v": 1}, {"type": "B", "v": "<b>" * 90}, {"type": "B", "v": 2}])
    assert repr(found).startswith("<ceql.Matches of 'SELECT * WHERE A") and width_of(repr(found)) < 85
    assert repr(query.automaton) == "<CEA of 2 states and 3 transitions; describe() lists them>"
    shown = query.automaton._repr_html_()
    assert shown.startswith("<pre ") and ">2 states, 3 transitions" in shown and "&gt;" in shown
    graph = spaseq.GraphEvent("urn:s", 10**9, ((URIRef("urn:x"), URIRef("urn:p"), Literal("<script>")),))
    for event in ({"type": "B", "v": "<script>" * 90}, graph):
        step = Step("B", 3, 10**9, event)
        assert repr(step).startswith("<Step B at 3, 1 s: ") and width_of(repr(step)) <= 100
        html = step._repr_html_()
        assert "<script" not in html and "&lt;script&gt;" in html and len(html) < 2_000
    text = HEAD + "A ; B" + GPMS
    assert repr(spaseq.compile(text).run({"S": "s.nq", "T": "t.nq"})) == "<spaseq.Matches of ?x>"
