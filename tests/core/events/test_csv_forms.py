"""The forms of CSV files: given, or guessed and said; the same rows and kinds in one block and in many."""

from __future__ import annotations

import datetime
import io
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ceql
from ceql.cli.main import main
from spaseq.core.errors import EventError, OptionError
from spaseq.core.events import EventOptions, EventStream, blocks, tables
from spaseq.core.events.csv_files import read_csv
from spaseq.core.events.options import TextForm
from spaseq.core.events.time import time_by_form, times_by_form
from spaseq.core.events.timestamps import form_of
from tests.support.sizes import some

EURO = "Zeit;Kurs;Menge\n15.06.2026 10:00;3,5;1.000\n15.06.2026 10:01;1.234,56;12\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(
    text: str, *, coded: str = "utf-8", wanted: list[str] | None = None, file: str = "e.csv", **words: Any
) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows and the guesses."""
    Path(file).write_bytes(text.encode(coded))
    form = form_of(EventOptions.parse(**words))
    found = list(tables(file, wanted, form))
    return [row for table in found for row in table.to_pylist()], form.guesses


@pytest.mark.parametrize(
    ("text", "rows", "separated"),
    [
        ("a;b\n1;2\n", [{"a": 1, "b": 2}], ";"),
        ("a|b\n1|2\n", [{"a": 1, "b": 2}], "|"),
        ("a\tb\n1\t2\n", [{"a": 1, "b": 2}], "tabs"),
        ("a,b\n1,2\n", [{"a": 1, "b": 2}], ""),
        ("\ufeff\n\na;b\n1;2\n", [{"a": 1, "b": 2}], ";"),
        ("a;b", [], ";"),
        ("a\n1\n", [{"a": 1}], ""),
        ('a;b\n"x;y";2\n', [{"a": "x;y", "b": 2}], ";"),
        ('a;b\n"x\ny";2\n', [{"a": "x\ny", "b": 2}], ";"),
        ("at;price, EUR;n\n1;2;3\n", [{"at": 1, "price, EUR": 2, "n": 3}], ";"),
        ("a;b,c\n1,2\n", [{"a;b": 1, "c": 2}], ""),
        ("a,b\n1;2,3;4\n", [{"a": "1;2", "b": "3;4"}], ""),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_delimiter_is_guessed_and_said(text: str, rows: list[dict[str, Any]], separated: str, end: str) -> None:
    found, said = read(text.replace("\n", end))
    assert [{name: str(value).replace(end, "\n") for name, value in row.items()} for row in found] == [
        {name: str(value) for name, value in row.items()} for row in rows
    ]
    note = f'the fields of e.csv are separated by {separated} (delimiter="SIGN" names another sign)'
    assert said == ([note] if separated else [])


def test_tsv_has_tabs_unless_it_has_not() -> None:
    assert read("a\tb\n1\t2\n", file="e.tsv") == ([{"a": 1, "b": 2}], [])
    said = 'the fields of e.tsv are separated by , (delimiter="SIGN" names another sign)'
    assert read("a,b\n1,2\n", file="e.tsv")[1] == [said]


def test_standard_input_is_guessed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(EURO.encode())))
    form = form_of(EventOptions())
    assert [row["Kurs"] for table in tables("-", None, form) for row in table.to_pylist()] == [3.5, 1234.56]
    assert len(form.guesses) == 2
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a:b\n1:2\n")))
    assert [t.to_pylist() for t in tables("-", None, TextForm(delimiter=":"))] == [[{"a": 1, "b": 2}]]


def test_quotes() -> None:
    rows, said = read("'a';'b'\n'x;y';'it''s'\n")
    assert rows == [{"a": "x;y", "b": "it's"}] and said[1].startswith("the fields of e.csv stand between '")
    assert read('a,b\n"x,2\n', quote="none") == ([{"a": '"x', "b": 2}], [])
    assert read("a,b\n$x,y$,2\n", quote="$") == ([{"a": "x,y", "b": 2}], [])
    assert read("a,b\n'x',2\n") == ([{"a": "'x'", "b": 2}], []), "a value alone is no sign of quotes"


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (["3,5", "4"], [3.5, 4.0]),
        (["1.234,56", "-1.000.000,5", "7"], [1234.56, -1000000.5, 7.0]),
        (["0,5", None], [0.5, None]),
        (["1,2,3", "4"], ["1,2,3", "4"]),
        (["3,5", "x"], ["3,5", "x"]),
        (["12345678901234567", "0,5"], [12345678901234567, 0.5]),
        (["12.345.678.901.234.567", "0,5"], [12345678901234567, 0.5]),
        (["15.06.2026", "16.06.2026"], ["15.06.2026", "16.06.2026"]),
        (["1,5 kg", "2,5 kg"], ["1,5 kg", "2,5 kg"]),
    ],
)
def test_a_decimal_comma_is_guessed_by_all_values_of_a_column(values: list[str | None], found: list[Any]) -> None:
    numbers = not isinstance(next(filter(None, found)), str)
    rows, said = read("n;x\n" + "".join(f"{value or ''};z\n" for value in values))
    assert [row["n"] for row in rows] == found
    assert [type(row["n"]) for row in rows] == list(map(type, found))
    assert len(said) == 1 + numbers
    if numbers:
        assert said[1].startswith("the numbers of e.csv have a decimal comma, as ")
        plain, more = read("n;x\n" + "".join(f"{value or ''};z\n" for value in values), decimal=".")
        assert len(more) == 1 and any(isinstance(row["n"], str) for row in plain), "said, so not guessed"


def test_groups_of_three_digits_are_numbers_if_there_is_a_decimal_comma() -> None:
    rows, _ = read("p;n;ip;v\n3,5;1.000;192.168.100.200;1.5\n4,5;12;192.168.100.201;2.5\n")
    assert rows == [{"p": 3.5, "n": 1000, "ip": "192.168.100.200", "v": "1.5"},
                    {"p": 4.5, "n": 12, "ip": "192.168.100.201", "v": "2.5"}]  # fmt: skip
    assert read("n;x\n1.000;2\n")[0] == [{"n": 1.0, "x": 2}], "without one the point is decimal"
    assert read("n;x\n1.000;2\n", decimal=",")[0] == [{"n": 1000, "x": 2}]
    assert read("n\tx\n3,5\t2\n")[0] == [{"n": "3,5", "x": 2}], "between tabs 1,234 may have a comma of thousands"
    assert read("n\tx\n3,5\t2\n", decimal=",")[0] == [{"n": 3.5, "x": 2}]


def test_the_decimal_comma_does_not_depend_on_the_columns_that_are_wanted() -> None:
    assert [row["Menge"] for row in read(EURO, wanted=["Menge"])[0]] == [1000, 12]
    query = ceql.compile("SELECT * WHERE ANY AS a FILTER a[Menge = 1000]")
    Path("e.csv").write_text(EURO)
    assert query.run("e.csv").count() == len(list(query.run("e.csv"))) == len(list(query.alerts().run("e.csv"))) == 1


def test_later_blocks_have_the_kinds_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["at;n;g;x", "15.06.2026;1,5;12;3", *(f"{1 + n % 28:02}.06.2026;{n},5;{n}.123,5;{n}" for n in range(300))]
    lines[200] = "16.06.2026;1.999,25;77;4,25"
    text = "\n".join(lines)
    whole, _ = read(text, time_format="%d.%m.%Y")
    monkeypatch.setattr(blocks, "_BLOCK", 100)
    parts, _ = read(text, time_format="%d.%m.%Y")
    assert parts == whole and whole[199]["n"] == 1999.25 and whole[199]["x"] == 4.25 and whole[5]["g"] == 4123.5
    assert {type(row["at"].to_pydatetime()) for row in whole} == {datetime.datetime}
    monkeypatch.setattr(blocks, "_BLOCK", 16)
    with pytest.raises(
        EventError, match=r"e.csv:4: attribute n is '3,5' here, and a number in the records before"
    ) as told:
        read("a;n\n1;12345\n2;12345\n3;3,5\n")
    assert told.value.hint == 'decimal="," reads numbers with a decimal comma'
    with pytest.raises(EventError, match=r"e.csv:4: attribute n is 'x' here, and a number in the records before"):
        read("a;n\n1;1.234,5\n2;12345,5\n3;x\n")
    with pytest.raises(EventError, match=r"e.csv:4: attribute n is '31.02.2026' here, and a time in the records"):
        read("a;n\n1;12.02.2026\n2;13.02.2026\n3;31.02.2026\n", time_format="%d.%m.%Y")


@pytest.mark.parametrize("coded", ["latin-1", "windows-1252", "utf-16", "utf-8", "shift_jis"])
@pytest.mark.parametrize("file", ["e.csv", "e.jsonl"])
def test_encodings(coded: str, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_BLOCK", 64)
    texts = [("日本" if coded == "shift_jis" else "äöü") + str(n) for n in range(20)]
    text = "a;b\n" + "".join(f"{t};1\n" for t in texts)
    if file == "e.jsonl":
        text = "".join(f'{{"a": "{t}", "b": 1}}\n' for t in texts)
    assert [row["a"] for row in read(text, coded=coded, file=file, encoding=coded)[0]] == texts
    if coded != "utf-8":
        with pytest.raises(EventError, match="this is not UTF-8 text") as told:
            read(text, coded=coded, file=file)
        assert told.value.hint.startswith('encoding="latin-1" (or windows-1252, utf-16, …) reads another encoding')
    else:
        with pytest.raises(EventError, match=f"^{file}:{2 - (file != 'e.csv')}: this is not ascii text"):
            read(text, file=file, encoding="ascii")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            {"delimiter": "ab"},
            "delimiter 'ab': not a sign that can be one\nhint: one sign, for example ';', '|' or tab",
        ),
        ({"delimiter": "ä"}, "delimiter 'ä': not a sign"),
        ({"delimiter": "\n"}, "delimiter '\\n': not a sign"),
        ({"delimiter": ""}, "delimiter is empty"),
        ({"delimiter": 5}, "delimiter="),
        ({"quote": "''"}, "quote"),
        ({"decimal": "x"}, "decimal x: not one of"),
        ({"decimal": ",", "delimiter": ","}, "decimal , and delimiter , contradict each other"),
        ({"quote": ";", "delimiter": ";"}, "delimiter and quote are one sign"),
        ({"encoding": "xx"}, "encoding xx: there is no such encoding"),
        ({"encoding": "base64"}, "encoding base64: there is no such encoding"),
        ({"time_format": "%H:%M"}, "time_format '%H:%M': not the form of a date"),
        ({"time_format": "%Q"}, "time_format '%Q': not the form of a date"),
        ({"time_format": "day"}, "time_format 'day': not the form of a date"),
    ],
)
def test_forms_that_are_none(words: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError) as told:
        EventOptions.parse(**words)
    assert str(told.value).startswith(said)


DAY = int(datetime.datetime(2026, 6, 15, tzinfo=datetime.UTC).timestamp()) * 10**9


@pytest.mark.parametrize(
    ("form", "text", "time"),
    [
        ("%d.%m.%Y", "15.06.2026", DAY),
        ("%d.%m.%Y", "15.6.2026", DAY),
        ("%d.%m.%y %H:%M", " 15.06.26 00:01 ", DAY + 60 * 10**9),
        ("%d/%m/%Y %I:%M %p", "15/06/2026 01:00 PM", DAY + 13 * 3600 * 10**9),
        ("%Y-%m-%dT%H:%M:%S%z", "2026-06-15T02:00:00+0200", DAY),
        ("%d.%m.%Y %H:%M:%S.%f", "15.06.2026 00:00:00.25", DAY + 250_000_000),
        ("%d %b %Y", "15 Jun 2026", DAY),
        ("%d.%m.%Y", "31.02.2026", None),
        ("%d.%m.%Y", "15.06.2026 10:00", None),
        ("%d.%m.%Y %H:%M:%S", "15.06.2026 10:00:60", None),
        ("%d.%m.%Y", "2026-06-15", None),
        ("%d.%m.%Y", "15.06.1500", None),
    ],
)
def test_times_in_a_form(form: str, text: str, time: int | None) -> None:
    """One text, several of them at once, in a file, and pushed."""
    EventOptions(time_format=form)
    several = times_by_form(pa.array([text, None, text]), form)
    if time is None:
        assert several is None
        with pytest.raises(EventError, match=r"not a time of the form|outside"):
            time_by_form(text, form)
        with pytest.raises(EventError, match=r"not a time of the form|outside"):
            list(EventStream({"": [{"type": "A", "time": text}]}, EventOptions(time_format=form)))
        return
    assert several is not None and time_by_form(text, form) == time == several[0] == several[2]
    Path("e.csv").write_text(f"type,time\nA,{text}\n")
    for source in ("e.csv", [{"type": "A", "time": text}]):
        (batch,) = EventStream({"": source}, EventOptions(time_format=form))
        assert batch.times.tolist() == [time]
    session = ceql.compile("SELECT * WHERE A WITHIN 1 SECONDS").open(time_format=form)
    for _ in range(2):  # as columns, then alone
        (match,) = session.push({"type": "A", "time": text})
        assert match.time == time
    session = ceql.compile("SELECT * WHERE A WITHIN 1 SECONDS").open(session.snapshot())
    assert [match.time for match in session.push({"type": "A", "time": text})] == [time]


def test_the_form_of_times_goes_before_the_look_of_a_column() -> None:
    rows, _ = read("time,b\n2026-03-04,2026-03-05\n", time_format="%Y-%d-%m")
    assert [row["time"].month for row in rows] == [4] and rows[0]["b"].month == 5
    rows, _ = read("time,n\n01062026,3\n", time_format="%d%m%Y")
    assert (rows[0]["time"].day, rows[0]["time"].month, rows[0]["n"]) == (1, 6, 3)
    rows, _ = read("at,n\n2026-06-15,x\n", time_format="%d.%m.%Y")
    assert rows[0]["at"] == datetime.date(2026, 6, 15), "another column may have times of ISO 8601"
    with pytest.raises(EventError, match="'time' is a number here, and times are taken from it") as told:
        list(EventStream({"": [{"type": "A", "time": 5}]}, EventOptions(time_format="%d.%m.%Y")))
    assert told.value.hint.startswith("--time-format is the form of texts")
    session = ceql.compile("SELECT * WHERE A").open(time_format="%d.%m.%Y")
    session.push({"type": "A", "time": "15.06.2026"})
    with pytest.raises(EventError, match="'time' is a number here"):
        session.push({"type": "A", "time": 5})


@pytest.mark.parametrize("second", ["", ', "list": [null]'], ids=["at once", "line by line"])
def test_the_form_of_times_goes_before_that_of_json(second: str) -> None:
    Path("e.jsonl").write_text(f'{{"type": "A", "time": "2026-03-04", "b": "2026-03-05"{second}}}\n')
    given: list[dict[str, Any]] = [{}, {"time": "time"}]
    for words in given:
        (batch,) = EventStream({"": "e.jsonl"}, EventOptions(time_format="%Y-%d-%m", **words))
        assert batch.times.tolist() == [time_by_form("2026-04-03", "%Y-%m-%d")]
        assert batch.event(0)["b"] == datetime.datetime(2026, 3, 5), "another attribute is of ISO 8601"


def _as_csv(rng: random.Random, rows: list[dict[str, Any]], delimiter: str, decimal: str, form: str) -> str:
    """Rows as CSV, written by the rules of the form."""

    def field(value: Any) -> str:
        match value:
            case None:
                return ""
            case datetime.datetime():
                return value.strftime(form)
            case int() | float():
                text = f"{value:,}" if rng.random() < 0.3 and decimal == "," else repr(value)
                return text.replace(",", "_").replace(".", decimal).replace("_", ".")
        quoted = value.replace('"', '""')
        return f'"{quoted}"' if any(sign in value for sign in (delimiter, '"', "\n")) else value

    lines = [delimiter.join(rows[0]), *(delimiter.join(map(field, row.values())) for row in rows)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("seed", range(some(40)))
def test_random_files_of_every_form(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    delimiter, decimal = rng.choice([(";", ","), (";", ","), (",", "."), ("|", "."), ("\t", ".")])
    form = rng.choice(["%d.%m.%Y %H:%M", "%d/%m/%y %H:%M", "%H:%M %d %b %Y"])
    coded = rng.choice(["utf-8", "utf-8-sig", "latin-1", "utf-16"])
    base = datetime.datetime(2026, 6, 15)
    rows = [
        {"time": base + datetime.timedelta(minutes=rng.randrange(10_000)), "whole": rng.randrange(-(10**6), 10**6),
         "part": None if rng.random() < 0.1 and n else rng.randrange(-(10**6), 10**6) / 4 + 0.25,
         "text": rng.choice(["é", "x;y", 'a"b', "1,5 kg", "plain", "two\nlines"])}
        for n in range(60)
    ]  # fmt: skip
    rows[0]["part"] = 0.5
    text = _as_csv(rng, rows, delimiter, decimal, form)
    words: dict[str, Any] = {"time_format": form}
    if coded in ("latin-1", "utf-16"):
        words["encoding"] = coded
    found, said = read(text, coded=coded, **words)
    assert found == [{**row, "time": pytest.importorskip("pandas").Timestamp(row["time"])} for row in rows]
    assert {type(row["whole"]) for row in found} == {int}
    assert len(said) == (delimiter != ",") + (decimal == ",")
    told = {**words, "delimiter": delimiter, "decimal": decimal}
    assert read(text, coded=coded, **told) == (found, [])
    monkeypatch.setattr(blocks, "_BLOCK", rng.choice([200, 1000]))
    assert read(text, coded=coded, **told)[0] == found
    assert read(text, coded=coded, wanted=["part"], **told)[0] == [
        {**dict.fromkeys(rows[0]), "part": row["part"]} for row in rows
    ]


def test_the_command_reads_european_files_and_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    Path("kurse.csv").write_bytes(EURO.replace("Kurs", "Kurs €").encode("windows-1252"))
    query = "SELECT * WHERE ANY AS a : ANY AS b FILTER b.Menge < a.Menge WITHIN 1 MINUTES"
    words = ["--time", "Zeit", "--time-format", "%d.%m.%Y %H:%M", "--format", "csv"]
    assert main(["run", query, "--events", "kurse.csv", *words]) == 3
    assert capsys.readouterr().err.splitlines() == [
        "kurse.csv:1: this is not UTF-8 text",
        "hint: --encoding latin-1 (or windows-1252, utf-16, …) reads another encoding; or convert the file to UTF-8",
    ]
    assert main(["run", query, "--events", "kurse.csv", *words, "--encoding", "windows-1252"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[1:] == ["0,1,0 1,2026-06-15T10:00:00Z,2026-06-15T10:01:00Z"]
    assert said.err.splitlines()[:2] == [
        "note: the fields of kurse.csv are separated by ; (--delimiter SIGN names another sign)",
        "note: the numbers of kurse.csv have a decimal comma, as 3,5 in Kurs € (--decimal . takes them for texts)",
    ]
    words += ["--encoding", "windows-1252", "--delimiter", ";", "--decimal", ",", "--quote", "none"]
    assert main(["alert", query, "--events", "kurse.csv", *words]) == 0
    assert len(capsys.readouterr().err.splitlines()) == 1


class _Lines:
    """Lines that come one by one, as of a file that grows."""

    live = True

    def __init__(self, text: str, coded: str = "utf-8") -> None:
        self._lines = [line.encode(coded) for line in text.splitlines(keepends=True)]

    def read(self, size: int = -1) -> bytes:
        return self._lines.pop(0) if self._lines else b""


def test_lines_that_come_one_by_one_are_guessed_by_the_first() -> None:
    form = TextForm(time_format="%d.%m.%Y %H:%M", times=("Zeit",))
    found = list(read_csv(blocks.Joined(b"", _Lines(EURO)), "e.csv", ",", form=form))
    assert [table.num_rows for table in found] == [1, 1] and len(form.guesses) == 2
    rows = [row for table in found for row in table.to_pylist()]
    assert [(row["Kurs"], row["Menge"], row["Zeit"].minute) for row in rows] == [(3.5, 1000, 0), (1234.56, 12, 1)]
    coded = blocks.Recoded(_Lines(EURO.replace("Kurs", "Kurs \u20ac"), "windows-1252"), "windows-1252", "e.csv")
    names = [table.column_names for table in read_csv(blocks.Joined(b"", coded), "e.csv", ",")]
    assert names == [["Zeit", "Kurs \u20ac", "Menge"]] * 2
    whole = _Lines("a;n\n1;2\n2;3,5\n")
    with pytest.raises(EventError, match=r"e.csv:3: attribute n is '3,5' here") as told:
        list(read_csv(blocks.Joined(b"", whole), "e.csv", ","))
    assert told.value.hint == 'decimal="," reads numbers with a decimal comma'


def test_a_file_that_is_followed_has_a_form(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(EURO.encode("latin-1")))))
    query = "SELECT * WHERE ANY AS a : ANY AS b FILTER b.Menge < a.Menge WITHIN 1 MINUTES"
    words = ["--time-format", "%d.%m.%Y %H:%M", "--encoding", "latin-1", "--format", "csv"]
    assert main(["alert", query, "--events", "-", "--follow", *words]) == 0
    assert capsys.readouterr().out.splitlines() == ["position,time,type", "1,2026-06-15T10:01:00Z,"]


def test_no_form_needs_pandas() -> None:
    """Its import costs half a second of a command."""
    Path("e.csv").write_text(EURO)
    script = "import sys; from ceql.cli.main import main; main(sys.argv[1:]); print('pandas' in sys.modules)"
    words = ["run", "SELECT * WHERE ANY", "--events", "e.csv", "--time-format", "%d.%m.%Y %H:%M", "--format", "count"]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
    assert done.stdout == "2\nFalse\n"
    Path("e.csv").write_text(
        "date,clock,id,ok,at\n2026-01-02,10:00,007,yes,2026-01-02\n2026-01-02,10:01,008,,2026-01-03\n"
    )
    query = "SELECT * WHERE ANY AS a FILTER a[ok = TRUE AND at < '2026-01-03' AND id = '007']"
    words = ["run", query, "--events", "e.csv", "--time", "date,clock", "--format", "count"]
    words += ["--column-types", "id=TEXT, ok=BOOLEAN, at=TIMESTAMP"]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
    assert done.stdout == "1\nFalse\n"
