"""Text to syntax tree. Lark is used in this module and in `diagnostics` alone.

The grammar has one ladder of rules for conditions and values, because `(` opens both. Going down the tree, it decides
if a condition or a value is needed, so that the error can name the missing one.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import re
from collections.abc import Callable
from importlib.resources import files
from typing import Final

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from ceql.operators.arithmetic import ARITHMETIC
from ceql.operators.functions import FUNCTIONS
from ceql.syntax import ast
from ceql.syntax.diagnostics import syntax_error
from ceql.syntax.sequences import then
from ceql.syntax.walk import parts
from spaseq.core.after import AfterText
from spaseq.core.errors import InternalError, QuerySyntaxError, Span
from spaseq.core.events.time import duration_nanoseconds
from spaseq.core.pattern import Preference, Skip
from spaseq.core.text import WholeWords, check_characters

_LINE_END: Final = re.compile("\n")
_CONSTANT: Final = re.compile(
    r"""(?P<text>'(?:[^'\n]|'')*'|"(?:[^"\n]|"")*")|(?P<sign>-\s*)?(?P<number>[\d.][^\s,}]*)"""
)
_INT64: Final = range(-(1 << 63), 1 << 63)
_DIGITS: Final = 400
"""A whole number with more digits is not given to int(), which refuses thousands; a double has at most 309."""
_OPERATORS: Final = {"==": "=", "<>": "!="}
_ARITHMETIC: Final = {row.rule: row.symbol for row in ARITHMETIC.values()}


@functools.cache
def _parser() -> Lark:
    grammar = (files("ceql.syntax") / "grammar.lark").read_text(encoding="utf-8")
    words = WholeWords("IDENT")
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=False, postlex=words)


def parse(text: str, source: str = "<query>") -> ast.Query:
    """The tree of a CEQL query; `QuerySyntaxError` (with line, column and caret) if the text is not one."""
    check_characters(text, source)
    try:
        tree = _parser().parse(text)
        return _Builder(text, source).query(tree)
    except UnexpectedInput as error:
        raise syntax_error(error, text, source) from None


