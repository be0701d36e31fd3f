"""Runs an input in this process. What must hold: only the project's own errors leave what is public (exit codes 0, 2, 3
and 4), each says what, where and what to do, as its class promises; what was read and what was dropped is what went in;
and where an input is right, batch, pushes and snapshots answer the same."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pyarrow.parquet as pq
import pyoxigraph

import ceql
import spaseq
from spaseq.core.engine import Settings
from spaseq.core.errors import (
    BudgetExceeded,
    EventError,
    InternalError,
    LimitReached,
    OptionError,
    QueryError,
    SpaseqError,
)
from spaseq.core.events import readers
from spaseq.core.watch import check, limited
from spaseq.rdf import Counters, quiet_literals, read_knowledge
from spaseq.rdf.columns import close_owl
from spaseq.tools.command import frame
from tests.fuzz import borders, clocks, forged, library
from tests.fuzz.inputs import Input
from tests.support import roads
from tests.support.graph_events import open_streams
from tests.support.harness import Case

__all__ = ["Wrong", "run"]

_INNER = re.compile(
    r"Traceback|NoneType|object at 0x|has no attribute '|this is a bug|"
    r"\b(?:Key|Type|Value|Index|Attribute|Assertion|Recursion|Overflow|"
    r"Unicode\w*|Arrow\w*|ZeroDivision|Memory|StopIteration|Parse)(?:Error|Exception|Invalid)\b|<class '|unpack|"
    r"positional argument|must be str\b|not subscriptable|unhashable|codec can't|out of bounds"
)
"""What no user should read."""
MANY = 5_000
"""Answers of an input that are looked at. A few events can have as many as there are subsets of them."""
_OF_CHANCE = re.compile(r"RAND|NOW|UUID|BNODE|SAMPLE", re.IGNORECASE)


class Wrong(Exception):
    """What is wrong with what came of an input."""


def run(given: Input, folder: Path) -> str:
    """What came of it, in two words. `Wrong` if that may not be."""
    for name, data in given.files.items():
        (folder / name).write_bytes(data)
    before = os.getcwd()
    os.chdir(folder)
    try:
        return _CHECKS[given.how](given)
    except Wrong:
        raise
    except Exception as error:
        raise Wrong(f"{type(error).__name__}: {error}\n{traceback.format_exc()[-3000:]}") from error
    finally:
        os.chdir(before)


# -- errors


def _told(error: SpaseqError) -> str:
    """What the error is, once it says what its class promises."""
    text = str(error)
    problem = getattr(error, "problem", text)
    if isinstance(error, InternalError) or type(error) is SpaseqError:
        raise Wrong(f"{type(error).__name__}: {text}")
    if not problem.strip():
        raise Wrong(f"an error that says nothing: {error!r}")
    if found := _INNER.search(_without_input(text)):
        raise Wrong(f"an error with an inner name, {found[0]}: {text}")
    if isinstance(error, QueryError):
        span, size = error.span, len(error.text)
        if span is None and not error.hint:
            raise Wrong(f"neither where nor what to do: {text}")
        if span is not None and not (0 <= span.start <= span.end <= size and span.line > 0 and span.column > 0):
            raise Wrong(f"a span outside of the text, {span} of {size}: {text}")
    if isinstance(error, EventError) and not error.source and error.record is None:
        raise Wrong(f"an error of events that does not say where: {text}")
    if isinstance(error, BudgetExceeded):
        known = set(Settings.__dataclass_fields__) | {"solution_rows"}
        if error.setting not in known or "hint:" not in text:
            raise Wrong(f"a budget that cannot be set: {text}")
    return f"{type(error).__name__}"


def _without_input(text: str) -> str:
    """The text without what it quotes."""
    lines = text.splitlines()
    kept = [line for at, line in enumerate(lines) if not line.startswith("  ")]
    return re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "", "\n".join(kept))


# -- commands


def _run_command(arguments: Iterable[str], stdin: bytes) -> tuple[int, str, str]:
    """(exit code, standard output, standard error) of a command in this process."""
    from ceql.cli import main as of_ceql
    from spaseq.cli import main as of_spaseq

    name, *rest = arguments
    if rest[:1] in (["run"], ["alert"]) and not any(word.startswith("--lim") for word in rest):
        rest += ["--limit", str(MANY)]
    main = {"ceql": of_ceql.main, "spaseq": of_spaseq.main}[name]
    out, err = io.StringIO(), io.StringIO()
    fed = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    streams = mock.patch.multiple(sys, stdin=fed, stdout=out, stderr=err)
    with streams, mock.patch.dict(os.environ, {"SPASEQ_DEBUG": "1"}):
        try:
            code = main(rest)
        except SystemExit as ended:
            code = int(ended.code or 0)
    return code, out.getvalue(), err.getvalue()


_RESULT_LINES = re.compile(r"^\{.*\}$")


def _command(given: Input) -> str:
    raised: list[SpaseqError] = []
    with _errors_seen(raised):
        code, out, err = _run_command(given.arguments, given.stdin)
    _checked_exit(code, err, raised)
    if "jsonl" in given.arguments and code == 0:
        for line in out.removesuffix("\n").split("\n") if out else ():  # U+2028 in a text ends no line
            json.loads(line)
    return f"exit {code}"


def _checked_exit(code: int, err: str, raised: list[SpaseqError]) -> None:
    if code not in (0, 2, 3, 4):
        raise Wrong(f"exit {code}: {err}")
    if code and not err.strip():
        raise Wrong(f"exit {code} without a word")
    if "Traceback" in err:
        raise Wrong(f"exit {code} with a traceback: {err}")
    if code and raised:
        _told(raised[-1])
        if raised[-1].exit_code != code:
            raise Wrong(f"exit {code} for {raised[-1]!r}")
    elif code and (found := _INNER.search(_without_input(err))):
        raise Wrong(f"exit {code} with an inner name, {found[0]}: {err}")


@contextlib.contextmanager
def _errors_seen(raised: list[SpaseqError]) -> Iterator[None]:
    """The errors that a command prints, as they are printed."""

    told = frame._report

    def seen(error: SpaseqError) -> int:
        raised.append(error)
        return told(error)

    with mock.patch.object(frame, "_report", seen):
        yield


# -- queries


def _compile(given: Input) -> str:
    text = given.files["query"].decode("utf-8", "surrogatepass")
    compiled: Callable[[str], Any] = ceql.compile if given.arguments[0] == "ceql" else spaseq.compile
    try:
        query = compiled(text)
        explained = query.explain()
    except SpaseqError as error:
        return _told(error)
    if not isinstance(explained, str):
        raise Wrong("explain gives no text")
    if not all(isinstance(line, str) for line in (*query.warnings, *query.advice, *query.growth)):
        raise Wrong("a warning is no text")
    return "compiled"


# -- roads


_ROADS = {"ceql": ("batch", "one by one", "cuts", "snapshot", "auto"), "spaseq": ("batch", "one by one", "snapshot")}


def _case(given: Input) -> Case:
    query = given.files["query"].decode("utf-8", "surrogatepass")
    if given.arguments[0] == "ceql":
        return Case("a mutated query", query, json.loads(given.files["events"]))
    whole = json.loads(given.files["graphs"])
    graphs = {name: [(t, text) for t, text in events] for name, events in whole["graphs"].items()}
    return Case("a mutated query", query, graphs=graphs, kb=whole["kb"])


def _roads(given: Input) -> str:
    language, case = given.arguments[0], _case(given)
    query = case.query
    if _are_many(case):
        return "many"
    answers: dict[str, Any] = {}
    for road in roads.ROADS:
        if road.language == language and road.name in _ROADS[language]:
            answers[road.name] = _answers(case, road, given.seed)
            if isinstance(answers[road.name], str) and road.name == "batch" and _of_query(answers["batch"]):
                return str(answers["batch"])
    first = answers["batch"]
    if _OF_CHANCE.search(query):
        return "by chance"
    for name, found in answers.items():
        if name == "auto" and first == "EventError":
            continue  # lazy evaluators try other events together, of which none may be wrong
        if found != first and "BudgetExceeded" not in (found, first):
            raise Wrong(f"{name} differs from batch: {_short(found)} and {_short(first)}")
    return first if isinstance(first, str) else "matches" if first else "no match"


def _are_many(case: Case) -> bool:
    """Whether the case has more answers than can be compared."""
    if case.is_spaseq:
        return False  # a match a solution: as many as the query's patterns allow, which random events keep small
    try:
        found = ceql.compile(case.query).run(case.events)
        return len(list(islice(found, MANY + 1))) > MANY
    except SpaseqError:
        return False


def _of_query(outcome: str) -> bool:
    return outcome in ("QuerySyntaxError", "QuerySemanticsError", "UnsupportedFeature")


def _short(found: Any) -> str:
    return found if isinstance(found, str) else f"{sum(found.values())} answers {list(found)[:3]}"


def _answers(case: Case, road: roads.Road, seed: int) -> Any:
    """The answers of a road, counted; of those that a query leaves open only where they end."""
    ride = roads.Ride(random.Random(seed), Path.cwd())
    try:
        found = road.take(case, ride)
    except SpaseqError as error:
        return _told(error)
    if case.is_spaseq:
        return Counter(map(roads.plain, found))
    if re.search(r"\bANY\b|\bLIMIT\b", case.query, re.IGNORECASE):
        return Counter({answer[1] for answer in found})
    return Counter(found)


# -- files of events


def _events(given: Input) -> str:
    """A file of tuples: what the command says, how many were read, and that pushes find the same."""
    name, *words = given.arguments
    command = Input(
        "command", ("ceql", "run", "query.ceql", "--events", name, "--format", "jsonl", *words), given.files
    )
    said = _command(command)
    if said != "exit 0":
        return said
    query = ceql.compile(given.files["query.ceql"].decode("utf-8", "surrogatepass"))
    reading: Any = {word[2:].replace("-", "_"): value for word, value in zip(words[::2], words[1::2], strict=True)}
    matches = query.run(name, **reading)
    found = Counter((m.start, m.end, tuple(m.positions)) for m in islice(matches, MANY + 1))
    if found.total() > MANY:
        return "many"
    counters = matches.counters
    rows = _rows(name, given.files[name])
    if rows is not None and counters.events + counters.late != rows:
        raise Wrong(f"{rows} records went in, {counters.events} were read and {counters.late} were late")
    pushed: Counter[Any] = Counter()
    with query.open(**reading) as session:
        for table in readers.tables(name):
            for row in table.to_batches(max_chunksize=1 + given.seed % 3):
                pushed.update((m.start, m.end, tuple(m.positions)) for m in session.push(row))
        pushed.update((m.start, m.end, tuple(m.positions)) for m in session.close())
    if pushed != found and not re.search(r"\bANY\b|\bLIMIT\b", query.text, re.IGNORECASE):
        raise Wrong(f"pushed gives {_short(pushed)}, batch {_short(found)}")
    return said


def _rows(name: str, data: bytes) -> int | None:
    """How many records a file has; None where that is not plain to see."""
    if name.endswith("parquet"):
        return int(pq.read_metadata(name).num_rows)
    if name.endswith("jsonl"):
        return sum(1 for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip())
    if b'"' in data or b"\r" in data:
        return None
    lines = [line for line in data.split(b"\n") if line]
    return max(len(lines) - 1, 0)


# -- files of graphs


def _graphs(given: Input) -> str:
    """Streams of graphs: what the command says, what was read of lines, and that pushed graphs find the same."""
    command = Input("command", ("spaseq", "run", "query.rq", "--format", "jsonl", *given.arguments), given.files)
    said = _command(command)
    if said != "exit 0":
        return said
    pairs = list(zip(given.arguments[::2], given.arguments[1::2], strict=True))
    streams = {part.partition("=")[0]: part.partition("=")[2] for option, part in pairs if option == "--stream"}
    kb = {part.rpartition("=")[0]: part.rpartition("=")[2] for option, part in pairs if option == "--kb"}
    words = {option[2:].replace("-", "_"): value for option, value in pairs if option not in ("--stream", "--kb")}
    query = spaseq.compile(given.files["query.rq"].decode("utf-8"))
    from spaseq.language.runtime.opened import stream_options, stream_sources

    options = stream_options(None, words)
    matches = query.run(streams, kb, options=options)
    batch = Counter(map(_plain, islice(matches, MANY + 1)))
    if batch.total() > MANY:
        return "many"
    _counted(given, matches.counters, streams, words)
    counters = Counters()
    events, settled = open_streams(stream_sources(query.checked, streams), options, counters)
    pushed: Counter[Any] = Counter()
    session = query.open(kb=kb, options=settled)
    for event in events:
        pushed.update(map(_plain, session.push([event])))
    pushed.update(map(_plain, session.close()))
    if pushed != batch and not _OF_CHANCE.search(query.text):
        raise Wrong(f"pushed gives {_short(pushed)}, batch {_short(batch)}")
    one, other = ((c.events, c.triples, c.malformed, c.late, c.ignored) for c in (counters, matches.counters))
    if one != other:
        raise Wrong(f"events, triples, malformed, late, ignored: {one} one by one, {other} in columns")
    return said


def _plain(match: Any) -> Any:
    from tests.support.harness import answer_of

    return roads.plain(answer_of(match))


def _counted(given: Input, counters: Counters, streams: dict[str, str], words: dict[str, str]) -> None:
    """Lines that cannot be read are those of which the strict parser says so, and all of them are counted."""
    files = {name: given.files[name] for name in streams.values()}
    if words.get("malformed") != "drop" or b"\r" in b"".join(files.values()):
        return
    bad = 0
    for name, data in files.items():
        if not name.endswith((".nq", ".nt")):
            return
        form = pyoxigraph.RdfFormat.N_QUADS if name.endswith("nq") else pyoxigraph.RdfFormat.N_TRIPLES
        for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
            try:
                list(pyoxigraph.parse(line, form))
            except (SyntaxError, ValueError):
                bad += 1
    unfinished = len(files) if words.get("event_by", "").startswith("size") else 0
    if not bad <= counters.malformed <= bad + unfinished:
        raise Wrong(f"{bad} lines cannot be read, {counters.malformed} are counted")


# -- entailment


SMALL = 500
"""Triples of a closed graph that owlrl closes in a second or two."""
LINKS = 15
"""Links of lists, of which owlrl tries all ways through a chain of properties, 2^n with two terms at each."""


def _entailment(given: Input) -> str:
    """A query over knowledge under entailment: what the command says; that both evaluators of GPMs answer the same; and
    that a closure over columns is owlrl's."""
    said = _command(Input("command", ("spaseq", "run", "query.rq", "--format", "jsonl", *given.arguments), given.files))
    if said != "exit 0":
        return said
    options = dict(zip(given.arguments[::2], given.arguments[1::2], strict=True))
    iri, _, path = options["--kb"].partition("=")
    query = spaseq.compile(given.files["query.rq"].decode(), settings=Settings(time_limit=2.0))
    words: Any = {"entailment": options["--entailment"], "time_from": "arrival"}
    try:
        one, other = (
            Counter(map(_plain, islice(query.run({"S": "S.nq"}, {iri: path}, reference=reference, **words), MANY)))
            for reference in (False, True)
        )
    except LimitReached:
        return f"{said}, long"
    if one != other and max(one.total(), other.total()) < MANY:
        raise Wrong(f"in columns {_short(one)}, by rdflib's algebra {_short(other)}")
    return f"{said}, {_closed_as_owlrl(path)}" if options["--entailment"] == "owl-rl" else said


