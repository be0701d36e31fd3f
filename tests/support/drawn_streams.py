"""Random streams of statements for Hypothesis, and random ways to read them."""

from __future__ import annotations

from hypothesis import strategies as st

from spaseq.rdf import StreamOptions
from spaseq.rdf.options import EventBy

__all__ = ["AT", "TYPE", "graphs", "linked", "options", "triples"]

AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"

moments = st.one_of(
    st.integers(0, 9).map(lambda n: f'"2026-01-01T00:00:0{n}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'),
    st.sampled_from(
        ['"1767225605"', '"2026-01-01T00:00:05"', '"2026-01-01 00:00:03Z"', '"2026-01-01T02:00:04.5+02:00"']
    ),
)
odd_moments = st.sampled_from(['"soon"', "<a:b>", '"2026-02-30T00:00:00Z"', '"9" ', '"1e30"', '"-5"', '"12.75"', "_:b"])
nodes = st.sampled_from(["<a:s>", "<a:t>", "_:x", "_:y"])
names = st.sampled_from([*(f"<a:g{n}>" for n in range(4)), "_:g"])
objects = st.sampled_from(["<a:o>", '"1"', '"two"@en', '"é"', "_:x", "_:z", "<a:s>", "<a:g1>", '"esc\\"aped"'])
predicates = st.sampled_from(["<a:p>", "<a:p>", "<a:q>", "<a:r>", TYPE])


@st.composite
def graphs(draw: st.DrawFn, odd: bool) -> str:
    """Named graphs and their triples in the default graph; mostly with a time in one of the places."""
    lines = []
    clock = 0
    for number in range(draw(st.integers(0, 8))):
        name = draw(st.one_of(st.just(f"<a:n{number}>"), names))
        clock += draw(st.sampled_from([0, 1, 1, 2, -1 if odd else 0]))
        moment = (
            f'"{max(clock, 0)}"'
            if draw(st.integers(0, 9))
            else draw(st.one_of(moments, odd_moments) if odd else moments)
        )
        where = draw(st.sampled_from(["inside", "inside", "other", "before", "after", "none" if odd else "inside"]))
        about = f"{name} {AT} {moment} .\n"
        inside = [
            f"{draw(nodes)} {draw(predicates)} {draw(objects)} {name} .\n"
            for _ in range(draw(st.integers(0 if odd else 1, 4)))
        ]
        if len(inside) > 0 and draw(st.booleans()):
            inside.append(inside[0])
        if where in ("inside", "other"):
            inside.insert(
                draw(st.integers(0, len(inside))), f"{name if where == 'inside' else '<a:x>'} {AT} {moment} {name} .\n"
            )
        lines += [*([about] if where == "before" else []), *inside, *([about] if where == "after" else [])]
        if odd and not draw(st.integers(0, 5)):
            lines.append(
                draw(st.sampled_from(["<a:s> <a:p> <a:o> .\n", f'<a:g1> {AT} "4" .\n', "<a:s> bad .\n", "# c\n", "\n"]))
            )
    if odd and lines and not draw(st.integers(0, 3)):
        at = draw(st.integers(0, len(lines) - 1))
        lines.insert(draw(st.integers(0, len(lines))), lines.pop(at))
    return "".join(lines)


@st.composite
def triples(draw: st.DrawFn) -> str:
    """Records of subjects, with times or not."""
    lines = []
    for number in range(draw(st.integers(0, 8))):
        subject = draw(st.one_of(st.just(f"<a:n{number}>"), nodes))
        some = [f"{subject} {draw(predicates)} {draw(objects)} .\n" for _ in range(draw(st.integers(0, 4)))]
        if draw(st.integers(0, 5)):
            some.insert(draw(st.integers(0, len(some))), f'{subject} {AT} "{number // 2}" .\n')
        lines += some
    return "".join(lines)


@st.composite
def linked(draw: st.DrawFn) -> str:
    """Records with blank nodes: before and behind the triples that point at them, in each other, shared, alone."""
    few = st.sampled_from([f"_:{label}" for label in "uvwxyz"])
    lines: list[str] = []
    for _ in range(draw(st.integers(0, 30))):
        subject = draw(st.one_of(few, few, st.sampled_from(["<a:s>", "<a:t>", "<a:u>"])))
        predicate = draw(st.one_of(predicates, st.just(AT)))
        value = f'"{len(lines) // 5}"' if predicate == AT else draw(st.one_of(few, few, objects))
        graph = draw(st.sampled_from(["", "", "", "", "", "<a:g> ", "_:u "]))
        lines += draw(st.integers(1, 2)) * [f"{subject} {predicate} {value} {graph}.\n"]
    return "".join(lines)


options: st.SearchStrategy[StreamOptions] = st.builds(
    StreamOptions,
    event_by=st.sampled_from(
        [None, None, EventBy("graph"), EventBy("subject"), EventBy("size", 3), EventBy("size", 1)]
    ),
    time=st.sampled_from([None, AT[1:-1], AT[1:-1], "arrival"]),
    lateness=st.sampled_from([0, 0, 1_000_000_000, 3_000_000_000]),
    late=st.sampled_from(["error", "drop"]),
    malformed=st.sampled_from(["error", "drop"]),
    lookahead=st.sampled_from([250_000, 250_000, 3, 1, 0]),
)