class _Builder:
    """Turns lark's tree into the nodes of `ast`. Errors quote `text` and name `source`."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.lines = [0, *(m.end() for m in _LINE_END.finditer(text))]
        self.selecting = False

    # Helpers

    def error(self, problem: str, span: Span, hint: str = "") -> QuerySyntaxError:
        return QuerySyntaxError(problem, text=self.text, span=span, source=self.source, hint=hint)

    def span(self, node: Tree[Token] | Token) -> Span:
        if isinstance(node, Token):
            start, end = node.start_pos, node.end_pos
        else:
            start, end = node.meta.start_pos, node.meta.end_pos
        assert start is not None and end is not None
        line = bisect.bisect_right(self.lines, start)
        return Span(start, end, line, start - self.lines[line - 1] + 1)

    def name(self, node: Tree[Token]) -> ast.Name:
        token = _token(node)
        text = str(token)[1:-1] if token.type == "QUOTED" else str(token)
        return ast.Name(text, span=self.span(token))

    def integer(self, token: Token, what: str) -> int:
        if not str(token).isdigit():
            raise self.error(f"{what} is a whole number, not {token}", self.span(token))
        if len(token) > _DIGITS or int(token) not in _INT64:
            raise self.error(f"{what} goes up to {_INT64[-1]}", self.span(token))
        return int(token)

    def number(self, token: Token, sign: int = 1) -> int | float:
        text = str(token)
        whole = text.isdigit() and len(text) <= _DIGITS and sign * int(text) in _INT64
        value: int | float = sign * int(text) if whole else sign * float(text)
        if value in (float("inf"), float("-inf")):
            raise self.error("this number is too large", self.span(token), "numbers go up to about 1.8e308")
        return value

    # The query

    def query(self, tree: Tree[Token]) -> ast.Query:
        selection, *rest = _trees(tree)
        streams: tuple[ast.Name, ...] = ()
        if rest[0].data == "from_clause":
            streams = tuple(self.name(n) for n in _trees(rest.pop(0)))
        where, *clauses = rest
        parts: dict[str, Tree[Token]] = {}
        for clause in clauses:
            kind = str(clause.data)
            if kind in parts:
                raise self.error(f"a second {_CLAUSE_WORDS[kind]} clause", self.span(clause), "a query has at most one")
            parts[kind] = clause
        return ast.Query(
            self.selection(selection),
            streams,
            self.formula(where),
            self.partition(parts["partition"]) if "partition" in parts else (),
            self.within(_trees(parts["clause"])[0]) if "clause" in parts else None,
            self.consume(parts["consume"]) if "consume" in parts else None,
            self.limit(parts["limit"]) if "limit" in parts else None,
            self.after(_trees(parts["after_match"])[0]) if "after_match" in parts else None,
            self.grouping(parts["grouping"]) if "grouping" in parts else None,
            self.order(parts["order"]) if "order" in parts else None,
            span=self.span(tree),
        )

    def selection(self, tree: Tree[Token]) -> ast.Selection:
        children = _trees(tree)
        strategy = None
        if children[0].data == "strategy":
            strategy = ast.Strategy(_token(children.pop(0)).upper())
        (what,) = children
        if what.data == "everything":
            items: tuple[ast.Selected, ...] | None = None
        elif what.data == "nothing":
            items = ()
        else:
            listed = _trees(what)
            items = tuple(item for item in map(self.list_item, listed) if item is not None)
            if len(items) < len(listed):
                columns = tuple(map(self.column, listed))
                return ast.Selection(strategy, None, columns, span=self.span(tree))
        return ast.Selection(strategy, items, span=self.span(tree))

    def list_item(self, tree: Tree[Token]) -> ast.Selected | None:
        """An item of SELECT that is `v`, `s>R`, `v[a, b]` or `s>R[a, b]`; None if it is another."""
        span, item, names = self.span(tree), tree, _trees(tree)
        if tree.data == "column":
            if len(names) > 1:
                return None
            item, names = names[0], _trees(names[0])
        stream: tuple[str, ...] = ()
        if item.data == "compare" and names[0].data == "bare" and item.children[1] == ">":
            stream, item = (self.name(_child(names[0], 0)).text,), names[1]
            names = _trees(item)
        match str(item.data), names:
            case "taken", [first, *named]:
                if named and named[0].data == "name":
                    stream, first = (self.name(first).text,), named[0]
                listing = [part for part in named if part.data == "listing"]
                attributes = tuple(self.name(n) for part in listing for n in _trees(part))
            case "bare", [first]:
                attributes = ()
            case "holds", [first, attribute] if attribute.data == "bare":
                attributes = (self.name(_child(attribute, 0)),)
            case "several", [first, *named]:
                attributes = tuple(self.name(n) for n in named)
            case _:
                return None
        return ast.Selected(">".join((*stream, self.name(first).text)), attributes, span=span)

    def column(self, tree: Tree[Token]) -> ast.Column:
        """An item of SELECT beside others that are computed."""
        what, *alias = _trees(tree)
        listed = what.data == "holds" and _child(what, 1).data == "bare"
        if tree.data == "taken" or what.data == "several" or listed:
            found = self.text[self.span(what).start : self.span(tree).end]
            hint = "COLLECT(x.price) lists the prices of all events of x, x.price is that of the last one"
            raise self.error(f"{found} lists events, and stands beside what is computed", self.span(tree), hint)
        return ast.Column(self.value_of_match(what), self.name(alias[0]) if alias else None, span=self.span(tree))

    def value_of_match(self, what: Tree[Token]) -> ast.Expression:
        """A value of a match, for SELECT or ORDER BY."""
        self.selecting = True
        build = self.condition if self.is_condition(what) else self.value
        expression = build(what, in_brackets=False)
        self.selecting = False
        return expression

    def order(self, tree: Tree[Token]) -> ast.Order:
        keys = (
            ast.Key(self.value_of_match(_child(key, 0)), key.data == "descending", span=self.span(key))
            for key in _trees(tree)
        )
        return ast.Order(tuple(keys), span=self.span(tree))

    def is_condition(self, tree: Tree[Token]) -> bool:
        """True for a tree that is true, false or unknown."""
        if tree.data == "grouped":
            return self.is_condition(_child(tree, 0))
        if tree.data == "holds":  # which SELECT refuses by name
            return _child(tree, 1).data not in ("number", "negate")
        return str(tree.data) in _CONDITIONS or (tree.data == "call" and self.gives_truth(tree))

    def partition(self, tree: Tree[Token]) -> tuple[tuple[ast.Name, ...], ...]:
        return tuple(tuple(self.name(n) for n in _trees(bracket)) for bracket in _trees(tree))

    def within(self, tree: Tree[Token]) -> ast.Within:
        span = self.span(tree)
        first = tree.children[0]
        assert isinstance(first, Token)
        if tree.data == "within_events":
            return ast.WithinEvents(self.integer(first, "a count of events"), span=span)
        if tree.data == "within_attribute":
            return ast.WithinAttribute(self.number(first), self.name(_trees(tree)[0]), span=span)
        return ast.WithinTime(self.duration(tree, "window"), span=span)

    def duration(self, tree: Tree[Token], what: str) -> int:
        """The nanoseconds of `1 HOUR 30 MINUTES`."""
        words = [str(c) for c in tree.children]
        total = sum(duration_nanoseconds(words[k], words[k + 1]) for k in range(0, len(words), 2))
        if total not in _INT64:
            raise self.error(f"this {what} is longer than time itself", self.span(tree), f"{what}s go up to 292 years")
        return total

    def grouping(self, tree: Tree[Token]) -> ast.Grouping:
        found: dict[str, Tree[Token]] = {}
        for group in _trees(tree):
            if str(group.data) in found:
                raise self.error("GROUP BY has this twice", self.span(group), "leave one out")
            found[str(group.data)] = group
        times = found.get("group_time")
        length = None if times is None else self.duration(times, "stretch of time")
        if times is not None and not length:
            raise self.error(
                "no match ends within no time", self.span(times), "GROUP BY 1 HOUR has a row for each hour"
            )
        return ast.Grouping("group_event" in found, "group_key" in found, length, "group_window" in found,
                            span=self.span(tree))  # fmt: skip

    def consume(self, tree: Tree[Token]) -> ast.Consumption:
        return ast.Consumption(ast.Consume(_token(tree).upper()), span=self.span(tree))

    def limit(self, tree: Tree[Token]) -> ast.Limit:
        return ast.Limit(self.integer(_token(tree), "LIMIT"), span=self.span(tree))

    def after(self, tree: Tree[Token]) -> ast.AfterMatch:
        span = self.span(tree)
        variable = None
        for named in _trees(tree):
            text = ">".join(self.name(n).text for n in _trees(named))
            variable = ast.Name(text, span=self.span(named))
        return ast.AfterMatch(AfterText[str(tree.data).upper()], variable, span=span)

    # Formulas

    def formula(self, tree: Tree[Token]) -> ast.Formula:
        span = self.span(tree)
        match str(tree.data):
            case "event_type":
                return self.event_type(_child(tree, 0), None, span)
            case "stream_event_type":
                return self.event_type(_child(tree, 1), self.name(_child(tree, 0)), span)
            case "as_name":
                return ast.As(self.formula(_child(tree, 0)), self.name(_child(tree, 1)), span=span)
            case "filter":
                condition = self.condition(_child(tree, 1), in_brackets=False)
                return ast.Filter(self.formula(_child(tree, 0)), condition, span=span)
            case "either":
                return ast.Either(self.formula(_child(tree, 0)), self.formula(_child(tree, 1)), span=span)
            case "then" | "next" | "follow" as kind:
                left, right = self.formula(_child(tree, 0)), self.formula(_child(tree, 1))
                return then(left, right, _JOINS[kind], span)
            case "optional":
                return ast.Repeat(self.formula(_child(tree, 0)), 0, 1, span=span)
            case "reluctant" | "each" as kind:
                chosen = self.repeat(_child(tree, 0))
                return dataclasses.replace(chosen, preference=Preference(kind), span=span)
            case "until":
                until = _child(tree, 1)
                ending = ast.Without(self.formula(until), span=self.span(until))
                return dataclasses.replace(self.repeat(_child(tree, 0)), until=ending, span=span)
            case "without":
                return ast.Without(self.formula(_child(tree, 0)), span=span)
            case "without_for" | "without_for_every":
                lasting = self.duration(_child(tree, 1), "duration")
                return ast.Without(self.formula(_child(tree, 0)), lasting, tree.data != "without_for", span=span)
            case "conjunction":
                return ast.Conjunction(tuple(self.formula(c) for c in _trees(tree)), span=span)
            case kind if kind in _REPEATS:
                return self.rounds(tree)
        raise InternalError(f"no formula for {tree.data}")

    def event_type(self, tree: Tree[Token], stream: ast.Name | None, span: Span) -> ast.EventType:
        name, every = self.name(tree).text, str(_token(tree)).upper() == ast.EVERY
        return ast.EventType(ast.EVERY if every else name, stream, every, span=span)

    def repeat(self, tree: Tree[Token]) -> ast.Repeat:
        found = self.formula(tree)
        assert isinstance(found, ast.Repeat)
        return found

    def rounds(self, tree: Tree[Token]) -> ast.Repeat:
        """`φ+`, `φ:*`, `φ->{2,3}` and the like."""
        span, sign = self.span(tree), str(_token(_child(tree, 1)))
        child, skip = self.formula(_child(tree, 0)), _SIGNS[sign[:-1]]
        if tree.data == "repeat_signed":
            return ast.Repeat(child, int(sign[-1] == "+"), None, skip, span=span)
        bounds = [self.integer(c, "a number of rounds") for c in tree.children if isinstance(c, Token)]
        low = 0 if tree.data == "repeat_to" else bounds[0]
        high = None if tree.data == "repeat_from" else bounds[-1]
        if high is not None and high < max(low, 1):
            raise self.error(
                f"{{{low},{high}}} allows no number of rounds",
                span,
                "the greatest number of rounds is 1 or more, and not below the least",
            )
        return ast.Repeat(child, low, high, skip, span=span)

    # Conditions: what is true, false or unknown

    def condition(self, tree: Tree[Token], in_brackets: bool) -> ast.Condition:
        span = self.span(tree)
        down = functools.partial(self.condition, in_brackets=in_brackets)
        value = functools.partial(self.value, in_brackets=in_brackets)
        match str(tree.data):
            case "or_":
                return ast.Or(down(_child(tree, 0)), down(_child(tree, 1)), span=span)
            case "and_":
                return ast.And(down(_child(tree, 0)), down(_child(tree, 1)), span=span)
            case "not_":
                return ast.Not(down(_child(tree, 0)), span=span)
            case "grouped":
                return down(_child(tree, 0))
            case "compare":
                return self.compare(tree, in_brackets)
            case "like" | "not_like" as kind:
                like = ast.Like(value(_child(tree, 0)), self.pattern(_child(tree, 1)), span=span)
                return ast.Not(like, span=span) if kind == "not_like" else like
            case "ilike" | "not_ilike" as kind:
                like = ast.Like(value(_child(tree, 0)), "(?i)" + self.pattern(_child(tree, 1)), span=span)
                return ast.Not(like, span=span) if kind == "not_ilike" else like
            case "from_to" | "not_from_to" as kind:
                between = ast.InRange(*[value(c) for c in _trees(tree)], span=span)
                return ast.Not(between, span=span) if kind == "not_from_to" else between
            case "is_null" | "is_not_null" as kind:
                null = ast.IsNull(value(_child(tree, 0)), span=span)
                return ast.Not(null, span=span) if kind == "is_not_null" else null
            case "in_" | "not_in" as kind:
                member = self.membership(value(_child(tree, 0)), _child(tree, 1), in_brackets, span)
                return ast.Not(member, span=span) if kind == "not_in" else member
            case "holds":
                return self.holds(tree, in_brackets)
            case "call" if self.gives_truth(tree):
                return ast.Compare("=", self.call(tree, in_brackets), ast.Truth(True, span=span), span=span)
            case _:
                raise self.not_a_condition(tree, in_brackets)

    def compare(self, tree: Tree[Token], in_brackets: bool) -> ast.Condition:
        left, operator, right = tree.children
        assert isinstance(left, Tree) and isinstance(right, Tree) and isinstance(operator, Token)
        if operator == ">" and left.data == "bare" and right.data == "holds" and not in_brackets:
            held = self.holds(right, in_brackets)
            stream = self.name(_child(left, 0))
            variable = ast.Name(f"{stream.text}>{held.variable.text}", span=stream.span.to(held.variable.span))
            return ast.Holds(variable, held.condition, span=self.span(tree))
        text = _OPERATORS.get(str(operator), str(operator))
        if right.data == "call" and (word := self.quantifier(right)):
            return self.quantify(f"{text} {word}", left, right, in_brackets, self.span(tree))
        return ast.Compare(text, self.value(left, in_brackets), self.value(right, in_brackets), span=self.span(tree))

    def quantifier(self, call: Tree[Token]) -> str:
        """ANY or ALL if a call is `ANY(…)` or `ALL(…)`, which are no functions; else an empty text."""
        name = _token(_child(call, 0))
        return _QUANTIFIERS.get(name.upper(), "") if name.type == "IDENT" else ""

    def quantify(
        self, function: str, left: Tree[Token], right: Tree[Token], in_brackets: bool, span: Span
    ) -> ast.Compare:
        """`x.price > ALL(y.history)`, a call of the row `> ALL` of the table of functions."""
        listed = self.call(right, in_brackets)
        assert isinstance(listed, ast.Call)
        if len(listed.arguments) > 1:
            hint = "constants stand in braces: x.price IN {1, 2}"
            raise self.error(f"{listed.function} is of one list", self.span(right), hint)
        call = ast.Call(function, (self.value(left, in_brackets), *listed.arguments), span=span)
        return ast.Compare("=", call, ast.Truth(True, span=span), span=span)

    def holds(self, tree: Tree[Token], in_brackets: bool) -> ast.Holds:
        if in_brackets:
            raise self.error(
                "brackets inside brackets", self.span(tree), "write x[a > 1] AND y[b > 2], one after the other"
            )
        condition = self.condition(_child(tree, 1), in_brackets=True)
        return ast.Holds(self.name(_child(tree, 0)), condition, span=self.span(tree))

    def pattern(self, tree: Tree[Token]) -> str:
        token = _token(tree)
        return str(token)[2:-2] if token.type == "REGEX" else _unquote(str(token))

    def many_values(self, token: Token) -> tuple[ast.Expression, ...]:
        """The constants of a long set."""
        start = token.start_pos
        assert start is not None
        found: list[ast.Expression] = []
        for value in _CONSTANT.finditer(token):
            text = value["text"]
            part = Token("STRING" if text else "NUMBER", text or value["number"], value.start() + start)
            part.end_pos = value.end() + start
            span = self.span(part)
            sign = -1 if value["sign"] else 1
            found.append(
                ast.Text(_unquote(text), span=span) if text else ast.Number(self.number(part, sign), span=span)
            )
        return tuple(found)

    def membership(self, value: ast.Expression, tree: Tree[Token], in_brackets: bool, span: Span) -> ast.Condition:
        if tree.data == "members":
            names = [self.name(part) for part in _trees(tree)]
            if len(names) == 1 and not in_brackets:
                raise self.error(f"whose {names[0].text}?", names[0].span, f"write IN x.{names[0].text}")
            variable = names[0].text if len(names) == 2 else None
            values = ast.Attribute(names[-1].text, variable, span=self.span(tree))
            return ast.Compare(
                "=", ast.Call("MEMBER", (value, values), span=span), ast.Truth(True, span=span), span=span
            )
        if tree.data == "many_values":
            return ast.In(value, self.many_values(_token(tree)), span=span)
        parts = [self.value(c, in_brackets) for c in _trees(tree)]
        match str(tree.data):
            case "values":
                return ast.In(value, tuple(parts), span=span)
            case "between":
                return ast.InRange(value, parts[0], parts[1], span=span)
            case "at_least":
                return ast.InRange(value, parts[0], None, span=span)
            case _:
                return ast.InRange(value, None, parts[0], span=span)

    def not_a_condition(self, tree: Tree[Token], in_brackets: bool) -> QuerySyntaxError:
        span = self.span(tree)
        found = self.text[span.start : span.end]
        if in_brackets:
            hint = f"compare it with something: {found} > 3" if tree.data == "bare" else "compare it with something"
        elif tree.data == "bare":
            hint = f"write {found}[price > 3], or compare its attributes: {found}.price > 3"
        else:
            hint = "compare it with something, as in x.price > 3"
        return self.error(f"{found} is a value, and a condition is needed here", span, hint)

    # Values

    def value(self, tree: Tree[Token], in_brackets: bool) -> ast.Expression:
        span = self.span(tree)
        down = functools.partial(self.value, in_brackets=in_brackets)
        match str(tree.data):
            case "number":
                return ast.Number(self.number(_token(tree)), span=span)
            case "negative_number":
                return ast.Number(self.number(_token(tree), -1), span=span)
            case "duration":
                return ast.Duration(self.duration(tree, "duration"), span=span)
            case "text":
                return ast.Text(_unquote(str(_token(tree))), span=span)
            case "true" | "false" as kind:
                return ast.Truth(kind == "true", span=span)
            case "null":
                return ast.Null(span=span)
            case "bare":
                return self.bare(tree, in_brackets)
            case "qualified":
                variable, attribute = self.name(_child(tree, 0)), self.name(_child(tree, 1))
                return ast.Attribute(attribute.text, variable.text, span=span)
            case "call" if word := self.quantifier(tree):
                hint = f"it stands behind a comparison: x.price > {word}(x.history)"
                raise self.error(f"{word} compares nothing here", span, hint)
            case "call":
                return self.call(tree, in_brackets)
            case "distinct":
                function, argument = _trees(tree)
                name = f"{self.name(function).text.upper()} DISTINCT"
                return ast.Call(name, (down(argument),), span=span)
            case "call_of_all":
                name = self.name(_child(tree, 0)).text.upper()
                return ast.Call(name, (ast.EveryMatch(span=span),), span=span)
            case "several":
                hint = "write its conditions one after the other: x[a > 1 AND b > 2]"
                raise self.error("a list of attributes is for SELECT", span, hint)
            case "case":
                return self.case(tree, in_brackets)
            case "cast":
                return self.cast(tree, in_brackets)
            case "indexed":
                return self.first_event(tree, in_brackets)
            case "holds" if _child(tree, 1).data == "number":
                event = self.text[span.start : span.end]
                raise self.error(f"{event} of which attribute?", span, f"write {event}.price")
            case "grouped" | "unchanged":
                return down(_child(tree, 0))
            case "negate":
                child = _child(tree, 0)
                if child.data == "number":
                    return ast.Number(self.number(_token(child), -1), span=span)
                return ast.Negate(down(child), span=span)
            case kind if kind in _ARITHMETIC:
                return ast.Arithmetic(_ARITHMETIC[kind], down(_child(tree, 0)), down(_child(tree, 1)), span=span)
            case _:
                raise self.error(
                    f"{self.text[span.start : span.end]} is a condition, and a value is needed here",
                    span,
                    "conditions are joined with AND, OR and NOT",
                )

    def cast(self, tree: Tree[Token], in_brackets: bool) -> ast.Call:
        """`CAST(x.price AS NUMBER)`, a call whose second argument is the name of the kind."""
        function, kind = self.name(_child(tree, 0)), self.name(_child(tree, 2))
        if function.text.upper() not in _CASTS:
            hint = "CAST(x.price AS NUMBER) has it, and columns get names in SELECT alone"
            raise self.error(f"AS inside of {function.text.upper()}()", kind.span, hint)
        name = ast.Text(kind.text.upper(), span=kind.span)
        return ast.Call(function.text.upper(), (self.value(_child(tree, 1), in_brackets), name), span=self.span(tree))

    def case(self, tree: Tree[Token], in_brackets: bool) -> ast.Case:
        """`CASE WHEN v > 3 THEN …`; `CASE v WHEN 3 THEN …` is `CASE WHEN v = 3 THEN …`."""
        whens = [part for part in _trees(tree) if part.data == "when"]
        others = [part for part in _trees(tree) if part.data == "otherwise"]
        first = _trees(tree)[0]
        compared = None if first.data == "when" else self.value(first, in_brackets)
        conditions: list[ast.Condition] = []
        for when in whens:
            test = _child(when, 0)
            if compared is None:
                conditions.append(self.condition(test, in_brackets))
            else:
                conditions.append(ast.Compare("=", compared, self.value(test, in_brackets), span=self.span(test)))
            self.refuse_brackets(conditions[-1])
        results = tuple(self.value(_child(when, 1), in_brackets) for when in whens)
        otherwise = self.value(_child(others[0], 0), in_brackets) if others else None
        return ast.Case(tuple(conditions), results, otherwise, span=self.span(tree))

    def refuse_brackets(self, condition: ast.Condition) -> None:
        for part in parts(condition):
            if isinstance(part, ast.Holds):
                hint = "write CASE WHEN x.price > 3, or the whole CASE inside of the brackets"
                raise self.error("brackets inside CASE", part.span, hint)

    def bare(self, tree: Tree[Token], in_brackets: bool) -> ast.Attribute:
        name = self.name(_child(tree, 0))
        if in_brackets or self.selecting:
            return ast.Attribute(name.text, span=name.span)
        hint = f"write x.{name.text}, or x[{name.text} …]"
        if name.text.upper() in (*ast.MATCH_TIMES, ast.SILENCE, ast.GROUP_START):
            hint = f"SELECT gives {name.text.upper()} with a match; for an attribute of that name {hint}"
        raise self.error(f"whose {name.text}? A FILTER names the variable", name.span, hint)

    def gives_truth(self, call: Tree[Token]) -> bool:
        function = FUNCTIONS.get(self.name(_child(call, 0)).text.upper())
        return function is not None and function.gives == "truth"

    def first_event(self, tree: Tree[Token], in_brackets: bool) -> ast.Earlier:
        """`b[0].price`."""
        variable, index, attribute = _trees(tree)
        span, name = self.span(tree), f"{self.name(variable).text}.{self.name(attribute).text}"
        if in_brackets:
            hint = f"write {name} > {self.name(variable).text}[0].{self.name(attribute).text} outside of the brackets"
            raise self.error("brackets inside brackets", span, hint)
        number = self.value(index, True) if index.data in ("number", "negate") else None
        if number != ast.Number(0):
            hint = f"the first event is {self.name(variable).text}[0], the last one before is PREV({name}), and the "
            raise self.error("only [0], the first event, can be named by its number", self.span(index),
                             hint + f"second last one PREV({name}, 2)")  # fmt: skip
        read = ast.Attribute(self.name(attribute).text, self.name(variable).text, span=span)
        return ast.Earlier(read, 0, span=span)

    def call(self, tree: Tree[Token], in_brackets: bool) -> ast.Call | ast.Earlier:
        function, *arguments = _trees(tree)
        if self.name(function).text.upper() in ("IF", "IIF") and self.is_condition(arguments[0]):
            hint = "write CASE WHEN x.price > 3 THEN 'dear' ELSE 'cheap' END"
            raise self.error("there is no function IF", self.span(function), hint)
        build: Callable[[Tree[Token]], ast.Expression] = lambda node: (  # noqa: E731
            ast.Variable(self.name(_child(node, 0)).text, span=self.span(node))
            if node.data == "bare" and not in_brackets
            else self.value(node, in_brackets)
        )
        name, built, span = self.name(function).text.upper(), tuple(build(a) for a in arguments), self.span(tree)
        match built if name == "PREV" else ():
            case (ast.Attribute() as read,):
                return ast.Earlier(read, 1, span=span)
            case (ast.Attribute() as read, ast.Number(int(back))) if 0 < back <= ast.MOST_BACK:
                return ast.Earlier(read, back, span=span)
        return ast.Call(name, built, span=span)


_QUANTIFIERS: Final = {"ANY": "ANY", "SOME": "ANY", "ALL": "ALL"}
_CASTS: Final = ("CAST", "TRY_CAST")
_SIGNS: Final = {"": Skip.ANY, "->": Skip.NEXT, ":": Skip.NONE}
_JOINS: Final = {"then": Skip.ANY, "next": Skip.NEXT, "follow": Skip.NONE}
_CONDITIONS: Final = (
    "or_", "and_", "not_", "compare", "like", "not_like", "ilike", "not_ilike", "from_to", "not_from_to", "is_null",
    "is_not_null", "in_", "not_in",
)  # fmt: skip
_REPEATS: Final = ("repeat_signed", "repeat_exactly", "repeat_from", "repeat_to", "repeat")
_CLAUSE_WORDS: Final = {"partition": "PARTITION BY", "clause": "WITHIN", "consume": "CONSUME BY", "limit": "LIMIT",
                        "order": "ORDER BY", "after_match": "AFTER MATCH", "grouping": "GROUP BY"}  # fmt: skip


def _trees(tree: Tree[Token]) -> list[Tree[Token]]:
    return [c for c in tree.children if isinstance(c, Tree)]


def _child(tree: Tree[Token], index: int) -> Tree[Token]:
    child = tree.children[index]
    assert isinstance(child, Tree)
    return child


def _token(tree: Tree[Token]) -> Token:
    token = tree.children[0]
    assert isinstance(token, Token)
    return token


def _unquote(literal: str) -> str:
    """The text of a quoted literal: a straight quote stands for itself when doubled."""
    quote, body = literal[0], literal[1:-1]
    return body.replace(quote * 2, quote) if quote in "'\"" else body
