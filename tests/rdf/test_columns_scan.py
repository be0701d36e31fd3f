"""The kernels read lines as the parser does: the same statements, errors and counts, whatever stands there.

Each text is read by `parse_statements` alone and by the columnar scanner, in chunks of different sizes.
"""

from __future__ import annotations

import gzip
from codecs import BOM_UTF8
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spaseq.core.errors import EventError
from spaseq.rdf import Counters, Format, Statement, format_of, parse_statements
from spaseq.rdf.columns import TermTable
from spaseq.rdf.columns.dictionary import Dictionary
from spaseq.rdf.columns.model import datatype_of, lexical_size
from spaseq.rdf.columns.parts import Part, parts_of
from spaseq.rdf.columns.scanner import Scanner, whole_lines
from tests.support.data import DATA, needs
from tests.support.sizes import some

NT, NQ = format_of("a.nt"), format_of("a.nq")
Outcome = tuple[list[Statement], str | None, Counters]
Malformed = Literal["error", "drop"]


def by_parser(chunks: Sequence[bytes], form: Format, malformed: Malformed) -> Outcome:
    found, counters, problem = [], Counters(), None
    try:
        for statement in parse_statements(chunks, form, "f", counters=counters, malformed=malformed):
            found.append(statement)
    except EventError as error:
        problem = str(error)
    return found, problem, counters


def by_kernels(chunks: Sequence[bytes], form: Format, malformed: Malformed) -> tuple[Outcome, Scanner]:
    counters, problem = Counters(), None
    scanner = Scanner(Dictionary(), counters, malformed)
    try:
        for _ in scanner.read(chunks, form, "f"):
            pass
    except EventError as error:
        problem = str(error)
    return (statements(scanner), problem, counters), scanner


def by_parts(chunks: Sequence[bytes], form: Format, malformed: Malformed) -> Outcome:
    """All parts are read before the first is finished."""
    counters, problem, line = Counters(), None, 1
    empty = Scanner(Dictionary(), counters, malformed).empty
    found: list[Statement] = []
    for part in [Part(empty, form, blocks) for blocks in parts_of(whole_lines(chunks, "s"), 100)]:
        try:
            line = part.finish(form, "f", line, counters)
        except EventError as error:
            problem = str(error)
        found += statements(part.scanner)
        if problem is not None:
            break
    return found, problem, counters


def statements(scanner: Scanner) -> list[Statement]:
    """The rows of a scanner, whose terms are looked at besides."""
    dictionary = scanner.dictionary
    table, count = dictionary.table, len(dictionary)
    terms = TermTable(table.text.view("u1"), table.start[:count], table.length[:count], table.kind[:count],
                      table.lexical[:count], table.datatype[:count])  # fmt: skip
    assert len({terms.term(i) for i in range(count)}) == count, "equal terms have equal numbers"
    for i in range(count):
        literal = terms.term(i)
        datatype = datatype_of(literal)  # also of a triple term, whose key has the form of a literal
        assert terms.datatype[i] == (-1 if datatype is None else terms.id_of(datatype))
        assert terms.lexical[i] == lexical_size(literal) and (terms.lexical[i] >= 0) == (terms.kind[i] == 2)
    rows = scanner.rows[: scanner.count].tolist()
    return [
        (terms.term(s), terms.term(p), terms.term(o), None if g < 0 else terms.term(g), line)
        for (s, p, o, g), line in zip(rows, scanner.lines[: scanner.count].tolist(), strict=True)
    ]


def check(
    text: bytes,
    form: Format,
    sizes: Sequence[int] = (1 << 18, 61),
    policies: Sequence[Malformed] = ("error", "drop"),
) -> None:
    for malformed in policies:
        for size in sizes:
            chunks = [text[at : at + size] for at in range(0, len(text), size)]
            expected = by_parser(chunks, form, malformed)
            assert by_kernels(chunks, form, malformed)[0] == expected
            assert by_parts(chunks, form, malformed) == expected


