"""Parts of a query that can be read in two ways, each with the spelling of both readings.

* `A ; NOT (B) ; C` says that no B comes in between. The engine of [CORE] writes every NOT with parentheses, and its NOT
  is one event that is not a B.
* `SELL AS a ; NOT (SELL AS b FILTER b.price > SELL.price) ; C` compares b with itself: b is a SELL of the same NOT.
* `b[COUNT(b) >= 2]` reads an attribute called b: a bare name in brackets is an attribute, not a variable.
* `b.price = NULL` is NULL, whatever the price is; `b.price IS NULL` asks for events without one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ceql.semantics.check import conditions, event_types, formulas
from ceql.semantics.filters import Leaf, as_test, leaves
from ceql.semantics.scopes import absences, defined_names
from ceql.syntax import ast
from ceql.syntax.printer import print_expression
from ceql.syntax.walk import attributes_of, calls_of, parts

_PARENTHESIS: Final = re.compile(r"NOT\s*\(", re.IGNORECASE)


def ambiguities(query: ast.Query, text: str) -> list[str]:
    """A line for each part of the query that can be read in two ways; `text` is the text of the query."""
    found = [
        *_absences(query.where, text),
        *_compared_with_themselves(query.where),
        *_attributes_like_variables(query.where),
        *_compared_with_null(query),
    ]
    return [
        f"{node.span.line}:{node.span.column}: {line}" for node, line in sorted(found, key=lambda f: f[0].span.start)
    ]


def _absences(where: ast.Formula, text: str) -> Iterator[tuple[ast.Node, str]]:
    """Each NOT that the engine of [CORE] reads too, and as one event."""
    absent = [no for node in formulas(where) if isinstance(node, ast.Sequence) for no in absences(node)]
    for node in absent:
        if _PARENTHESIS.match(text, node.span.start) and _is_atomic(node.child):
            (atom,) = event_types(node.child)
            name = text[atom.span.start : atom.span.end]
            yield node, _absence(name, text[node.child.span.start : node.child.span.end])


def _absence(name: str, part: str) -> str:
    is_plain = part == name
    no, absence = ("no", f"NOT {name}") if is_plain else ("no such", f"NOT ({name} AS x FILTER x[…])")
    other = name if is_plain else f"({part})"
    return (
        f"NOT ({part}) says that {no} {name} comes here; {absence} says so without this warning. In CORE it is one "
        f"event that is something else: (NOT {other}) AS n"
    )


def _is_atomic(node: ast.Formula) -> bool:
    """True for `R` and for `R FILTER …` whose conditions are all of the form `R[…]`."""
    match node:
        case ast.EventType():
            return True
        case ast.Filter(child, condition):
            return _is_atomic(child) and _is_in_brackets(condition)
    return False


def _is_in_brackets(node: ast.Condition) -> bool:
    match node:
        case ast.And(left, right) | ast.Or(left, right):
            return _is_in_brackets(left) and _is_in_brackets(right)
    return isinstance(node, ast.Holds)


def _compared_with_themselves(where: ast.Formula) -> Iterator[tuple[ast.Node, str]]:
    """Each attribute of a type, in a condition on a variable that holds events of this type of the same part."""
    everywhere = _names(where)
    atoms = [name for atom in event_types(where) for name in defined_names(atom)]
    for node in formulas(where):
        if isinstance(node, ast.Filter):
            own, names = defined_names(node.child), _names(node.child)
            for leaf in leaves(as_test(node.condition)):
                for attribute, variable in [*_same(leaf, own, names), *_same(leaf, leaf.variables - own, everywhere)]:
                    event, others = attribute.variable or "", everywhere[attribute.variable or ""]
                    if atoms.count(event) > 1:
                        yield attribute, _itself(attribute, variable, [name for name in others if name != variable])


def _same(leaf: Leaf, scope: frozenset[str], names: dict[str, list[str]]) -> Iterator[tuple[ast.Attribute, str]]:
    """The attributes of event types in a condition, each with a variable of the condition that has the same event."""
    for attribute in attributes_of(leaf.condition):
        if attribute.variable in scope:
            for variable in names.get(attribute.variable, ()):
                if variable in leaf.variables and variable != attribute.variable:
                    yield attribute, variable


def _names(node: ast.Formula) -> dict[str, list[str]]:
    """For each event type, the variables that AS gives its events in a formula."""
    found: dict[str, list[str]] = {}
    for part in formulas(node):
        if isinstance(part, ast.As):
            for atom in event_types(part.child):
                for name in defined_names(atom):
                    found.setdefault(name, []).append(part.variable.text)
    return found


def _itself(attribute: ast.Attribute, variable: str, others: list[str]) -> str:
    event, name = attribute.variable, attribute.name
    other = f"write {others[0]}.{name}" if others else f"give it a name, {event} AS x, and write x.{name}"
    return (
        f"{event}.{name} is {variable}.{name}, too, as {variable} is one of the {event} events of the same part: it is "
        f"compared with itself. If another {event} is meant, {other}"
    )


def _attributes_like_variables(where: ast.Formula) -> Iterator[tuple[ast.Node, str]]:
    """Each bare name in the brackets of a variable that is also the name of a variable."""
    variables = {part.variable.text for part in formulas(where) if isinstance(part, ast.As)}
    variables.update(*map(defined_names, event_types(where)))
    for condition in conditions(where):
        for held in parts(condition):
            if isinstance(held, ast.Holds):
                counted = [call for call in calls_of(held.condition) if call.function == "COUNT"]
                for attribute in attributes_of(held.condition):
                    if attribute.variable is None and attribute.name in variables:
                        is_counted = any(attribute is part for call in counted for part in call.arguments)
                        yield attribute, _called_alike(held.variable.text, attribute.name, is_counted)


def _compared_with_null(query: ast.Query) -> Iterator[tuple[ast.Node, str]]:
    """Each comparison with NULL."""
    for whole in (*conditions(query.where), *query.expressions):
        for node in parts(whole):
            if isinstance(node, ast.Compare) and ast.Null in (type(node.left), type(node.right)):
                value = print_expression(node.left if isinstance(node.right, ast.Null) else node.right)
                test = "IS NOT NULL" if node.operator == "!=" else "IS NULL"
                yield node, f"{print_expression(node)} is NULL, never true: {value} {test} asks for missing values"


def _called_alike(variable: str, name: str, is_counted: bool) -> str:
    meant = f"COUNT({name}) outside of the brackets" if is_counted else f"{name}.price outside of the brackets"
    return (
        f"{name} is an attribute here, as every bare name in {variable}[…] is, and a variable has the same name; for "
        f"the variable write {meant}, for the attribute {variable}.{name}"
    )
