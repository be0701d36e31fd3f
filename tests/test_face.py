"""Both languages show one face (`spaseq.core.protocols`): the same names, with the same meaning."""

from __future__ import annotations

import datetime
import inspect
import json
import os
import pickle
import shutil
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rdflib import Literal, URIRef

import ceql
import spaseq
from spaseq.core import protocols

ROOT = Path(__file__).resolve().parent.parent
SECOND = 10**9
CEQL = "SELECT * WHERE A AS x ; B AS y WITHIN 10 SECONDS"
ABSENT = "SELECT * WHERE A AS x ; NOT B WITHIN 10 SECONDS"
_HEAD = "PREFIX : <urn:e#> SELECT ?x WITHIN 10 SECONDS SLIDING FROM STREAM S <urn:s> WHERE { "
_GPMS = "DEFINE GPM A ON S { ?x :a ?v } DEFINE GPM B ON S { ?y :b ?w } }"
SPASEQ = _HEAD + "SEQ (A; B) " + _GPMS
SPASEQ_ABSENT = _HEAD + "SEQ (A, B!) " + _GPMS


def _tuple(kind: str, second: int) -> dict[str, Any]:
    return {"type": kind, "time": second}


def _graph(kind: str, second: int) -> spaseq.GraphEvent:
    triple = (URIRef(f"urn:t{second}"), URIRef(f"urn:e#{kind.lower()}"), Literal(second))
    return spaseq.GraphEvent("urn:s", second * SECOND, (triple,))


@dataclass(frozen=True)
class Language:
    """A language with a query `A ; B`, one of A without a B behind it, and events of its own."""

    module: Any
    text: str
    absent: str
    event: Callable[[str, int], Any]
    run: Callable[[Any, list[tuple[str, int]], Path], Any]

    @property
    def query(self) -> Any:
        return self.module.compile(self.text)


def _run_tuples(query: Any, events: list[tuple[str, int]], folder: Path) -> Any:
    return query.run([_tuple(*event) for event in events])


def _run_graphs(query: Any, events: list[tuple[str, int]], folder: Path) -> Any:
    path = folder / "events.nq"
    lines = [
        f'<urn:t{s}> <urn:e#{kind.lower()}> "{s}" <urn:g{s}> .\n<urn:g{s}> <urn:at> "{s}" .\n' for kind, s in events
    ]
    path.write_text("".join(lines))
    return query.run({"S": str(path)}, time="urn:at")


LANGUAGES = [
    pytest.param(Language(ceql, CEQL, ABSENT, _tuple, _run_tuples), id="ceql"),
    pytest.param(Language(spaseq, SPASEQ, SPASEQ_ABSENT, _graph, _run_graphs), id="spaseq"),
]
both = pytest.mark.parametrize("language", LANGUAGES)


def _members(protocol: type) -> set[str]:
    own = {*vars(protocol), *protocol.__annotations__}
    return {name for name in own if not name.startswith("_") or name in ("__iter__", "__enter__", "__exit__")}


@both
def test_every_class_has_the_members_of_its_protocol(language: Language, tmp_path: Path) -> None:
    matches = _keep = language.run(language.query, [("A", 1), ("B", 2)], tmp_path)
    (match,) = matches
    session = language.query.open()
    shown = {"Query": language.query, "Matches": _keep, "Match": match, "Session": session}
    shown |= {"Counters": matches.counters}
    for name, value in shown.items():
        missing = [member for member in _members(getattr(protocols, name)) if not hasattr(value, member)]
        assert not missing, f"{language.module.__name__}: {name} has no {missing}"
        if name != "Counters":
            assert isinstance(value, getattr(language.module, name))
    assert _members(protocols.Match) >= {"start", "end", "positions", "times", "time", "bindings", "events"}


def test_both_export_the_same_names() -> None:
    values = {
        name for name in ceql.__all__ if str(getattr(getattr(ceql, name), "__module__", "")).startswith("ceql.builder")
    }
    assert len(values) > 15
    only = {
        "ceql": {"Schema", "Stream", "match"} | values,
        "spaseq": {
            "DirectionalString",
            "GraphEvent",
            "Grouped",
            "Knowledge",
            "StreamOptions",
            "StreamSource",
            "TripleTerm",
        },
    }
    assert {*ceql.__all__} - only["ceql"] == {*spaseq.__all__} - only["spaseq"]
    for module in (ceql, spaseq):
        assert all(hasattr(module, name) and name in dir(module) for name in module.__all__)
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            module.nothing  # noqa: B018
    assert ceql.Stream is ceql.Session and ceql.OptionError is spaseq.OptionError
    assert ceql.__version__ == spaseq.__version__