def _closed_as_owlrl(path: str) -> str:
    import owlrl
    import rdflib
    from rdflib.namespace import OWL

    graph = read_knowledge(path)
    try:
        with limited(Settings(time_limit=2.0)):
            found = close_owl(graph, SMALL)
    except SpaseqError:
        return "long"
    if isinstance(found, str):
        return "by owlrl"
    expected = rdflib.Graph()
    for triple in graph:
        expected.add(triple)
    if (None, OWL.propertyChainAxiom, None) in expected and len(
        list(expected.subject_objects(rdflib.RDF.rest))
    ) > LINKS:
        return "long"

    class Oracle(owlrl.OWLRL_Semantics):
        def store_triple(self, t: Any) -> None:
            check()
            super().store_triple(t)

    try:
        with quiet_literals(), limited(Settings(time_limit=3.0)):
            owlrl.DeductiveClosure(Oracle, axiomatic_triples=False, datatype_axioms=False).expand(expected)
    except LimitReached:
        return "long"
    less, more = set(expected) - set(found), set(found) - set(expected)
    if less or more:
        raise Wrong(f"{len(less)} triples that owlrl finds, as {sorted(less)[:3]}, are not found, and {len(more)} more "
                    f"are, as {sorted(more)[:3]}")  # fmt: skip
    return "as owlrl"


