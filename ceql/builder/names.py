"""The variables of a query: marks in the trees, which become names when the text is asked for.

An event of the builder is a variable that has no name yet, only an identity. In its trees the variable is a *mark*: a
text with the name that it would like, and with characters that no name has. `resolve` replaces all marks of a query.

The variable of an event type is the type itself, `fail`, if all events of this type in the formula are the events of
that variable. Otherwise the type holds others, too, so each variable has an AS: `A AS A1 ; A AS A2`.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator
from typing import Final, TypeVar

from ceql.syntax import ast
from ceql.syntax.walk import parts, replace
from spaseq.core.errors import OptionError
from spaseq.core.trees import children, mapped, walk

E = TypeVar("E", bound=ast.Expression)

_CHOSEN: Final = "\0="
_AUTOMATIC: Final = "\0~"
_OF_ANY: Final = "e"
"""The name of an event of whatever type, if a condition names it."""


def new_mark(name: str, *, chosen: bool) -> str:
    """A mark unlike all others. `name` is the wish of the builder, or the name that its user has `chosen`."""
    return f"{name}{_CHOSEN if chosen else _AUTOMATIC}{uuid.uuid4().hex}"


def is_mark(name: str) -> bool:
    """True for a mark, false for a name as it was in a text."""
    return "\0" in name


def is_automatic(name: str) -> bool:
    """True for the mark of an event without a name that its user chose."""
    return _AUTOMATIC in name


def show_expression(node: E) -> E:
    """An expression with names for marks, to be looked at: it may name variables of a formula that is not there."""
    return _rename(node, _names(ast.EventType(ast.EVERY, every=True), list(_list_variables(node))))


def show_formula(node: ast.Formula) -> ast.Formula:
    """A formula with names for marks, to be looked at. It may be a part, whose conditions name events of other
    parts."""
    return _with_names(node, _names(node, _list_mentions(node)))


def resolve(query: ast.Query, *, strict: bool) -> ast.Query:
    """The query with a name for each mark. O(size of the query).

    Raises `OptionError` if one name would be that of two variables; if `strict`, also if a variable takes no events.
    """
    mentions = [*_list_mentions(query.where), *_list_selected(query)]
    _check(query.where, mentions if strict else [])
    names = _names(query.where, mentions)
    selection = query.selection
    items = selection.items and tuple(
        dataclasses.replace(item, variable=names.get(item.variable, item.variable)) for item in selection.items
    )
    columns = tuple(
        dataclasses.replace(column, expression=_rename(column.expression, names)) for column in selection.columns
    )
    order = query.order and dataclasses.replace(
        query.order,
        keys=tuple(dataclasses.replace(k, expression=_rename(k.expression, names)) for k in query.order.keys),
    )
    after = query.after
    if after is not None and after.variable is not None:
        variable = dataclasses.replace(after.variable, text=names.get(after.variable.text, after.variable.text))
        after = dataclasses.replace(after, variable=variable)
    return dataclasses.replace(
        query,
        where=_with_names(query.where, names),
        selection=dataclasses.replace(selection, items=items, columns=columns),
        after=after,
        order=order,
    )


def _wish(mark: str) -> str:
    """The name that a mark would like; a name as it is."""
    return mark.partition("\0")[0]


def _list_mentions(node: ast.Formula) -> list[str]:
    """The variables that the conditions of a formula name."""
    found = (part.condition for part in walk(node) if isinstance(part, ast.Filter))
    return [name for condition in found for name in _list_variables(condition)]


def _list_selected(query: ast.Query) -> Iterator[str]:
    """The variables that the clauses of a query name."""
    for expression in query.expressions:
        yield from _list_variables(expression)
    yield from (item.variable for item in query.selection.items or ())
    if query.after is not None and query.after.variable is not None:
        yield query.after.variable.text


def _owners(node: ast.Formula) -> tuple[dict[str, ast.Formula], dict[str, set[str]], set[str]]:
    """The marks of a formula in their order, each with its part; the marks around each event type; other names of AS.

    The mark around a type that is under none is "".
    """
    marks: dict[str, ast.Formula] = {}
    types: dict[str, set[str]] = {}
    given: set[str] = set()
    waiting = [(node, "")]
    while waiting:
        part, owner = waiting.pop()
        if isinstance(part, ast.As):
            if is_mark(part.variable.text):
                owner = part.variable.text
                marks.setdefault(owner, part.child)
            else:
                given.add(part.variable.text)
        elif isinstance(part, ast.EventType):
            types.setdefault(part.name, set()).add(owner)
        waiting += [(child, owner) for child in reversed(children(part))]
    return marks, types, given


def _names(formula: ast.Formula, mentions: list[str]) -> dict[str, str]:
    """The name of each mark in a formula and in `mentions`."""
    marks, types, given = _owners(formula)
    every = dict.fromkeys([*marks, *filter(is_mark, mentions)])
    chosen = {mark: _wish(mark) for mark in every if _CHOSEN in mark}
    taken = {*given, *chosen.values(), *(name for name in mentions if not is_mark(name))}
    names = dict(chosen)
    groups: dict[str, list[str]] = {}
    for mark in every:
        if mark in chosen:
            continue
        wish, part = _wish(mark), marks.get(mark)
        named = isinstance(part, ast.EventType) and (mark not in mentions if part.every else part.name == wish)
        if isinstance(part, ast.EventType) and named and types[part.name] == {mark} and part.name not in taken:
            names[mark] = part.name
        else:
            groups.setdefault(wish, []).append(mark)
    taken |= {*types, *names.values()}
    for wish, same in groups.items():
        numbered = (f"{wish}{'_' * wish[-1:].isdigit()}{number}" for number in range(1, 10**9))
        for mark in same:
            names[mark] = wish if len(same) == 1 and wish not in taken else next(n for n in numbered if n not in taken)
            taken.add(names[mark])
    return names


def _check(formula: ast.Formula, mentions: list[str]) -> None:
    marks, types, given = _owners(formula)
    chosen: dict[str, str] = {}
    for mark in (mark for mark in marks if _CHOSEN in mark):
        name = _wish(mark)
        if chosen.setdefault(name, mark) != mark or name in given:
            hint = "each needs a name of its own; one object used twice is one variable"
            raise OptionError(f"two parts of the pattern are called {name}", hint)
        if types.get(name, {mark}) != {mark}:
            hint = f"the variable {name} would hold all events of that type; choose another name"
            raise OptionError(f"{name} is the name of a part, and a type of other events", hint)
    for name in mentions:
        if is_mark(name) and name not in marks:
            wish = _wish(name)
            hint = f"one object is one event: x = event({wish!r}); seq(x, …).where(x.price > 3)"
            raise OptionError(f"the query names an event, {wish}, that is no part of its pattern", hint)


def _list_variables(node: ast.Expression) -> Iterator[str]:
    """The variables that an expression names, those in front of brackets among them."""
    for part in parts(node):
        match part:
            case ast.Variable(name) | ast.Attribute(_, str(name)) | ast.Holds(ast.Name(name)):
                yield name


def _rename(node: E, names: dict[str, str]) -> E:
    def change(part: ast.Expression) -> ast.Expression | None:
        match part:
            case ast.Variable(name):
                return ast.Variable(names.get(name, name))
            case ast.Attribute(attribute, str(name)):
                return ast.Attribute(attribute, names.get(name, name))
            case ast.Holds(ast.Name(name), condition):
                return ast.Holds(ast.Name(names.get(name, name)), _rename(condition, names))
        return None

    return replace(node, change)


def _with_names(formula: ast.Formula, names: dict[str, str]) -> ast.Formula:
    def change(node: ast.Formula) -> ast.Formula:
        match node:
            case ast.Filter(_, condition):
                return dataclasses.replace(node, condition=_rename(condition, names))
            case ast.As(ast.EventType(name) as child, ast.Name(mark)) if is_mark(mark) and names[mark] == name:
                return child
            case ast.As(_, ast.Name(mark)) if is_mark(mark):
                return dataclasses.replace(node, variable=ast.Name(names[mark]))
        return node

    return mapped(formula, change)
