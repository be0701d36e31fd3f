"""A reader of CEQL text for the naive evaluator: recursive descent, independent of the engine's parser.

It reads well-formed queries of the cases and of the random tests, no more: wrong text raises `ValueError` without care.

    query    SELECT [strategy] (* | NONE | v, …) [FROM s, …] WHERE formula
             [PARTITION BY [a], …] [WITHIN …] [CONSUME BY …] [LIMIT n] [AFTER MATCH …]
    formula  choice (FILTER condition)*
    choice   sequence (OR sequence)*
    sequence element ((";" | "->" | ":") element)*
    element  NOT element | postfix
    postfix  (type | stream>type | "(" formula ")" | AND "(" formula, … ")") (loop | AS v)*
    loop     ("?" | ["->" | ":"] ("+" | "*" | "{" l, m "}")) ["?" | ALL] [UNTIL postfix]

A word is read whole and then looked up among the keywords; no letter or digit follows a number at once.
A NOT joined by ";" or "->", and one in AND, is an absence; any other is one event.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import re
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast

from tests.support import oracle_functions
from tests.support.oracle import (
    And,
    Apart,
    As,
    Before,
    Behind,
    Filter,
    Formula,
    Or,
    Other,
    Plus,
    Query,
    Repeat,
    Rounds,
    Step,
    Then,
    Type,
    Within,
    Without,
    exact,
    named,
)
from tests.support.oracle_repeated import Again
from tests.support.oracle_silences import Element, Silent, ways
from tests.support.oracle_tokens import Tokens

_TOKEN = re.compile(
    r"""
      (?P<skip>\s+ | --[^\n]* | /\*.*?\*/)
    | (?P<number>(?:\d+\.\d+ | \.\d+ | \d+)(?!\w))
    | (?P<string>'[^']*' | "[^"]*")
    | (?P<name>`[^`]*` | [^\W\d]\w*)
    | (?P<sign>->[+*{]? | :[+*{] | \.\. | == | != | <> | <= | >= | [][(){}<>=;:+*/%,.?-])
    """,
    re.VERBOSE | re.DOTALL,
)
_STRATEGIES = ("ALL", "ANY", "NEXT", "LAST", "MAX", "STRICT", "FIRST")
_UNITS = {
    "NANOSECOND": 1,
    "MICROSECOND": 10**3,
    "MILLISECOND": 10**6,
    "SECOND": 10**9,
    "MINUTE": 60 * 10**9,
    "HOUR": 3600 * 10**9,
    "DAY": 86400 * 10**9,
}
_SIGNS = {"==": "=", "<>": "!="}
_BEHIND_A_VALUE = ("=", "==", "!=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "IN", "LIKE", "IS", "ILIKE",
                   "BETWEEN")  # fmt: skip
_FUNCTIONS = ("AVG", "COUNT", "FIRST", "LAST", "MAX", "MIN", "STDDEV", "SUM")


def read(text: str) -> Query:
    """The query that `text` is."""
    return _Reader(text).query()


def shown(formula: Formula, named: bool = False) -> frozenset[str]:
    """The variables of AS, and the types of events that no AS names: those that valuations of `SELECT *` show."""
    match formula:
        case Type(name):
            return frozenset() if named else frozenset({name})
        case As(child, variable):
            return shown(child, True) | {variable}
        case Filter(child) | Plus(child) | Repeat(child) | Rounds(child):
            return shown(child, named)
        case Before(child=child) | Behind(child=child) | Apart(child=child):
            return shown(child, named)
        case Or(left, right) | Then(left, right) | And(left, right) | Without(left, _, right) | Step(left, right):
            return shown(left, named) | shown(right, named)
    return frozenset()


class _Reader(Tokens):
    pattern = _TOKEN

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.variable = ""  # whose brackets we are in
        self.streams: tuple[str, ...] = ()

    def next(self, kind: str) -> str:
        return super().next(kind).strip("`")

    # clauses

    def query(self) -> Query:
        self.need("SELECT")
        strategy = "ALL"
        if self.ahead(*_STRATEGIES) and not self.ahead(",", "FROM", "WHERE", offset=1):
            strategy = self.next("name").upper()
        select = self.selection()
        self.streams = self.names() if self.take("FROM") else ()
        self.need("WHERE")
        formula = self.formula()
        partition: tuple[tuple[str, ...], ...] = ()
        if self.take("PARTITION"):
            self.need("BY")
            partition = (self.bracket(),)
            while self.take(","):
                partition += (self.bracket(),)
        within = self.within() if self.take("WITHIN") else None
        consume, limit = "NONE", None
        if self.take("CONSUME"):
            self.need("BY")
            consume = self.next("name").upper()
            if consume not in ("ANY", "PARTITION", "NONE"):
                raise ValueError(f"CONSUME BY {consume}")
        if self.take("LIMIT"):
            limit = int(self.next("number"))
        after = self.after() if self.take("AFTER") else None
        if self.at < len(self.tokens):
            raise ValueError(f"left over: {self.tokens[self.at :][:5]}")
        formula, ending = _split(formula)
        formula, beginning = _split_beginning(formula)
        return Query(
            formula, select, strategy, partition, within, self.streams, consume, limit, ending[0], None, after,
            ending[1], *beginning,
        )  # fmt: skip

    def event(self) -> None:
        if not self.take("ROW"):
            self.need("EVENT")

    def after(self) -> tuple[str, str] | None:
        """The rule of AFTER MATCH and its variable, or None for NO SKIP."""
        self.need("MATCH")
        if self.take("NO"):
            self.need("SKIP")
            return None
        self.need("SKIP")
        if self.take("PAST"):
            self.need("LAST")
            self.event()
            return "PAST LAST", ""
        self.need("TO")
        if self.take("NEXT"):
            self.event()
            return "TO NEXT", ""
        rule = f"TO {self.next('name').upper()}"
        if rule not in ("TO FIRST", "TO LAST"):
            raise ValueError(f"SKIP {rule}")
        name = self.next("name")
        return rule, f"{name}>{self.next('name')}" if self.take(">") else name

    def selection(self) -> frozenset[str] | None:
        if self.take("*"):
            return None
        if self.take("NONE"):
            return frozenset()
        names = {self.selected()}
        while self.take(","):
            names.add(self.selected())
        return frozenset(names)

    def selected(self) -> str:
        """`v` or `v[attribute, …]`: which attributes are shown changes no match."""
        name = self.next("name")
        if self.take(">"):
            name += ">" + self.next("name")
        if self.ahead("["):
            self.bracket()
        return name

    def names(self) -> tuple[str, ...]:
        names = [self.next("name")]
        while self.take(","):
            names.append(self.next("name"))
        return tuple(names)

    def bracket(self) -> tuple[str, ...]:
        self.need("[")
        names = self.names()
        self.need("]")
        return names

    def within(self) -> Within:
        size = exact(self.next("number"))
        if self.ahead("["):
            return Within(size, "attribute", self.bracket()[0])
        if self.take("EVENTS", "EVENT"):
            return Within(size, "events")
        return Within(self.span(size), "time")

    def span(self, size: Fraction | None = None) -> Fraction:
        """A time, ns, of which the first number may have been read."""
        total = (exact(self.next("number")) if size is None else size) * self.unit()
        while self.at < len(self.tokens) and self.tokens[self.at][0] == "number":
            total += exact(self.next("number")) * self.unit()
        return total

    def unit(self) -> int:
        word = self.next("name")
        unit = word.upper().removesuffix("S")
        if unit not in _UNITS or not word.isascii():
            raise ValueError(f"no unit of time: {word}")
        return _UNITS[unit]

    # formulas

    def formula(self) -> Formula:
        formula = self.choice()
        while self.take("FILTER"):
            formula = Filter(formula, self.condition())
        return formula

    def choice(self) -> Formula:
        left = self.sequence()
        while self.take("OR"):
            left = Or(left, self.sequence())
        return left

    def sequence(self) -> Formula:
        parts, signs = [self.element()], []
        while self.ahead(";", ":", "->"):
            signs.append(self.tokens[self.at][1])
            self.at += 1
            parts.append(self.element())
        if not signs and parts[0][2] is not None:
            return cast(Formula, Silent(parts[0][1], parts[0][2]))
        every = itertools.product(*map(ways, parts))
        return functools.reduce(Or, [self.sequence_of(list(way), list(signs)) for way in every])

    def sequence_of(self, parts: list[Element], signs: list[str]) -> Formula:
        first = 0
        while first < len(signs) and parts[first][0] and signs[first] == signs[0] != ":":
            first += 1
        begun, plain = [(part, signs[0], span) for _, part, span in parts[:first]], None
        if begun and not any(span is not None for *_, span in begun):
            plain, begun = (functools.reduce(Or, [part for part, *_ in begun]), signs[0], None), []
        left, at = _with_beginning(_single(*parts[first][:2]), plain), first + 1
        while at < len(parts):
            negated, part, span = parts[at]
            while negated and at + 1 < len(parts) and parts[at + 1][0] and signs[at - 1] == signs[at] != ":":
                _, other, later = parts.pop(at + 1)
                signs.pop(at)
                if span is not None or later is not None:
                    left, part, span = Behind(left, part, signs[at - 1], span), other, later
                else:
                    part = Or(part, other)
            if negated and signs[at - 1] != ":" and at + 1 == len(parts):
                return Behind(functools.reduce(_with_beginning, begun, left), part, signs[at - 1], span)
            if negated and signs[at - 1 : at + 1] in ([";", ";"], ["->", "->"]):
                left = Without(left, part, _single(*parts[at + 1][:2]), signs[at], span)
                at += 2
            elif signs[at - 1] == "->":
                left = Step(left, _single(negated, part))
                at += 1
            else:
                left = Then(left, _single(negated, part), signs[at - 1] == ":")
                at += 1
        return functools.reduce(_with_beginning, begun, left)

    def element(self) -> Element:
        """(True for a NOT, the formula in it, its time)."""
        if self.take("NOT"):
            formula = _single(*self.element()[:2])
            if not self.take("FOR"):
                return True, formula, None
            return True, formula, Again(self.span()) if self.take("EVERY") else self.span()
        formula = self.postfix()
        return (True, formula.child, None) if isinstance(formula, Other) else (False, formula, None)

    def postfix(self) -> Formula:
        formula = self.primary()
        while True:
            if self.ahead("+", ":+") and not self.ahead("UNTIL", offset=1):
                formula = Plus(formula, self.ahead(":+"))
                self.at += 1
            elif self.take("AS"):
                formula = As(formula, self.next("name"))
            elif self.ahead("+", ":+", "?", "*", ":*", "->*", "->+", "{", ":{", "->{"):
                formula = self.rounds(formula)
            else:
                return formula

    def rounds(self, child: Formula) -> Formula:
        sign = self.tokens[self.at][1]
        self.at += 1
        low, join = int(sign[-1] == "+"), sign[:-1] or ";"
        high: int | None = 1 if sign == "?" else None
        if sign[-1] == "{":
            low = 0 if self.ahead(",") else int(self.next("number"))
            high = low
            if self.take(","):
                high = None if self.ahead("}") else int(self.next("number"))
            self.need("}")
            if join == ";" and low:
                return Repeat(child, low, high)
        preference = "reluctant" if self.take("?") else "each" if self.take("ALL") else "greedy"
        if join != "->" and (low, high) != (0, 1):
            preference = "each"
        until = self.primary() if self.take("UNTIL") else None
        return Rounds(child, low, high, join, preference, until)

    def part_of_and(self) -> tuple[bool, Formula, Fraction | None]:
        """A part of AND: (True for a NOT, the formula in it, its time)."""
        at = self.at
        negated, part, span = self.element()
        if negated and self.ahead(",", ")"):
            return True, part, span
        self.at = at
        return False, self.formula(), None

    def primary(self) -> Formula:
        if self.ahead("AND") and self.ahead("(", offset=1):
            self.at += 2
            parts = [self.part_of_and()]
            while self.take(","):
                parts.append(self.part_of_and())
            self.need(")")
            both = functools.reduce(And, [part for negated, part, _ in parts if not negated])
            for negated, part, span in parts:
                both = Apart(both, part, span) if negated else both
            return both
        if self.take("("):
            formula = self.formula()
            self.need(")")
            return formula
        every, name = self.every(), self.next("name")
        if self.take(">"):
            every, kind = self.every(), self.next("name")
            return Type("ANY" if every else kind, name, every)
        return Type("ANY", None, True) if every else self.plain(name)

    def every(self) -> bool:
        """True if the word ANY is next: any type."""
        return self.tokens[self.at][1].upper() == "ANY"

    def plain(self, name: str) -> Formula:
        """`R`; as `S>R OR T>R` if the query names a variable `S>R`, in SELECT or before a bracket."""
        words = [text.strip("`") for _, text in self.tokens] + ["", ""]
        start = words.index("WHERE") if "WHERE" in words else 0
        if any(
            words[i + 1 : i + 3] == [">", name] and words[i] in self.streams and (i < start or words[i + 3] == "[")
            for i in range(len(words) - 3)
        ):
            each: list[Formula] = [Type(name, stream) for stream in self.streams]
            return functools.reduce(Or, each)
        return Type(name)

    # conditions of FILTER

    def condition(self) -> tuple[Any, ...]:
        parts = [self.conjunction()]
        while self.take("OR"):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else ("any", *parts)

    def conjunction(self) -> tuple[Any, ...]:
        parts = [self.single()]
        while self.take("AND"):
            parts.append(self.single())
        return parts[0] if len(parts) == 1 else ("all", *parts)

    def single(self) -> tuple[Any, ...]:
        """`x[…]`, a comparison over `x.a`, or a condition in parentheses; NOT of these goes inward."""
        if self.take("NOT"):
            return _negate(self.single())
        streamed = self.ahead(">", offset=1) and self.ahead("[", offset=3)
        first = self.ahead("[", offset=1) and self.ahead("]", offset=3) and self.ahead(".", offset=4)
        if self.tokens[self.at][0] == "name" and (self.ahead("[", offset=1) or streamed) and not first:
            variable = self.next("name")
            if self.take(">"):
                variable += ">" + self.next("name")
            self.need("[")
            self.variable = variable
            expression = self.disjunction()
            self.variable = ""
            self.need("]")
            return ("on", variable, expression)
        start = self.at
        if self.take("("):
            try:
                condition = self.condition()
                self.need(")")
                return condition
            except ValueError:  # the parenthesis belongs to arithmetic: read it as a comparison
                self.at = start
        return ("for all", self.comparison())

    # expressions

    def disjunction(self) -> tuple[Any, ...]:
        left = self.conjunct()
        while self.take("OR"):
            left = ("or", left, self.conjunct())
        return left

    def conjunct(self) -> tuple[Any, ...]:
        left = self.negation()
        while self.take("AND"):
            left = ("and", left, self.negation())
        return left

    def negation(self) -> tuple[Any, ...]:
        if self.take("NOT"):
            return ("not", self.negation())
        start = self.at
        if self.take("("):
            try:
                inner = self.disjunction()
                self.need(")")
                if not self.ahead(*_BEHIND_A_VALUE):
                    return inner
            except ValueError:
                pass
            self.at = start
        return self.comparison()

    def comparison(self) -> tuple[Any, ...]:
        left = self.sum()
        if self.ahead("NOT"):
            self.at += 1
            return ("not", self.rest(left))
        return self.rest(left)

    def rest(self, left: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.take("IS"):
            negated = self.take("NOT")
            self.need("NULL")
            return ("not", ("null?", left)) if negated else ("null?", left)
        if self.take("BETWEEN"):
            low = self.sum()
            self.need("AND")
            return ("and", (">=", left, low), ("<=", left, self.sum()))
        if self.take("ILIKE"):
            return ("like", left, f"(?i){self.constant()}")
        if left[0] == "call" and left[1] in oracle_functions.TRUTHS and not self.ahead(*_BEHIND_A_VALUE):
            return ("=", left, ("value", True))
        if self.take("LIKE"):
            return ("like", left, self.constant())
        if self.take("IN"):
            return self.membership(left)
        if not self.ahead("=", "==", "!=", "<>", "<", "<=", ">", ">="):
            raise ValueError(f"expected a comparison at {self.tokens[self.at :][:3]}")
        sign = self.next("sign")
        for word in ("ANY", "SOME", "ALL"):
            if self.ahead(word) and self.ahead("(", offset=1):
                self.at += 2
                call = ("call", f"{_SIGNS.get(sign, sign)} {word}", left, self.sum())
                self.need(")")
                return ("=", call, ("value", True))
        return (_SIGNS.get(sign, sign), left, self.sum())

    def membership(self, left: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.take("RANGE"):
            self.need("(")
            low = self.constant()
            self.need(",")
            high = self.constant()
            self.need(")")
            return ("between", left, low, high)
        if not self.ahead("{"):
            return ("=", ("call", "MEMBER", left, self.operand()), ("value", True))
        self.need("{")
        low = None if self.ahead("..") else self.constant()
        if self.take(".."):
            high = None if self.ahead("}") else self.constant()
            self.need("}")
            return ("between", left, low, high)
        values = [low]
        while self.take(","):
            values.append(self.constant())
        self.need("}")
        return ("in", left, tuple(values))

    def constant(self) -> Any:
        negative = self.take("-")
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind == "string":
            return text[1:-1]
        if kind != "number":
            raise ValueError(f"expected a constant, not {text}")
        value = float(text) if "." in text else int(text)
        return -value if negative else value

    def operand(self) -> tuple[Any, ...]:
        if self.take("-"):
            return ("negative", self.operand())
        if self.take("("):
            inner = self.sum()
            self.need(")")
            return inner
        kind, _ = self.tokens[self.at]
        if kind != "name":
            return self.duration(self.constant())
        if self.ahead("CASE") and not self.ahead(*_BEHIND_A_VALUE, offset=1):
            return self.case()
        name = self.next("name")
        if name.upper() in oracle_functions.NAMES and self.take("("):
            return self.call(name.upper())
        if name.upper() == "CORR" and self.take("("):
            first = self.operand()
            self.need(",")
            second = self.operand()
            self.need(")")
            return ("corr", first, second)
        if name.upper() in _FUNCTIONS and self.take("("):
            return self.aggregate(name.upper())
        if name.upper() == "PREV" and self.take("("):
            return self.previous()
        if self.take("["):
            if self.next("number") != "0":
                raise ValueError("an event by its number")
            self.need("]")
            self.need(".")
            return ("earlier", name, self.next("name"), 0)
        return ("of", name, self.next("name")) if self.take(".") else ("attribute", name)

    def duration(self, value: Any) -> tuple[Any, ...]:
        """A constant, or `1 HOUR 30 MINUTES`, of which the number was read."""
        total = 0
        while self.kind() == "name" and (unit := self.tokens[self.at][1].upper().removesuffix("S")) in _UNITS:
            self.at += 1
            total += value * _UNITS[unit]
            if self.kind() != "number":
                return ("value", datetime.timedelta(microseconds=total / 1000))
            value = self.constant()
        return ("value", value)

    def case(self) -> tuple[Any, ...]:
        self.need("CASE")
        compared = None if self.ahead("WHEN") else self.sum()
        parts = []
        while self.take("WHEN"):
            parts.append(self.disjunction() if compared is None else ("=", compared, self.sum()))
            self.need("THEN")
            parts.append(self.sum())
        otherwise = self.sum() if self.take("ELSE") else ("value", None)
        self.need("END")
        return ("case", *parts, otherwise)

    def call(self, function: str) -> tuple[Any, ...]:
        arguments = [self.sum()]
        if self.take("AS"):
            arguments.append(("value", self.next("name").upper()))
        while self.take(","):
            arguments.append(self.sum())
        self.need(")")
        return ("call", function, *arguments)

    def previous(self) -> tuple[Any, ...]:
        """`x.a)`, or in brackets `a)`, perhaps with a number behind."""
        variable, attribute = self.variable, self.next("name")
        if self.take("."):
            variable, attribute = attribute, self.next("name")
        back = int(self.next("number")) if self.take(",") else 1
        self.need(")")
        return ("earlier", variable, attribute, back)

    def aggregate(self, function: str) -> tuple[Any, ...]:
        """COUNT(x), or a function of an expression over the attributes of one variable."""
        if function == "COUNT" and self.ahead(")", offset=1):
            variable = self.next("name")
            self.need(")")
            return ("total", function, variable, ("value", 1))
        inner = self.sum()
        self.need(")")
        (variable,) = named(inner) or (self.variable,)
        return ("total", function, variable, _own(inner))


def _negate(condition: tuple[Any, ...]) -> tuple[Any, ...]:
    match condition:
        case ("all" | "any" as word, *parts):
            return ("any" if word == "all" else "all", *map(_negate, parts))
        case ("on", variable, expression):
            return ("on", variable, ("not", expression))
        case ("for all", expression):
            return ("for all", ("not", expression))
    raise AssertionError(condition)


def _single(negated: bool, formula: Formula) -> Formula:
    return Other(formula) if negated else formula


def _with_beginning(formula: Formula, begun: tuple[Formula, str, Fraction | None] | None) -> Formula:
    return formula if begun is None else Before(begun[0], formula, *begun[1:])


_Border = tuple[Formula | None, Fraction | None]


def _split(formula: Any) -> tuple[Formula, _Border]:
    """A query's formula without the NOT at its end, and the formula and the time of that NOT; AS and FILTER around
    belong to the rest."""
    if isinstance(formula, Behind):
        return formula.child, (formula.absent, formula.span)
    if isinstance(formula, As | Filter):
        rest, ending = _split(formula.child)
        return (formula, ending) if ending[0] is None else (replace(formula, child=rest), ending)
    return formula, (None, None)


def _split_beginning(formula: Any) -> tuple[Formula, _Border]:
    """The same for a NOT at its start, if that has a time."""
    if isinstance(formula, Before) and formula.span is not None:
        return formula.child, (formula.absent, formula.span)
    if isinstance(formula, As | Filter):
        rest, beginning = _split_beginning(formula.child)
        return (formula, beginning) if beginning[0] is None else (replace(formula, child=rest), beginning)
    return formula, (None, None)


def _own(expression: Any) -> Any:
    """An expression over one variable as one over the attributes of an event."""
    match expression:
        case ("of", _, name):
            return ("attribute", name)
        case ("value" | "attribute", _):
            return expression
        case ("call", name, *parts):
            return ("call", name, *map(_own, parts))
        case (sign, *parts):
            return (sign, *map(_own, parts))
    raise AssertionError(expression)