# -- the studio and editors


def _studio(given: Input) -> str:
    """A request to the studio, from its bytes to the answer, but for HTTP and the process of its own."""
    from spaseq.tools.studio.requests import job
    from spaseq.tools.studio.worker import answer

    try:
        body = json.loads(given.files["body"])
    except (ValueError, RecursionError):
        return "no JSON"
    try:
        asked = job(body, given.arguments[0], {})
    except OptionError as error:
        return _told(error)
    request = asked.written(str(Path.cwd()))
    request["seconds"] = min(request["seconds"], 3.0)
    return _form(answer(request))


def _form(form: Any) -> str:
    """What an answer is, once it is one that may be given."""
    json.dumps(form)
    for error in form["errors"]:
        text = _without_input(f"{error['problem']}\n{error['hint']}")
        if error["kind"] == "InternalError" or not error["problem"].strip() or _INNER.search(text):
            raise Wrong(f"{error['kind']}: {error['problem']}")
    return str(form["errors"][0]["kind"]) if form["errors"] else "answered"


class _InProcess:
    """Answers as the process of a language server does."""

    def ask(self, request: Any, seconds: float) -> Any:
        from spaseq.tools.studio.worker import answer

        found = answer(request)
        _form(found)
        return found


def _editor(given: Input) -> str:
    from spaseq.tools.lsp import editing

    language, *places = given.arguments
    text = given.files["text"].decode("utf-8", "surrogatepass")
    said = editing.remarks(cast(Any, _InProcess()), language, text, "query")
    wrong = [remark for remark in said if not 0 <= remark.start <= remark.end <= len(text) + 1 or not remark.text]
    for place in map(int, places):
        editing.words_at(language, text, place)
        found = editing.meaning(language, text, place)
        if found is not None and not 0 <= found[0] <= place < found[1] <= len(text):
            raise Wrong(f"what is meant at {place} stands at {found}")
    if wrong:
        raise Wrong(f"remarks outside of the text: {wrong}")
    return said[0].kind if said else "nothing to say"