GOOD = [
    b"<http://example.org/s> <http://example.org/p> <http://example.org/o> .",
    b"<http://example.org/s> <http://example.org/p> <http://example.org/o> <http://example.org/g> .",
    b'<a:s> <a:p> "text" <a:g> .',
    b'<a:s> <a:p> "text".',
    b"<a:s><a:p><a:o>.",
    b"<a:s><a:p><a:o><a:g>.",
    b"_:a <a:p> _:b .",
    b"_:a <a:p> _:b _:g .",
    b"_:a<a:p>_:b.",
    b"_:0 <a:p> _:b-c_d .",
    b"_:b.c <a:p> _:b .",
    b'<a:s> <a:p> "" .',
    b'<a:s> <a:p> "a"@en .',
    b'<a:s> <a:p> "a"@EN .',
    b'<a:s> <a:p> "a"@en-GB .',
    b'<a:s> <a:p> "a"@de-1996 <a:g> .',
    b'<a:s> <a:p> "a"@eng.',
    b'<a:s> <a:p> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    b'<a:s> <a:p> "5"^^<http://www.w3.org/2001/XMLSchema#integer> <a:g> .',
    b'<a:s> <a:p> "a"^^<http://www.w3.org/2001/XMLSchema#string> .',
    b'<a:s> <a:p> "a" .',
    b'<a:s> <a:p> "a" ^^ <a:t> .',
    b'<a:s> <a:p> "a\\"b\\\\c\\u00e9\\U0001F600\\n\\t" .',
    b'<a:s> <a:p> "a"@en" .'[:-1].replace(b'" .', b" ."),
    '<a:s> <a:p> "é€😀" .'.encode(),
    '<http://example.org/é> <a:p> "x" .'.encode(),
    b"<http://example.org/\\u00e9> <a:p> <a:o> .",
    b"<http://example.org/%C3%A9> <a:p> <a:o> .",
    b"<http://ex%41mple.org/a> <a:%fF> <a:x?%20#%7e> .",
    b"<http://example.org:8080/a?b=c&d#e> <a:p> <a:o> .",
    b"<http://user@example.org/> <a:p> <a:o> .",
    b"<http://[::1]/> <a:p> <a:o> .",
    b"<http:///a> <a:p> <http://a> .",
    b"<mailto:a@b> <urn:isbn:1> <tag:a,2020:b> .",
    b"<A1+.-:x> <a:p> <a:o> .",
    b"<a:> <a:p> <a:o> .",
    b" \t <a:s> \t <a:p>  <a:o>\t. ",
    b"<a:s> <a:p> <a:o> . # comment",
    b"<a:s> <a:p> <a:o> .# comment \xff",
    b"",
    b"   ",
    b"# a comment",
    b"  # \xff\xfe",
    b"<a:s> <a:p> <a:o> .\r",
    b"\r",
    b"<a:s> <a:p> <a:o> .\r<a:s> <a:p> <a:o2> .",
    b"# \r <a:s> <a:p> <a:o> .",
    b'<a:s> <a:p> "tab\there" .',
    b'<a:s> <a:p> "nul\x00here" .',
    b'<a:s> <a:p> "del\x7fhere" .',
]
BAD = [
    b"<a:s> <a:p> <a:o>",
    b"<a:s> <a:p> .",
    b"<a:s> <a:p> <a:o> . .",
    b"<a:s> <a:p> <a:o> . <a:s>",
    b'"a" <a:p> <a:o> .',
    b"<a:s> _:p <a:o> .",
    b'<a:s> <a:p> <a:o> "g" .',
    b"<a:s> <a:p> <a:o> <a:g> <a:h> .",
    b"<no scheme> <a:p> <a:o> .",
    b"<relative> <a:p> <a:o> .",
    b"<> <a:p> <a:o> .",
    b"<:x> <a:p> <a:o> .",
    b"<1a:x> <a:p> <a:o> .",
    b"<a:s#b#c> <a:p> <a:o> .",
    b"<http://a:b/> <a:p> <a:o> .",
    b"<http://a b/> <a:p> <a:o> .",
    b"<a:[x]> <a:p> <a:o> .",
    b"<a:%4> <a:p> <a:o> .",
    b"<a:%4g> <a:p> <a:o> .",
    b"<a:x%> <a:p> <a:o> .",
    b"<%41:x> <a:p> <a:o> .",
    b"<a:\x7f> <a:p> <a:o> .",
    b'<a:s> <a:p> "open .',
    b'<a:s> <a:p> "a\\x" .',
    b'<a:s> <a:p> "a" b" .',
    b'<a:s> <a:p> "a"@ .',
    b'<a:s> <a:p> "a"@e1 .',
    b'<a:s> <a:p> "a"@en- .',
    b'<a:s> <a:p> "a"@en--ltr .',
    b'<a:s> <a:p> "a"@en_us .',
    b'<a:s> <a:p> "a"^^ .',
    b'<a:s> <a:p> "a"^<a:t> .',
    b'<a:s> <a:p> "a"^^<t> .',
    b'<a:s> <a:p> "a"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString> .',
    b'<a:s> <a:p> "a"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString> .',
    b'<a:s> <a:p> "a"@en^^<a:t> .',
    b'<a:s> <a:p> "\xff" .',
    b"_:-a <a:p> <a:o> .",
    b"_: <a:p> <a:o> .",
    b"_a <a:p> <a:o> .",
    b"<a:s> <a:p> _:b.",
    b"<a:s> <a:p> _:b. .",
    b"<<( <a:s> <a:p> <a:o> )>> <a:p> <a:o> .",
    b"<a:s> <a:p> <<( <a:s> <a:p> <a:o> )>> .",
    b"@prefix a: <a:> .",
    b"a:s a:p a:o .",
    b"<a:s>\r<a:p> <a:o> .",
    b"\x0b",
    b"\xef\xbb\xbf<a:s> <a:p> <a:o> .",
    b".",
]


