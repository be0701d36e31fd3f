"""The `spaseq` command: what it prints where, and its exit codes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from spaseq.cli.main import main

ROOT = Path(__file__).parents[2]
E = "http://example.org/"
QUERY = f"""PREFIX : <{E}>
SELECT ?a ?x ?y ?n
WITHIN 1 HOUR
FROM STREAM S <{E}S>
WHERE {{
  SEQ (A; B)
  DEFINE GPM A ON S {{ ?a :p ?x }}
  DEFINE GPM B ON S {{ ?a :q ?y OPTIONAL {{ ?a :n ?n }} }}
}}
"""
S = ("--stream", "S=s.nt", "--event-by", "subject", "--time-from", "arrival")
STREAM = f"""<{E}u> <{E}p> "one" .
<{E}v> <{E}p> "2"^^<http://www.w3.org/2001/XMLSchema#integer> .
<{E}u> <{E}q> "a\\"b\\nc"@en .
<{E}v> <{E}q> <{E}v> .
<{E}v> <{E}n> "tab\\there" .
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "s.nt").write_text(STREAM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    code = main(words)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_table(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "run", "q.rq", *S)
    assert code == 0 and err == ""
    assert out == (
        "time   ?a  ?x   ?y     ?n\n"
        "-----  --  ---  -----  --------\n"
        '0.002  :u  one  a"b c\n'
        "0.003  :v  2    :v     tab here\n"
    )


def test_csv(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "run", "q.rq", "--stream", f"{E}S=s.nt", *S[2:], "--format", "csv")
    assert code == 0
    assert out == (f'time,a,x,y,n\r\n0.002,{E}u,one,"a""b\nc",\r\n0.003,{E}v,2,{E}v,tab\there\r\n')


def test_tsv(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "run", "q.rq", *S, "--format", "tsv")
    header, first, second = out.splitlines()
    assert header == "?time\t?a\t?x\t?y\t?n"
    decimal = "^^<http://www.w3.org/2001/XMLSchema#decimal>"
    assert first == f'"0.002"{decimal}\t<{E}u>\t"one"\t"a\\"b\\nc"@en\t'
    assert second.split("\t")[4] == '"tab\\there"'


def test_json(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "run", "q.rq", *S, "--format", "json")
    result = json.loads(out)
    assert result["head"] == {"vars": ["time", "a", "x", "y", "n"]}
    first, second = result["results"]["bindings"]
    assert first["y"] == {"type": "literal", "value": 'a"b\nc', "xml:lang": "en"} and "n" not in first
    assert second["y"] == {"type": "uri", "value": E + "v"}
    assert second["x"]["datatype"].endswith("#integer") and second["time"]["value"] == "0.003"


def test_json_without_a_match(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "s.nt").write_text("")
    _, out, _ = run(capsys, "run", "q.rq", *S, "--format", "json")
    assert json.loads(out)["results"] == {"bindings": []}


def test_jsonl_and_limit(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "run", "q.rq", *S, "--format", "jsonl", "--limit", "1")
    (line,) = out.splitlines()
    match = json.loads(line)
    assert match.pop("bindings")["x"] == {"type": "literal", "value": "one"}
    assert match == {"start": 0, "end": 2, "positions": [0, 2], "time": [0, 0.002]}


def test_parquet_and_output(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "run", "q.rq", *S, "--format", "parquet", "--output", "m.parquet")
    assert (code, out) == (0, "")
    table = pq.read_table(files / "m.parquet")
    assert table.column_names == ["start", "end", "positions", "time", "a", "x", "y", "n"]
    assert table["x"].to_pylist() == ['"one"', '"2"^^<http://www.w3.org/2001/XMLSchema#integer>']
    code, _, err = run(capsys, "run", "q.rq", *S, "--format", "parquet")
    assert code == 2 and "--format parquet is written to a file" in err


def test_parquet_of_types(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "run", "q.rq", *S, "--output", "m.parquet", "--typed") == (0, "", "")
    table = pq.read_table(files / "m.parquet")
    assert table.column_names == ["start", "end", "positions", "time", "a", "x", "y", "n"]
    assert table["a"].to_pylist() == [f"{E}u", f"{E}v"]
    code, _, err = run(capsys, "run", "q.rq", *S, "--typed")
    assert code == 2 and "--typed with --format table" in err and "--output FILE.parquet" in err


def test_output_of_text(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "run", "q.rq", *S, "--format", "csv", "--output", "m.csv") == (0, "", "")
    assert (files / "m.csv").read_bytes().startswith(b"time,a,x,y,n\r\n")
    code, _, err = run(capsys, "run", "q.rq", *S, "--output", "no/such/folder")
    assert code == 2 and "cannot write no/such/folder" in err


def test_calendar_times_are_written_as_such(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    time = "<http://www.w3.org/ns/prov#generatedAtTime>"
    (files / "s.nq").write_text(
        f'<{E}g> {time} "2024-05-01T12:00:00.5+02:00" .\n<{E}u> <{E}p> "1" <{E}g> .\n<{E}u> <{E}q> "1" <{E}g> .\n'
    )
    (files / "q.rq").write_text(QUERY.replace("A; B", "A & B"))
    _, out, _ = run(capsys, "run", "q.rq", "--stream", "S=s.nq", "--format", "csv")
    assert out.splitlines()[1].startswith("2024-05-01T10:00:00.5Z,")


def test_two_graphs_of_knowledge(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = QUERY.replace("?a :p ?x }", f"?a :p ?x GRAPH <{E}kb> {{ ?a :in ?n }} }}")
    (files / "q.rq").write_text(query)
    code, _, err = run(capsys, "run", "q.rq", *S)
    assert code == 2 and f"--kb {E}kb=FILE" in err
    (files / "one.ttl").write_text(f"<{E}u> <{E}in> 1 .\n")
    (files / "two.nt").write_text(f'<{E}u> <{E}in> "2" .\n')
    words = ("run", "q.rq", *S, "--kb", f"{E}kb=one.ttl", "--kb", f"{E}kb=two.nt", "--format", "csv")
    code, out, _ = run(capsys, *words)
    assert code == 0 and out.splitlines()[1].startswith("0.002,")


def test_warnings_go_to_stderr(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "q.rq").write_text(QUERY.replace("(A; B)", "(A)").replace("?y ?n", ""))
    code, out, err = run(capsys, "check", "q.rq")
    assert (code, out) == (0, "q.rq: ok\n")
    assert err == "warning: GPM B is defined and SEQ does not use it\n"


def test_late_events_are_counted(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at = f"<{E}at>"
    lines = [(3, "p"), (1, "p"), (4, "q")]
    (files / "s.nt").write_text("".join(f'<{E}u{t}> <{E}{p}> "x" .\n<{E}u{t}> {at} "{t}" .\n' for t, p in lines))
    words = ("run", "q.rq", "--stream", "S=s.nt", "--time", f"{E}at", "--format", "csv")
    code, _, err = run(capsys, *words)
    assert code == 3 and "goes back in time" in err and "s.nt:3" in err
    code, _, err = run(capsys, *words, "--late", "drop")
    assert code == 0 and err.startswith("warning: 1 event(s) dropped")
    assert "warning" not in run(capsys, *words, "--lateness", "5s")[2]


def test_explain_of_spark_starts_no_java(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'spaseq[spark]'")
    monkeypatch.setattr("spaseq.spark.session.session.launch_gateway", None)
    code, out, _ = run(capsys, "explain", "q.rq", "--engine", "spark")
    assert code == 0 and "on Spark:\n" in out and ": its files are divided among tasks, which evaluate " in out
    for words in (["--kb", "urn:k=k.nt"], ["--spark", "spark.a=b"], ["--engine", "spark", "--format", "dot"]):
        assert run(capsys, "explain", "q.rq", *words)[0] == 2


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["run", "q.rq", "--steam", "S=s.nt"], "hint: did you mean --stream?\n"),
        (["run", "q.rq", *S, "--format", "cvs"], "hint: did you mean csv?\n"),
        (["rnu", "q.rq"], "hint: did you mean run?\n"),
        (["run", "q.rq", *S, "--zzzzzz"], "unrecognized arguments: --zzzzzz\n"),
    ],
)
def test_words_that_are_nearly_right(capsys: pytest.CaptureFixture[str], words: list[str], hint: str) -> None:
    with pytest.raises(SystemExit) as end:
        run(capsys, *words)
    assert end.value.code == 2 and capsys.readouterr().err.endswith(hint)


def test_a_query_of_the_other_language_is_said_to_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.ceql"
    path.write_text("SELECT * WHERE A ; B", encoding="utf-8")
    code, _, err = run(capsys, "check", str(path))
    assert code == 2 and err.endswith(f"hint: by its name {path} is for the command ceql\n")


def test_words_that_are_no_command_but_a_query(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["q.rq"], ["SELECT ?x {}"]):
        with pytest.raises(SystemExit):
            run(capsys, *words)
        assert capsys.readouterr().err.endswith("hint: what is to be done with the query comes first: spaseq run …\n")
    with pytest.raises(SystemExit):
        run(capsys, "run")
    assert capsys.readouterr().err.startswith("usage: spaseq run [OPTION …] QUERY\n       spaseq run --help lists the")


def test_explain(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain", "q.rq")
    assert code == 0 and "GPM A on" in out and "states" in out


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (["check", "no.rq"], 2, "cannot read the query no.rq"),
        (["check", "s.nt"], 2, "s.nt:1:1: "),
        (["run", "q.rq"], 2, "no file is given for stream S"),
        (["run", "q.rq", "--stream", "T=s.nt"], 2, "the query has no stream T"),
        (["run", "q.rq", "--stream", "s.nt"], 2, "not of the form NAME=FILE"),
        (["run", "q.rq", "--stream", "s.nt"], 2, "hint: name it too: --stream S=s.nt"),
        (["run", "q.rq", "--stream", "S="], 2, "names no file"),
        (["run", "q.rq", "--stream", "S=s.nt", "--stream", "S=s.nt"], 2, "is given twice"),
        (["run", "q.rq", "--stream", "S=no.nt"], 3, "no.nt"),
        (["run", "q.rq", *S, "--kb", "x"], 2, "not of the form IRI=FILE"),
        (["run", "q.rq", *S, "--event-by", "colour"], 2, "--event-by colour"),
        (["run", "q.rq", *S, "--event-by", "size:" + "9" * 20], 2, "size:N (N triples, below 10^9)"),
        (["run", "q.rq", *S, "--malformed", "keep"], 2, "--malformed keep: not one of"),
        (["run", "q.rq", *S, "--kb", "http://a b=s.nt"], 2, "<http://a b> is no IRI"),
        (["run", "q.rq", "--stream", "S=-,-"], 2, "standard input is asked for twice"),
        (["run", "q.rq", *S, "--time-unit", "y"], 2, "--time-unit y"),
        (["run", "q.rq", *S, "--interval", "soon"], 2, "--interval soon"),
        (["run", "q.rq", *S, "--entailment", "rdfs"], 2, "--entailment rdfs without background"),
        (["run", "q.rq", *S, "--follow", "--format", "json"], 2, "--format json with --follow"),
        (["run", "q.rq", *S, "--set", "runs=3"], 2, "--set runs=3: there is no such setting"),
        (["run", "q.rq", *S, "--set", "variants=many"], 2, "--set variants=many: not a count"),
        (["check", "q.rq", "--set", "live_runs=" + "9" * 5000], 2, "not a count"),
        (["check", "q.rq", "--evaluator", "chain"], 2, "q.rq: the lazy evaluators do not take skip-till-next"),
        (["check", "q.rq", "--set", "variants=0"], 4, "variants is 0 sequences without"),
        (
            ["run", "q.rq", *S, "--format", "nquads"],
            2,
            "--format nquads needs a query that constructs",
        ),
        (["plot", "q.rq", *S, "--output", "q.gif"], 2, "cannot tell from q.gif what picture"),
        (["plot", "q.rq", *S, "--output", "no/q.svg"], 2, "cannot write no/q.svg"),
    ],
)
def test_wrong_use(files: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, part: str) -> None:
    given, _, err = run(capsys, *words)
    assert given == code and part in err and "Traceback" not in err


@pytest.mark.parametrize(
    "words", [[], ["dance"], ["run"], ["run", "q.rq", "--limit", "-1"], ["run", "q.rq", "--format", "x"]]
)
def test_wrong_words_exit_with_two(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2 and "usage: spaseq" in capsys.readouterr().err


def test_construct_gives_a_stream_for_the_next_query(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    template = "CONSTRUCT { ?a :saw [ :first ?x ; :then ?y ] . ?n :of ?a }"
    (files / "c.rq").write_text(QUERY.replace("SELECT ?a ?x ?y ?n", template))
    code, out, err = run(capsys, "run", "c.rq", *S)
    assert code == 0 and err == ""
    assert out.splitlines()[0] == (
        "<urn:spaseq:event:1> <http://www.w3.org/ns/prov#generatedAtTime> "
        '"0.002"^^<http://www.w3.org/2001/XMLSchema#decimal> .'
    )
    first = {line for line in out.splitlines() if line.endswith("<urn:spaseq:event:1> .")}
    assert first == {
        f"<{E}u> <{E}saw> _:spaseq1x0 <urn:spaseq:event:1> .",
        f'_:spaseq1x0 <{E}first> "one" <urn:spaseq:event:1> .',
        f'_:spaseq1x0 <{E}then> "a\\"b\\nc"@en <urn:spaseq:event:1> .',
    }
    (files / "c.nq").write_text(out)
    (files / "next.rq").write_text(
        f"PREFIX : <{E}> SELECT ?a ?x ?b FROM STREAM S <{E}S> WHERE {{ SEQ (A; B) "
        "DEFINE GPM A ON S { ?a :saw [ :first ?x ] } DEFINE GPM B ON S { ?b :saw [ :then ?b ] } }"
    )
    code, out, _ = run(capsys, "run", "next.rq", "--stream", "S=c.nq", "--format", "csv")
    assert (code, out) == (0, f"time,a,x,b\r\n0.003,{E}u,one,{E}v\r\n")


@pytest.mark.parametrize(
    "template, left_out, why",
    [
        ("{ }", 2, "the template of CONSTRUCT has no triple"),
        ("{ ?x :of ?a }", 2, "in each triple of the template a variable is not bound, or bound to a term that cannot"),
        ("{ ?a :of ?x }", 0, ""),
    ],
)
def test_solutions_that_make_no_graph_are_counted(
    template: str, left_out: int, why: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "c.rq").write_text(QUERY.replace("SELECT ?a ?x ?y ?n", f"CONSTRUCT {template}"))
    code, out, err = run(capsys, "run", "c.rq", *S)
    assert code == 0 and bool(out) == (not left_out)
    assert err.startswith(f"note: {left_out} solutions made no graph: {why}") if left_out else not err


def test_an_order_is_kept(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "o.rq").write_text(QUERY + "ORDER BY DESC(?a)")
    code, out, _ = run(capsys, "run", "o.rq", *S, "--format", "csv")
    assert code == 0 and [out.index(f",{E}{name},") for name in "vu"] == sorted(out.index(f",{E}{n},") for n in "vu")


def test_a_quarantine_is_one_of_spark(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "run", "q.rq", *S, "--quarantine", "aside")
    assert code == 2 and "--quarantine needs --engine spark" in err


def test_malformed_lines_are_dropped_and_counted(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "s.nt").write_text("nonsense\n" + (files / "s.nt").read_text())
    code, _, err = run(capsys, "run", "q.rq", *S)
    assert code == 3 and "s.nt:1" in err
    code, out, err = run(capsys, "run", "q.rq", *S, "--malformed", "drop")
    assert code == 0 and out and "1 malformed line(s)" in err


def test_a_truncated_stream(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "s.nq").write_text(f'<{E}u> <{E}p> "one" <{E}g> .\n<{E}u> <{E}p> "o')
    code, _, err = run(capsys, "run", "q.rq", "--stream", "S=s.nq", "--time-from", "arrival")
    assert code == 3 and "s.nq:2" in err and "Traceback" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk(files: Path) -> None:
    command = [sys.executable, "-m", "spaseq", "run", str(files / "q.rq"), "--stream", f"S={files / 's.nt'}", *S[2:]]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, cwd=ROOT)
    assert (done.returncode, done.stderr) == (3, "cannot write the results: No space left on device\n")


def test_the_query_and_a_stream_are_not_both_standard_input(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(QUERY))
    code, _, err = run(capsys, "run", "-", "--stream", "S=-")
    assert code == 2 and "standard input is asked for twice" in err


def test_an_interrupt(files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("spaseq.tools.command.frame.query_text", interrupt)
    assert run(capsys, "check", "q.rq") == (130, "", "interrupted\n")


def test_a_bug_is_said_to_be_one(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("spaseq.tools.command.frame.query_text", fail)
    code, _, err = run(capsys, "check", "q.rq")
    assert code == 1 and err.startswith("spaseq failed: ZeroDivisionError: oh\nhint: this is a bug")


def test_a_failure_of_rdflib_is_not_a_traceback(
    files: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("spaseq.gpm.reference.evalBGP", fail)
    code, _, err = run(capsys, "run", "q.rq", *S, "--gpm", "rdflib")
    assert code == 1 and err == "rdflib failed to evaluate a graph pattern: ZeroDivisionError: oh\n"