# -- states


def _snapshot(given: Input) -> str:
    from tests import test_snapshots

    language, name = given.arguments
    (kept,) = (kept for kept in test_snapshots.BY_NAME[language] if kept.name == name)
    try:
        session = kept.open(given.files["state"])
    except OptionError as error:
        return _told(error)
    try:
        kept.found(session, len(kept.parts) // 2)
    except SpaseqError as error:
        return _told(error)
    return "taken"


def _note(given: Input) -> str:
    from spaseq.spark.streaming.checkpoint import check_note, read_note

    spark = mock.MagicMock()
    spark.read.text.return_value.collect.return_value = [
        (line,) for line in given.files["note"].decode("utf-8", "surrogatepass").split("\n")
    ]
    identity = {"query": "SELECT …", "tasks": 4, "streams": {"S": ["a.nq"]}, "settings": [1, None]}
    try:
        check_note("checkpoint", read_note(spark, "checkpoint"), identity)
    except OptionError as error:
        return _told(error)
    return "taken"


# -- what an input holds is not run


def _forged(given: Input) -> str:
    """An input of another kind: as its own check has it, each error crosses from a task of Spark's as it is, and
    nothing was made."""

    def told(error: SpaseqError) -> str:
        found = plain(error)
        if importlib.util.find_spec("pyspark") is not None:
            _crosses(error)
        return found

    plain = _told
    how, *arguments = given.arguments
    with mock.patch(f"{__name__}._told", told):
        said = _CHECKS[how](replace(given, how=how, arguments=tuple(arguments)))
    if Path(forged.MADE).exists():
        raise Wrong("what an input holds was run")
    return said


def _crosses(error: SpaseqError) -> None:
    from pyspark.errors import PySparkException

    from spaseq.spark.session.failures import MARK, carrying, clear_errors

    text = ""
    try:
        with carrying(MARK):
            raise error
    except Exception as carrier:
        text = "\n".join([*forged.TEXTS, str(carrier)])
    try:
        with clear_errors():
            raise PySparkException(text)
    except (SpaseqError, PySparkException) as found:
        if (type(found), str(found)) != (type(error), str(error)):
            raise Wrong(f"{error!r} crosses as {found!r}") from None


# -- the library


def _left(given: Input) -> str:
    try:
        return library.left_session(_case(given), given.seed, Path.cwd())
    except SpaseqError as error:
        return _told(error)
    except library.Lost as lost:
        raise Wrong(str(lost)) from lost


def _odd(given: Input) -> str:
    for name, call in library.odd_argument(given.seed):
        try:
            call()
        except SpaseqError as error:
            if isinstance(error, InternalError) or not str(error).strip():
                raise Wrong(f"{name}: {error!r}") from error
        except Exception as error:
            raise Wrong(f"{name}: {type(error).__name__}: {error}\n{traceback.format_exc()[-1500:]}") from error
    return "odd"


def _clocks(given: Input) -> str:
    if problem := clocks.problem_of(given.arguments[0]):
        raise Wrong(problem)
    return "right"


# -- bombs


LIMIT, PEAK, SPACE = 500_000_000, 750 << 20, 5 << 30
"""Bytes: `memory_limit`, what a process may hold at the most under it, and what the system gives it."""
LONGEST = 60
"""Seconds of processor time."""


def _bomb(given: Input) -> str:
    """A command in a process of its own: it ends as it may, and holds little more than it is allowed to."""

    def bounds() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))
        resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    words = [sys.executable, "-m", *given.arguments, "--set", f"memory_limit={LIMIT}"]
    path = {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    with open("out", "wb") as out, open("err", "w+b") as err:
        child = subprocess.Popen(words, stdout=out, stderr=err, env={**os.environ, **path}, preexec_fn=bounds)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = code = os.waitstatus_to_exitcode(status)
        err.seek(0)
        said = err.read().decode("utf-8", "replace")
    if code == -signal.SIGXCPU:
        return "long"
    _checked_exit(code, said, [])
    if used.ru_maxrss << 10 > PEAK:
        raise Wrong(f"holds {used.ru_maxrss >> 10:,} MB under memory_limit={LIMIT:,}, exit {code}: {said}")
    return f"exit {code}"


_CHECKS: dict[str, Callable[[Input], str]] = {
    "command": _command,
    "compile": _compile,
    "roads": _roads,
    "events": _events,
    "graphs": _graphs,
    "entailment": _entailment,
    "studio": _studio,
    "editor": _editor,
    "snapshot": _snapshot,
    "note": _note,
    "forged": _forged,
    "left": _left,
    "odd": _odd,
    "readers": borders.check_readers,
    "full disk": borders.check_full_disk,
    "clocks": _clocks,
    "bomb": _bomb,
}
