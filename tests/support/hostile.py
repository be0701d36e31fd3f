"""Hostile queries, which might use up time or memory, and the cost of each.

    python -m tests.support.hostile < QUERIES   # in an empty folder

QUERIES is a JSON array of `Query`s as arrays; the output has their `Cost`s. Each runs in a child of this process, which
has run both commands before, so that the measured cost is the query's.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

__all__ = ["LIMITS", "QUERIES", "Cost", "Query", "costs"]

LIMITS: Final = ("--set", "time_limit=4s", "--set", "memory_limit=800MB")
"""The options that docs/limits.md recommends for queries of people who are not trusted."""
_LAST: Final = 60
"""Seconds of processor time after which a child is killed."""


@dataclass(frozen=True, slots=True)
class Query:
    """`text` of a query, in the language of `command`."""

    name: str
    command: str
    text: str
    quick: bool
    """True if it is tried in every run of the tests."""


@dataclass(frozen=True, slots=True)
class Cost:
    """`seconds` of processor time, `bytes` held at most, with those of the process that was forked."""

    code: int
    seconds: float
    bytes: int
    said: str


# -- CEQL

_N: Final = "9" * 10_000


def _either(count: int) -> str:
    return " AND ".join(f"(a[v = {n}] OR b[v = {n}])" for n in range(count))


def _where(formula: str) -> str:
    return f"SELECT * WHERE {formula}"


def _nest(inside: str, before: str, behind: str, times: int) -> str:
    return before * times + inside + behind * times


_LETTERS: Final = "abcdefghij"
_CEQL: Final[Mapping[str, str]] = {
    "parentheses": _where(_nest("A", "(", ")", 3_000)),
    "parentheses in a condition": _where("A AS a FILTER " + _nest("a.v > 1", "(", ")", 3_000)),
    "a sequence of 3,000": _where(" ; ".join(["A"] * 3_000)),
    "a sequence of 300": _where(" ; ".join(["A"] * 300)),
    "a union of 3,000": _where(" OR ".join(f"T{n}" for n in range(3_000))),
    "a union of 300 sequences": _where(" OR ".join(f"(A AS x{n} ; B AS y{n})" for n in range(300))),
    "NOT of NOT": _where(f"A ; {'NOT ' * 500}B ; C"),
    "+ of + of +": _where(_nest("A", "(", ")+", 200)),
    "+ of sequences of +": _where(_nest("A+", "(", "; B+)+", 40)),
    "+ of unions of +": _where(_nest("A+", "(", "OR B+ OR (A;B)+)+", 25)),
    "2^200 matches": _where("A AS x ; A+ AS y ; A AS z"),
    "2^200 matches of which the largest count": "SELECT MAX * WHERE A AS x ; A+ AS y ; A AS z",
    "2^200 matches, the last": "SELECT LAST * WHERE A+ AS x ; A+ AS y ; A+ AS z",
    "three iterations over each other": _where("(A+ ; A+ ; A+)+"),
    "A{1000}": _where("A{1000}"),
    "A{1,1000}": _where("A{1,1000}"),
    "A{10^12}": _where("A{1000000000000}"),
    "A{10,000 digits}": _where(f"A{{{_N}}}"),
    "{10} of {10} of {10}": _where("((A{10}){10}){10}"),
    "{1,2} of {1,2} of {1,2}": _where(_nest("A", "(", "){1,2}", 12)),
    "AND of 8": _where("AND(" + ", ".join(f"A AS {x}" for x in _LETTERS[:8]) + ")"),
    "AND of 40": _where("AND(" + ", ".join(f"T{n}" for n in range(40)) + ")"),
    "ORs under AND": _where(f"A AS a ; A AS b FILTER {_either(20)}"),
    "ORs under AND, 40": _where(f"A AS a ; A AS b FILTER {_either(40)}"),
    "5,000 ANDs": _where("A AS a FILTER " + " AND ".join(f"a[v != {n}]" for n in range(5_000))),
    "2,000 ORs": _where("A AS a FILTER " + " OR ".join(f"a[v = {n}]" for n in range(2_000))),
    "minus of minus": _where(f"A AS a FILTER a[{'- ' * 3_000}v > 1]"),
    "a power of 3,000": _where("A AS a FILTER a[" + " * ".join(["v"] * 3_000) + " > 1]"),
    "a power of 60": _where("A AS a FILTER a[" + " * ".join(["v"] * 60) + " > 1]"),
    "10,000 digits": _where(f"A AS a FILTER a[v < {_N}]"),
    "an exponent of 10,000 digits": _where(f"A AS a FILTER a[v < 1e{_N}]"),
    "a fraction of 10,000 digits": _where(f"A AS a FILTER a[v < 0.{_N}]"),
    "LIMIT of 10,000 digits": _where(f"A LIMIT {_N}"),
    "WITHIN 10,000 digits of EVENTS": _where(f"A ; B WITHIN {_N} EVENTS"),
    "WITHIN 10,000 digits of SECONDS": _where(f"A ; B WITHIN {_N} SECONDS"),
    "WITHIN 10,000 digits of an attribute": _where(f"A ; B WITHIN {_N} [v]"),
    "IN of 100,000 values": _where("A AS a FILTER a[v IN {" + ", ".join(map(str, range(100_000))) + "}]"),
    "LIKE that Python cannot end": _where("A AS a FILTER a[s LIKE '(a+)+b']"),
    "LIKE of a large automaton": _where("A AS a FILTER a[s LIKE '((((a|b){30}){30}){30}){30}']"),
    "LIKE of 100,000 characters": _where("A AS a FILTER a[s LIKE '" + "(a|b)" * 20_000 + "']"),
    "the sum of a +": _where("A+ AS x ; B FILTER SUM(x.v) > 1000000"),
    "deviations of a +": _where("A+ AS x ; B FILTER STDDEV(x.v) > AVG(x.v) AND SUM(x.w) < AVG(x.w)"),
    "orders of seven": _where(
        " ; ".join(f"A AS {x}" for x in _LETTERS[:7])
        + " FILTER " + " AND ".join(f"{x}.v < {y}.w" for x, y in pairwise(_LETTERS[:7]))
    ),
    "texts of five, unequal": _where(
        " ; ".join(f"A AS {x}" for x in _LETTERS[:5])
        + " FILTER " + " AND ".join(f"{x}.s != {y}.s" for x, y in pairwise(_LETTERS[:5]))
    ),
    "a key for each event": _where("A ; B ; C PARTITION BY [n]"),
    "negations with conditions": _where(
        "A AS a ; " + " ; ".join(f"NOT (B AS b{n} FILTER b{n}.v > a.v) ; A AS c{n}" for n in range(30))
    ),
    "alternatives under one negation": _where(
        "A AS a ; NOT (" + " OR ".join(f"(B AS b{n} FILTER b{n}.v > a.v + {n})" for n in range(30)) + ") ; C"
    ),
    "a name of 100,000 letters": _where("A AS " + "x" * 100_000),
    "10,000 selected": "SELECT " + ", ".join(f"x{n}" for n in range(10_000)) + " WHERE A AS x1",
    "a comment without its end": _where("A /* " + "* /" * 50_000),
    "a text without its end": _where("A AS a FILTER a[s = '" + "''" * 50_000),
    "a regex without its end": _where("A AS a FILTER a[s LIKE " + "<<" * 20_000),
    "100,000 opening parentheses": _where("(" * 100_000),
    "100,000 semicolons": _where(";" * 100_000),
    "100,000 blanks": _where("A" + " " * 100_000 + "#"),
}  # fmt: skip

# -- SPAseq

_HEAD: Final = "PREFIX : <urn:e#> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "


def _spaseq(
    body: str, sequence: str = "A", form: str = "SELECT *", behind: str = "", others: str = "", clauses: str = ""
) -> str:
    where = f"WHERE {{ SEQ ({sequence}) DEFINE GPM A ON S {{ {body} }} {others} }}"
    return f"{_HEAD}{form} {clauses} FROM STREAM S <urn:s> {where} {behind}"


_P: Final = "?a :p ?b ."


def _binds(count: int, made: str, first: str = "STR(?b)") -> str:
    """BINDs of which each is made of the one before it, as {}."""
    steps = (f"BIND({made.replace('{}', f'?y{n}')} AS ?y{n + 1})" for n in range(count))
    return f"{_P} BIND({first} AS ?y0) {' '.join(steps)} FILTER(STRLEN(STR(?y{count})) > 3)"


def _gpms(count: int) -> str:
    return " ".join(f"DEFINE GPM G{n} ON S {{ ?a{n} :p ?b{n} }}" for n in range(count))


_RDF: Final[Mapping[str, str]] = {
    "braces": _spaseq(_nest(_P, "{", "}", 500)),
    "a union of 3,000": _spaseq(" UNION ".join(f"{{ ?a :p{n} ?b }}" for n in range(3_000))),
    "unions of unions": _spaseq(_nest(_P, "{ {", "} UNION { ?a :q ?b } }", 60)),
    "2^30 solutions": _spaseq(" ".join("{ ?a :p ?b } UNION { ?c :p ?d }" for _ in range(30))),
    "the cube of a graph": _spaseq("?a :p ?b . ?c :p ?d . ?e :p ?f"),
    "the cube of a graph, ordered": _spaseq("?a :p ?b . ?c :p ?d . ?e :p ?f", behind="ORDER BY ?f ?e ?d"),
    "the cube of a graph, counted": _spaseq("?a :p ?b . ?c :p ?d . ?e :p ?f", form="SELECT (COUNT(*) AS ?n)"),
    ":p* of everything": _spaseq("?a :p* ?b"),
    "* of * of *": _spaseq(f"?a {_nest(':p', '(', ')*', 60)} ?b"),
    "+ of unions of +": _spaseq(f"?a {_nest(':p', '(', '|:q)+', 30)} ?b"),
    "a path of 1,000": _spaseq(f"?a {'/'.join([':p'] * 1_000)} ?b"),
    "a path of 60": _spaseq(f"?a {'/'.join(['(:p|^:p)'] * 60)} ?b"),
    "1,000 inverses": _spaseq(f"?a {'^' * 1_000}:p ?b"),
    "a negated set of 3,000": _spaseq(f"?a !({'|'.join(f':q{n}' for n in range(3_000))}) ?b"),
    "a sequence of 1,200": _spaseq(_P, "; ".join(["A"] * 1_200)),
    "a sequence of 100": _spaseq(_P, "; ".join(f"G{n}" for n in range(100)), others=_gpms(100)),
    "+ of each": _spaseq(_P, ": ".join(f"G{n}+" for n in range(12)), others=_gpms(12)),
    "+ of + of +": _spaseq(_P, _nest("A", "(", ")+", 60)),
    "30 optional steps": _spaseq(_P, "; ".join(f"G{n}?" for n in range(30)) + "; A", others=_gpms(30)),
    "300 alternatives": _spaseq(_P, " | ".join(["A"] * 300)),
    "12 joint alternatives": _spaseq(
        _P, " & ".join(f"(G{2 * n}|G{2 * n + 1})" for n in range(12)), others=_gpms(24)
    ),
    "30 negations": _spaseq(_P, "A; " + " ".join(f"G{n}! ; A ;" for n in range(30)) + " A", others=_gpms(30)),
    "texts that double": _spaseq(_binds(40, "CONCAT({}, {})")),
    "texts that REPLACE lengthens": _spaseq(_binds(12, "REPLACE({}, '.', 'xxxxxxxxxx')")),
    "texts that a group joins": _spaseq(
        f"{_P} BIND(CONCAT({', '.join(['STR(?b)'] * 3_000)}) AS ?t)", form="SELECT (GROUP_CONCAT(?t) AS ?all)"
    ),
    "squares of squares": _spaseq(_binds(40, "({} * {})", "987654321")),
    "decimals of squares": _spaseq(_binds(40, "({} * {})", "98765.4321")),
    "10,000 digits": _spaseq(f"{_P} FILTER(?b != {_N})"),
    "10,000 digits, multiplied": _spaseq(f"{_P} BIND({_N} * {_N} AS ?c) FILTER(?c > 1)"),
    "an exponent of 10,000 digits": _spaseq(f"{_P} FILTER(?b != 1e{_N})"),
    "SUBSTR at 10,000 digits": _spaseq(f"{_P} BIND(SUBSTR('abc', {_N}) AS ?c)"),
    "VALUES of 100,000": _spaseq(f"{_P} VALUES ?a {{ {' '.join(f'<urn:n{n}>' for n in range(100_000))} }}"),
    "VALUES times VALUES": _spaseq(
        _P + " ".join(f"VALUES ?v{x} {{ {' '.join(map(str, range(1_000)))} }}" for x in range(4))
    ),
    "IN of 20,000": _spaseq(f"{_P} FILTER(?a IN ({', '.join(f'<urn:n{n}>' for n in range(20_000))}))"),
    "EXISTS in EXISTS": _spaseq(_P + _nest("?a :p ?c", "FILTER EXISTS { ?a :p ?b ", "}", 40)),
    "EXISTS over a product": _spaseq(f"{_P} FILTER NOT EXISTS {{ ?c :p ?d . ?e :p ?f . FILTER(?b = ?f && ?f = ?a) }}"),
    "OPTIONAL in OPTIONAL": _spaseq(_P + _nest("?x :q ?y", "OPTIONAL { ?b :p ?c ", "}", 150)),
    "150 OPTIONALs": _spaseq(_P + " ".join(f"OPTIONAL {{ ?z{n} :p ?y{n} }}" for n in range(150))),
    "MINUS in MINUS": _spaseq(_P + _nest("?a :p ?c", "MINUS { ?a :p ?b ", "}", 60)),
    "selections in selections": _spaseq(_nest(_P, "{ SELECT * { ", "} }", 100)),
    "aggregates in aggregates": _spaseq(
        _nest(_P, "{ SELECT ?a (COUNT(?b) AS ?b1) { ", "} GROUP BY ?a }", 30).replace("?b1", "?n")
    ),
    "2,000 ORs": _spaseq(f"{_P} FILTER({' || '.join(f'?b = {n}' for n in range(2_000))})"),
    "parentheses in a condition": _spaseq(f"{_P} FILTER({_nest('?b > 1', '(', ')', 2_000)})"),
    "IF in IF": _spaseq(f"{_P} BIND({_nest('?b', 'IF(?b > 1, 1, ', ')', 200)} AS ?c)"),
    "COALESCE of 5,000": _spaseq(f"{_P} BIND(COALESCE({', '.join(['?z'] * 5_000)}) AS ?c)"),
    "REGEX that Python cannot end": _spaseq(f"{_P} FILTER REGEX(STR(?t), '(a+)+b') BIND(1 AS ?c)").replace(
        _P, _P + " ?a :text ?t ."
    ),
    "REGEX of references": _spaseq(_P + " FILTER REGEX(STR(?a), '(.*)(.*)\\\\1\\\\2b')"),
    "REGEX of a large automaton": _spaseq(_P + " FILTER REGEX(STR(?a), '((((a|b){30}){30}){30}){30}')"),
    "REGEX in HAVING": _spaseq(
        "?a :text ?t", form="SELECT ?a (SAMPLE(?t) AS ?u)", behind="GROUP BY ?a HAVING (REGEX(SAMPLE(?t), '(a+)+b'))"
    ),
    "LIMIT of 10,000 digits, inside": _spaseq(f"{{ SELECT * {{ {_P} }} LIMIT {_N} }}"),
    "LIMIT and OFFSET of 10,000 digits": _spaseq(_P, behind=f"LIMIT {_N} OFFSET {_N}"),
    "WITHIN 10,000 digits": _spaseq(_P, clauses=f"WITHIN {_N} SECONDS"),
    "STARTING AT 10,000 digits": _spaseq(_P, clauses=f"WITHIN 1 SECONDS STARTING AT {_N}"),
    "blank nodes in blank nodes": _spaseq(_nest("?a", "[ :p ", " ]", 300) + " :p ?b"),
    "a list of 3,000": _spaseq(f"?a :p ({' '.join(map(str, range(3_000)))})"),
    "a template of 3,000": _spaseq(
        _P, form="CONSTRUCT { " + " ".join(f"?a :q{n} ?b ." for n in range(3_000)) + " }"
    ),
    "a partition by everything": _spaseq(_P, "A; A", clauses="PARTITION BY (?a, ?b)"),
    "20,000 prefixes": "".join(f"PREFIX p{n}: <urn:{n}#>\n" for n in range(20_000)) + _spaseq(_P),
    "an IRI of a million letters": _spaseq(f"?a <urn:{'x' * 1_000_000}> ?b"),
    "SEQ ( a hundred thousand times": _HEAD + "SELECT * FROM STREAM S <urn:s> WHERE { " + "SEQ ( " * 20_000,
    "100,000 opening braces": _spaseq("{" * 100_000),
    "a text without its end": _spaseq('?a :p "' + "\\\\'" * 50_000),
    "a comment without its end": _spaseq("?a :p ?b # " + "{ # " * 50_000),
}  # fmt: skip


_QUICK: Final = frozenset({
    "parentheses", "a sequence of 3,000", "{10} of {10} of {10}", "AND of 40", "10,000 digits", "2^200 matches",
    "LIMIT of 10,000 digits", "100,000 opening parentheses", "LIKE that Python cannot end", "squares of squares",
    "the cube of a graph", "texts that double", "LIMIT and OFFSET of 10,000 digits", "VALUES of 100,000",
    "REGEX that Python cannot end", "EXISTS over a product", "100,000 opening braces", "parentheses in a condition",
})  # fmt: skip

QUERIES: Final[Sequence[Query]] = (
    *(Query(f"CEQL: {name}", "ceql", text, name in _QUICK) for name, text in _CEQL.items()),
    *(Query(f"SPAseq: {name}", "spaseq", text, name in _QUICK) for name, text in _RDF.items()),
)


# -- the costs


def _files() -> None:
    events = (f"{'AAABC'[n % 5]},{n},{n * 7919 % 1009},{n * 31 % 97},{'a' * (n % 60)}" for n in range(2_000))
    Path("e.csv").write_text("type,n,v,w,s\n" + "\n".join(events))
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'.format
    ends = (f"<urn:n{n + 1}>" if n % 3 else number(n) for n in range(2_000))
    graph = (f"<urn:n{n}> <urn:e#p> {end} <urn:g{n // 500}> .\n" for n, end in enumerate(ends))
    texts = (f'<urn:n{n}> <urn:e#text> "{"a" * n}" <urn:g9> .\n' for n in range(60))
    Path("s.nq").write_text("".join(graph) + "".join(texts))


def _main() -> None:
    _files()
    first = {"ceql": _where("A AS a ; B AS b FILTER a.v < b.v WITHIN 9 EVENTS"), "spaseq": _spaseq(_P)}
    for command, text in first.items():
        Path("query").write_text(text)
        importlib.import_module(f"{command}.cli.main").main([*_words(command), "--limit", "100"])
    for name, command, text, _ in json.load(sys.stdin):
        Path("query").write_text(text)
        print(json.dumps([name, *_cost(command)]), flush=True)


def _words(command: str) -> list[str]:
    data = ["--events", "e.csv"] if command == "ceql" else ["--stream", "S=s.nq", "--time-from", "arrival"]
    return ["run", "query", *data, "--format", "jsonl", "--output", "out"]


def _cost(command: str) -> tuple[int, float, int, str]:
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (_LAST, _LAST + 5))
        os.dup2(os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - until the process ends
        sys.argv = [command, *_words(command), *LIMITS]
        importlib.import_module(f"{command}.cli.main").entry()
        os._exit(99)
    _, status, used = os.wait4(child, 0)
    said = Path("said").read_text("utf-8", "replace")
    if Path("out").exists():
        Path("out").unlink()
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss << 10, said[-2000:]


def costs(queries: Sequence[Query], folder: Path) -> dict[str, Cost]:
    """The cost of each query, by name."""
    given = json.dumps([astuple(query) for query in queries])
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.hostile"], cwd=folder, input=given, stdout=subprocess.PIPE,
        text=True, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    return {name: Cost(*rest) for name, *rest in map(json.loads, done.stdout.splitlines())}


if __name__ == "__main__":
    _main()
