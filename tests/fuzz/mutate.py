"""What becomes of a right input: bytes, tokens and numbers are left out, written again, exchanged and made extreme."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

__all__ = ["mutated_bytes", "mutated_lines", "mutated_text"]

TOKEN = re.compile(r"""\s+|\w+|'[^']*'|"[^"]*"|<[^<>\s]*>|.""", re.DOTALL)
NUMBER = re.compile(r"\d+(?:\.\d+)?")

NUMBERS = (
    "0", "-0", "00", "1", "-1", "255", "256", "1000", "1001", "2147483647", "2147483648", "9223372036",
    "9223372036854775807", "9223372036854775808", "18446744073709551616", "1e308", "1e400", "-1e400", "1e-400", "NaN",
    "INF", "-INF", "Infinity", "0.1", "1.", ".5", "+5", "0x10", "1_000", "1e", "99999999999999999999999999999999999999",
    "1970-01-01", "2020-02-30", "9999-12-31T23:59:60Z", "0000-00-00T00:00:00", "1700-01-01T00:00:00Z", "-5s", "5d",
)  # fmt: skip
TEXTS = (
    "", " ", "\t", "\n", "\r", "\r\n", "\0", "\x1f", "\x7f", "\u0085", "\u00a0", "\u2028", "\ufeff", "\ufffe", "\u0301",
    "é", "ß", "İ", "𝔘", "'", '"', "`", "\\", "\\u", "\\uD800", "\\u0000", "\\U0010FFFF", "\\U00110000", "%", "%00", "#",
    "--", "/*", "*/", "<", ">", "<>", "{", "}", "(", ")", "[", "]", "@", "@en", "^^", "_:", "_:b", "?", "$", ":", ";",
    ",", ".", "|", "&", "*", "+", "!", "=", "null", "true", "NULL", "NaN", "a" * 300, "<http://example.org/x>",
)  # fmt: skip
WORDS = {
    "ceql": (
        "SELECT", "ALL", "NEXT", "LAST", "MAX", "STRICT", "ANY", "NONE", "*", "FROM", "WHERE", "AS", "OR", "AND", "NOT",
        "FILTER", "PARTITION BY", "WITHIN", "EVENTS", "SECONDS", "HOURS", "DAYS", "CONSUME BY", "LIMIT", "IN",
        "LIKE", "RANGE", ":+", "+", "{2}", "{1,}", "{1,1000000}", "{0,3}", ";", ":", "AVG(", "SUM(", "COUNT(", "CORR(",
        "FIRST(", "STDDEV(", "A", "B", "x", "x.a", "[a > 1]", "[a]", "'u'", "a IN {1, 2}", "<=", "!=", "<>", "NULL",
        "AND(A, B)", "FILTER x.a < y.b", "FILTER x[a = 1]", "type", "time", "LIKE '%a%'", "LIKE '(a+)+$'", "S>",
    ),
    "spaseq": (
        "SELECT", "*", "WITHIN", "SLIDING", "STARTING AT", "SECONDS", "FROM STREAM", "WHERE", "SEQ", "DEFINE GPM", "ON",
        "FILTER", "OPTIONAL", "UNION", "MINUS", "GRAPH", "BIND", "VALUES", "EXISTS", "NOT EXISTS", "GROUP BY",
        "HAVING", "ORDER BY", "LIMIT", "OFFSET", "DISTINCT", "REDUCED", "CONSTRUCT", "PARTITION BY", "PREFIX", "BASE",
        "COUNT(*)", "(SUM(?x) AS ?s)", "AVG(", "GROUP_CONCAT(", "REGEX(?x, '(a+)+$')", "STR(", "IRI(", "BNODE()", "IF(",
        "COALESCE(", "xsd:integer(", "?x", "?y", "?s", "_:b", "[]", "()", "(1 2)", "'x'@en", "'1'^^:t", "1.5", "true",
        ":p*", ":p+", ":p?", "^:p", "!:p", "(:p|:q)", ":p/:q", ";", ",", ":", "&", "|", "!", "+", "?", "{", "}", ".",
        "{ SELECT ?x { ?x ?p ?o } }", "A", "B", "C", "a", "<<", ">>", "NOW()", "RAND()", "UNDEF",
    ),
}  # fmt: skip