@pytest.mark.parametrize(
    ("line", "form"),
    [
        pytest.param(line, form, marks=[] if (number + (form is NQ)) % 2 else [pytest.mark.slow])
        for number, line in enumerate([*GOOD, *BAD])
        for form in (NT, NQ)
    ],
    ids=repr,
)
def test_a_line_among_others(line: bytes, form: Format) -> None:
    before, after = b"<a:s> <a:p> <a:o> .\n", b'\n<a:s> <a:p> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    for text in (line, line + b"\n", before + line + after, before * 3 + line + after + line + after + before[:-1]):
        check(text, form)


@pytest.mark.parametrize("form", [NT, NQ], ids=["nt", "nq"])
def test_all_together(form: Format) -> None:
    check(b"\n".join(GOOD) + b"\n", form, (1 << 18, 7, 200))
    check(b"\r\n".join(GOOD) + b"\n", form, (1 << 18, 200))
    check(b"\n".join(GOOD + BAD) + b"\n", form, (1 << 18, 200))


@pytest.mark.parametrize("form", [NT, NQ], ids=["nt", "nq"])
def test_a_byte_order_mark_is_passed_over(form: Format) -> None:
    text = b"\n".join(GOOD[:1] * 3) + b"\n"
    for marked in (BOM_UTF8 + text, BOM_UTF8, BOM_UTF8 + b"\n" + text, text + BOM_UTF8 + text):
        check(marked, form, (1 << 18, 61, 2))
    assert by_parser([BOM_UTF8 + text], form, "error") == by_parser([text], form, "error")


iris = st.sampled_from([b"<a:s>", b"<http://example.org/s>", b"<http://example.org/p#x>", b"<a:t>", b"<urn:a:b>"])
blanks = st.sampled_from([b"_:a", b"_:b1", b"_:a.b", b"_:1-"])
texts = st.sampled_from([b'"5"', b'""', b'"a b"', b'"a\\"b"', '"é"'.encode(), b'"5.50"', b'"2024-05-01T00:00:00Z"'])
suffixes = st.sampled_from([b"", b"", b"@en", b"@en-gb", b"^^<http://www.w3.org/2001/XMLSchema#string>", b"^^<a:t>",
                            b"^^<http://www.w3.org/2001/XMLSchema#decimal>"])  # fmt: skip
literals = st.builds(lambda text, suffix: text + suffix, texts, suffixes)
blank = st.sampled_from([b" ", b" ", b" ", b"\t", b"", b"  "])
lines = st.builds(
    lambda s, p, o, g, dot, b, end: s + b + p + b + o + b + g + b + dot + end,
    st.one_of(iris, blanks),
    iris,
    st.one_of(iris, blanks, literals),
    st.one_of(st.just(b""), iris, blanks),
    st.sampled_from([b"."] * 9 + [b""]),
    blank,
    st.sampled_from([b"", b"", b"", b" # c", b"\r", b" "]),
)
anything = st.one_of(lines, lines, lines, st.sampled_from(GOOD + BAD))
documents = st.builds(
    lambda some, end: b"\n".join(some) + end, st.lists(anything, max_size=12), st.sampled_from([b"\n", b"", b"\n\n"])
)


