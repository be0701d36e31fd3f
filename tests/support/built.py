"""A query built by calls of the builder (`ceql.builder`), as its users write them, from the tree of a text."""

from __future__ import annotations

import dataclasses
import datetime
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import ceql
from ceql.semantics.check import formulas
from ceql.syntax import ast
from ceql.syntax.printer import print_formula
from ceql.syntax.walk import replace, with_variables
from spaseq.core.pattern import Preference, Skip
from spaseq.core.trees import mapped

_JOINS: dict[Skip, Callable[..., ceql.Pattern]] = {
    Skip.ANY: ceql.seq,
    Skip.NEXT: ceql.steps,
    Skip.NONE: ceql.adjacent,
}
_SIGNS: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod,
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_AGGREGATES = ("SUM", "AVG", "MIN", "MAX", "STDDEV", "FIRST", "LAST", "COLLECT")


class NotOffered(Exception):
    """The builder has no call for this."""


def plain(query: ast.Query) -> ast.Query:
    """The tree with `x[v > 3]` for `x[x.v > 3]`: both mean the same, and the builder writes the first."""

    def change(part: ast.Expression) -> ast.Expression | None:
        match part:
            case ast.Holds(ast.Name(own), inner):
                bare = with_variables(inner, lambda name: None if name == own else name)
                return dataclasses.replace(part, condition=bare)
        return None

    def each(node: ast.Formula) -> ast.Formula:
        return (
            dataclasses.replace(node, condition=replace(node.condition, change))
            if isinstance(node, ast.Filter)
            else node
        )

    return dataclasses.replace(query, where=mapped(query.where, each))


def build(query: ast.Query) -> ceql.PatternQuery:
    """The query of the builder. Raises `NotOffered` for what it has not: the variables `s>R` of streams."""
    return _Calls(query).query()