def mutated_text(text: str, rng: random.Random, words: Sequence[str] = (), others: Sequence[str] = ()) -> str:
    """`text` with one to five slips; `words` may come in, and pieces of `others`."""
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        tokens = [token for token in tokens if token] or ["x"]
        here, there = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        low, high = min(here, there), min(max(here, there), min(here, there) + 12) + 1
        match rng.choices(
            ("kin", "leave", "again", "swap", "word", "text", "number", "stretch", "repeat", "nest", "splice", "bytes"),
            (20, 3, 3, 3, 4 if words else 0, 2, 6, 2, 1, 1, 2 if others else 0, 1),
        )[0]:
            case "kin":
                tokens[here] = rng.choice([other for other in (*tokens, *words) if _kind(other) == _kind(tokens[here])])
            case "leave":
                del tokens[here]
            case "again":
                tokens.insert(here, tokens[there])
            case "swap":
                tokens[here], tokens[there] = tokens[there], tokens[here]
            case "word":
                tokens[here:here] = [" ", rng.choice(words), " "]
            case "text":
                tokens.insert(here, rng.choice(TEXTS))
            case "number":
                tokens = TOKEN.findall(_other_number("".join(tokens), rng))
            case "stretch":
                tokens[here:here] = tokens[low:high]
            case "repeat":
                tokens[low:high] = tokens[low:high] * rng.choice((2, 3, 10, 50, 400))
            case "nest":
                start, end = rng.choice(("()", "{}", "[]", ("AND(", ", B)"), ("NOT (", ")"), ("<", ">")))
                times = rng.choice((1, 2, 30, 500))
                tokens[low:high] = [start * times, *tokens[low:high], end * times]
            case "splice":
                pieces = TOKEN.findall(rng.choice(others))
                at = rng.randrange(len(pieces))
                tokens[low:high] = pieces[at : at + rng.randint(1, 30)]
            case "bytes":
                whole = "".join(tokens)
                at = rng.randrange(len(whole) + 1)
                tokens = TOKEN.findall(
                    whole[:at] + chr(rng.choice((rng.randrange(0xD800), rng.randrange(256)))) + whole[at + 1 :]
                )
    return "".join(tokens)[:100_000]


def _kind(token: str) -> str:
    """What may stand where the token stands is of its kind."""
    if token[0].isdigit() or token[0] in "'\"":
        return "value"
    return "iri" if token[0] == "<" else "word" if token[0].isalpha() else "space" if token.isspace() else "sign"


def _other_number(text: str, rng: random.Random) -> str:
    found = list(NUMBER.finditer(text))
    if not found:
        return text + rng.choice(NUMBERS)
    match = rng.choice(found)
    return text[: match.start()] + rng.choice(NUMBERS) + text[match.end() :]


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """`data` with bits flipped, stretches left out, repeated and overwritten, or cut off."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = rng.randrange(len(changed) + 1)
        length = rng.choice((1, 1, 2, 4, 8, 30))
        match rng.randrange(7):
            case 0 if at < len(changed):
                changed[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(changed):
                changed[at] = rng.choice((0, 10, 13, 34, 92, 127, 128, 255, rng.randrange(256)))
            case 2:
                del changed[at : at + length]
            case 3:
                changed[at:at] = changed[at : at + length]
            case 4:
                changed[at:at] = rng.choice(TEXTS + NUMBERS).encode("utf-8")
            case 5:
                other = rng.randrange(len(changed) + 1)
                changed[at : at + length] = changed[other : other + length]
            case 6 if rng.random() < 0.3:
                del changed[at:]
    return bytes(changed[:200_000])


def mutated_lines(data: bytes, rng: random.Random) -> bytes:
    """`data`, of lines: these are left out, repeated, exchanged and joined, or their text is mutated."""
    if rng.random() < 0.3:
        return mutated_bytes(data, rng)
    if rng.random() < 0.5:
        return mutated_text(data.decode("utf-8", "replace"), rng).encode("utf-8", "surrogatepass")
    lines = data.splitlines(keepends=True) or [b""]
    for _ in range(rng.choice((1, 1, 2, 4))):
        here, there = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(7):
            case 0 if len(lines) > 1:
                del lines[here]
            case 1:
                lines.insert(here, lines[there])
            case 2:
                lines[here], lines[there] = lines[there], lines[here]
            case 3:
                lines[here] = lines[here].rstrip(b"\r\n") + rng.choice((b"", b" ", b"\r", b"\r\n", b"\x0b", b"\n\n"))
            case 4:
                lines[here:here] = lines[there : there + 5] * rng.choice((1, 2, 40))
            case _:
                text = lines[here].decode("utf-8", "replace")
                lines[here] = mutated_text(text, rng).encode("utf-8", "surrogatepass")
    return b"".join(lines)[:400_000]
