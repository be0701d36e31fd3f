"""Does a query mean something? Names, patterns and scopes, before anything is compiled.

What is checked: variables in SELECT and FILTER are taken somewhere in the formula; `s>R` and FROM agree; regular
expressions are valid; functions exist; a condition names a variable. Reusing a variable is no mistake in CEQL: a
variable holds a set of positions (seed CORE §2.2), so what seed CEL §5.1 calls unsafe has a meaning here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ceql import ast
from ceql.values import whole_string
from ceql.walk import attributes_of, parts
from spaseq.errors import QuerySemanticsError, Span

__all__ = ["FUNCTIONS", "check", "conditions", "defined_variables", "event_types"]

FUNCTIONS: Final = ("AVG", "CORR", "COUNT", "FIRST", "LAST", "MAX", "MIN", "SUM")


def check(query: ast.Query, text: str = "", source: str = "<query>") -> None:
    """Raises `QuerySemanticsError` for the first thing that is wrong."""
    _Checker(text, source).query(query)


def defined_variables(node: ast.Formula) -> Iterator[tuple[str, Span]]:
    """Every variable that takes positions in a formula, with a place where it does."""
    match node:
        case ast.EventType(name, stream):
            yield name, node.span
            if stream is not None:
                yield f"{stream.text}>{name}", node.span
        case ast.As(child, variable):
            yield from defined_variables(child)
            yield variable.text, variable.span
        case _:
            for child in _children(node):
                yield from defined_variables(child)


def event_types(node: ast.Formula) -> Iterator[ast.EventType]:
    """The atoms of a formula."""
    if isinstance(node, ast.EventType):
        yield node
    for child in _children(node):
        yield from event_types(child)


def conditions(node: ast.Formula) -> Iterator[ast.Condition]:
    """The conditions of a formula's filters."""
    if isinstance(node, ast.Filter):
        yield node.condition
    for child in _children(node):
        yield from conditions(child)


def _children(node: ast.Formula) -> tuple[ast.Formula, ...]:
    match node:
        case ast.As(child, _) | ast.Filter(child, _) | ast.Iterate(child, _) | ast.Repeat(child, _, _):
            return (child,)
        case ast.Without(child):
            return (child,)
        case ast.Either(left, right) | ast.Sequence(left, right, _):
            return left, right
        case ast.Conjunction(children):
            return children
    return ()


class _Checker:
    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.variables: list[str] = []

    def error(self, problem: str, span: Span, hint: str = "") -> QuerySemanticsError:
        return QuerySemanticsError(problem, text=self.text, span=span, source=self.source, hint=hint)

    def query(self, query: ast.Query) -> None:
        self.variables = list(dict.fromkeys(name for name, _ in defined_variables(query.where)))
        self.streams(query)
        self.formula(query.where)
        for item in query.selection.items or ():
            self.known(item.variable, item.span, "SELECT")

    def streams(self, query: ast.Query) -> None:
        names = [s.text for s in query.streams]
        for index, stream in enumerate(query.streams):
            if stream.text in names[:index]:
                raise self.error(f"stream {stream.text} twice in FROM", stream.span)
        if not names:
            return
        for atom in event_types(query.where):
            if atom.stream is not None and atom.stream.text not in names:
                hint = _closest(atom.stream.text, names) or f"FROM names {', '.join(names)}"
                raise self.error(f"unknown stream {atom.stream.text}", atom.stream.span, hint)

    def known(self, name: str, span: Span, clause: str) -> None:
        if name in self.variables:
            return
        hint = _closest(name, self.variables) or f"the variables of the formula are {', '.join(self.variables)}"
        raise self.error(f"unknown variable {name} in {clause}", span, hint)

    def formula(self, node: ast.Formula) -> None:
        if isinstance(node, ast.Filter):
            self.condition(node.condition)
        for child in _children(node):
            self.formula(child)

    def condition(self, node: ast.Condition) -> None:
        match node:
            case ast.And(left, right) | ast.Or(left, right):
                self.condition(left)
                self.condition(right)
            case ast.Not(child):
                self.condition(child)
            case ast.Holds(variable, condition):
                self.known(variable.text, variable.span, "FILTER")
                self.expression(condition)
            case _:
                self.expression(node)
                if not any(True for _ in _variables(node)):
                    raise self.error(
                        "this condition is about no variable", node.span, "write x.price > 3, or x[price > 3]"
                    )

    def expression(self, node: ast.Expression) -> None:
        """Names, functions and regular expressions anywhere in an expression."""
        for attribute in attributes_of(node):
            if attribute.variable is not None:
                self.known(attribute.variable, attribute.span, "FILTER")
            elif attribute.name.upper() == "NULL":
                raise self.error(
                    "NULL is not a value to compare with",
                    attribute.span,
                    "a comparison with a missing attribute never holds",
                )
        for part in parts(node):
            match part:
                case ast.Like(_, pattern):
                    self.pattern(pattern, part.span)
                case ast.Call(function, _) if function not in FUNCTIONS:
                    hint = _closest(function, list(FUNCTIONS)) or f"functions are {', '.join(FUNCTIONS)}"
                    raise self.error(f"unknown function {function}", part.span, hint)
                case ast.Variable(name):
                    self.known(name, part.span, "FILTER")

    def pattern(self, pattern: str, span: Span) -> None:
        try:
            for form in (pattern, whole_string(pattern)):
                pc.match_substring_regex(pa.array([""]), form)
        except pa.ArrowInvalid as error:
            reason = str(error).removeprefix("Invalid regular expression:").strip()
            raise self.error(
                f"this is not a regular expression: {reason}",
                span,
                "LIKE takes a regular expression (RE2) for the whole text; '.*' stands for anything",
            ) from None


def _variables(node: ast.Expression) -> Iterator[str]:
    for part in parts(node):
        if isinstance(part, ast.Variable):
            yield part.name
        elif isinstance(part, ast.Attribute) and part.variable is not None:
            yield part.variable


def _closest(name: str, names: list[str]) -> str:
    """A did-you-mean hint, or nothing."""
    lower = {n.lower(): n for n in names}
    found = difflib.get_close_matches(name.lower(), lower, 1, 0.6)
    return f"did you mean {lower[found[0]]}?" if found else ""