@both
def test_matches(language: Language, tmp_path: Path) -> None:
    matches = language.run(language.query, [("A", 1), ("C", 2), ("B", 3)], tmp_path)
    (match,) = matches
    assert (match.start, match.end, match.positions) == (0, 2, (0, 2))
    assert match.times == (1 * SECOND, 3 * SECOND) and match.time == 3 * SECOND
    assert len(match.events) == 2 and isinstance(match.bindings, dict)
    assert matches.count() == 1 and matches.to_arrow().num_rows == 1 and len(matches.to_pandas()) == 1
    assert matches.counters.events == 3 and matches.counters.late == 0 and matches.counters.warnings() == []


@both
def test_matches_are_true_if_there_is_one(language: Language, tmp_path: Path) -> None:
    """Matches were true whatever they held, an ASK that is false too."""
    assert language.run(language.query, [("A", 1), ("B", 3)], tmp_path)
    none = language.run(language.query, [("B", 1), ("A", 3)], tmp_path)
    assert not none and none.counters.events == 2 and list(none) == []


def test_an_ask_is_its_answer(tmp_path: Path) -> None:
    lines = [f'<urn:x> <urn:p> "1" <urn:g{t}> .\n<urn:g{t}> <urn:at> "{t}" .\n' for t in (1, 2)]
    (tmp_path / "s.nq").write_text("".join(lines))
    streams = {"S": str(tmp_path / "s.nq")}
    tail = "FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?x <urn:p> ?v } }"
    for form in ("ASK", "SELECT ?x"):
        assert bool(spaseq.compile(f"{form} {tail}").run(streams, time="urn:at")) is True
        other = spaseq.compile(f"{form} {tail.replace('urn:p', 'urn:q')}").run(streams, time="urn:at")
        assert bool(other) is other.ask() is False
    with pytest.raises(spaseq.OptionError, match="neither true nor false"):
        bool(spaseq.compile(f"SELECT ?x {tail}").follow(streams, time="urn:at"))


def test_events_that_are_read_once_are_not_lost_without_a_word() -> None:
    matches = ceql.compile("SELECT * WHERE A").run(iter([[{"type": "A"}]]))
    assert matches
    with pytest.raises(ceql.OptionError, match="read only once"):
        list(matches)


@both
def test_sessions(language: Language) -> None:
    query = pickle.loads(pickle.dumps(language.query))
    with query.open() as session:
        assert session.push([language.event("A", 1)]) == []
        state = session.snapshot()
    with query.open(state) as session:
        found = [*session.push([language.event("B", 2)]), *session.close()]
        assert [(match.positions, match.time) for match in found] == [((0, 1), 2 * SECOND)]
        assert session.counters.events == 2


@both
def test_one_event_is_pushed_as_it_is(language: Language) -> None:
    session = language.query.open()
    found = [*session.push(language.event("A", 1)), *session.push(language.event("B", 2)), *session.close()]
    assert [match.positions for match in found] == [(0, 1)]


@both
def test_what_is_no_event_is_refused(language: Language) -> None:
    for wrong in (None, 7, ("A", "B")):
        with pytest.raises(spaseq.SpaseqError):
            language.query.open().push(wrong)


@both
def test_an_absence_is_known_when_its_window_has_closed(language: Language) -> None:
    session = language.module.compile(language.absent).open()
    assert session.push([language.event("A", 1), language.event("C", 2)]) == []
    assert session.advance(5 * SECOND) == [] and session.advance(11 * SECOND) == []
    assert [match.positions for match in session.advance(11 * SECOND + 1)] == [(0,)]
    assert session.close() == []


@both
def test_explain(language: Language) -> None:
    text = language.query.explain()
    assert text.endswith("\n") and "selection: ALL" in text
    assert language.query.explain("svg").startswith("<svg") and "digraph" in language.query.explain("dot")
    assert language.query.picture().svg() == language.query.explain("svg")
    assert language.query.explain("json").startswith("{")
    with pytest.raises(spaseq.OptionError):
        language.query.explain("html")
    assert language.query.automaton.states > 1 and type(language.query.automaton).__name__ == "CEA"


