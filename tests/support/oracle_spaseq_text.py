"""A reader of SPAseq queries and of Turtle-like graphs for the naive evaluator, independent of the engine's parsers.

It reads the queries of the cases and the random tests. These have SELECT with variables or `*`, WITHIN, PARTITION BY,
FROM STREAM and SEQ. Their GPMs have triples (with `;` and `,`), FILTER, GRAPH, OPTIONAL, UNION, VALUES and nested
groups. Wrong text: `ValueError`.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import Any

from tests.support.oracle_spaseq import (
    XSD,
    And,
    At,
    Chain,
    Either,
    Element,
    Gpm,
    Graph,
    Group,
    SpaseqQuery,
    Term,
    Unordered,
    What,
)
from tests.support.oracle_tokens import Tokens

_TOKEN = re.compile(
    r"""
      (?P<skip>\s+ | \#[^\n]*)
    | (?P<iri><[^<>"\s]*>)
    | (?P<variable>[?$]\w+)
    | (?P<string>"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*')
    | (?P<number>\d+\.\d+ | \d+)
    | (?P<language>@[a-zA-Z-]+)
    | (?P<blank>_:\w+)
    | (?P<pname>(?:[^\W\d_][\w-]*)?:[^\W\d]\w*)
    | (?P<name>[^\W\d][\w-]*)
    | (?P<sign>\^\^ | \|\| | && | != | <= | >= | [][(){}<>=;:+*/,.!&|?-])
    """,
    re.VERBOSE | re.DOTALL,
)
_UNITS = {"MILLISECOND": 10**6, "SECOND": 10**9, "MINUTE": 60 * 10**9, "HOUR": 3600 * 10**9, "DAY": 86400 * 10**9}
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
PREFIXES = {"xsd": XSD, "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#"}
"""Known without a PREFIX."""


def read(text: str) -> SpaseqQuery:
    """The query that `text` is."""
    return _Reader(text, PREFIXES).query()


def read_graph(text: str, prefix: str = "http://example.org/") -> Graph:
    """A graph from triples in Turtle; `prefix` is the IRI of the empty prefix."""
    reader = _Reader(text, {**PREFIXES, "": prefix})
    group = reader.triples_until_end()
    return frozenset((e[1], e[2], e[3]) for e in group)


class _Reader(Tokens):
    pattern = _TOKEN
    words = ("name", "sign", "number")

    def __init__(self, text: str, prefixes: dict[str, str]) -> None:
        super().__init__(text)
        self.prefixes = dict(prefixes)

    # clauses

    def query(self) -> SpaseqQuery:
        while self.take("PREFIX"):
            self.prefix()
        self.need("SELECT")
        once = self.take("FIRST")
        select: tuple[str, ...] | None = () if not self.take("*") else None
        while self.kind() == "variable":
            select = (*(select or ()), self.next("variable")[1:])
        options: dict[str, Any] = {"after": ("FIRST", "")} if once else {}
        while not self.ahead("WHERE", "SEQ"):
            self.clause(options)
        self.take("WHERE")
        enclosed = self.take("{")
        self.need("SEQ")
        self.need("(")
        start = self.at
        while not self.ends_sequence():
            self.at += 1
        end = self.at
        self.need(")")
        inner = self.take("{")
        gpms: dict[str, Gpm] = {}
        while self.take("DEFINE"):
            gpm = self.gpm()
            gpms[gpm.name] = gpm
        for expected in (inner, enclosed):
            if expected:
                self.need("}")
        sequence = _Sequence(self.tokens[start:end], gpms).elements()
        return SpaseqQuery(sequence, select, **options)

    def ends_sequence(self) -> bool:
        """True if the SEQ ends here: its `)` is followed by DEFINE or by `{ DEFINE`."""
        if not self.ahead(")"):
            return False
        return self.ahead("DEFINE", offset=1) or (self.ahead("{", offset=1) and self.ahead("DEFINE", offset=2))

    def prefix(self) -> None:
        if self.kind() == "name":
            name = self.next("name")
        else:
            name = ""
        self.need(":")
        self.prefixes[name] = self.next("iri")[1:-1]

    def clause(self, options: dict[str, Any]) -> None:
        if self.take("WITHIN"):
            number = self.next("number")
            unit = self.next("name").upper().removesuffix("S")
            options["counted"] = unit == "EVENT"
            options["window"] = int(number) if unit == "EVENT" else round(float(number) * _UNITS[unit])
            options["sliding"] = self.take("SLIDING")
            if self.take("STARTING"):
                self.need("AT")
                options["origin"] = round(float(self.next("number")) * 10**9)
        elif self.take("PARTITION"):
            self.need("BY")
            self.need("(")
            names = [self.next("variable")[1:]]
            while self.take(","):
                names.append(self.next("variable")[1:])
            self.need(")")
            options["partition"] = tuple(names)
        elif self.take("AFTER"):
            self.need("MATCH")
            options["after"] = self.after()
        else:
            self.need("FROM")
            self.need("STREAM")
            self.next("name")
            self.at += 1  # the stream's IRI: cases name streams by their short name

    def after(self) -> tuple[str, str] | None:
        """The rule of AFTER MATCH and its GPM, or None for NO SKIP."""
        if self.take("NO"):
            self.need("SKIP")
            return None
        self.need("SKIP")
        rule = f"{self.next('name').upper()} {self.next('name').upper()}"
        name = self.next("name")
        return rule, name if rule in ("TO FIRST", "TO LAST") else ""

    def gpm(self) -> Gpm:
        self.need("GPM")
        name = self.next("name")
        self.need("ON")
        streams = [self.next("name")]
        while self.take(","):
            streams.append(self.next("name"))
        return Gpm(name, tuple(streams), self.group())

    # group graph patterns

    def group(self) -> Group:
        self.need("{")
        elements: list[Any] = []
        while not self.take("}"):
            elements += self.element()
            self.take(".")
        return tuple(elements)

    def element(self) -> list[Any]:
        if self.take("FILTER"):
            return [("filter", part) for part in _conjuncts(self.operand())]
        if self.take("GRAPH"):
            iri = self.term()
            return [("graph", iri, self.group())]
        if self.take("OPTIONAL"):
            return [("optional", self.group())]
        if self.take("VALUES"):
            return [("values", *self.data())]
        if self.ahead("{"):
            branches = [self.group()]
            while self.take("UNION"):
                branches.append(self.group())
            return [("union", tuple(branches))] if len(branches) > 1 else [("group", branches[0])]
        return self.triples()

    def data(self) -> tuple[tuple[str, ...], tuple[tuple[Term | None, ...], ...]]:
        """The variables of inline data and its rows; None is UNDEF."""
        single = not self.take("(")
        names = []
        while self.kind() == "variable":
            names.append(self.next("variable")[1:])
        rows: list[tuple[Term | None, ...]] = []
        if not single:
            self.need(")")
        self.need("{")
        while not self.take("}"):
            if not single:
                self.need("(")
            rows.append(tuple(None if self.take("UNDEF") else self.term() for _ in names))
            if not single:
                self.need(")")
        return tuple(names), tuple(rows)

    def triples_until_end(self) -> Group:
        elements: list[Any] = []
        while self.kind() != "end":
            elements += self.triples()
            self.take(".")
        return tuple(elements)

    def triples(self) -> list[Any]:
        """Triples with one subject: `s p o, o ; p o`."""
        subject = self.node()
        found = []
        while True:
            predicate = self.node()
            found.append(("triple", subject, predicate, self.node()))
            while self.take(","):
                found.append(("triple", subject, predicate, self.node()))
            if not self.take(";"):
                return found
            if self.ahead(".", "}") or self.kind() == "end":
                return found

    def node(self) -> Any:
        return ("?", self.next("variable")[1:]) if self.kind() == "variable" else self.term()

    def term(self) -> Term:
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind in ("iri", "blank"):
            return text
        if kind == "name" and text == "a":
            return RDF_TYPE
        if kind == "name" and text in ("true", "false"):
            return f'"{text}"^^<{XSD}boolean>'
        if kind == "pname":
            prefix, local = text.split(":", 1)
            return f"<{self.prefixes[prefix]}{local}>"
        if kind == "number":
            return f'"{text}"^^<{XSD}{"decimal" if "." in text else "integer"}>'
        if kind == "sign" and text == "-":
            return self.term().replace('"', '"-', 1)
        if kind != "string":
            raise ValueError(f"expected a term at {self.tokens[self.at - 1 :][:4]}")
        lexical = f'"{text[1:-1]}"'
        if self.take("^^"):
            datatype = self.term()  # RDF 1.1: a literal of xsd:string and one without a datatype are the same
            return lexical if datatype == f"<{XSD}string>" else f"{lexical}^^{datatype}"
        if self.kind() == "language":
            return lexical + self.next("language").lower()
        return lexical

    # FILTER expressions

    def expression(self) -> tuple[Any, ...]:
        left = self.conjunction()
        while self.take("||"):
            left = ("||", left, self.conjunction())
        return left

    def conjunction(self) -> tuple[Any, ...]:
        left = self.comparison()
        while self.take("&&"):
            left = ("&&", left, self.comparison())
        return left

    def comparison(self) -> tuple[Any, ...]:
        left = self.sum()
        if self.ahead("=", "!=", "<", "<=", ">", ">="):
            return (self.next("sign"), left, self.sum())
        return left

    def operand(self) -> tuple[Any, ...]:
        if self.take("("):
            inner = self.expression()
            self.need(")")
            return inner
        if self.take("!"):
            return ("!", self.operand())
        if self.take("-"):
            return ("negative", self.operand())
        if self.take("BOUND"):
            self.need("(")
            name = self.next("variable")[1:]
            self.need(")")
            return ("bound", name)
        if self.kind() == "variable":
            return ("?", self.next("variable")[1:])
        return ("term", self.term())


class _Sequence:
    """The inside of SEQ( … ), read once the GPMs are known. Tightest `+`, `{l,m}`, `?` and `!`, then `&`, then `|`."""

    def __init__(self, tokens: list[tuple[str, str]], gpms: dict[str, Gpm]) -> None:
        self.tokens = [text for _, text in tokens]
        self.gpms = gpms
        self.at = 0

    def take(self, sign: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at] == sign:
            self.at += 1
            return True
        return False

    def elements(self, end: str = "") -> tuple[Element, ...]:
        found = [self.element("")]
        while self.at < len(self.tokens) and self.tokens[self.at] != end:
            operator = self.tokens[self.at]
            self.at += 1
            if operator not in (",", ";", ":"):
                raise ValueError(f"unexpected {operator}")
            if self.at < len(self.tokens) and self.tokens[self.at] != end:
                found.append(self.element(operator))
        return tuple(found)

    def element(self, operator: str) -> Element:
        what = self.either()
        suffixes = set()
        lasting: int | None = None
        rounds: tuple[int, int | None, str] | None = None
        while self.at < len(self.tokens):
            sign = self.tokens[self.at]
            follows = self.tokens[self.at + 1 : self.at + 2]
            joined = sign if sign in (",", ";", ":") and follows in (["+"], ["{"]) else ""
            self.at += bool(joined)
            if self.take("+"):
                rounds = (1, None, joined)
            elif self.take("{"):
                low, high = self.bounds()
                rounds = (max(low, 1), high, joined)
                if low == 0:
                    suffixes.add("?")
            elif sign in ("?", "!"):
                suffixes.add(sign)
                self.at += 1
                if self.tokens[self.at : self.at + 1] == ["FOR"]:
                    number, unit = self.tokens[self.at + 1 : self.at + 3]
                    lasting = round(float(number) * _UNITS[unit.upper().removesuffix("S")])
                    self.at += 3
            else:
                break
        return Element(operator, what, rounds, "?" in suffixes, "!" in suffixes, lasting)

    def bounds(self) -> tuple[int, int | None]:
        """The numbers of `l}`, `l,m}`, `l,}` or `,m}`."""
        end = self.tokens.index("}", self.at)
        inside = "".join(self.tokens[self.at : end])
        self.at = end + 1
        low, comma, high = inside.partition(",")
        if not comma:
            return int(low), int(low)
        return int(low or 0), int(high) if high else None

    def either(self) -> What:
        parts = [self.both()]
        while self.take("|"):
            parts.append(self.both())
        if len(parts) == 1:
            return parts[0]
        plain = [part for part in parts if not isinstance(part, Chain | Unordered)]
        if len(plain) == len(parts):
            return reduce(Either, plain)
        every = (part.alternatives if isinstance(part, Chain) else ((Element("", part),),) for part in parts)
        return Chain(tuple(alternative for part in every for alternative in part))

    def both(self) -> What:
        parts = [self.primary()]
        while self.take("&"):
            parts.append(self.primary())
        plain = [part for part in parts if not isinstance(part, Chain | Unordered)]
        if len(parts) > len(plain) and len(parts) > 1:
            raise ValueError("'&' with a sequence in parentheses, or with AND")
        return parts[0] if len(parts) == 1 else reduce(And, plain)

    def any_order(self) -> Unordered:
        """The parts behind `AND(`; those of an AND inside are among them."""
        parts: list[At] = []
        while True:
            part = self.either()
            if isinstance(part, Chain):
                raise ValueError("AND of a sequence")
            parts += part.parts if isinstance(part, Unordered) else (part,)
            if self.take(")"):
                break
            if not self.take(","):
                raise ValueError("AND of something with a suffix")
        if len(parts) < 2:
            raise ValueError("AND of one part")
        return Unordered(tuple(parts))

    def primary(self) -> What:
        if [text.upper() for text in self.tokens[self.at : self.at + 2]] == ["AND", "("]:
            self.at += 2
            return self.any_order()
        if self.take("("):
            inner = self.elements(")")
            if not self.take(")"):
                raise ValueError("a parenthesis that is not closed")
            alone = inner[0]
            if len(inner) > 1:
                return Chain((inner,))
            if alone.rounds is not None or alone.optional or alone.negated:
                raise ValueError("a suffix inside the parentheses: not for this reader")
            return alone.what
        self.at += 1
        return self.gpms[self.tokens[self.at - 1]]


def _conjuncts(condition: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """FILTER (a && b) is FILTER (a) FILTER (b), as in SPARQL."""
    return [part for side in condition[1:] for part in _conjuncts(side)] if condition[0] == "&&" else [condition]