@given(documents, st.sampled_from([NT, NQ]), st.integers(1, 200))
@settings(max_examples=some(150))
def test_random_lines(text: bytes, form: Format, size: int) -> None:
    check(text, form, (1 << 18, size))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A document with a few bytes changed, left out or put in."""
    text = bytearray(draw(documents))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        match draw(st.sampled_from(["change", "remove", "insert"])):
            case "change" if at < len(text):
                text[at] = draw(st.integers(0, 255))
            case "remove":
                del text[at : at + draw(st.integers(1, 4))]
            case _:
                text[at:at] = draw(
                    st.sampled_from([b"<", b">", b'"', b".", b"\n", b"\r", b"\\", b"#", b"^", b"@", b"\x80"])
                )
    return bytes(text)


@given(damaged(), st.sampled_from([NT, NQ]))
@settings(max_examples=some(200))
@example(b"<a:s> <a:p> <a:o> .\n<a:s> <a:p> <a:o>\n<a:s> <a:p> <a:o> .\n", NT)
def test_damaged_documents(text: bytes, form: Format) -> None:
    check(text, form, (1 << 18, 50))


@pytest.mark.random
@given(damaged(), st.sampled_from([NT, NQ]))
@settings(max_examples=5_000)
def test_many_damaged_documents(text: bytes, form: Format) -> None:
    check(text, form, (1 << 18, 50))


def test_what_is_missing_where_a_block_ends_is_missing_on_its_last_line() -> None:
    """The parser sees it only at the end, which is the beginning of the next line."""
    chunks = [b"<a:s> <a:p> <a:o> .\n<a:s> <a:p> <a:o>\n", b"<a:s> <a:p> <a:q> .\n"]
    _, problem, _ = by_parser(chunks, NT, "error")
    assert problem is not None and problem.startswith("f:2:")
    found, _, counters = by_parser(chunks, NT, "drop")
    assert [line for *_, line in found] == [1, 3] and counters.malformed == 1


def test_usual_lines_never_reach_the_parser() -> None:
    usual = [line + b"\n" for line in GOOD[:4] + GOOD[6:7]] * 50 + ['<a:s> <a:p> "é"@fr .\n'.encode()]
    (found, _, _), scanner = by_kernels([b"".join(usual)], NQ, "error")
    assert len(found) == len(usual)
    assert int(scanner.dictionary.state[4]) == 0, "lines left to the parser"


def test_an_object_that_no_pattern_wants_is_not_kept() -> None:
    dictionary = Dictionary([b"<a:p>"])
    scanner = Scanner(dictionary, Counters(), "error")
    text = b'<a:s> <a:p> "1" .\n<a:s> <a:q> "2" .\n<a:s> <a:q> <a:o> .\n<a:s> <a:q> <a:o#b#c> .\n'
    with pytest.raises(EventError, match="4"):
        list(scanner.read([text], NT, "f"))
    assert scanner.rows[:3, 2].tolist() == [scanner.rows[0, 2], -1, -1]
    assert dictionary.finder()(b'"1"') == scanner.rows[0, 2] and dictionary.finder()(b'"2"') == -1


def test_large_blocks_make_room_as_they_are_read() -> None:
    """More rows, more terms, more text and more odd lines than there was room for, in one block."""
    short = b"".join(b"_:%d <a:%d> _:a%d .\n" % (n, n, n) for n in range(12_000))
    long = b"".join(b'<a:s> <a:p> "%d%s" .\n' % (n, b"x" * 300) for n in range(4_000))
    odd = b"".join(b'<a:s> <a:p> "%d\\n" .\n' % n for n in range(6_000))
    check(short + long + odd, NT, (1 << 24,), ("error",))


ROOT = Path(__file__).resolve().parents[2]
ORIGINAL = DATA / "spaseq-original"


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.n[qt]")), ids=lambda path: path.name)
def test_example_files(path: Path) -> None:
    check(path.read_bytes(), format_of(str(path)), (5000,))


@needs(ORIGINAL)
def test_files_of_the_original_engine() -> None:
    for path in sorted(ORIGINAL.rglob("*.nt")):
        check(path.read_bytes(), NT, (1000,))
    card = gzip.decompress((ORIGINAL / "credit-card" / "card10min.nt.gz").read_bytes())
    chunks = [card[at : at + 100_000] for at in range(0, len(card), 100_000)]
    assert by_kernels(chunks, NT, "error")[0] == by_parser(chunks, NT, "error")