# -- advance

BERLIN = datetime.timezone(datetime.timedelta(hours=2))


@both
@pytest.mark.parametrize("given", [
    datetime.datetime(1970, 1, 1, 0, 0, 11, 1), datetime.datetime(1970, 1, 1, 2, 0, 11, 1, BERLIN),
    datetime.datetime(1970, 1, 1, 0, 0, 11, 1, datetime.UTC), np.int64(11 * SECOND + 1_000),
    pd.Timestamp(11 * SECOND + 1),
])  # fmt: skip
def test_advance_takes_datetimes(language: Language, given: Any) -> None:
    """They are exact: the window of 10 s that an event at 1 s opened has closed behind 11 s."""
    for before in (11 * SECOND, datetime.datetime(1970, 1, 1, 0, 0, 11), pd.Timestamp(11, unit="s")):
        session = language.module.compile(language.absent).open()
        session.push(language.event("A", 1))
        assert session.advance(before) == []
    assert [match.positions for match in session.advance(given)] == [(0,)]
    with pytest.raises(ceql.OptionError, match="a time is a datetime, or nanoseconds as an int"):
        session.advance(pd.NaT)
    with pytest.raises(ceql.OptionError, match="a time is a datetime, or nanoseconds as an int"):
        session.advance(given.date() if isinstance(given, datetime.datetime) else 1.5)


def test_other_sessions_take_datetimes() -> None:
    far = datetime.datetime(1970, 1, 1, 0, 0, 12)
    with ceql.compile(ABSENT).alerts().open() as alerts:
        alerts.push([_tuple("A", 1)])
        assert alerts.advance(far) == [0]
    with ceql.compile(CEQL).timed_out().open() as timed_out:
        timed_out.push([_tuple("A", 1)])
        assert [row["start"] for row in timed_out.advance(far)] == [0]
    assert spaseq.GraphEvent("urn:s", far, ()).time == 12 * SECOND


@pytest.mark.parametrize("evaluator", ["compact", "chain", "tree", "auto"])
def test_advance_with_each_evaluator(evaluator: str) -> None:
    text = "SELECT * WHERE A AS x ; B AS y ; NOT C WITHIN 10 SECONDS"
    session = ceql.compile(text, settings=ceql.Settings(evaluator=evaluator)).open()
    events = [_tuple("A", 1), _tuple("B", 3), _tuple("A", 8), _tuple("B", 9)]
    assert session.push(events) == []
    assert [m.positions for m in session.advance(12 * SECOND)] == [(0, 1), (0, 3)]
    assert session.push(_tuple("C", 13)) == []
    assert session.close() == []


def test_advance_lets_held_back_events_go() -> None:
    session = ceql.compile(CEQL).open(lateness="5s")
    assert session.push([_tuple("B", 3), _tuple("A", 2)]) == []
    assert session.advance(3 * SECOND) == []  # the B at 3 is not before 3
    assert [m.positions for m in session.advance(4 * SECOND)] == [(0, 1)]
    with pytest.raises(ceql.EventError, match="goes back in time"):
        session.push(_tuple("A", 3))
    assert session.push(_tuple("A", 4)) == []


def test_advance_beyond_every_time() -> None:
    session = ceql.compile(ABSENT).open(lateness="9000000000s")
    session.push(_tuple("A", 1))
    assert [m.positions for m in session.advance((1 << 63) - 1)] == [(0,)]


def test_advance_survives_a_snapshot() -> None:
    query = ceql.compile(ABSENT)
    session = query.open()
    session.push(_tuple("A", 1))
    again = query.open(session.snapshot())
    assert [m.positions for m in again.advance(12 * SECOND)] == [(0,)]


def test_windows_of_events_do_not_close_by_time() -> None:
    session = ceql.compile("SELECT * WHERE A AS x ; NOT B WITHIN 2 EVENTS").open()
    session.push(_tuple("A", 1))
    assert session.advance(100 * SECOND) == []
    assert [m.positions for m in session.close()] == [(0,)]


def test_alerts_advance() -> None:
    with ceql.compile(ABSENT).alerts().open() as alerts:
        assert alerts.push([_tuple("A", 1), _tuple("C", 2)]) == []
        assert alerts.advance(12 * SECOND) == [0]