class _Calls:
    def __init__(self, tree: ast.Query) -> None:
        self.tree = tree
        nodes = list(formulas(tree.where))
        types = [node for node in nodes if isinstance(node, ast.EventType)]
        self.aliases: dict[str, ceql.Variable] = {
            node.variable.text: ceql.event("any type").alias(node.variable.text)
            for node in nodes
            if isinstance(node, ast.As)
        }
        under = {id(node.child) for node in nodes if isinstance(node, ast.As)}
        self.raw = set()
        """Types whose variable has events of several parts of the builder, or is not the type's: from a text."""
        self.events: dict[str, ceql.Event] = {}
        for name in {node.name for node in types}:
            same = [node for node in types if node.name == name]
            bare = [node for node in same if id(node) not in under]
            several = len({node.stream for node in same}) > 1 or len({node.every for node in same}) > 1
            if several or len(bare) < len(same) or same[0].every or name in self.aliases:
                self.raw.add(name)
            else:
                stream = same[0].stream
                self.events[name] = ceql.event(name, stream=None if stream is None else stream.text)
        if clash := self.aliases.keys() & {node.name for node in types}:
            raise NotOffered(f"variables that are types: {clash}")

    def query(self) -> ceql.PatternQuery:
        tree = self.tree
        query: Any = self.formula(tree.where)
        selection = tree.selection
        if selection.columns:
            query = query.select(*map(self.column, selection.columns))
        elif selection.items == ():
            query = query.select(None)
        elif selection.items is not None:
            query = query.select(*map(self.item, selection.items))
        if selection.strategy is not None:
            query = query.keep(selection.strategy.value.lower())
        if tree.streams:
            query = query.streams(*(name.text for name in tree.streams))
        if tree.partition:
            query = query.over(*([name.text for name in bracket] for bracket in tree.partition))
        match tree.within:
            case ast.WithinEvents(count):
                query = query.within(events=count)
            case ast.WithinTime(length):
                query = query.within(f"{length}ns")
            case ast.WithinAttribute(size, ast.Name(attribute)):
                query = query.within(size, attribute)
        if tree.consume is not None:
            query = query.consume(tree.consume.policy.value.lower())
        if tree.order is not None:
            keys = [self.value(key.expression) for key in tree.order.keys]
            query = query.order_by(*keys, descending=[key.descending for key in tree.order.keys])
        if tree.limit is not None:
            query = query.limit(tree.limit.count)
        if tree.grouping is not None:
            grouping, stretch = tree.grouping, tree.grouping.length
            words = [word for word, there in (("event", grouping.event), ("key", grouping.key)) if there]
            query = query.group_by(*words, *([] if stretch is None else [f"{stretch}ns"]))
        if tree.after is not None:
            of = () if tree.after.variable is None else (self.variable(tree.after.variable.text),)
            query = query.after_match(tree.after.rule.name.lower(), *of)
        return query if isinstance(query, ceql.PatternQuery) else query.over()

    def variable(self, name: str) -> ceql.Variable:
        if name in self.aliases:
            return self.aliases[name]
        if name in self.events:
            return self.events[name]
        if name in self.raw:
            return ceql.pattern(print_formula(ast.EventType(name, every=name == "ANY"))).variable(name)
        raise NotOffered(f"variables of streams: {name}" if ">" in name else f"unknown variables: {name}")

    def item(self, item: ast.Selected) -> Any:
        variable = self.variable(item.variable)
        return variable[[name.text for name in item.attributes]] if item.attributes else variable

    def column(self, column: ast.Column) -> Any:
        node = column.expression
        found: Any = self.condition(node) if isinstance(node, ast.Condition) else self.value(node)
        return found if column.name is None else found.alias(column.name.text)

    def formula(self, node: ast.Formula) -> ceql.Pattern:
        down = self.formula
        match node:
            case ast.EventType(name):
                return self.events[name] if name in self.events else ceql.pattern(print_formula(node))
            case ast.As(child, ast.Name(variable)):
                return down(child).alias(self.aliases[variable])
            case ast.Filter(child, condition):
                return down(child).where(self.condition(condition))
            case ast.Either(left, right):
                return ceql.any_of(down(left), down(right))
            case ast.Sequence(left, right, skip):
                return _JOINS[skip](down(left), down(right))
            case ast.Conjunction(children):
                return ceql.all_of(*map(down, children))
            case ast.Without(child, None):
                return ceql.no(down(child))
            case ast.Without(child, length, every):
                return ceql.no(down(child), **{"every" if every else "lasting": f"{length}ns"})
            case ast.Repeat(child, 0, 1, Skip.ANY, preference, None):
                return down(child).optional(choose=preference.value)
            case ast.Repeat(child, low, high, skip, preference, until):
                return self.loop(down(child), low, high, skip, preference, until)
        raise AssertionError(node)

    def loop(
        self,
        child: ceql.Pattern,
        low: int,
        high: int | None,
        skip: Skip,
        preference: Preference,
        until: ast.Without | None,
    ) -> ceql.Pattern:
        words: dict[str, Any] = {"by": _JOINS[skip].__name__, "choose": preference.value}
        if until is not None:
            words["until"] = self.formula(until.child)
        if high is None and low <= 1:
            return (child.one_or_more if low else child.zero_or_more)(**words)
        return child.times(low, **words) if low == high else child.times(low, high, **words)

    def condition(self, node: ast.Expression) -> ceql.Condition:
        value, down = self.value, self.condition
        match node:
            case ast.And(left, right):
                return down(left) & down(right)
            case ast.Or(left, right):
                return down(left) | down(right)
            case ast.Not(ast.IsNull(child)):
                return value(child).is_not_null()
            case ast.Not(ast.In() | ast.InRange() as child):
                return ~down(child)
            case ast.Not(child):
                return ~down(child)
            case ast.IsNull(child):
                return value(child).is_null()
            case ast.Like(child, regex):
                folded = regex.startswith("(?i)")
                return value(child).ilike(regex.removeprefix("(?i)")) if folded else value(child).like(regex)
            case ast.In(child, items):
                return value(child).is_in([item.value for item in items if isinstance(item, ast.CONSTANTS)])
            case ast.InRange(child, low, high):
                return value(child).between(*(None if side is None else value(side) for side in (low, high)))
            case ast.Holds(ast.Name(name), inner):
                variable = self.variable(name)
                return variable.each(down(with_variables(inner, lambda other: name if other is None else other)))
            case ast.Compare("=", ast.Call("MEMBER", (child, listed)), ast.Truth(True)):
                return value(child).is_in(value(listed))
            case ast.Compare("=", ast.Call(name, (child, listed)), ast.Truth(True)) if " A" in name:
                sign, quantifier = name.split()
                return _SIGNS[sign](value(child), getattr(value(listed), quantifier.lower())())
            case ast.Compare(sign, left, right):
                return _SIGNS[sign](value(left), value(right))
        raise NotOffered(type(node).__name__)

    def value(self, node: ast.Expression) -> ceql.Value:
        down = self.value
        match node:
            case ast.Number(constant) | ast.Text(constant) | ast.Truth(constant):
                return ceql.lit(constant)
            case ast.Null():
                return ceql.lit(None)
            case ast.Duration(length) if length % 1000 == 0:
                return ceql.lit(datetime.timedelta(microseconds=length // 1000))
            case ast.Attribute(name, None):
                return ceql.key(name)
            case ast.Attribute(name, str(variable)):
                return self.variable(variable)[name]
            case ast.Earlier(ast.Attribute(name, str(variable)), back):
                of = self.variable(variable)
                return of.prev(back)[name] if back else of[0][name]
            case ast.Negate(child):
                return -down(child)
            case ast.Arithmetic(sign, left, right):
                return _SIGNS[sign](down(left), down(right))
            case ast.Case(conditions, results, otherwise):
                pairs = [(self.condition(c), down(r)) for c, r in zip(conditions, results, strict=True)]
                first: Any = ceql.when(pairs[0][0]).then(pairs[0][1])
                chosen: Any = reduce(lambda case, pair: case.when(pair[0]).then(pair[1]), pairs[1:], first)
                # Python asks a class before its parent, `a < b` as `b > a`; a plus makes the choice a plain value.
                return +chosen if otherwise is None else chosen.otherwise(down(otherwise))
            case ast.Call("COUNT", (ast.EveryMatch(),)):
                return ceql.match_count
            case ast.Call("COUNT", (ast.Variable(name),)):
                return self.variable(name).count()
            case ast.Call("COUNT DISTINCT", (argument,)):
                return down(argument).count_distinct()
            case ast.Call(name, (argument,)) if name in _AGGREGATES:
                return getattr(down(argument), name.lower())()
            case ast.Call("CAST" | "TRY_CAST" as name, (argument, ast.Text(kind))):
                return getattr(down(argument), name.lower())(kind.lower())
            case ast.Call(name, arguments):
                return getattr(ceql.fn, name.lower())(*map(down, arguments))
        raise NotOffered(type(node).__name__)
