"""Events without times, types or keys, or with some under other names, on all roads.

What must hold: all roads give the same answer, or each an error that says what to do. Over events without times a query
that needs them is an `OptionError` that names the columns, or predicates, that may hold them; following its hint ends
it. A guess that the answer depends on has a note.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

import ceql
import spaseq
from spaseq.core.errors import SpaseqError
from spaseq.rdf import StreamOptions
from tests.support.graph_events import read_stream

__all__ = ["draw", "problem_of"]

_TIMES = (None, "time", "timestamp", "ts", "date", "datetime", "event_time", "when", "stamp")
_CLOCKLIKE = ("ts", "date", "datetime", "event_time", "when")
"""Names of columns that are candidates if they hold numbers."""
_CEQL = (
    "SELECT * WHERE A AS a ; B AS b WITHIN 10 SECONDS",
    "SELECT * WHERE A AS a ; B AS b WITHIN 3 EVENTS",
    "SELECT * WHERE A AS a ; B AS b",
    "SELECT * WHERE A AS a ; B AS b FILTER a.k = b.k WITHIN 1 HOUR",
    "SELECT * WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 10 SECONDS",
    "SELECT * WHERE A AS a ; B AS b PARTITION BY [k]",
    "SELECT * WHERE A AS a ; NOT B AS b WITHIN 2 SECONDS",
    "SELECT NEXT * WHERE A AS a ; A AS c ; B AS b WITHIN 10 MINUTES",
)
_READING: tuple[dict[str, str], ...] = (
    {}, {}, {}, {}, {"time_from": "arrival"}, {"interval": "3s"}, {"time": "ts"}, {"time_unit": "ms"},
    {"lateness": "5s"}, {"lateness": "1000s", "late": "drop"}, {"type_column": "kind"},
)  # fmt: skip
_SPASEQ = """SELECT {what} {window} FROM STREAM S <urn:s> WHERE {{ SEQ ({sequence})
  DEFINE GPM A ON S {{ ?a <urn:v> ?v }} DEFINE GPM B ON S {{ ?a <urn:w> ?w }} }} {tail}"""
_GENERATED = "http://www.w3.org/ns/prov#generatedAtTime"
_PIECES = ("alone", "by twos")
Outcome = tuple[str, Any]


def draw(rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """The check, and what it is given: as JSON."""
    return "clocks", (json.dumps(_tuples(rng) if rng.random() < 0.6 else _graphs(rng)),)


def problem_of(given: str) -> str:
    """What is wrong with what comes of it; empty if nothing is."""
    case = json.loads(given)
    return _wrong_tuples(case) if case["language"] == "ceql" else _wrong_graphs(case)


# -- tuples


def _time(rng: random.Random, form: str, second: int) -> Any:
    match form:
        case "number":
            return second
        case "decimal":
            return second + 0.5
        case "date":
            return f"2026-06-15T08:{second // 60:02d}:{second % 60:02d}Z"
        case "day":
            return f"2026-06-{1 + second // 60:02d}"
        case "numeral":
            return str(second)
        case "words":
            return "soon"
    return rng.choice((second, f"2026-06-15T08:00:{second % 60:02d}Z", None, True, "soon"))


def _tuples(rng: random.Random) -> dict[str, Any]:
    names = rng.sample(_TIMES, rng.choice((1, 1, 1, 2)))
    forms = {name: rng.choice(("number", "number", "decimal", "date", "date", "day", "numeral", "words", "mixed"))
             for name in names if name}  # fmt: skip
    kind, key = rng.choice(("type", "type", "type", "type", "event_type", "kind", None)), rng.choice(("k", "k", "key"))
    holes = rng.choice((0.0, 0.0, 0.0, 0.3))
    events, second = [], 0
    for _ in range(rng.randrange(1, 9)):
        second += rng.choice((0, 1, 1, 4, 30))
        event: dict[str, Any] = {} if kind is None else {kind: rng.choice("AABBC")}
        event[key] = rng.choice((1, 1, 2, "x", None))
        for name, form in forms.items():
            if rng.random() >= holes:
                event[name] = _time(rng, form, second)
        if kind is not None and rng.random() < holes / 4:
            del event[kind]
        events.append(event)
    settings = {"forget_keys_after": 5.0} if rng.random() < 0.15 else {}
    query = rng.choice(_CEQL[4:6] if settings else _CEQL)
    return {"language": "ceql", "query": query, "events": events, "reading": rng.choice(_READING), "settings": settings}


def _outcome(take: Callable[[], Any]) -> Outcome:
    try:
        return "matches", take()
    except SpaseqError as error:
        return type(error).__name__, str(error)


def _places(matches: Any) -> list[Any]:
    return sorted((m.start, m.end, *m.positions) for m in matches)


def _pushed(query: Any, events: list[Any], reading: Mapping[str, Any], size: int) -> list[Any]:
    session = query.open(**reading)
    found = [m for at in range(0, len(events), size) for m in session.push(events[at : at + size])]
    return _places(found + session.close())


def _pushed_alone(query: Any, events: list[Any], reading: Mapping[str, Any]) -> list[Any]:
    session = query.open(**reading)
    return _places([m for event in events for m in session.push(event)] + session.close())


def _ceql_roads(case: dict[str, Any]) -> Iterator[tuple[str, Outcome]]:
    events, reading = case["events"], case["reading"]
    query = ceql.compile(case["query"], settings=ceql.Settings(**case["settings"]))
    yield "run", _outcome(lambda: _places(query.run(events, **reading)))
    yield "count", _outcome(lambda: query.run(events, **reading).count())
    yield "alone", _outcome(lambda: _pushed_alone(query, events, reading))
    yield "all at once", _outcome(lambda: _pushed(query, events, reading, len(events)))
    yield "by twos", _outcome(lambda: _pushed(query, events, reading, 2))
    yield "alerts", _outcome(lambda: sorted(query.alerts().run(events, **reading)))
    with open("e.jsonl", "w", encoding="utf-8") as out:
        out.writelines(json.dumps(event) + "\n" for event in events)
    yield "json lines", _outcome(lambda: _places(query.run("e.jsonl", **reading)))
    if _is_plain(events):
        yield "table", _outcome(lambda: _places(query.run(pa.Table.from_pylist(_whole(events)), **reading)))
        text = io.StringIO()
        writer = csv.DictWriter(text, list(_whole(events)[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(_whole(events))
        with open("e.csv", "w", encoding="utf-8") as out:
            out.write(text.getvalue())
        yield "csv", _outcome(lambda: _places(query.run("e.csv", **reading)))
        yield "csv, counted", _outcome(lambda: query.run("e.csv", **reading).count())


def _whole(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = dict.fromkeys(name for event in events for name in event)
    return [{name: event.get(name) for name in names} for event in events]


def _is_plain(events: list[dict[str, Any]]) -> bool:
    """True if each attribute has one kind, none looks like another in CSV, and some is there."""
    for name in dict.fromkeys(name for event in events for name in event):
        kinds = {type(event[name]) for event in events if event.get(name) is not None}
        if len(kinds) != 1 or bool in kinds:
            return False
    return not any(isinstance(v, str) and v.isdecimal() for event in events for v in event.values())


def _wrong_tuples(case: dict[str, Any]) -> str:
    outcomes = {road: o for road, o in _ceql_roads(case) if o[0] != "QuerySemanticsError"}  # the columns are known
    kinds = [case["reading"].get("type_column", "type") in event for event in case["events"]]
    if any(kinds) and not all(kinds):  # pieces without types are refused; in a whole they are NULL
        outcomes = {road: o for road, o in outcomes.items() if o[0] != "EventError" or road not in _PIECES}
    if any(_clock_of(case["events"][:size]) != _clock_of(case["events"]) for size in (1, 2)):
        outcomes = {road: o for road, o in outcomes.items() if road not in _PIECES}  # the first piece decides
    if wrong := _unlike(outcomes):
        return wrong
    kind, found = outcomes["run"]
    events, reading, settings = case["events"], case["reading"], case["settings"]
    seconds = re.search(r"WITHIN \d+ (?!EVENTS)", case["query"]) is not None
    timed = seconds or bool(settings) or "lateness" in reading
    columns = dict.fromkeys(name for event in events for name in event)
    said = reading.keys() & {"time", "time_from"}
    unnamed = not said and not columns.keys() & {"time", "timestamp"}
    if reading.get("type_column", "type") not in columns:
        return "" if kind == "EventError" else f"no type: {outcomes['run']}"
    if timed and unnamed and "interval" not in reading:
        if likely := _guess(events):
            query = ceql.compile(case["query"], settings=ceql.Settings(**settings))
            told = _outcome(lambda: _places(query.run(events, **{**reading, "time": likely})))
            return (
                ""
                if told[0] == kind and (kind != "matches" or told[1] == found)
                else f"{likely}: {told}, {kind}, {found}"
            )
        if kind != "OptionError":
            return f"times that nobody gave were used: {outcomes}"
        return _followed(case, found, [n for n in columns if _is_candidate([e.get(n) for e in events], n)])
    if kind == "matches" and timed and not said and "time_unit" not in reading and not unnamed:
        query = ceql.compile(case["query"], settings=ceql.Settings(**settings))
        matches = query.run(events, **reading)
        matches.count()
        column = "time" if "time" in columns else "timestamp"
        numbers = any(_is_number(event.get(column)) for event in events)
        if numbers != any(f"column {column}, as seconds" in note for note in matches.notes):
            return f"a guess of the unit, and the notes {matches.notes}"
        session = query.open(**reading)
        session.push(events)
        session.close()  # what waits for late events is looked at then
        said = {note for note in matches.notes if not note.startswith("no event has")}
        taken = [event for event in events if event.get(reading.get("type_column", "type")) in ("A", "B")]
        key = "k" if any("k" in event for event in events) else "key"
        if len({type(event.get(key)) for event in taken if event.get(key) is not None}) < 2:
            said = {note for note in said if not note.startswith("the key")}  # only events that no step takes differ
        if {note for note in session.notes if note in said or not note.startswith("the key")} != said:
            return f"notes {session.notes} pushed, {matches.notes} run"
    return ""


def _is_number(value: Any) -> bool:
    return value is not None and not isinstance(value, bool) and re.fullmatch(r"[\d.]+", str(value)) is not None


def _guess(events: list[dict[str, Any]]) -> str:
    """The only column that may hold times; empty if there is none, or several."""
    names = dict.fromkeys(name for event in events for name in event)
    likely = [name for name in names if _is_candidate([event.get(name) for event in events], name)]
    return likely[0] if len(likely) == 1 and likely != ["t"] else ""


def _clock_of(events: list[dict[str, Any]]) -> list[str]:
    """The columns that have the times if nothing is said: one of the two names, else the guess."""
    usual = [name for name in ("time", "timestamp") if any(name in event for event in events)]
    return usual[:1] or [_guess(events)]


def _is_candidate(values: list[Any], name: str) -> bool:
    some = [value for value in values if value is not None]
    if some and all(isinstance(value, str) and value.startswith("2026-") for value in some):
        return True
    return name in _CLOCKLIKE and all(type(value) in (int, float) for value in some)


def _followed(case: dict[str, Any], text: str, candidates: list[str]) -> str:
    """What is wrong with the error, and with what it says to do."""
    hint = text.partition("\nhint: ")[2]
    if missing := [name for name in candidates if name not in hint]:
        return f"candidates that are not named, {missing}: {text}"
    named = re.search(r'time="([^"]*)"', hint)
    if named is None or 'time_from="arrival"' not in hint:
        return f"an error that does not say what to do: {text}"
    query = ceql.compile(case["query"], settings=ceql.Settings(**case["settings"]))
    tries: list[dict[str, str]] = [{"time_from": "arrival"}] + [{"time": named[1]}] * bool(candidates)
    for words in tries:
        kind, said = _outcome(query.run(case["events"], **{**case["reading"], **words}).count)
        if kind == "OptionError":
            return f"what it says to do, {words}, is an error again: {said}"
    return ""


def _unlike(outcomes: dict[str, Outcome]) -> str:
    """What the roads do not agree on."""
    kind, found = outcomes["run"]
    for road, (other, answer) in outcomes.items():
        if (kind == "matches") != (other == "matches"):
            return f"{road} gives {other} {answer}, run {kind} {found}"
        if kind != "matches":
            if "hint: " not in answer:
                return f"{road}: an error that does not say what to do: {answer}"
            continue
        expected = {"count": len(found), "csv, counted": len(found), "alerts": sorted({end for _, end, *_ in found})}
        if answer != expected.get(road, found):
            return f"{road} gives {answer}, run {found}"
    return ""


# -- graphs


def _graphs(rng: random.Random) -> dict[str, Any]:
    form = rng.choice(("nt", "nq", "ttl", "trig"))
    predicate = rng.choice((None, None, _GENERATED, _GENERATED, "urn:at", "urn:when"))
    dates = rng.choice(("number", "date", "date", "plain date", "words"))
    holes = rng.choice((0.0, 0.0, 0.25))
    lines, second = [], 0
    prefix = '"^^<http://www.w3.org/2001/XMLSchema#'
    for number in range(rng.randrange(1, 8)):
        second += rng.choice((0, 1, 1, 4, 30))
        subject = f"<urn:a{number}>"
        graph = [f"{subject} <urn:{rng.choice('vvww')}> {rng.randrange(3)}"]
        if form in ("nt", "nq"):
            graph = [re.sub(r" (\d+)$", r' "\1' + prefix + "integer>", line) for line in graph]
        if predicate is not None and rng.random() >= holes:
            text = _time(rng, {"plain date": "date"}.get(dates, dates), second)
            kind = {"number": "integer", "date": "dateTime"}.get(dates)
            graph.append(f'{subject} <{predicate}> "{text}' + (f"{prefix}{kind}>" if kind else '"'))
        if form == "nq":
            lines += [f"{line} <urn:g{number}> ." for line in graph]
        elif form == "trig":
            lines.append(f"<urn:g{number}> {{ {' . '.join(graph)} }}")
        else:
            lines += [f"{line} ." for line in graph]
    window = rng.choice(("WITHIN 10 SECONDS", "WITHIN 5 SECONDS SLIDING", "", ""))
    counted = rng.random() < 0.3 and "SLIDING" not in window
    what = "(COUNT(*) AS ?n)" if counted else "*"
    sequence = rng.choice(("A ; B", "A : B", "A , B", "A", "A ; B!") if window else ("A ; B", "A : B", "A"))
    if "SLIDING" in window and "!" in sequence:
        sequence = "A ; B"
    tail = rng.choice(("", "HAVING (COUNT(*) = 0)", "HAVING (COUNT(*) < 2)")) if counted else ""
    query = _SPASEQ.format(what=what, window=window, sequence=sequence, tail=tail)
    reading = rng.choice(({}, {}, {}, {"time_from": "arrival"}, {"time": "urn:at"}, {"interval": "2s"},
                          {"lateness": "9s"}, {"event_by": "subject"}, {"event_by": "size:1"},
                          {"time_unit": "ms"}))  # fmt: skip
    return {"language": "spaseq", "query": query, "form": form, "text": "\n".join(lines) + "\n", "reading": reading,
            "predicate": predicate, "dates": dates}  # fmt: skip


def _spaseq_roads(case: dict[str, Any]) -> Iterator[tuple[str, Outcome]]:
    name, reading = f"s.{case['form']}", case["reading"]
    with open(name, "w", encoding="utf-8") as out:
        out.write(case["text"])
    query = spaseq.compile(case["query"])
    yield "run", _outcome(lambda: _rows(query.run({"S": name}, **reading)))
    yield "count", _outcome(lambda: query.run({"S": name}, **reading).count())
    yield "columns alone", _outcome(lambda: _rows(query.run({"S": name}, keep_events=False, **reading)))
    yield "rdflib", _outcome(lambda: _rows(query.run({"S": name}, reference=True, **reading)))


def _rows(matches: Any) -> list[Any]:
    return sorted((m.start, m.end, m.positions, sorted((k, str(v)) for k, v in m.bindings.items())) for m in matches)


def _wrong_graphs(case: dict[str, Any]) -> str:
    outcomes = dict(_spaseq_roads(case))
    if wrong := _unlike(outcomes):
        return wrong
    kind, found = outcomes["run"]
    name, reading = f"s.{case['form']}", case["reading"]
    query = spaseq.compile(case["query"])
    named = case["form"] in ("nq", "trig") and reading.get("event_by") in (None, "graph")
    untimed = not named and not reading.keys() & {"time", "time_from", "interval"}
    timed = "WITHIN" in case["query"] or "lateness" in reading
    if untimed and timed:
        if kind != "OptionError":
            return f"times that nobody gave were used: {outcomes}"
        hint = found.partition("\nhint: ")[2]
        dated = case["dates"] in ("date", "plain date") and f"<{case['predicate']}>" in case["text"]
        if 'time_from="arrival"' not in hint or (dated and f'time="{case["predicate"]}"' not in hint):
            return f"an error that does not say what to do: {found}"
        kind, found = _outcome(lambda: query.run({"S": name}, **reading, time_from="arrival").count())
        return f"what it says to do is an error again: {found}" if kind == "OptionError" else ""
    if kind != "matches":
        return ""
    options = StreamOptions.parse(**reading)
    for size in (1, 3, 100):
        session, events = query.open(options=options), list(read_stream("urn:s", [name], options))
        pushed = [m for at in range(0, len(events), size) for m in session.push(events[at : at + size])]
        if _rows(pushed + session.close()) != found:
            return f"pushed by {size}: {_rows(pushed)}, run {found}"
    matches = query.run({"S": name}, **reading)
    matches.count()
    cut = not named and "event_by" not in reading
    if cut != any("one event" in note for note in matches.notes):
        return f"the notes {matches.notes}, and events are cut {'as guessed' if cut else 'as told'}"
    read_as_numbers = timed and not untimed and case["dates"] == "number" and named and not reading.keys() & {
        "time", "time_from", "time_unit"}  # fmt: skip
    if read_as_numbers != any("as seconds" in note for note in matches.notes) and "time" not in reading:
        return f"the notes {matches.notes}, and times are {case['dates']}"
    return ""