# -- types


def _classes(module: Any) -> Iterator[type]:
    yield from (value for name in module.__all__ if inspect.isclass(value := getattr(module, name)))


@pytest.mark.parametrize("module", [ceql, spaseq, protocols])
def test_type_hints_can_be_read(module: Any) -> None:
    for cls in _classes(module):
        typing.get_type_hints(cls)
        for name, member in vars(cls).items():
            function = member.fget if isinstance(member, property) else member
            if not name.startswith("_") and inspect.isfunction(function):
                typing.get_type_hints(function)


SCRIPTS = ROOT / "tests" / "typing"


def test_a_type_checker_knows_every_name(tmp_path: Path) -> None:
    script = SCRIPTS / "uses_every_name.py"
    for name in {*ceql.__all__, *spaseq.__all__} - {"compile"}:
        assert f".{name}" in script.read_text(), f"{script.name} does not use {name}"
    done = subprocess.run(
        # As where the packages are installed: what is strict about them is their own affair.
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--follow-imports",
            "silent",
            "--cache-dir",
            str(tmp_path),
            "--config-file",
            str(ROOT / "pyproject.toml"),
            str(SCRIPTS),
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_pyright_knows_every_name_too(tmp_path: Path) -> None:
    """As editors have it, with nothing unknown: CONTRIBUTING.md says how to install it."""
    places = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    pyright = shutil.which("basedpyright", path=places) or shutil.which("pyright", path=places)
    if pyright is None:
        pytest.skip("pyright is not installed")
    config = tmp_path / "pyrightconfig.json"
    prefix = Path(sys.prefix)
    config.write_text(
        json.dumps(
            {
                "include": [str(SCRIPTS)],
                "typeCheckingMode": "strict",
                "extraPaths": [str(ROOT)],
                "venvPath": str(prefix.parent),
                "venv": prefix.name,
            }
        )
    )
    done = subprocess.run([pyright, "-p", str(config)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("command", ["ceql", "spaseq"])
def test_the_commands_say_their_version(command: str) -> None:
    done = subprocess.run([sys.executable, "-m", command, "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{command} {spaseq.__version__}\n")


@both
def test_a_word_that_is_no_option_is_refused(language: Language) -> None:
    for way in (language.query.open, lambda **words: language.query.run({"S": []}, **words)):
        with pytest.raises(spaseq.OptionError, match="there is no option tme"):
            way(tme="ts")


def test_the_column_of_times_is_named_as_in_the_command() -> None:
    query = ceql.compile("SELECT * WHERE A ; B WITHIN 2 MINUTES")
    events = [{"type": kind, "at": at} for kind, at in (("A", 0), ("B", 60), ("B", 300))]
    words: list[Any] = [{"time": "at"}, {"time_column": "at"}]
    for word in words:
        assert [match.positions for match in query.run(events, **word)] == [(0, 1)]
        assert [match.positions for match in query.open(**word).push(events)] == [(0, 1)]
    with pytest.raises(spaseq.OptionError, match="two names of one option"):
        query.open(time="at", time_column="at")


@pytest.mark.parametrize("language", ["ceql", "spaseq"])
def test_without_pandas_frames_say_so_and_nothing_is_read(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A base install has none."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    matches: Any = (
        ceql.compile("SELECT * WHERE A").run(events=[{"type": "A"}])
        if language == "ceql"
        else spaseq.compile(
            "SELECT ?x FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?s <urn:a> ?x } }"
        ).run({"S": "nowhere.nt"})
    )
    with pytest.raises(spaseq.OptionError, match="to_pandas needs pandas, which is not installed") as caught:
        matches.to_pandas()
    assert "to_arrow()" in str(caught.value) and matches.counters.events == 0


@pytest.mark.parametrize("module, name", [(ceql, "logins.ceql"), (spaseq, "queries/hot.rq")])
def test_the_name_of_a_file_is_no_query(module: Any, name: str) -> None:
    with pytest.raises(spaseq.QuerySyntaxError, match=r"this is the name of a file.*open\(path\)\.read\(\)"):
        module.compile(name)


def test_a_picture_says_in_a_line_what_it_is() -> None:
    shown = repr(ceql.compile("SELECT * WHERE A ; B").picture())
    assert shown == "<Picture of 3 states and 3 transitions; svg(), dot, save(path)>"
